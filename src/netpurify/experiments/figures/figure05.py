"""Figure 5: larger p recovers more on MNIST."""

from typing import Any

from netpurify.experiments.figures import altered_weights
from netpurify.experiments.figures.panels import error_panel, line
from netpurify.experiments.figures.settings import settings_of
from netpurify.experiments.figures.three_classes import mnist
from netpurify.experiments.figures.trends import JUDGED, RECOVERED, SHIFT, beta_recovered, relative, trained, trend
from netpurify.experiments.figures.verdicts import graded, level, listed, show, simple, values
from netpurify.findings import Experiment, Figure, Finding, Mode, PlotPanel, TableRow, TrialSummary, select

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
IMAGES = 21
CONTROL = 99
"""The text's number of images, which is run at one width to show what it does."""
PATCHES = ((2, 392, 1.0), (4, 196, 1.0), (7, 112, 0.8))
"""m, k and the step size that trains."""


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
    column = f"{layer}_error"
    lines = [line(rows, f"p = {p}", x="eps", y=column, method="l1", m=m, p=p) for p in widths]
    for name in ("initial weights", "l2", *(("l1, initial features",) if layer == "beta" else ())):
        label = f"{name}, p = {widths[-1]}"
        lines.append(line(rows, label, x="eps", y=column, baseline=True, method=name, m=m, p=widths[-1]))
    rank = level(rows, f"rank_{layer}", m=m, method="l1").mean
    fan_in = 784 // m if layer == "W" else "p"
    return error_panel(f"{layer}, m = {m}: rank {rank:.0f} of {fan_in}", f"error of {layer}", lines)


def findings(rows: list[TableRow]) -> list[Finding]:
    """The caption, what p does to the floor of beta, and what the number of images does to W."""
    few, many = (select(rows, training=training) for training in (IMAGES, CONTROL))
    few = relative(few)
    return [
        beta_recovered(
            "When p increases, the limit of eps for successful recovery of beta increases.",
            ((f"p = {p}", select(few, p=p)) for p in values(few, "p")),
            each=["m"],
            note=f"; {trained(few)}",
            why=f"{SHIFT} With features of the purified W, the filters that do not come back decide.",
        ),
        _floor(few),
        _images(few, many),
    ]


def _floor(rows: list[TableRow]) -> Finding:
    """The error of beta while few weights are altered, cut by cut."""
    widths, cuts = values(rows, "p"), values(rows, "m")
    at = select(rows, eps=0.1, method="l1")
    steps = {m: [(f"p = {p}", select(at, m=m, p=p)) for p in widths] for m in cuts}
    errors = {m: trend(steps[m], "beta_error") for m in cuts}
    ratios = {m: trend(steps[m], "beta_ratio") for m in cuts}
    good = [errors[m].falls and ratios[m].falls and ratios[m].levels[-1].mean <= RECOVERED for m in cuts]
    return simple(
        "The error of beta falls with p (Theorem 2).",
        f"eps = 0.1; error of beta from p = {widths[0]} to {widths[-1]}: "
        f"{listed((f'm = {m}', errors[m].ends) for m in cuts)}; as a share of that of the initial weights in the same "
        f"trial: {listed((f'm = {m}', ratios[m].ends) for m in cuts)}",
        graded(
            [found for m in cuts for found in (*errors[m].needed, *ratios[m].needed)],
            holds=all(good),
            limits=any(good),
            trials=2,
        ),
        "Asked of every cut: the error falls both by itself and beside the initial weights, whose own error falls with "
        "p too, to at most half of theirs. It takes filters that come back, as beta is fitted on what they see.",
    )


def _images(few: list[TableRow], many: list[TableRow]) -> Finding:
    """What comes back of W with either number of images, at the smallest width, which both have."""
    cuts = values(few, "m")
    at: dict[str, Any] = {"method": "l1", "eps": 0.05, "p": values(few, "p")[0]}
    tables = {IMAGES: few, CONTROL: many}
    exact = {(n, m): level(own, "W_exact", m=m, **at) for n, own in tables.items() for m in cuts}
    ranks = {(n, m): level(own, "rank_W", m=m, **at) for n, own in tables.items() for m in cuts}
    met = {n: [m for m in cuts if exact[n, m].mean >= 0.95] for n in tables}
    spoken = [
        f"n = {n}: " + listed((f"m = {m}", f"{show(exact[n, m])}, {_rank(ranks[n, m], 784 // m)}") for m in cuts)
        for n in tables
    ]
    return simple(
        f"The setting is n = {CONTROL} (text; the caption says {IMAGES}).",
        f"share of W's filters exact at eps = 0.05, p = {at['p']}, and the rank of the patches: " + "; ".join(spoken),
        graded([*exact.values(), *ranks.values()], holds=met[CONTROL] == cuts, limits=bool(met[CONTROL])),
        f"Judged is whether 95 % of the filters come back with n = {CONTROL}: {_at(met[CONTROL])}. The plots are of "
        f"n = {IMAGES}: {_at(met[IMAGES])}. What the patches span of the fan-in cannot be told from an alteration, so "
        "that less comes back the larger that share is.",
    )


def _rank(found: TrialSummary, fan_in: int) -> str:
    return f"rank {found.mean:.0f} of {fan_in} ({100 * found.mean / fan_in:.0f} %)" if found.count else "rank unknown"


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
    panels=panels,
    findings=findings,
    remarks=(JUDGED,),
)
