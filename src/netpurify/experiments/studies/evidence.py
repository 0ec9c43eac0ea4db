"""How often ``RECOVERED`` is claimed for a fit that is not the truth, and how often it is withheld from one that is.

Eleven families of designs, five kinds of alterations, three shares. Every column is A u plus alterations in a random
set of rows, of exactly the given share. A claim is false if an altered entry is called unaltered: a fit through
unaltered rows alone is the truth. A column counts as solved if the rows with a residual are exactly the altered ones;
*kept* is the share of solved columns that are called ``RECOVERED``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from netpurify import lad
from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.study import RunFacts, Study, Tables, always
from netpurify.findings import Experiment, Mode, TableRow, group

SHARES = (0.1, 0.2, 0.3)
DESIGNS = 5
"""Fresh designs for each combination, so that no claim rests on one draw."""
STREAMS = (1, 2)
"""Further streams of random numbers in the full grid."""
COUNTS = ("columns", "claimed", "false", "solved", "kept", "differing")
Random = np.random.Generator
PAGE = """# How often RECOVERED is wrong, and how often it is withheld

Made by `{commands}` in {core_time} of one core ([the table itself](results/evidence.csv.gz)). A tenth, a fifth or three
tenths of the rows of every column are altered. *Recovered*: columns whose status is `RECOVERED`. *False*: those of them
in which an altered entry is called unaltered. *Solved*: columns whose rows with a residual are exactly the altered
ones. *Kept*: share of the solved columns that are called `RECOVERED`. *Verify differs*: columns to which `lad.verify`
gives another status than `lad.solve`. [evidence.md](evidence.md) has the theorem, its proof and its assumptions.

{table}
"""


def two_way(rng: Random) -> np.ndarray:
    """Indicators of the rows and of the columns of a table, 9 x 10."""
    first, second = np.divmod(rng.permutation(90), 10)
    return np.hstack([np.eye(9)[first], np.eye(10)[second]])


def weighted(rng: Random) -> np.ndarray:
    """A two-way layout with a weight between 0.5 and 2 for each row; alterations have the weight of their row."""
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
    matrix = rng.standard_normal((80, 8))
    matrix[:10] *= 1e6
    return matrix


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


def grid(mode: Mode) -> list[TableRow]:
    """Every family, alteration and share; 31 columns for each design in the quick grid, and 304 in the others.

    The full grid has every cell three times, with other random numbers; ``stream`` is missing for the first of them.
    """
    cells: list[TableRow] = [
        {"family": family, "alteration": alteration, "share": share, "columns_each": 31 if mode == "quick" else 304}
        for family, alteration, share in product(FAMILIES, ALTERATIONS, SHARES)
    ]
    return [*cells, *(cell | {"stream": stream} for stream in STREAMS for cell in cells)] if mode == "full" else cells


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """One fresh design and its columns, solved, verified and compared with the truth."""
    family, alteration = str(settings["family"]), str(settings["alteration"])
    share = round(100 * float(settings["share"] or 0.0))
    key = list(FAMILIES).index(family), list(ALTERATIONS).index(alteration), share, seed
    return [counts(draw(settings, np.random.default_rng([int(settings.get("stream") or 0), *key])))]


@dataclass(frozen=True, slots=True)
class AlteredColumns:
    """Columns of a regression whose truth is known.

    Attributes:
        design: The design A.
        columns: The columns A U, altered.
        altered: Which entries of the columns are altered.
    """

    design: np.ndarray
    columns: np.ndarray
    altered: np.ndarray


def draw(settings: TableRow, rng: Random) -> AlteredColumns:
    """A fresh design of a family, and columns with exactly the given share of altered entries."""
    family, count = str(settings["family"]), int(settings["columns_each"] or 0)
    design = FAMILIES[family](rng)
    rows, rank = design.shape
    whole = family == "whole numbers"
    truth = rng.integers(-3, 4, (rank, count)).astype(float) if whole else rng.standard_normal((rank, count))
    number = round(float(settings["share"] or 0.0) * rows)
    altered = rng.permuted(np.arange(rows)[:, None] < np.full(count, number), axis=0)
    size = np.linalg.norm(design, axis=1, keepdims=True) if family == "weighted layout" else 1.0
    alterations = ALTERATIONS[str(settings["alteration"])](rng, (rows, count))
    return AlteredColumns(design, design @ truth + altered * size * alterations, altered)


def counts(problem: AlteredColumns) -> TableRow:
    """Solve, verify, and compare the claims with the truth."""
    design = lad.Design.prepare(problem.design)
    solution = lad.solve(design, problem.columns, threads=1)
    checked = lad.verify(design, problem.columns, solution.claim).status
    claimed = solution.status == lad.Status.RECOVERED
    outliers = np.asarray(solution.residual) != 0.0
    solved = (outliers == problem.altered).all(axis=0)
    return {
        "columns": problem.columns.shape[1],
        "claimed": int(claimed.sum()),
        "false": int((claimed & (problem.altered & ~outliers).any(axis=0)).sum()),
        "solved": int(solved.sum()),
        "kept": int((solved & claimed).sum()),
        "differing": int((checked != solution.status).sum()),
    }


def page(tables: Tables, facts: RunFacts) -> str:
    """The page: one line for each family and alteration, and one for all together."""
    rows = tables["evidence"]
    lines = [line(str(key[0]), str(key[1]), own) for key, own in group(rows, ["family", "alteration"]).items()]
    columns = ("design", "alterations", "columns", "recovered", "false", "solved", "kept", "verify differs")
    table = markdown.table(columns, [*lines, line("all", "", rows)], texts=2)
    return PAGE.format(table=table, commands=facts.commands, core_time=facts.core_time)


def line(family: str, alteration: str, rows: list[TableRow]) -> list[str]:
    """The sums over some rows, as one line of the page's table."""
    columns, claimed, false, solved, kept, differing = (sum(int(row[name] or 0) for row in rows) for name in COUNTS)
    share = f"{kept / solved:.4f}" if solved else "-"
    return [family, alteration, str(columns), str(claimed), str(false), str(solved), share, str(differing)]


EXPERIMENT = Experiment(
    name="evidence",
    title="false and withheld claims of recovery",
    grid=grid,
    trial=trial,
    cost=lambda cell: 0.05 + 0.0005 * float(cell["columns_each"] or 0),
    trials={"quick": DESIGNS, "default": DESIGNS, "full": DESIGNS},
)
STUDY = Study(
    name="evidence",
    title="How often is RECOVERED claimed wrongly, and how often is it withheld?",
    document="evidence-results.md",
    experiments=always(EXPERIMENT),
    page=page,
)
