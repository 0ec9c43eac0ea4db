"""The altered and suspicious weights of a purification, one by one, or the largest changes first."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.network import Altered, Grade, Purification


@dataclass(frozen=True, slots=True)
class Entry:
    """One weight that was called altered and replaced, or suspicious and left as it is.

    Attributes:
        tensor: Name of its tensor.
        index: Its position in the tensor, a number for each axis.
        was: The contaminated value.
        now: The purified value.
        grade: That of its unit.
    """

    tensor: str
    index: tuple[int, ...]
    was: float
    now: float
    grade: Grade


def entries(result: Purification, table: Altered) -> Iterator[Entry]:
    """All entries of a table, tensor by tensor, in the order of their indices."""
    for tensor in range(len(table.names)):
        rows = np.flatnonzero(table.tensor == tensor)
        yield from _rows(result, table, rows[np.argsort(table.index[rows], kind="stable")])


def largest_changes(result: Purification, most: int) -> list[Entry]:
    """The ``most`` largest changes; values that were not finite come first."""
    table = result.altered
    order = np.lexsort((table.index, table.tensor, -change(table.was, table.now)))
    return list(_rows(result, table, order[:most]))


def place(entry: Entry) -> str:
    """Where an entry is: its tensor, and a number for each axis."""
    return f"{entry.tensor}[{', '.join(map(str, entry.index))}]"


def change(was: NDArray[np.float64], now: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sizes of changes; infinite where one of the values is not finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = np.abs(now - was)
    sizes[~np.isfinite(sizes)] = np.inf
    return sizes


def _rows(result: Purification, table: Altered, rows: NDArray[np.intp]) -> Iterator[Entry]:
    """Chosen rows of a table as entries, in the order of ``rows``."""
    tensors = table.tensor[rows]
    indices: list[tuple[int, ...]] = [()] * rows.size
    for tensor in np.unique(tensors).tolist():
        chosen = np.flatnonzero(tensors == tensor)
        axes = np.unravel_index(table.index[rows[chosen]], tuple(result.contaminated[table.names[tensor]].shape))
        for row, index in zip(chosen.tolist(), zip(*(axis.tolist() for axis in axes), strict=True), strict=True):
            indices[row] = index
    columns = (table.was[rows].tolist(), table.now[rows].tolist(), table.grade[rows].tolist())
    for tensor, index, was, now, grade in zip(tensors.tolist(), indices, *columns, strict=True):
        yield Entry(table.names[tensor], index, was, now, Grade(grade))
