"""Figure 2: larger p and k recover more, in the joint regime (Theorem 2)."""

from typing import Any

from netpurify import lad
from netpurify.experiments.figures.claims.trends import of_regime, relative
from netpurify.experiments.figures.claims.verdicts import cell, graded, short, trials_of, values
from netpurify.experiments.figures.claims.weights import (
    beta_by_width,
    filters_by_size,
    plain_rule,
    small_shares,
    theorem_2,
)
from netpurify.experiments.figures.panels import baselines, coincidence, error_panel, line
from netpurify.experiments.figures.settings.table import settings_of, units_of
from netpurify.experiments.figures.trials import altered_weights
from netpurify.findings import Evidence, Experiment, Figure, Finding, Mode, PlotPanel, TableRow, select, summarise

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7)
RANK = 25  # n m
LOST = (
    "The error of the initial weights falls with p as well, so that a fixed error becomes easier. Features of the "
    "purified W are spoilt by filters that do not come back, which is a matter of k. With features of the initial W "
    "N(1, 1) sets the limit: features are never negative, and once 0.84 eps is above one half, a shift of all entries "
    "explains more of beta than the truth does."
)
GENERIC = plain_rule(
    "Generic odds, Gaussian inputs: the odds of L1 recovery for a generic random design (lad.recovery_probability) "
    "predict the share of exact filters.",
    "At every k and eps the mean share over p differs from the odds by at most 0.02: holds; by at most 0.05: with "
    "limits.",
    "Patches of Gaussian inputs span a uniformly random space, for which the odds hold; pixels and features do not.",
)


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
    return 0.2 + 0.003 * float(settings["p"] or 0)


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """Errors of W above, of beta below; one column per k."""
    return [*(_panel(rows, k, "W") for k in values(rows, "k")), *(_panel(rows, k, "beta") for k in values(rows, "k"))]


def _panel(rows: list[TableRow], k: int, layer: str) -> PlotPanel:
    widest = values(rows, "p")[-1]
    fixed: dict[str, Any] = {"x": "eps", "y": f"{layer}_error", "k": k, "regime": "joint"}
    lines = [line(rows, f"p = {p}", method="l1", p=p, **fixed) for p in values(rows, "p")]
    note = coincidence(lines, "all p")
    own = ("l1, initial features",) if layer == "beta" else ()
    lines += baselines(
        rows, ("contaminated", *own, "initial weights", "l2"), f"p = {widest}", p=widest, **fixed
    )  # fmt: skip
    return error_panel(f"{layer}, k = {k}", f"error of {layer}", lines, note=note)


def findings(rows: list[TableRow]) -> list[Finding]:
    """The two sentences of the caption, small shares, Theorem 2, and what the odds of a generic design say."""
    rows = relative(of_regime(rows, "joint"))
    return [
        filters_by_size(rows),
        beta_by_width(rows, each="k", why=LOST),
        small_shares(rows),
        theorem_2(rows),
        _generic_odds(rows),
    ]


def _generic_odds(rows: list[TableRow]) -> Finding:
    """The odds know nothing of p, so that they are compared with the mean over p."""
    shares = summarise(select(rows, method="l1"), ["k", "eps"], "W_exact")
    odds = {place: lad.recovery_probability(int(place[0] or 0), RANK, float(place[1] or 0.0)) for place in shares}
    off = max((abs(share.mean - odds[place]) for place, share in shares.items() if share.count), default=float("nan"))
    sizes = values(rows, "k")
    table = [
        [f"{eps:g}", *(text for k in sizes for text in (cell(shares[k, eps]), short(odds[k, eps])))]
        for eps in values(rows, "eps")
        if all((k, eps) in shares for k in sizes)
    ]
    columns = ["eps", *(text for k in sizes for text in (f"k = {k}, measured", "odds"))]
    return Finding(
        GENERIC,
        graded(shares.values(), holds=off <= 0.02, limits=off <= 0.05),
        None,
        f"Largest difference at any k and eps: {off:.3f}.",
        [Evidence(f"Share of exact filters, mean over p; {trials_of(shares.values())}", columns, table)],
        ours=True,
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
    units=units_of,
    panels=panels,
    findings=findings,
    remarks=(
        "Training moves W so little here that returning the initial weights beats any recovery beyond its limit.",
    ),
)
