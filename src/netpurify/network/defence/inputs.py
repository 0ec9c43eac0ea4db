"""Clean inputs as one batch, of which a part is held out."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from netpurify.errors import InputError

HELD_OUT = 5
"""One in so many clean inputs is kept from the fit, to judge it."""


def split(batches: list[Any]) -> tuple[Any, Any]:
    """Batches as one, for the fit, and one in ``HELD_OUT`` of the inputs as another, to judge it.

    Drawn by chance, since data often come in turns of their classes; the same inputs give the same draw.

    Raises:
        InputError: There are too few inputs, or they do not fit into one batch.
    """
    joined = _join(batches)
    count = _count(joined)
    if count < HELD_OUT:
        raise InputError(
            f"one in {HELD_OUT} clean inputs is held out to judge the defence, so at least {HELD_OUT} are needed; got "
            f"{count}; some hundred are better"
        )
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    held, fitted = order[: count // HELD_OUT].sort().values, order[count // HELD_OUT :].sort().values
    return _pick(joined, fitted, count), _pick(joined, held, count)


def twice(inputs: Any) -> Any:
    """The same inputs, twice side by side."""
    count = _count(inputs)
    return _pick(inputs, torch.arange(count).repeat(2), count)


def _join(parts: list[Any]) -> Any:
    first = parts[0]
    if isinstance(first, Tensor):
        if len({tuple(part.shape[1:]) for part in parts}) > 1:
            raise InputError(
                "clean inputs must be of one shape, since they go through the network together; got "
                f"{sorted({tuple(part.shape[1:]) for part in parts})}; pad or crop them"
            )
        return torch.cat(parts) if first.dim() else first
    if isinstance(first, Mapping):
        return {name: _join([part[name] for part in parts]) for name in first}
    return [_join(list(part)) for part in zip(*parts, strict=True)] if isinstance(first, list | tuple) else first


def _count(joined: Any) -> int:
    if isinstance(joined, Tensor):
        return len(joined) if joined.dim() else 0
    parts = joined.values() if isinstance(joined, Mapping) else joined if isinstance(joined, list) else ()
    return max((_count(part) for part in parts), default=0)


def _pick(joined: Any, places: Tensor, count: int) -> Any:
    """The inputs at some places; what is not one for each input stays as it is."""
    if isinstance(joined, Tensor):
        return joined[places.to(joined.device)] if joined.dim() and len(joined) == count else joined
    if isinstance(joined, Mapping):
        return {name: _pick(part, places, count) for name, part in joined.items()}
    return [_pick(part, places, count) for part in joined] if isinstance(joined, list) else joined
