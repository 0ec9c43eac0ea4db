"""The figure of the solver comparison, a function of its rows."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from lad_report import BEFORE, LIMIT, OURS, OURS_ALL_CORES, OURS_EXACT, Row

# Okabe and Ito's colours, which colour-blind readers can tell apart; one per family, one marker per member. The last
# number lifts families apart that would hide one another.
_STYLES = {
    OURS: ("#D55E00", "*", 0.3),
    BEFORE: ("#D55E00", "x", 0.3),
    OURS_ALL_CORES: ("#D55E00", "P", 0.3),
    OURS_EXACT: ("#E69F00", "*", 0.3),
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
                linewidths=2.0 if marker in "|x" else 0.0,
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
