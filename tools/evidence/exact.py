"""The theorem by brute force: every set of rows of small problems, in exact arithmetic."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Random = np.random.Generator


def exact_rank(rows: Iterable[Iterable[Fraction]]) -> int:
    """The rank of a small matrix of fractions, by elimination without rounding."""
    left = [list(row) for row in rows]
    rank = 0
    for column in range(len(left[0]) if left else 0):
        pivot = next((i for i in range(rank, len(left)) if left[i][column]), None)
        if pivot is None:
            continue
        left[rank], left[pivot] = left[pivot], left[rank]
        for i in range(rank + 1, len(left)):
            factor = left[i][column] / left[rank][column]
            if factor:
                left[i] = [value - factor * above for value, above in zip(left[i], left[rank], strict=True)]
        rank += 1
    return rank


@dataclass(frozen=True, slots=True)
class SmallProblem:
    """A design, a column and the altered rows, in exact arithmetic."""

    design: list[list[Fraction]]
    column: list[Fraction]
    altered: frozenset[int]

    def fits(self, rows: tuple[int, ...]) -> bool:
        """Whether some coefficients fit all of these rows."""
        own = [self.design[i] for i in rows]
        return exact_rank(own) == exact_rank([*row, self.column[i]] for row, i in zip(own, rows, strict=True))

    def judged(self) -> Iterator[tuple[bool, bool]]:
        """For each set of rows with an altered one: is it fitted, and does every altered row depend on no other?"""
        count = len(self.column)
        for size in range(1, count + 1):
            for rows in combinations(range(count), size):
                hit = [i for i in rows if i in self.altered]
                if hit:
                    yield self.fits(rows), not any(self._predicted(i, rows) for i in hit)

    def _predicted(self, row: int, rows: tuple[int, ...]) -> bool:
        others = [self.design[i] for i in rows if i != row]
        return exact_rank([*others, self.design[row]]) == exact_rank(others)


def repeated(rows: NDArray[Any]) -> NDArray[Any]:
    """The rows with one of them twice, and a row of zeros."""
    return np.vstack([rows, rows[:1], np.zeros_like(rows[:1])])


SMALL: dict[str, Callable[[Random], NDArray[Any]]] = {
    "random whole numbers, 7 x 2": lambda rng: rng.integers(-9, 10, (7, 2)),
    "two-way layout, 2 x 4": lambda _: np.hstack([np.eye(2)[np.arange(8) // 4], np.eye(4)[np.arange(8) % 4]]),
    "a repeated and a zero row": lambda rng: repeated(rng.integers(-9, 10, (5, 2))),
    "a column that one row uses": lambda rng: np.hstack([rng.integers(-9, 10, (7, 2)), np.eye(7)[:, :1].astype(int)]),
}  # fmt: skip
AMOUNTS: dict[str, Callable[[Random, int], list[Fraction]]] = {
    "continuous": lambda rng, n: [Fraction(int(x), 2**45) for x in rng.integers(-(2**52), 2**52, n)],
    "whole numbers": lambda rng, n: [Fraction(int(x)) for x in rng.choice([-2, -1, 1, 2], n)],
    "a constant": lambda _, n: [Fraction(1)] * n,
}


def brute_force(problems: int = 25) -> list[dict[str, Any]]:
    """All sets of rows of small problems: how many are fitted, and how many of these by accident."""
    found: list[dict[str, Any]] = []
    for place, (design_name, make) in enumerate(SMALL.items()):
        for name, amounts in AMOUNTS.items():
            rng = np.random.default_rng([1, place])
            sets = [one for _ in range(problems) for one in small_problem(rng, make, amounts).judged()]
            found.append(
                {"design": design_name, "alterations": name, "sets": len(sets),
                 "no altered row depends on others": sum(free for _, free in sets),
                 "of these fitted": sum(fitted for fitted, free in sets if free),
                 "others": sum(not free for _, free in sets),
                 "of these fitted, by accident": sum(fitted for fitted, free in sets if not free)}
            )  # fmt: skip
    return found


def small_problem(
    rng: Random, make: Callable[[Random], NDArray[Any]], amounts: Callable[[Random, int], list[Fraction]]
) -> SmallProblem:
    """Three rows of a small design are altered."""
    design = make(rng)
    truth = rng.integers(-9, 10, design.shape[1])
    altered = rng.choice(len(design), 3, replace=False)
    column = [Fraction(int(value)) for value in design @ truth]
    for i, amount in zip(altered, amounts(rng, 3), strict=True):
        column[i] += amount
    rows = [[Fraction(int(value)) for value in row] for row in design]
    return SmallProblem(rows, column, frozenset(int(i) for i in altered))
