"""Tables and the figure of the solver comparison, all of them functions of its rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.figure import Figure

from lad_cases import Case

EXACT = 1e-6
"""A peer counts as the best only if its worst relative gap is at most this."""
LIMIT = "one GEMM per column"
OURS, OURS_EXACT, OURS_ALL_CORES = "netpurify", "netpurify, noise_floor=0", "netpurify, all cores"

# Okabe and Ito's colours, which colour-blind readers can tell apart; one per family, one marker per member. The last
# number lifts families apart that would hide one another.
_STYLES = {
    OURS: ("#D55E00", "*", 0.0),
    OURS_ALL_CORES: ("#D55E00", "P", 0.0),
    OURS_EXACT: ("#E69F00", "*", 0.0),
    LIMIT: ("#000000", "|", 0.0),
    "R quantreg br": ("#009E73", "o", 0.0),
    "R quantreg rqs": ("#009E73", "s", 0.0),
    "R quantreg fnb": ("#009E73", "D", 0.0),
    "highspy, hot start": ("#0072B2", "o", -0.2),
    "scipy HiGHS, dual form": ("#0072B2", "^", -0.2),
    "scipy HiGHS, primal form": ("#0072B2", "v", -0.2),
    "scikit-learn QuantileRegressor": ("#0072B2", "s", -0.2),
    "Clarabel, dual form": ("#CC79A7", "D", 0.2),
    "statsmodels QuantReg": ("#999999", "X", 0.2),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One solver on one case; NaN for what was not measured.

    Attributes:
        case: Name of the case.
        solver: Name of the solver.
        role: Ours, somebody else's, or the limit that no solver can pass.
        ms: Milliseconds per column: CPU time on one core, wall time on all cores.
        cpu_ms: CPU milliseconds per column.
        wall_ms: Wall milliseconds per column.
        best_ms: The best of the repeats, of which ``ms`` is the median.
        gap: Worst (objective - lower bound) / objective, both from our verifier.
        columns: How many columns were run.
        certified: Share of the columns that the verifier calls proven.
        note: Why it did not run, or where the time went.
        absent: Whether it is not installed, so that nobody knows whether it would have been the best.
    """

    case: str
    solver: str
    role: Literal["ours", "peer", "limit"]
    ms: float = nan
    cpu_ms: float = nan
    wall_ms: float = nan
    best_ms: float = nan
    gap: float = nan
    columns: int = 0
    certified: float = nan
    note: str = ""
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """Ours, on one core, against the best peer, the limit and the target."""

    case: str
    ours: str
    ours_ms: float
    ours_gap: float
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
    reached = "-"
    if case.target and any(row.absent for row in of_case.values()):
        reached = "unknown: a peer is absent"
    elif case.target and not isnan(speedup):
        reached = "yes" if speedup >= case.target.speedup and gemms <= case.target.gemms else "no"
    target = str(case.target or "-")
    return Summary(
        case.name,
        ours.solver,
        ours.ms,
        ours.gap,
        of_case[OURS_ALL_CORES].ms if ours.solver == OURS else nan,
        peer.solver,
        peer.ms,
        speedup,
        gemms,
        target,
        reached,
    )


def table(rows: Sequence[Row]) -> str:
    """Every case and solver."""
    lines: list[Sequence[str]] = [
        ("case", "solver", "ms/column", "best", "to best peer", "GEMMs", "worst gap", "columns", "certified", "note")
    ]
    for row in rows:
        of_case = {other.solver: other for other in rows if other.case == row.case}
        lines.append(
            (
                row.case,
                row.solver,
                _digits(row.ms),
                _digits(row.best_ms),
                _against(row, best_peer(of_case.values())),
                _digits(row.ms / of_case[LIMIT].ms),
                _power(row.gap),
                str(row.columns),
                "-" if isnan(row.certified) else f"{row.certified:.1%}",
                row.note,
            )
        )
    return _aligned(lines, left=(0, 1, 9))


def summary_table(entries: Iterable[Summary]) -> str:
    """Ours against the best peer and the target."""
    lines: list[Sequence[str]] = [
        (
            "case",
            "ours",
            "our ms",
            "all cores",
            "our gap",
            "best peer",
            "its ms",
            "faster",
            "GEMMs",
            "target",
            "reached",
        )
    ]
    lines += [
        (
            entry.case,
            entry.ours,
            _digits(entry.ours_ms),
            _digits(entry.all_cores_ms),
            _power(entry.ours_gap),
            entry.best_peer,
            _digits(entry.best_peer_ms),
            _digits(entry.speedup, "x"),
            _digits(entry.gemms),
            entry.target,
            entry.reached,
        )
        for entry in entries
    ]
    return _aligned(lines, left=(0, 1, 5, 9))


def figure(rows: Sequence[Row], path: Path) -> None:
    """Milliseconds per column on a log scale, one line of dots per case."""
    cases = list(dict.fromkeys(row.case for row in rows))
    with mpl.rc_context({"font.size": 9, "svg.hashsalt": "lad", "svg.fonttype": "none"}):
        canvas = Figure(figsize=(9.0, 1.2 + 0.42 * max(len(cases), 7)), layout="constrained")
        axes = canvas.subplots()
        for solver, (colour, marker, lift) in _STYLES.items():
            dots = [(row.ms, cases.index(row.case) - lift) for row in rows if row.solver == solver and row.ms > 0.0]
            axes.scatter(
                [dot[0] for dot in dots],
                [dot[1] for dot in dots],
                s=160 if marker == "*" else 50,
                c=colour,
                marker=marker,
                label=solver,
                alpha=0.85,
                linewidths=2.0 if marker == "|" else 0.0,
                zorder=3,
            )
        axes.set_xscale("log")
        axes.set_yticks(range(len(cases)), cases)
        axes.set_ylim(len(cases) - 0.5, -0.5)
        axes.set_xlabel("milliseconds per column (one core, CPU time; all cores, wall time)")
        axes.grid(axis="x", which="major", color="0.85")
        axes.grid(axis="y", color="0.93")
        axes.spines[["top", "right"]].set_visible(False)
        canvas.legend(loc="outside right upper", frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path, dpi=150)


def finite(entry: dict[str, Any]) -> dict[str, Any]:
    """``entry`` with ``None`` for NaN, which JSON does not know."""
    return {key: None if isinstance(value, float) and isnan(value) else value for key, value in entry.items()}


def _against(row: Row, peer: Row) -> str:
    if row.role == "limit" or isnan(row.ms / peer.ms):
        return "-"
    if row.role == "ours":
        return _digits(peer.ms / row.ms, "x faster")
    return "best" if row is peer else _digits(row.ms / peer.ms, "x slower")


def _digits(value: float, unit: str = "") -> str:
    """Three digits."""
    if isnan(value):
        return "-"
    return (f"{value:.0f}" if value >= 100 else f"{value:#.3g}") + unit


def _power(value: float) -> str:
    return "-" if isnan(value) else f"{value:.0e}"


def _aligned(lines: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i in left else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
