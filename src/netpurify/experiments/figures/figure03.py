"""Figure 3: the same in the sequential regime (Theorem 3), where beta is recovered exactly too."""

from typing import Any

from netpurify.experiments.figures import figure02
from netpurify.experiments.figures.claims.trends import of_regime, relative
from netpurify.experiments.figures.claims.verdicts import values
from netpurify.experiments.figures.claims.weights import beta_by_width, filters_by_size, small_shares, theorem_3
from netpurify.experiments.figures.panels import baselines, coincidence, error_panel, line
from netpurify.experiments.figures.settings.table import settings_of, units_of
from netpurify.findings import Figure, Finding, PlotPanel, TableRow

EXPERIMENT = figure02.EXPERIMENT
FIXED: dict[str, Any] = {"method": "l1", "regime": "sequential"}


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """Errors of beta by k; W is that of Figure 2, number by number."""
    return [_panel(rows, k) for k in values(rows, "k")]


def _panel(rows: list[TableRow], k: int) -> PlotPanel:
    widest = values(rows, "p")[-1]
    drawn: dict[str, Any] = {"x": "eps", "y": "beta_error", "k": k}
    lines = [line(rows, f"p = {p}", p=p, **drawn, **FIXED) for p in values(rows, "p")]
    note = coincidence(lines, "all p")
    others = ("contaminated", "l1, initial features", "initial weights", "l2")
    lines += baselines(rows, others, f"p = {widest}", p=widest, regime="sequential", **drawn)
    joint: dict[str, Any] = {"regime": "joint", "method": "l1", "p": widest}
    lines.append(
        line(rows, f"l1, joint training, p = {widest}", baseline=True, thing="l1, joint training", **drawn, **joint)
    )
    return error_panel(f"beta, k = {k}", "error of beta", lines, note=note)


def findings(rows: list[TableRow]) -> list[Finding]:
    """The same claims as Figure 2, with Theorem 3 in place of Theorem 2."""
    rows = relative(of_regime(rows, "sequential"))
    return [
        filters_by_size(rows),
        beta_by_width(rows, each="k", why=figure02.LOST),
        small_shares(rows),
        theorem_3(rows),
    ]


FIGURE = Figure(
    number=3,
    title="Larger p and k recover more (W first, then beta: Theorem 3)",
    settings=settings_of(3, EXPERIMENT, shares=figure02.SHARES),
    experiment=EXPERIMENT,
    units=units_of,
    panels=panels,
    findings=findings,
    remarks=(
        "The trials are those of Figure 2: after joint training W is frozen and beta trained from 0. W is the same, "
        "bit for bit, and so are its errors.",
    ),
)
