"""Figure 5: larger p recovers more on MNIST."""

from typing import Any

from netpurify.experiments.figures.claims.rules import AT, RECOVERED
from netpurify.experiments.figures.claims.trends import below, change, relative, trend
from netpurify.experiments.figures.claims.verdicts import graded, level, listed, short, values
from netpurify.experiments.figures.claims.weights import beta_by_width, by_size, plain_rule, steps_of, trend_cells
from netpurify.experiments.figures.panels import baselines, coincidence, error_panel, line
from netpurify.experiments.figures.settings.table import settings_of, units_of
from netpurify.experiments.figures.trials import altered_weights
from netpurify.experiments.figures.trials.three_classes import mnist
from netpurify.findings import Evidence, Experiment, Figure, Finding, Mode, PlotPanel, TableRow, TrialSummary, select

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
IMAGES = 21
CONTROL = 99
"""The text's number of images, which is run at one width to show what it does."""
PATCHES = ((2, 392, 1.0), (4, 196, 1.0), (7, 112, 0.8))
"""m, k and the step size that trains."""


FLOOR = plain_rule(
    "On MNIST the error of beta falls with p, as Theorem 2 says, also beside the initial weights.",
    f"At eps = {AT:g}: the error falls clearly with p by itself and as a share of that of the initial weights, to at "
    f"most {RECOVERED:g} of it. Holds: at every m. With limits: at some m.",
    "The paper says so of Gaussian inputs; here it is asked of images.",
)
MANY = plain_rule(
    f"With the text's {CONTROL} images fewer filters come back than with the caption's {IMAGES}.",
    "At eps = 0.05 and the smallest p the share of exact filters is clearly lower (by more than twice the standard "
    "error, within trials). Holds: at every m. With limits: at some m.",
    f"The caption says n = {IMAGES}, the text n = {CONTROL}; a setting, not a claim. The plots are of {IMAGES}.",
)


def grid(mode: Mode) -> list[TableRow]:
    """The three ways of cutting an image, and p."""
    widths = (100, 500) if mode == "quick" else (100, 500, 1000)
    return [
        {"data": mnist(mode), "training": training, "m": m, "k": k, "p": p, "gamma": gamma, "steps": 3000}
        for training in (IMAGES, CONTROL)
        for m, k, gamma in PATCHES
        for p in (widths if training == IMAGES else widths[:1])
    ]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """The training images themselves purify."""
    return altered_weights.on_images(
        settings, seed, shares=SHARES, counts=(int(settings["training"] or 0),), origins=("training",)
    )


def cost(settings: TableRow) -> float:
    """Training and fits both grow with p."""
    return 1.0 + 0.001 * float(settings["p"] or 0) * float(settings["training"] or 0)


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """Errors of W above, of beta below; one column per way of cutting."""
    rows = select(rows, training=IMAGES)
    return [_panel(rows, m, layer) for layer in ("W", "beta") for m in values(rows, "m")]


def _panel(rows: list[TableRow], m: int, layer: str) -> PlotPanel:
    widths = values(rows, "p")
    fixed: dict[str, Any] = {"x": "eps", "y": f"{layer}_error", "m": m}
    lines = [line(rows, f"p = {p}", method="l1", p=p, **fixed) for p in widths]
    note = coincidence(lines, "all p")
    own = ("l1, initial features",) if layer == "beta" else ()
    others = ("contaminated", *own, "initial weights", "l2")
    lines += baselines(rows, others, f"p = {widths[-1]}", p=widths[-1], **fixed)
    rank = level(rows, f"rank_{layer}", m=m, method="l1").mean
    fan_in = 784 // m if layer == "W" else "p"
    return error_panel(f"{layer}, m = {m}: rank {rank:.0f} of {fan_in}", f"error of {layer}", lines, note=note)


