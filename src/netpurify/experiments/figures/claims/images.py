"""The claims of Figures 6 and 7: few clean images, from the training set or from outside."""

from collections.abc import Sequence
from typing import Any

from netpurify.experiments.figures.claims import rules
from netpurify.experiments.figures.claims.ladder import ladder, ladder_finding
from netpurify.experiments.figures.claims.trends import LAYERS, trend
from netpurify.experiments.figures.claims.verdicts import cell, graded, level, short, trials_of
from netpurify.experiments.figures.claims.weights import plain_rule, steps_of
from netpurify.experiments.figures.trials.altered_weights import ORIGINS
from netpurify.findings import Evidence, Finding, TableRow, TrialSummary, select

PLACES = {"training": "training images", "other": "images from outside"}
Found = dict[tuple[str, str, int], TrialSummary]
"""A number for each layer, place and number of clean images."""
REVERSED = plain_rule(
    "While nothing is altered the order is the other way round: when n decreases, the error increases.",
    "eps = 0: the error as a share of that of the initial weights rises clearly (by more than twice the standard "
    "error, within trials) from n = 99 down to 9. Holds: for both layers and both places. With limits: for one layer "
    "in both places.",
    "Fewer clean images span less of what training changed, and exactness needs the span of the whole training set; "
    "it is the limit of eps that gains from fewer images.",
)


def few_images(rows: list[TableRow], counts: Sequence[int]) -> Finding:
    """Both layers with few images of both places, against the contaminated and the initial weights."""
    left, ratio = (at_share(rows, counts, kind) for kind in ("left", "ratio"))
    clean, close = (
        [layer for layer in LAYERS if all(number.mean <= most for (own, *_), number in found.items() if own == layer)]
        for found, most in ((left, rules.TENTH), (ratio, rules.RECOVERED))
    )
    worst = {
        (kind, layer): _worst(found, layer) for kind, found in (("left", left), ("ratio", ratio)) for layer in LAYERS
    }
    return Finding(
        rules.FEW_IMAGES,
        graded(left.values(), holds=len(clean) == len(LAYERS), limits=bool(clean)),
        graded(ratio.values(), holds=len(close) == len(LAYERS), limits=bool(close)),
        f"Largest errors: W {worst['left', 'W']} and beta {worst['left', 'beta']} of the contaminated weights'; "
        f"{worst['ratio', 'W']} and {worst['ratio', 'beta']} of the initial weights'.",
        [
            _table(f"eps = {rules.AT:g}, error as a share of the contaminated weights'", left, counts),
            _table(f"eps = {rules.AT:g}, error as a share of the initial weights'", ratio, counts),
        ],
        "Contamination is large and lazy training moves weights little, so that most of the contamination can be gone "
        "where the initial weights are still closer to the truth.",
    )  # fmt: skip


def limit_by_images(rows: list[TableRow], counts: Sequence[int]) -> Finding:
    """How far weights are recovered as n falls from step to step."""
    order = sorted(counts, reverse=True)
    steps = {origin: steps_of(select(rows, origin=origin), "clean", order) for origin in ORIGINS}
    groups = [
        [ladder(f"{layer}, {PLACES[origin]}", steps[origin], layer) for origin in ORIGINS] for layer in LAYERS
    ]  # fmt: skip
    return ladder_finding(
        rules.LIMIT_BY_IMAGES,
        groups,
        why="The rank of the design grows with n and leaves L1 less room to tell alterations apart; but fewer images "
        "span less of what training changed, so that half of the initial weights' error is not reached.",
    )


