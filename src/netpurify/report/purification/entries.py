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
        index: Its place there, a number for each axis.
        was: The contaminated value.
        now: The purified value.
        grade: That of its unit.
    """

    tensor: str
    index: tuple[int, ...]
    was: float
    now: float
    grade: Grade


def entries(result: Purification, found: Altered) -> Iterator[Entry]:
    """All of a table, tensor by tensor, in the order of their places."""
    for place in range(len(found.names)):
        mine = np.flatnonzero(found.tensor == place)
        yield from _some(result, found, mine[np.argsort(found.index[mine], kind="stable")])


def largest(result: Purification, most: int) -> list[Entry]:
    """The largest changes, at most so many; values that were not finite come first."""
    found = result.altered
    order = np.lexsort((found.index, found.tensor, -change(found.was, found.now)))
    return list(_some(result, found, order[:most]))


def change(was: NDArray[np.float64], now: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sizes of changes; infinite where one of the values is not finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = np.abs(now - was)
    sizes[~np.isfinite(sizes)] = np.inf
    return sizes


def _some(result: Purification, found: Altered, chosen: NDArray[np.intp]) -> Iterator[Entry]:
    places = found.tensor[chosen]
    index: list[tuple[int, ...]] = [()] * chosen.size
    for place in np.unique(places).tolist():
        mine = np.flatnonzero(places == place)
        axes = np.unravel_index(found.index[chosen[mine]], tuple(result.contaminated[found.names[place]].shape))
        for one, at in zip(mine.tolist(), zip(*(axis.tolist() for axis in axes), strict=True), strict=True):
            index[one] = at
    columns = (found.was[chosen].tolist(), found.now[chosen].tolist(), found.grade[chosen].tolist())
    for place, at, was, now, grade in zip(places.tolist(), index, *columns, strict=True):
        yield Entry(found.names[place], at, was, now, Grade(grade))
