"""Clean inputs joined into one batch for the fit, and another of inputs that are held out to judge it."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from netpurify.errors import InputError

HELD_OUT = 5
"""One in this many clean inputs is held out of the fit, to judge it."""
_PLAIN = (str, bytes, int, float, type(None))
"""Types of other values, which batches may hold if they are equal in all of them."""


def join(batches: list[Any]) -> Any:
    """All batches as one.

    Raises:
        InputError: They do not fit into one batch.
    """
    return _join(batches, [count(batch) for batch in batches])


def split(batches: list[Any]) -> tuple[Any, Any]:
    """The inputs for the fit as one batch, and the held-out inputs, one in ``HELD_OUT``, as another.

    They are drawn at random, since classes often take turns in a data set, and from a fixed seed, so that the same
    inputs in the same order give the same draw.

    Raises:
        InputError: There are too few inputs, or they do not fit into one batch.
    """
    joined = join(batches)
    inputs = count(joined)
    if inputs < HELD_OUT:
        raise InputError(
            f"one in {HELD_OUT} clean inputs is held out to judge the defence, so at least {HELD_OUT} are needed; got "
            f"{inputs}, counted along the first dimension of tensors; a few hundred are better"
        )
    fitted, held = divide(inputs)
    return _pick(joined, fitted, inputs), _pick(joined, held, inputs)


def divide(inputs: int) -> tuple[Tensor, Tensor]:
    """Numbers of the inputs for the fit, and of the one in ``HELD_OUT`` that are held out, each ascending."""
    order = torch.randperm(inputs, generator=torch.Generator().manual_seed(0))
    return order[inputs // HELD_OUT :].sort().values, order[: inputs // HELD_OUT].sort().values


def twice(inputs: Any) -> Any:
    """The same inputs, twice side by side."""
    length = count(inputs)
    return _pick(inputs, torch.arange(length).repeat(2), length)


def count(inputs: Any) -> int:
    """How many inputs there are: the length of the first tensor; later tensors need not have one row per input."""
    if isinstance(inputs, Tensor):
        return len(inputs) if inputs.dim() else 0
    values = inputs.values() if isinstance(inputs, Mapping) else inputs if isinstance(inputs, list | tuple) else ()
    return next((length for length in map(count, values) if length), 0)


def _join(values: list[Any], counts: list[int]) -> Any:
    """The same entry of all batches as one; ``counts`` says how many inputs each batch has."""
    first = values[0]
    if all(isinstance(value, Tensor) for value in values):
        return _join_tensors(values, counts)
    if all(isinstance(value, Mapping) and value.keys() == first.keys() for value in values):
        return {name: _join([value[name] for value in values], counts) for name in first}
    if all(isinstance(value, list | tuple) and len(value) == len(first) for value in values):
        return [_join(list(entries), counts) for entries in zip(*values, strict=True)]
    if len(values) > 1 and not all(isinstance(value, _PLAIN) and value == first for value in values):
        kinds = sorted({type(value).__name__ for value in values})
        raise InputError(
            "all batches of clean inputs must be alike, since they go through the network together: the same names, "
            f"tensors with one row for each input, and the same of anything else; some of {kinds} differ; leave out "
            "what is not an input, or give all inputs as one batch"
        )
    return first


def _join_tensors(values: list[Tensor], counts: list[int]) -> Tensor:
    """Tensors one after the other; a tensor without one row per input, such as a mask, must be equal in all batches."""
    if not all(value.dim() and len(value) == inputs for value, inputs in zip(values, counts, strict=True)):
        if all(torch.equal(value, values[0]) for value in values):
            return values[0]
        raise InputError(
            "tensors of clean inputs must have one row for each input, or be the same in all batches; got "
            f"{[list(value.shape) for value in values[:5]]} in batches of {counts[:5]}; give all inputs as one batch"
        )
    if len({value.shape[1:] for value in values}) > 1:
        raise InputError(
            "clean inputs must be of one shape, since they go through the network together; got "
            f"{sorted({tuple(value.shape[1:]) for value in values})}; pad or crop them"
        )
    return torch.cat(values)


def _pick(joined: Any, positions: Tensor, inputs: int) -> Any:
    """The inputs at these positions; a value without one row per input stays as it is."""
    if isinstance(joined, Tensor):
        return joined[positions.to(joined.device)] if joined.dim() and len(joined) == inputs else joined
    if isinstance(joined, Mapping):
        return {name: _pick(value, positions, inputs) for name, value in joined.items()}
    return [_pick(value, positions, inputs) for value in joined] if isinstance(joined, list) else joined
