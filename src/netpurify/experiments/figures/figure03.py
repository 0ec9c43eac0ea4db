"""Figure 3: the same in the sequential regime (Theorem 3), where beta is recovered exactly too."""

from typing import Any

from netpurify.experiments.figures import figure02
from netpurify.experiments.figures.panels import error_panel, line
from netpurify.experiments.figures.settings import settings_of
from netpurify.experiments.figures.trends import JUDGED, RECOVERED, limit_trend, of_regime, relative
from netpurify.experiments.figures.verdicts import graded, level, listed, show, simple, values
from netpurify.findings import Figure, Finding, PlotPanel, TableRow, select

EXPERIMENT = figure02.EXPERIMENT
FIXED: dict[str, Any] = {"method": "l1", "regime": "sequential"}


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """Errors of beta by k; W is that of Figure 2, number by number."""
    return [_panel(rows, k) for k in values(rows, "k")]


def _panel(rows: list[TableRow], k: int) -> PlotPanel:
    widest = values(rows, "p")[-1]
    lines = [line(rows, f"p = {p}", x="eps", y="beta_error", k=k, p=p, **FIXED) for p in values(rows, "p")]
    joint: dict[str, Any] = {"regime": "joint", "method": "l1"}
    lines.append(
        line(rows, f"joint training, p = {widest}", x="eps", y="beta_error", baseline=True, k=k, p=widest, **joint)
    )
    for name in ("l1, initial features", "initial weights", "l2"):
        fixed: dict[str, Any] = {"regime": "sequential", "method": name, "k": k, "p": widest}
        lines.append(line(rows, f"{name}, p = {widest}", x="eps", y="beta_error", baseline=True, **fixed))
    return error_panel(f"beta, k = {k}", "error of beta", lines)


def findings(rows: list[TableRow]) -> list[Finding]:
    """Theorem 3, and the two sentences of the caption."""
    rows = relative(of_regime(rows, "sequential"))
    return [_theorem(rows), _beta_by_width(rows), figure02.filters_by_size(rows)]


def _theorem(rows: list[TableRow]) -> Finding:
    """Both layers exact, k by k."""
    widths, sizes = values(rows, "p"), values(rows, "k")
    at = select(rows, eps=0.1, **FIXED)
    filters = {k: level(at, "W_exact", k=k) for k in sizes}
    outputs = {(k, p): level(at, "beta_exact", k=k, p=p) for k in sizes for p in widths}
    good = {
        k: filters[k].mean >= figure02.EXACT and all(outputs[k, p].mean >= 0.95 for p in widths) for k in sizes
    }  # fmt: skip
    worst = {k: min(((p, outputs[k, p]) for p in widths), key=lambda pair: pair[1].mean) for k in sizes}
    fixed: dict[str, Any] = {"eps": 0.1, "k": sizes[-1], "p": widths[-1], "method": "l1, initial features"}
    share, error = (level(rows, column, **fixed) for column in ("beta_exact", "beta_error"))
    return simple(
        "W~ = W and beta~ = beta with high probability (Theorem 3).",
        f"eps = 0.1; share of exact filters: {listed((f'k = {k}', show(filters[k])) for k in sizes)}; share of trials "
        "with an exact beta, at the worst p: "
        + listed((f"k = {k}, p = {p}", show(found)) for k, (p, found) in worst.items()),
        graded([*filters.values(), *outputs.values()], holds=all(good.values()), limits=any(good.values())),
        f"Asked of every k: {100 * figure02.EXACT:.0f} % of the filters exact, and beta in 95 % of the trials at every "
        "p. Every entry of beta needs all filters: one that does not come back makes its feature wrong. With features "
        f"of the initial W, k = {sizes[-1]}, p = {widths[-1]}, beta is exact in {show(share)} of the "
        f"trials, with an error of {show(error)}.",
    )


def _beta_by_width(rows: list[TableRow]) -> Finding:
    """By exactness, which this regime promises, and by the weaker rule of Figure 2."""
    steps = [(f"p = {p}", select(rows, p=p, **FIXED)) for p in values(rows, "p")]
    exact = limit_trend(steps, "beta_exact", least=1.0, each=["k"])
    half = limit_trend(steps, "beta_ratio", most=RECOVERED, each=["k"])
    return simple(
        "When p increases, the limit of eps for successful recovery of beta increases.",
        f"mean over k; largest eps up to which beta is exact: {exact}; up to which its error is at most half that of "
        f"the initial weights in the same trial: {half}",
        graded([*exact.needed, *half.needed], holds=exact.rises, limits=half.rises, trials=2),
        "It would hold by the first rule, with limits by the second alone. Beta is fitted on the features of all "
        "filters, so that every one must come back, and more filters are more that can fail.",
    )


FIGURE = Figure(
    number=3,
    title="Larger p and k recover more (W first, then beta: Theorem 3)",
    settings=settings_of(3, EXPERIMENT, shares=figure02.SHARES),
    experiment=EXPERIMENT,
    panels=panels,
    findings=findings,
    remarks=(JUDGED,),
)
