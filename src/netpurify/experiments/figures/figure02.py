"""Figure 2: larger p and k recover more, in the joint regime (Theorem 2)."""

from typing import Any

from netpurify import lad
from netpurify.experiments.figures import altered_weights
from netpurify.experiments.figures.panels import error_panel, line
from netpurify.experiments.figures.settings import settings_of
from netpurify.experiments.figures.trends import JUDGED, SHIFT, beta_recovered, limit_trend, of_regime, relative, trend
from netpurify.experiments.figures.verdicts import graded, level, listed, show, simple, values
from netpurify.findings import Experiment, Figure, Finding, Mode, PlotPanel, TableRow, select, summarise

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7)
RANK = 25  # n m
EXACT = 0.99
"""Share of filters that counts as all of W: one in a hundred may be beyond its limit."""


def grid(mode: Mode) -> list[TableRow]:
    """The paper's k, and p from 50 on."""
    widths = (50, 500) if mode == "quick" else (50, 100, 500, 1000, 2000)
    return [
        {"n": 5, "m": 5, "k": k, "p": p, "gamma": 0.1, "steps": 500} for k in (50, 100, 150) for p in widths
    ]  # fmt: skip


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """Both regimes, every share, every method."""
    return altered_weights.on_gaussian_inputs(settings, seed, shares=SHARES)


def cost(settings: TableRow) -> float:
    """Nearly all of it fits units beyond their limit."""
    return 0.3 + 0.004 * float(settings["p"] or 0)


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """Errors of W above, of beta below; one column per k."""
    return [*(_panel(rows, k, "W") for k in values(rows, "k")), *(_panel(rows, k, "beta") for k in values(rows, "k"))]


def _panel(rows: list[TableRow], k: int, layer: str) -> PlotPanel:
    widest = values(rows, "p")[-1]
    column = f"{layer}_error"
    fixed: dict[str, Any] = {"k": k, "regime": "joint"}
    lines = [line(rows, f"p = {p}", x="eps", y=column, method="l1", p=p, **fixed) for p in values(rows, "p")]
    others = ("initial weights", "l2") if layer == "W" else ("l1, initial features", "initial weights", "l2")
    lines += [
        line(rows, f"{name}, p = {widest}", x="eps", y=column, baseline=True, method=name, p=widest, **fixed)
        for name in others
    ]
    return error_panel(f"{layer}, k = {k}", f"error of {layer}", lines)


def findings(rows: list[TableRow]) -> list[Finding]:
    """The two sentences of the caption, and Theorem 2."""
    rows = relative(of_regime(rows, "joint"))
    return [filters_by_size(rows), _beta_by_width(rows), _theorem(rows)]


def filters_by_size(rows: list[TableRow]) -> Finding:
    """How far W is recovered, by k."""
    own = select(rows, method="l1")
    steps = [(f"k = {k}", select(own, k=k)) for k in values(rows, "k")]
    found = limit_trend(steps, "W_exact", least=0.95, each=["p"])
    off = [
        abs(share.mean - lad.recovery_probability(int(k or 0), RANK, float(eps or 0.0)))
        for (k, eps), share in summarise(own, ["k", "eps"], "W_exact").items()
        if share.count
    ]
    return simple(
        "When k increases, the limit of eps for successful recovery of W increases.",
        f"largest eps up to which 95 % of the filters are exact, mean over p: {found}",
        graded(found.needed, holds=found.rises, limits=False, trials=2),
        f"It is the ratio of fan-in k to rank nm = {RANK} that decides. The exact odds of L1 recovery "
        "(lad.recovery_probability) know nothing of p, and predict the share of exact filters, mean over p, at every k "
        f"and eps within {max(off, default=float('nan')):.3f}.",
    )


def _beta_by_width(rows: list[TableRow]) -> Finding:
    return beta_recovered(
        "When p increases, the limit of eps for successful recovery of beta increases.",
        ((f"p = {p}", select(rows, p=p)) for p in values(rows, "p")),
        each=["k"],
        why=f"{SHIFT} With features of the purified W, filters that do not come back spoil their features long before, "
        "and that is a matter of k.",
    )


def _theorem(rows: list[TableRow]) -> Finding:
    """Exact filters, and a beta whose error falls with p faster than that of the initial weights, k by k."""
    widths, sizes = values(rows, "p"), values(rows, "k")
    at = select(rows, eps=0.1, method="l1")
    exact = {k: level(at, "W_exact", k=k) for k in sizes}
    steps = {k: [(f"p = {p}", select(at, k=k, p=p)) for p in widths] for k in sizes}
    errors = {k: trend(steps[k], "beta_error") for k in sizes}
    ratios = {k: trend(steps[k], "beta_ratio") for k in sizes}
    good = {k: exact[k].mean >= EXACT and errors[k].falls and ratios[k].falls for k in sizes}
    return simple(
        "W is recovered exactly, beta with an error that falls with p (Theorem 2).",
        f"eps = 0.1; share of exact filters: {listed((f'k = {k}', show(exact[k])) for k in sizes)}; error of beta from "
        f"p = {widths[0]} to {widths[-1]}: {listed((f'k = {k}', errors[k].ends) for k in sizes)}; as a share of that "
        f"of the initial weights in the same trial: {listed((f'k = {k}', ratios[k].ends) for k in sizes)}",
        graded(
            [*exact.values(), *(found for k in sizes for found in (*errors[k].needed, *ratios[k].needed))],
            holds=all(good.values()),
            limits=any(good.values()),
            trials=2,
        ),
        f"Asked of every k: {100 * EXACT:.0f} % of the filters exact, and an error of beta that falls with p both by "
        "itself and beside the initial weights, whose own error falls too; met at "
        f"{', '.join(f'k = {k}' for k in sizes if good[k]) or 'none'}. The bound itself, (mn)^3 log(p) / p, is "
        "far above 1 at these sizes: vacuous, and far from what is seen.",
    )


EXPERIMENT = Experiment(
    name="synthetic-p-k",
    title="Gaussian inputs, n = m = 5: share of altered weights, k and p, both regimes",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 2, "default": 10, "full": 100},
)
FIGURE = Figure(
    number=2,
    title="Larger p and k recover more (joint training, Theorem 2)",
    settings=settings_of(2, EXPERIMENT, shares=SHARES),
    experiment=EXPERIMENT,
    panels=panels,
    findings=findings,
    remarks=(
        "Error of W: mean over filters of |W~_j - W_j|; of beta: |beta~ - beta| / sqrt(p).",
        "Training moves W so little here that returning the initial weights beats any recovery beyond its limit.",
        JUDGED,
    ),
)
