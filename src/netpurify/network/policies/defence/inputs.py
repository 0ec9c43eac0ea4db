"""Clean inputs as one batch, of which a part is held out."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from netpurify.errors import InputError

HELD_OUT = 5
"""One in so many clean inputs is kept from the fit, to judge it."""
_PLAIN = (str, bytes, int, float, type(None))
"""What can be told to be the same."""


def split(batches: list[Any]) -> tuple[Any, Any]:
    """Batches as one, for the fit, and one in ``HELD_OUT`` of the inputs as another, to judge it.

    Drawn by chance, since data often come in turns of their classes; the same inputs in the same order give the same
    draw.

    Raises:
        InputError: There are too few inputs, or they do not fit into one batch.
    """
    joined = _join(batches, [count(batch) for batch in batches])
    found = count(joined)
    if found < HELD_OUT:
        raise InputError(
            f"one in {HELD_OUT} clean inputs is held out to judge the defence, so at least {HELD_OUT} are needed; got "
            f"{found}, counted along the first dimension of tensors; some hundred are better"
        )
    order = torch.randperm(found, generator=torch.Generator().manual_seed(0))
    held, fitted = order[: found // HELD_OUT].sort().values, order[found // HELD_OUT :].sort().values
    return _pick(joined, fitted, found), _pick(joined, held, found)


def twice(inputs: Any) -> Any:
    """The same inputs, twice side by side."""
    found = count(inputs)
    return _pick(inputs, torch.arange(found).repeat(2), found)


def count(inputs: Any) -> int:
    """How many inputs there are: the length of the first tensor, since others need not be one for each input."""
    if isinstance(inputs, Tensor):
        return len(inputs) if inputs.dim() else 0
    parts = inputs.values() if isinstance(inputs, Mapping) else inputs if isinstance(inputs, list | tuple) else ()
    return next((found for found in map(count, parts) if found), 0)


def _join(parts: list[Any], counts: list[int]) -> Any:
    """One part of all batches, which have so many inputs, as one."""
    first = parts[0]
    if all(isinstance(part, Tensor) for part in parts):
        return _join_tensors(parts, counts)
    if all(isinstance(part, Mapping) and part.keys() == first.keys() for part in parts):
        return {name: _join([part[name] for part in parts], counts) for name in first}
    if all(isinstance(part, list | tuple) and len(part) == len(first) for part in parts):
        return [_join(list(part), counts) for part in zip(*parts, strict=True)]
    if len(parts) > 1 and not all(isinstance(part, _PLAIN) and part == first for part in parts):
        kinds = sorted({type(part).__name__ for part in parts})
        raise InputError(
            "all batches of clean inputs must be alike, since they go through the network together: the same names, "
            f"tensors with one row for each input, and the same of anything else; some of {kinds} differ; leave out "
            "what is not an input, or give all inputs as one batch"
        )
    return first


def _join_tensors(parts: list[Tensor], counts: list[int]) -> Tensor:
    """Tensors one after the other; as it is if there is not one row for each input, such as a mask."""
    if not all(part.dim() and len(part) == found for part, found in zip(parts, counts, strict=True)):
        if all(torch.equal(part, parts[0]) for part in parts):
            return parts[0]
        raise InputError(
            "tensors of clean inputs must have one row for each input, or be the same in all batches; got "
            f"{[list(part.shape) for part in parts[:5]]} in batches of {counts[:5]}; give all inputs as one batch"
        )
    if len({part.shape[1:] for part in parts}) > 1:
        raise InputError(
            "clean inputs must be of one shape, since they go through the network together; got "
            f"{sorted({tuple(part.shape[1:]) for part in parts})}; pad or crop them"
        )
    return torch.cat(parts)


def _pick(joined: Any, places: Tensor, found: int) -> Any:
    """The inputs at some places; what is not one for each input stays as it is."""
    if isinstance(joined, Tensor):
        return joined[places.to(joined.device)] if joined.dim() and len(joined) == found else joined
    if isinstance(joined, Mapping):
        return {name: _pick(part, places, found) for name, part in joined.items()}
    return [_pick(part, places, found) for part in joined] if isinstance(joined, list) else joined
