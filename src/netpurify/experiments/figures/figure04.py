"""Figure 4: fewer patches recover more."""

from typing import Any

from netpurify import lad
from netpurify.experiments.figures.claims.trends import of_regime, relative
from netpurify.experiments.figures.claims.verdicts import graded, level, show, values
from netpurify.experiments.figures.claims.weights import by_size, patches_findings, plain_rule
from netpurify.experiments.figures.panels import baselines, coincidence, error_panel, generic_line, line
from netpurify.experiments.figures.settings.table import settings_of, units_of
from netpurify.experiments.figures.trials import altered_weights
from netpurify.findings import Experiment, Figure, Finding, Line, Mode, PlotPanel, TableRow, select

SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
N, K = 5, 200
CONTROL = plain_rule(
    "Where the patches span every direction, nothing can be told apart and no filter comes back.",
    "At eps = 0.1 at most 1 % of the filters are exact at the m for which n m is at least k: holds.",
    "A control: what cannot work must not seem to work.",
)


def grid(mode: Mode) -> list[TableRow]:
    """Up to 30 patches, and 40 as the control that cannot work: 5 times 40 patches span all 200 directions."""
    patches = (2, 10, 40) if mode == "quick" else (1, 2, 5, 10, 20, 30, 40)
    return [
        {"n": N, "m": m, "k": K, "p": 100 if mode == "quick" else 500, "gamma": min(1.0, 5.0 / m**2), "steps": 1000}
        for m in patches
    ]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """Both regimes, every share, every method."""
    return altered_weights.on_gaussian_inputs(settings, seed, shares=SHARES)


def cost(settings: TableRow) -> float:
    """Fits beyond the limit grow with the rank."""
    return float(settings["p"] or 0) * (0.002 + 0.0004 * float(settings["m"] or 0))


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """W by error and by share of exact filters, beta with both choices of features."""
    patches = values(rows, "m")
    middle = patches[len(patches) // 2]

    def lines(column: str, method: str = "l1") -> list[Line]:
        fixed: dict[str, Any] = {"x": "eps", "y": column, "regime": "joint"}
        return [line(rows, f"m = {m}", m=m, method=method, **fixed) for m in patches]

    def errors(title: str, layer: str, method: str = "l1") -> PlotPanel:
        own = lines(f"{layer}_error", method)
        fixed: dict[str, Any] = {"x": "eps", "y": f"{layer}_error", "regime": "joint", "m": middle}
        others = baselines(rows, ("contaminated", "initial weights", "l2"), f"m = {middle}", **fixed)
        return error_panel(title, f"error of {layer}", [*own, *others], note=coincidence(own, "all m"))

    shares = values(rows, "eps")
    odds = [
        generic_line(shares, [lad.recovery_probability(K, N * m, eps) for eps in shares])
        for m in patches
        if N * m < K
    ]  # fmt: skip
    exact = PlotPanel(
        "W: filters that come back exactly", "share of altered weights", "share of filters",
        [*lines("W_exact"), *odds], limits=(0.0, 1.02),
    )  # fmt: skip
    return [
        errors("W", "W"),
        exact,
        errors("beta, features of purified W", "beta"),
        errors("beta, features of initial W", "beta", "l1, initial features"),
    ]


def findings(rows: list[TableRow]) -> list[Finding]:
    """The caption, for W and for beta; m falls from step to step, without the control, which would decide alone."""
    rows = relative(of_regime(rows, "joint"))
    patches = [m for m in reversed(values(rows, "m")) if N * m < K]
    return [*patches_findings(rows, patches), *_control(rows)]


def _control(rows: list[TableRow]) -> list[Finding]:
    at = select(rows, method="l1", eps=0.1)
    impossible = [m for m in values(rows, "m") if N * m >= K]
    exact = {m: {"W": level(at, "W_exact", m=m)} for m in impossible}
    numbers = [number for row in exact.values() for number in row.values()]
    return [
        Finding(
            CONTROL,
            graded(numbers, holds=all(number.mean <= 0.01 for number in numbers), limits=False),
            None,
            f"At eps = 0.1 and m = {impossible[0]}, {show(numbers[0])} of the filters are exact.",
            [by_size("Share of exact filters, eps = 0.1", "m", exact)],
            ours=True,
        )
    ] * bool(impossible)


EXPERIMENT = Experiment(
    name="synthetic-m",
    title="Gaussian inputs, n = 5, p = 500, k = 200: number of patches",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 2, "default": 10, "full": 100},
)
FIGURE = Figure(
    number=4,
    title="Fewer patches recover more",
    settings=settings_of(4, EXPERIMENT, shares=SHARES),
    experiment=EXPERIMENT,
    units=units_of,
    panels=panels,
    findings=findings,
)
