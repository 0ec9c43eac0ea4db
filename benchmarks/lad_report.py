"""Rows of the solver comparison, and its tables, all of them functions of the rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any, Literal

from lad_cases import Case

EXACT = 1e-6
"""A peer counts as the best only if its worst relative gap is at most this."""
LIMIT = "one GEMM per column"
OURS, OURS_EXACT, OURS_ALL_CORES = "netpurify", "netpurify, noise_floor=0", "netpurify, all cores"
BEFORE, BEFORE_EXACT = "before", "before, noise_floor=0"
Table = list[Sequence[str]]
"""Lines of cells, the first of them the titles."""


@dataclass(frozen=True, slots=True)
class Row:
    """One solver on one case; NaN for what was not measured.

    Attributes:
        case: Name of the case.
        solver: Name of the solver.
        role: Ours, ours at an earlier commit, somebody else's, or the limit that no solver can pass.
        ms: Milliseconds per column: CPU time on one core, wall time on all cores.
        cpu_ms: CPU milliseconds per column.
        wall_ms: Wall milliseconds per column.
        best_ms: The best of the repeats, of which ``ms`` is the median.
        gap: Worst (objective - lower bound) / objective, both from our verifier.
        columns: How many columns were run.
        certified: Share of the columns that the verifier calls proven.
        pivots: Simplex pivots per column.
        steps: CPU milliseconds per column in each step; they leave out the factorisation of the design.
        work: Operations for one column, k q^2, by which a peer's time on another case is scaled.
        note: Why it did not run, or where the time went.
        absent: Whether it is not installed, so that nobody knows whether it would have been the best.
    """

    case: str
    solver: str
    role: Literal["ours", "before", "peer", "limit"]
    ms: float = nan
    cpu_ms: float = nan
    wall_ms: float = nan
    best_ms: float = nan
    gap: float = nan
    columns: int = 0
    certified: float = nan
    pivots: float = nan
    steps: dict[str, float] = field(default_factory=dict)
    work: float = nan
    note: str = ""
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """Ours, on one core, against the best peer, the version before, the limit and the target."""

    case: str
    ours: Row
    before_ms: float
    all_cores_ms: float
    best_peer: str
    best_peer_ms: float
    speedup: float
    gemms: float
    target: str
    reached: str


def best_peer(rows: Iterable[Row]) -> Row:
    """The fastest exact peer among rows of one case."""
    exact = [row for row in rows if row.role == "peer" and row.gap <= EXACT]
    return min(exact, key=lambda row: row.ms, default=Row("", "none", "peer"))


def summarise(rows: Sequence[Row], cases: Sequence[Case]) -> list[Summary]:
    """One entry for each case and way of ours on one core."""
    return [
        _summary(case, ours, {row.solver: row for row in rows if row.case == case.name})
        for case in cases
        for ours in rows
        if ours.case == case.name and ours.solver in (OURS, OURS_EXACT)
    ]


def _summary(case: Case, ours: Row, of_case: dict[str, Row]) -> Summary:
    peer = best_peer(of_case.values())
    speedup, gemms = peer.ms / ours.ms, ours.ms / of_case[LIMIT].ms
    target = case.target if ours.solver == OURS else case.exact_target
    reached = "-"
    if target and any(row.absent for row in of_case.values()):
        reached = "unknown: a peer is absent"
    elif target and not isnan(speedup):
        reached = "yes" if speedup >= target.speedup and gemms <= target.gemms else "no"
    before = of_case.get(BEFORE if ours.solver == OURS else BEFORE_EXACT)
    return Summary(
        case=case.name,
        ours=ours,
        before_ms=before.ms if before else nan,
        all_cores_ms=of_case[OURS_ALL_CORES].ms if ours.solver == OURS else nan,
        best_peer=peer.solver,
        best_peer_ms=peer.ms,
        speedup=speedup,
        gemms=gemms,
        target=str(target or "-"),
        reached=reached,
    )


def table(rows: Sequence[Row]) -> Table:
    """Every case and solver."""
    lines: Table = [
        ("case", "solver", "ms/column", "best", "to best peer", "GEMMs", "worst gap", "columns", "certified", "note")
    ]
    for row in rows:
        of_case = {other.solver: other for other in rows if other.case == row.case}
        lines.append(
            (
                row.case,
                row.solver,
                digits(row.ms),
                digits(row.best_ms),
                _against(row, best_peer(of_case.values())),
                digits(row.ms / of_case[LIMIT].ms),
                _power(row.gap),
                str(row.columns),
                _share(row.certified),
                row.note,
            )
        )
    return lines


def summary_table(entries: Iterable[Summary]) -> Table:
    """Ours against the best peer, the version before and the target."""
    titles = (
        "case", "ms/column", "before", "times before", "all cores", "best peer", "its ms", "faster", "GEMMs", "pivots",
        "certified", "worst gap", "aim", "reached",
    )  # fmt: skip
    lines: Table = [titles]
    lines += [
        (
            entry.case + entry.ours.solver.removeprefix(OURS),
            digits(entry.ours.ms),
            digits(entry.before_ms),
            digits(entry.before_ms / entry.ours.ms, "x"),
            digits(entry.all_cores_ms),
            entry.best_peer,
            digits(entry.best_peer_ms),
            digits(entry.speedup, "x"),
            digits(entry.gemms),
            digits(entry.ours.pivots) if entry.ours.pivots else "0",
            _share(entry.ours.certified),
            _power(entry.ours.gap),
            entry.target,
            entry.reached,
        )
        for entry in entries
    ]
    return lines


def steps_table(rows: Iterable[Row]) -> Table:
    """Microseconds of CPU per column by step, of this version and of the one before."""
    ours = [row for row in rows if row.steps and row.solver != OURS_ALL_CORES]
    steps = list(dict.fromkeys(step for row in ours for step in row.steps))
    lines: Table = [("case", "solver", "total, us", *steps, "the rest", "pivots", "certified")]
    lines += [
        (
            row.case,
            row.solver,
            f"{1e3 * row.ms:,.0f}",
            *(f"{1e3 * row.steps.get(step, 0.0):,.0f}" for step in steps),
            f"{1e3 * max(0.0, row.ms - sum(row.steps.values())):,.0f}",
            digits(row.pivots) if row.pivots else "0",
            _share(row.certified),
        )
        for row in ours
    ]
    return lines


def solvers_table(rows: Sequence[Row]) -> Table:
    """Milliseconds per column: a line for each case, a column for each solver; in brackets what is not exact."""
    solvers = list(dict.fromkeys(row.solver for row in rows if row.role != "before"))
    cells = {(row.case, row.solver): f"({digits(row.ms)})" if row.gap > EXACT else digits(row.ms) for row in rows}
    lines: Table = [("case", *solvers)]
    for case in dict.fromkeys(row.case for row in rows):
        lines.append((case, *(cells.get((case, solver), "-") for solver in solvers)))
    return lines


def aligned(lines: Table, left: Sequence[str] = ("case", "solver", "best peer", "aim", "note")) -> str:
    """The table for a terminal; columns of these titles are flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if title in left else cell.rjust(width)
            for title, cell, width in zip(lines[0], line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def markdown(lines: Table) -> str:
    """The table for a page."""
    titles, *rest = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in (titles, ["---"] * len(titles), *rest))


def finite(entry: dict[str, Any]) -> dict[str, Any]:
    """``entry`` with ``None`` for NaN, which JSON does not know."""
    return {key: None if isinstance(value, float) and isnan(value) else value for key, value in entry.items()}


def digits(value: float, unit: str = "") -> str:
    """Three digits, "-" for NaN."""
    if isnan(value):
        return "-"
    return (f"{value:.0f}" if value >= 100 else f"{value:#.3g}") + unit


def _against(row: Row, peer: Row) -> str:
    if row.role == "limit" or isnan(row.ms / peer.ms):
        return "-"
    if row.role != "peer":
        return digits(peer.ms / row.ms, "x faster")
    return "best" if row is peer else digits(row.ms / peer.ms, "x slower")


def _power(value: float) -> str:
    return "-" if isnan(value) else f"{value:.0e}"


def _share(value: float) -> str:
    return "-" if isnan(value) else f"{value:.1%}"
