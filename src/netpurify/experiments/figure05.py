"""Figure 5: larger p recovers more on MNIST."""

from netpurify.experiments import noise
from netpurify.experiments.experiment import Experiment, Mode, Row
from netpurify.experiments.figure import Figure, Finding, Panel, Verdict
from netpurify.experiments.pictures import mnist
from netpurify.experiments.table import select
from netpurify.experiments.views import error_panel, level, limit, line, listed, number, rising, show, values

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
IMAGES = 21
CONTROL = 99
"""The text's number of images, which is run at one width to show what it does."""
PATCHES = ((2, 392, 1.0), (4, 196, 1.0), (7, 112, 0.8))
"""m, k and the step size that trains."""


def grid(mode: Mode) -> list[Row]:
    """The three ways of cutting an image, and p."""
    widths = (100, 500) if mode == "quick" else (100, 500, 1000)
    return [
        {"data": mnist(mode), "training": training, "m": m, "k": k, "p": p, "gamma": gamma, "steps": 3000}
        for training in (IMAGES, CONTROL)
        for m, k, gamma in PATCHES
        for p in (widths if training == IMAGES else widths[:1])
    ]


def trial(settings: Row, seed: int) -> list[Row]:
    """The training images themselves purify."""
    return noise.pictures(settings, seed, shares=SHARES, counts=(int(settings["training"] or 0),), places=("training",))


def cost(settings: Row) -> float:
    """Training and fits both grow with p."""
    return 1.0 + 0.001 * float(settings["p"] or 0) * float(settings["training"] or 0)


def panels(rows: list[Row]) -> list[Panel]:
    """Errors of W above, of beta below; one column per way of cutting."""
    rows = select(rows, training=IMAGES)
    return [_panel(rows, m, layer) for layer in ("W", "beta") for m in values(rows, "m")]


def _panel(rows: list[Row], m: int, layer: str) -> Panel:
    widths = values(rows, "p")
    column = f"{layer}_error"
    lines = [line(rows, f"p = {p}", x="eps", y=column, method="l1", m=m, p=p) for p in widths]
    for name in ("initial weights", "l2", *(("l1, initial features",) if layer == "beta" else ())):
        label = f"{name}, p = {widths[-1]}"
        lines.append(line(rows, label, x="eps", y=column, baseline=True, method=name, m=m, p=widths[-1]))
    rank = level(rows, f"rank_{layer}", m=m, method="l1").mean
    fan_in = 784 // m if layer == "W" else "p"
    return error_panel(f"{layer}, m = {m}: rank {rank:.0f} of {fan_in}", f"error of {layer}", lines)


def findings(rows: list[Row]) -> list[Finding]:
    """The caption, and what the cut and the number of images do to W."""
    control = select(rows, training=CONTROL)
    rows = select(rows, training=IMAGES)
    widths, cuts = values(rows, "p"), values(rows, "m")
    first = cuts[0]
    limits = [limit(rows, "beta_error", most=0.1, method="l1", m=first, p=p) for p in widths]
    floors = [level(rows, "beta_error", method="l1", m=first, p=p, eps=0.1) for p in widths]
    exact = [(m, eps, level(rows, "W_exact", method="l1", m=m, eps=eps)) for m in cuts for eps in (0.1, 0.3)]
    first_share = [(m, level(control, "W_exact", method="l1", m=m, eps=0.05)) for m in cuts]
    control_ranks = [(f"m = {m}", f"{level(control, 'rank_W', method='l1', m=m).mean:.0f} of {784 // m}") for m in cuts]
    ranks = [(f"m = {m}", f"{level(rows, 'rank_W', method='l1', m=m).mean:.0f} of {784 // m}") for m in cuts]
    return [
        Finding(
            "When p increases, the limit of eps for successful recovery of beta increases.",
            f"m = {first}, largest eps with a mean error of beta up to .1: "
            + listed((f"p = {p}", number(found)) for p, found in zip(widths, limits, strict=True))
            + "; error at eps = .1: "
            + listed((f"p = {p}", show(found)) for p, found in zip(widths, floors, strict=True)),
            Verdict.HOLDS if rising(limits) or rising([-found.mean for found in floors]) else Verdict.FAILS,
            "Mostly because the floor of beta falls with p.",
        ),
        Finding(
            "The setting is n = 99 in the text, n = 21 in the caption.",
            "share of W's units exact with n = 21: "
            + listed((f"m = {m}, eps = {eps}", show(found)) for m, eps, found in exact)
            + f"; with n = {CONTROL} at eps = .05: "
            + listed((f"m = {m}", show(found)) for m, found in first_share)
            + "; rank of the patches with n = 21: "
            + listed(ranks)
            + f"; with n = {CONTROL}: "
            + listed(control_ranks),
            Verdict.LIMITS,
            "With 99 images the patches span nearly every pixel that is ever inked, and nothing can be told apart "
            "but for "
            "the pixels that are never inked. With 21, fewer and larger patches leave more room.",
        ),
    ]


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
    setting="Digits 0, 1, 2 with y = digit - 1, raw pixels, n = 21, gamma 1 / 1 / .8 for m = 2 / 4 / 7, at most 3,000 "
    "steps.",
    experiment=EXPERIMENT,
    panels=panels,
    findings=findings,
)
