"""Clean inputs batch by batch: tensors, NumPy arrays, named inputs, and what a model's refusal of them may mean."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from netpurify.errors import InputError

Data = Tensor | np.ndarray | Mapping[str, Any] | Iterable[Any]
"""Clean inputs: a tensor or array, named ones in a mapping, or batches that can be read several times."""
BATCH = 32
"""How many inputs of a tensor go through the network at a time."""
_LABELS = ("label", "labels", "target", "targets")
_OTHER_DTYPE = ("have the same dtype", "expected scalar type", "should be the same", "expected m1 and m2")
"""Words of torch about inputs of another dtype than the weights."""
_WIDE = ("uint16", "uint32", "uint64")
"""Kinds of whole numbers for which torch has next to no operations."""


def batches(data: Data, batch: int = BATCH) -> Iterator[Any]:
    """The inputs, batch by batch, as tensors, labels left out.

    Raises:
        InputError: There are no inputs, they are not finite, or they can be read only once.
    """
    data = _as_tensors(data) if isinstance(data, np.ndarray) else data
    if isinstance(data, Tensor):
        if not data.dim() or not data.shape[0]:
            raise InputError(f"data must hold at least one clean input; got shape {list(data.shape)}")
        data = data.split(batch)
    elif isinstance(data, Mapping):
        data = _cut(data, batch)
    if isinstance(data, Iterator | str | bytes) or not isinstance(data, Iterable):
        raise InputError(
            "data must be a tensor, a DataLoader or a list of batches, since it is read again for every layer; got "
            f"{type(data).__name__}; make a list of it, or give a DataLoader"
        )
    empty = True
    for number, content in enumerate(data):
        empty = False
        yield _inputs(content, number)
    if empty:
        raise InputError("data must hold at least one batch of clean inputs; got none")


def tensors_in(inputs: Any) -> Iterator[Tensor]:
    """Every tensor of a batch, in order."""
    if isinstance(inputs, Tensor):
        yield inputs
    elif isinstance(inputs, Mapping | list | tuple):
        for value in inputs.values() if isinstance(inputs, Mapping) else inputs:
            yield from tensors_in(value)


def remedy(error: BaseException) -> str:
    """What to do about an error that a model raised on the clean inputs, by what torch and Python say in it."""
    text = str(error)
    if "scalar types: Long, Int" in text:  # of an embedding
        return "this model looks its inputs up in a table, so give whole numbers (int64), such as token ids"
    if any(words in text for words in _OTHER_DTYPE):
        return "layers that multiply need floats (inputs.float(), --dtype float32), embeddings whole numbers (int64)"
    if "padding token" in text:
        return "give inputs one by one (batch=1, --batch 1), or set pad_token_id in config.json"
    if "index out of range" in text or "out of bounds" in text:
        return "the inputs hold whole numbers beyond the model's table; make them with the tokenizer of this model"
    if isinstance(error, TypeError) and "unexpected keyword argument" in text:
        return "named inputs become keyword arguments; name them as the arguments of the model's forward, or leave out"
    if isinstance(error, TypeError) and "missing" in text and "argument" in text:
        return "give named inputs: a mapping of the model's arguments, or a .npz file with one array for each of them"
    return "give inputs of the right shape, or a forward function"


def _inputs(batch: Any, number: int) -> Any:
    """The inputs of a batch: a tensor itself, the first entry of a tuple, a mapping without its labels."""
    if isinstance(batch, Mapping):
        inputs: Any = {name: value for name, value in batch.items() if name not in _LABELS}
    elif isinstance(batch, Sequence) and not isinstance(batch, str) and len(batch):
        inputs = batch[0]
    else:
        inputs = batch
    inputs = _as_tensors(inputs)
    for value in tensors_in(inputs):
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise InputError(f"clean inputs must be finite; batch {number} has NaN or infinite entries; leave them out")
    return inputs


def _cut(named: Mapping[str, Any], batch: int) -> list[dict[str, Any]]:
    """Named inputs, cut into batches along the first dimension; values that are no tensors go to every batch."""
    inputs = {str(name): _as_tensors(value) for name, value in named.items() if name not in _LABELS}
    rows = {name: len(value) if value.dim() else 0 for name, value in inputs.items() if isinstance(value, Tensor)}
    if not rows or len(set(rows.values())) > 1 or not min(rows.values()):
        raise InputError(
            "named inputs must be tensors with one row for each clean input, as many in all of them; got "
            f"{rows or sorted(inputs)}; give tensors (return_tensors='pt' of a tokenizer), or a list of batches"
        )
    total = next(iter(rows.values()))
    return [
        {name: value[start : start + batch] if name in rows else value for name, value in inputs.items()}
        for start in range(0, total, batch)
    ]


def _as_tensors(inputs: Any) -> Any:
    """The same inputs with tensors for NumPy's arrays; nothing is written to the arrays, so memory may be shared."""
    if isinstance(inputs, np.ndarray):
        return _as_tensor(inputs)
    if isinstance(inputs, Mapping):
        return {name: _as_tensors(value) for name, value in inputs.items()}
    if type(inputs) in (list, tuple):
        return type(inputs)(_as_tensors(value) for value in inputs)
    return inputs


def _as_tensor(array: np.ndarray) -> Tensor:
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"clean inputs must be whole or real numbers; got an array of {array.dtype}; give an array of numbers"
        )
    kind = array.dtype.newbyteorder("=")
    if kind.name in _WIDE:
        kind = np.dtype(np.int64)
    elif kind.kind == "f" and kind.itemsize > 8:
        kind = np.dtype(np.float64)
    plain = np.ascontiguousarray(array, kind).reshape(array.shape)
    # Torch warns of memory that must not be written, and a model may write to what it is given.
    return torch.from_numpy(plain if plain.flags.writeable else plain.copy())