def outside_weights(rows: list[TableRow], counts: Sequence[int], few: Sequence[int]) -> Finding:
    """The two places beside each other, by error and by what is taken off the error of the initial weights.

    Judged with ``few`` images, of which the paper speaks; all ``counts`` are shown.
    """
    errors, ratios = (at_share(rows, counts, kind) for kind in ("error", "ratio"))
    times = [_times(errors[layer, "other", n], errors[layer, "training", n]) for layer in LAYERS for n in few]
    gains = [
        _kept(1.0 - ratios[layer, "other", n].mean, 1.0 - ratios[layer, "training", n].mean)
        for layer in LAYERS
        for n in few
    ]
    return Finding(
        rules.OUTSIDE_WEIGHTS,
        graded(
            errors.values(), holds=max(times) <= rules.SIMILAR, limits=max(times) <= rules.LESS_SIMILAR
        ),
        graded(ratios.values(), holds=min(gains) >= rules.KEPT_GAIN, limits=min(gains) >= rules.HALF_GAIN),
        f"At the worst n and layer the error is {_many(max(times))} that with training images; "
        f"{_kept_words(min(gains))}.",
        [
            _table(f"eps = {rules.AT:g}, error", errors, counts),
            _table(f"eps = {rules.AT:g}, error as a share of the initial weights'", ratios, counts),
        ],
        "Images of the training set span what training changed, all of it if they are all of the set; others of the "
        "same classes span only a part of it.",
    )  # fmt: skip


def order_without_alterations(rows: list[TableRow], counts: Sequence[int]) -> Finding:
    """What the fit loses when nothing was altered; n falls from step to step."""
    at = select(rows, method="l1", eps=0.0)
    order = sorted(counts, reverse=True)
    found = {
        (layer, origin): trend(steps_of(select(at, origin=origin), "clean", order), f"{layer}_ratio")
        for layer in LAYERS
        for origin in ORIGINS
    }
    risen = [layer for layer in LAYERS if all(found[layer, origin].rises for origin in ORIGINS)]
    numbers: Found = {
        (layer, origin, n): number
        for (layer, origin), one in found.items()
        for n, number in zip(order, one.levels, strict=True)
    }
    return Finding(
        REVERSED,
        graded(
            [number for one in found.values() for number in one.needed],
            holds=len(risen) == len(LAYERS),
            limits=bool(risen),
            trials=2,
        ),
        None,
        f"Error of W with training images: {cell(numbers['W', 'training', order[0]])} of the initial weights' with "
        f"{order[0]} images, {cell(numbers['W', 'training', order[-1]])} with {order[-1]}.",
        [_table("Nothing altered, error as a share of the initial weights'", numbers, order)],
        ours=True,
    )


def at_share(rows: list[TableRow], counts: Sequence[int], kind: str) -> Found:
    """Errors of one kind at the share of altered weights that is judged, by layer, place and number of images."""
    at = select(rows, method="l1", eps=rules.AT)
    return {
        (layer, origin, n): level(at, f"{layer}_{kind}", clean=n, origin=origin)
        for layer in LAYERS
        for origin in ORIGINS
        for n in counts
    }


def _table(title: str, found: Found, counts: Sequence[int]) -> Evidence:
    rows: list[list[Any]] = [
        [f"{layer}, {PLACES[origin]}", *(cell(found[layer, origin, n]) for n in counts)]
        for layer in LAYERS
        for origin in ORIGINS
    ]
    return Evidence(f"{title}; {trials_of(found.values())}", ["Layer and place", *(f"n = {n}" for n in counts)], rows)


def _worst(found: Found, layer: str) -> str:
    return short(max(number.mean for (own, *_), number in found.items() if own == layer), 2)


def _times(outside: TrialSummary, inside: TrialSummary) -> float:
    return outside.mean / inside.mean if inside.mean > 0.0 else float("inf")


def _kept(outside: float, inside: float) -> float:
    """The share of a gain that is left; where training images gain nothing there is nothing to keep."""
    return outside / inside if inside > 0.0 else float("-inf")


def _many(value: float) -> str:
    """How many times; where training images leave nothing but rounding, a number would say nothing."""
    return f"{short(value, 2)} times" if value < 1e6 else "more than a million times"


def _kept_words(share: float) -> str:
    if share == float("-inf"):
        return "at some n these are no closer to the truth than the initial weights"
    return f"of what they take off the initial weights' error, {short(share, 2)} is taken off"
