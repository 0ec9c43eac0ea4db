"""Which tensors are tied (the same memory, read in the same way), and which overlap without being tied."""

import math
from collections.abc import Hashable, Iterator, Mapping

import torch
from torch import Tensor

from netpurify.errors import InputError


def memory_key(values: Tensor) -> Hashable:
    """A key that two tensors share exactly if they are tied: same memory, shape and strides."""
    addressed = values.layout == torch.strided and not (values.is_nested or values.is_quantized or values.is_meta)
    if not addressed or values.numel() == 0:
        return id(values)
    # The stride of a dimension of length 1 is never used and may differ between two tied views.
    steps = tuple((size, stride if size > 1 else 0) for size, stride in zip(values.shape, values.stride(), strict=True))
    return values.device, values.data_ptr(), values.dtype, steps


def check_overlaps(chosen: dict[str, Tensor]) -> None:
    """Refuses tensors that share part of their memory with each other or with themselves; tied ones may pass."""
    first_names = {memory_key(values): name for name, values in reversed(chosen.items()) if values.numel()}
    distinct = {name: chosen[name] for name in first_names.values()}
    for group in _groups(distinct):
        # A contiguous tensor that meets no other, the usual case, needs no map of the memory.
        if len(group) > 1 or not distinct[group[0]].is_contiguous():
            _check_group({name: distinct[name] for name in group})


def _groups(tensors: Mapping[str, Tensor]) -> Iterator[list[str]]:
    """Names of tensors whose address ranges meet; views that interleave meet without overlapping."""
    spans = sorted((str(values.device), *_span(values), name) for name, values in tensors.items())
    group: list[str] = []
    where, end = "", 0
    for device, start, stop, name in spans:
        if group and (device != where or start >= end):
            yield group
            group, end = [], 0
        group.append(name)
        where, end = device, max(end, stop)
    if group:
        yield group


def _span(values: Tensor) -> tuple[int, int]:
    """First byte and one past the last."""
    reach = sum((size - 1) * stride for size, stride in zip(values.shape, values.stride(), strict=True))
    return values.data_ptr(), values.data_ptr() + (reach + 1) * values.dtype.itemsize


def _check_group(group: Mapping[str, Tensor]) -> None:
    """Lets each tensor in turn mark its cells on a map of the group's memory."""
    names = list(group)
    start = min(_span(values)[0] for values in group.values())
    stop = max(_span(values)[1] for values in group.values())
    cell = math.gcd(*(step for values in group.values() for step in (values.dtype.itemsize, values.data_ptr() - start)))
    owners = torch.full(((stop - start) // cell,), -1, dtype=torch.int32)
    for number, (name, values) in enumerate(group.items()):
        wide = values.dtype.itemsize // cell
        strides = (*(stride * wide for stride in values.stride()), 1)
        cells = owners.as_strided((*values.shape, wide), strides, (values.data_ptr() - start) // cell)
        if cells.max() >= 0:
            raise InputError(
                f"{name} and {names[int(cells.max())]} overlap in memory without being the same tensor, so one "
                "alteration would change both; name only one of them, or clone one"
            )
        if any(size > 1 and stride == 0 for size, stride in zip(values.shape, values.stride(), strict=True)):
            raise _self_overlap(name)
        cells.fill_(number)
        if (owners == number).sum() < cells.numel():
            raise _self_overlap(name)


def _self_overlap(name: str) -> InputError:
    return InputError(
        f"{name} must have its own memory for each entry; several of its entries are one (an expanded view?); "
        "clone it, or leave it out"
    )
