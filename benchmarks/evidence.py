"""How often ``RECOVERED`` is claimed for a fit that is not the truth, and how often it is withheld from one that is.

    python evidence.py                     250,000 columns, at most 30 % of the rows of each altered
    python evidence.py --columns 25000     a tenth of that
    python evidence.py --families "two-way layout" "graph incidence"
    python evidence.py --markdown table.md also write the table

Eleven families of designs, five kinds of alterations, three shares. Every column is A u plus alterations in a random
set of rows, of exactly the share that is named. A claim is false if an altered entry is called unaltered: a fit through
unaltered rows alone is the truth. A column counts as solved if the rows with a residual are exactly the altered ones;
of these, *kept* is the share that is called ``RECOVERED``.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from netpurify import lad

SHARES = (0.1, 0.2, 0.3)
DESIGNS = 5
"""Fresh designs for each combination, so that no claim rests on one draw."""
Random = np.random.Generator


def two_way(rng: Random) -> np.ndarray:
    """Indicators of the rows and of the columns of a table, 9 x 10."""
    first, second = np.divmod(rng.permutation(90), 10)
    return np.hstack([np.eye(9)[first], np.eye(10)[second]])


def weighted(rng: Random) -> np.ndarray:
    """The same with a weight between 0.5 and 2 for each row; alterations have the weight of their row."""
    return rng.uniform(0.5, 2.0, (90, 1)) * two_way(rng)


def incidence(rng: Random) -> np.ndarray:
    """A random graph of 15 vertices and 70 edges: each row is the difference of two vertices."""
    pairs = np.array([(i, j) for i in range(15) for j in range(i)])
    ends = pairs[rng.choice(len(pairs), 70, replace=False)]
    return np.eye(15)[ends[:, 0]] - np.eye(15)[ends[:, 1]]


def zero_one(rng: Random) -> np.ndarray:
    """Each entry is 1 with probability 0.2."""
    return (rng.random((80, 10)) < 0.2).astype(float)


def integer(rng: Random) -> np.ndarray:
    """Whole numbers from -5 to 5."""
    return rng.integers(-5, 6, (80, 10)).astype(float)


def gaussian(rng: Random) -> np.ndarray:
    """A generic design."""
    return rng.standard_normal((80, 12))


def vandermonde(rng: Random) -> np.ndarray:
    """Powers of x."""
    return np.vander(np.sort(rng.uniform(-1.0, 1.0, 80)), 8)


def collinear(rng: Random) -> np.ndarray:
    """Ten columns that nearly span seven directions only."""
    thin = rng.standard_normal((80, 7)) @ rng.standard_normal((7, 10))
    return thin + 1e-4 * rng.standard_normal((80, 10))


def row_scales(rng: Random) -> np.ndarray:
    """Rows of sizes from 0.001 to 1000."""
    return rng.standard_normal((80, 10)) * 10.0 ** rng.uniform(-3, 3, (80, 1))


def leverage(rng: Random) -> np.ndarray:
    """Ten rows of size 1e6 among rows of size 1."""
    A = rng.standard_normal((80, 8))
    A[:10] *= 1e6
    return A


def whole(rng: Random) -> np.ndarray:
    """Whole numbers from -2 to 2; their coefficients are whole as well."""
    return rng.integers(-2, 3, (80, 10)).astype(float)


FAMILIES: dict[str, Callable[[Random], np.ndarray]] = {
    "two-way layout": two_way,
    "graph incidence": incidence,
    "0/1": zero_one,
    "integer": integer,
    "Gaussian": gaussian,
    "Vandermonde": vandermonde,
    "collinear": collinear,
    "row scales": row_scales,
    "leverage": leverage,
    "whole numbers": whole,
    "weighted layout": weighted,
}
ALTERATIONS: dict[str, Callable[[Random, tuple[int, int]], np.ndarray]] = {
    "constant": lambda _, shape: np.full(shape, 1.7),
    "whole numbers": lambda rng, shape: rng.integers(1, 4, shape) * rng.choice([-1.0, 1.0], shape),
    "three values": lambda rng, shape: rng.choice([0.7, -1.3, 2.9], shape),
    "signs": lambda rng, shape: rng.choice([-1.0, 1.0], shape),
    "generic": lambda rng, shape: rng.normal(1.0, 1.0, shape),
}


@dataclass(slots=True)
class Count:
    """What became of the columns of one or more draws."""

    columns: int = 0
    claimed: int = 0
    false: int = 0
    solved: int = 0
    kept: int = 0
    differing: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def draw(family: str, alteration: str, share: float, columns: int, rng: Random) -> tuple[np.ndarray, ...]:
    """A design, columns, and which of their entries are altered."""
    A = FAMILIES[family](rng)
    shape = A.shape[0], columns
    U = rng.integers(-3, 4, (A.shape[1], columns)) if family == "whole numbers" else None
    U = rng.standard_normal((A.shape[1], columns)) if U is None else U.astype(float)
    altered = rng.permuted(np.arange(shape[0])[:, None] < np.full(columns, round(share * shape[0])), axis=0)
    size = np.linalg.norm(A, axis=1, keepdims=True) if family == "weighted layout" else 1.0
    return A, A @ U + altered * size * ALTERATIONS[alteration](rng, shape), altered


def count(A: np.ndarray, B: np.ndarray, altered: np.ndarray) -> Count:
    """Solve, verify, and compare the claims with the truth."""
    design = lad.Design.prepare(A)
    solution = lad.solve(design, B, threads=1)
    checked = lad.verify(design, B, solution.claim).status
    claimed = solution.status == lad.Status.RECOVERED
    found = np.asarray(solution.residual) != 0.0
    solved = (found == altered).all(axis=0)
    return Count(
        columns=B.shape[1],
        claimed=int(claimed.sum()),
        false=int((claimed & (altered & ~found).any(axis=0)).sum()),
        solved=int(solved.sum()),
        kept=int((solved & claimed).sum()),
        differing=int((checked != solution.status).sum()),
    )


def table(counts: dict[tuple[str, str], Count]) -> Iterator[str]:
    """One line for each family and alteration, and for all together."""
    yield "| design | alterations | columns | recovered | false | solved | kept | verify differs |"
    yield "|---|---|---|---|---|---|---|---|"
    everything = sum(counts.values(), Count())
    for (family, alteration), one in [*counts.items(), (("all", ""), everything)]:
        kept = f"{one.kept / one.solved:.4f}" if one.solved else "-"
        yield (
            f"| {family} | {alteration} | {one.columns} | {one.claimed} | {one.false} | {one.solved} | {kept} | "
            f"{one.differing} |"
        )


def main() -> None:
    """Draw, count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=250_000, help="columns in all, over all families")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--markdown", type=Path, help="write the table to this file too")
    options = parser.parse_args()
    began = time.perf_counter()
    each = -(-options.columns // (len(FAMILIES) * len(ALTERATIONS) * len(SHARES) * DESIGNS))
    counts: dict[tuple[str, str], Count] = {}
    for family, alteration in product(options.families, ALTERATIONS):
        counts[family, alteration] = Count()
        for share, number in product(SHARES, range(DESIGNS)):
            key = list(FAMILIES).index(family), list(ALTERATIONS).index(alteration), round(100 * share), number
            rng = np.random.default_rng([options.seed, *key])
            counts[family, alteration] += count(*draw(family, alteration, share, each, rng))
    lines = [*table(counts), "", f"{time.perf_counter() - began:.0f} s"]
    print("\n".join(lines))
    if options.markdown:
        options.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