def findings(rows: list[TableRow]) -> list[Finding]:
    """The caption; and what p does to the floor of beta, and the number of images to W."""
    few, many = (select(rows, training=training) for training in (IMAGES, CONTROL))
    few = relative(few)
    why = (
        "The error of the initial weights falls with p as well. With features of the purified W, the filters that do "
        "not come back decide; with features of the initial W, a shift of all entries of beta does."
    )
    return [beta_by_width(few, each="m", why=why), _floor(few), _images(few, many)]


def _floor(rows: list[TableRow]) -> Finding:
    """The error of beta while few weights are altered, cut by cut."""
    cuts = values(rows, "m")
    at = select(rows, eps=AT, method="l1")
    errors, ratios = (
        {m: trend(steps_of(select(at, m=m), "p", values(rows, "p")), column) for m in cuts}
        for column in ("beta_error", "beta_ratio")
    )
    good = [m for m in cuts if errors[m].falls and ratios[m].falls and ratios[m].levels[-1].mean <= RECOVERED]
    return Finding(
        FLOOR,
        graded(
            [number for m in cuts for number in (*errors[m].needed, *ratios[m].needed)],
            holds=good == cuts,
            limits=bool(good),
            trials=2,
        ),
        None,
        f"Met {_at(good)}.",
        [
            by_size(f"Error of beta, eps = {AT:g}", "m", {m: trend_cells(errors[m]) for m in cuts}),
            by_size(
                f"As a share of the initial weights', eps = {AT:g}", "m", {m: trend_cells(ratios[m]) for m in cuts}
            ),
        ],
        "It takes filters that come back, as beta is fitted on what they see.",
        ours=True,
    )


def _images(few: list[TableRow], many: list[TableRow]) -> Finding:
    """What comes back of W with either number of images, at the smallest width, which both have."""
    cuts = values(few, "m")
    at: dict[str, Any] = {"method": "l1", "eps": 0.05, "p": values(few, "p")[0]}
    tables = {IMAGES: few, CONTROL: many}
    exact = {m: {f"n = {n}": level(own, "W_exact", m=m, **at) for n, own in tables.items()} for m in cuts}
    lost = {m: change(select(few, m=m, **at), select(many, m=m, **at), "W_exact") for m in cuts}
    ranks = [
        [f"m = {m}", *(_rank(level(own, "rank_W", m=m, **at)) for own in tables.values()), str(784 // m)] for m in cuts
    ]
    worse = [m for m in cuts if below(lost[m])]
    numbers = [*lost.values(), *(number for row in exact.values() for number in row.values())]
    return Finding(
        MANY,
        graded(numbers, holds=worse == cuts, limits=bool(worse), trials=2),
        None,
        f"Exact filters with {CONTROL} images: "
        + listed((f"m = {m}", short(exact[m][f"n = {CONTROL}"].mean)) for m in cuts)
        + f"; with {IMAGES}: "
        + listed((f"m = {m}", short(exact[m][f"n = {IMAGES}"].mean)) for m in cuts)
        + ".",
        [
            by_size(f"Share of exact filters, eps = 0.05, p = {at['p']}", "m", exact),
            Evidence("Rank of the patches, mean", ["m", *(f"n = {n}" for n in tables), "Fan-in"], ranks),
        ],
        "What the patches span of the fan-in cannot be told from an alteration, so that less comes back the larger "
        "that share is.",
        ours=True,
    )


def _rank(found: TrialSummary) -> str:
    return f"{found.mean:.0f}" if found.count else "-"


def _at(cuts: list[int]) -> str:
    return f"at {', '.join(f'm = {m}' for m in cuts)}" if cuts else "at no m"


EXPERIMENT = Experiment(
    name="mnist-p",
    title="MNIST, 21 images: p and the way of cutting",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 1, "default": 3, "full": 10},
)
FIGURE = Figure(
    number=5,
    title="Larger p recovers more on MNIST",
    settings=settings_of(5, EXPERIMENT, shares=SHARES),
    experiment=EXPERIMENT,
    units=units_of,
    panels=panels,
    findings=findings,
)
