"""The paper's claims about backdoors, judged by the rules of ``rules`` on the main line of Figures 8 and 9."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from netpurify.experiments.figures.claims import rules
from netpurify.experiments.figures.claims.attack_numbers import (
    LETTERS,
    RATES,
    after_by_number,
    by_gain,
    fall,
    gain,
    gains_by_number,
    kept_share,
    least,
    over_ratios,
    points,
    ratios_of,
    share_text,
)
from netpurify.experiments.figures.claims.trends import above, change
from netpurify.experiments.figures.claims.verdicts import cell, graded, level, trials_of, values
from netpurify.experiments.figures.panels import CHANCE
from netpurify.experiments.figures.trials.backdoors import ORIGINS
from netpurify.findings import Evidence, Finding, TableRow, TrialSummary, select


def without_poison(rows: list[TableRow]) -> Finding:
    """C10: accuracy and attack success of the network that was trained on clean images."""
    accuracy, success = (level(rows, y, method="before", ratio=0.0) for y in ("accuracy", "asr_all"))
    off = abs(accuracy.mean - 0.95), abs(success.mean - CHANCE)
    verdict = graded(
        [accuracy, success], holds=off[0] <= 0.03 and off[1] <= 0.05, limits=off[0] <= 0.06 and off[1] <= 0.1
    )
    return Finding(
        rules.WITHOUT_POISON, verdict, None, f"accuracy {cell(accuracy)}, attack success {cell(success)} of all images"
    )


def attack_rises(rows: list[TableRow], why: str = "") -> Finding:
    """C11: attack success before purification, from ratio to ratio."""
    own = select(rows, method="before")
    ratios = ratios_of(rows)
    levels = {ratio: level(own, "asr_all", ratio=ratio) for ratio in ratios}
    steps = [change(select(own, ratio=low), select(own, ratio=high), "asr_all") for low, high in pairwise(ratios)]
    whole = change(select(own, ratio=ratios[0]), select(own, ratio=ratios[-1]), "asr_all")
    top = levels[ratios[-1]]
    verdict = graded(
        [*levels.values(), *steps],
        holds=all(above(step) for step in steps) and top.mean >= 0.95,
        limits=above(whole) and top.mean >= 0.8,
        trials=2,
    )
    return Finding(
        rules.ATTACK_RISES,
        verdict,
        None,
        f"from {cell(levels[ratios[0]])} without poisoned images to {cell(top)} at ratio {ratios[-1]:g}",
        [over_ratios(rows, "asr_all", {"before": {"method": "before"}})],
        why,
    )


def attack_gone(rows: list[TableRow], few: int, why: str = "") -> Finding:
    """C12, Figure 8: attack success with the fewest images, at every ratio."""
    ratios = ratios_of(rows)
    after = [level(rows, "asr_all", method="l1", clean=few, origin="training", ratio=ratio) for ratio in ratios]
    worst = max(found.mean for found in after)
    reached = gain(rows, clean=few)
    return Finding(
        rules.ATTACK_GONE,
        graded(after, holds=worst <= CHANCE + 0.05, limits=worst <= CHANCE + 0.1),
        by_gain([reached], 0.9, 0.5),
        f"with {few} training images at most {worst:.3f} at any ratio; gain of robust accuracy {reached.share:.2f}",
        [*(after_by_number(rows, "asr_all", origin) for origin in ORIGINS), gains_by_number(rows)],
        why,
    )


def attack_weakened(rows: list[TableRow], third: int, why: str = "") -> Finding:
    """C12, Figure 9: what one third of the training images takes off."""
    before = select(rows, method="before", ratio=rules.UP_TO)
    after = select(rows, method="l1", clean=third, origin="training", ratio=rules.UP_TO)
    taken = change(after, before, "asr_all")
    reached = gain(rows, clean=third)
    return Finding(
        rules.ATTACK_WEAKENED,
        graded([taken], holds=taken.mean >= 0.18, limits=taken.mean >= 0.1),
        by_gain([reached], 0.5, 0.2),
        f"{points(taken)} points off with {third} training images; gain of robust accuracy {reached.share:.2f}",
        [*(after_by_number(rows, "asr_all", origin) for origin in ORIGINS), gains_by_number(rows)],
        why,
    )


def accuracy_kept(rows: list[TableRow], few: int, everything: int, drop: float, why: str = "") -> Finding:
    """C13: accuracy with all training images and with a tenth of them; ``drop`` is the paper's, in points."""
    falls = {(n, ratio): fall(rows, ratio, clean=n) for n in (everything, few) for ratio in ratios_of(rows)}
    whole = max(abs(found.mean) for (n, _), found in falls.items() if n == everything)
    tenth = max(found.mean for (n, _), found in falls.items() if n == few)
    kept = least(kept_share(rows, ratio, clean=n) for n, ratio in falls)
    return Finding(
        rules.accuracy_kept(drop),
        graded(
            falls.values(),
            holds=whole <= 0.02 and tenth <= (drop + 2.0) / 100.0,
            limits=whole <= 0.05 and tenth <= (2.0 * drop + 2.0) / 100.0,
        ),
        graded(falls.values(), holds=kept >= 0.9, limits=kept >= 0.75),
        f"changes by at most {100 * whole:.1f} points with {everything} and falls by at most {100 * tenth:.1f} with "
        f"{few}; at least {share_text(kept)} of what training gained is kept",
        [after_by_number(rows, "accuracy", origin) for origin in ORIGINS],
        why,
    )


def outside_similar(rows: list[TableRow], column: str, why: str = "") -> Finding:
    """C9: purified with images outside the training set instead of training images; ``column`` names the steps."""
    steps = [{column: value} for value in values(select(rows, method="l2"), column)]
    differences = {
        (y, tuple(step.values()), ratio): change(
            select(rows, method="l1", origin="training", ratio=ratio, **step),
            select(rows, method="l1", origin="other", ratio=ratio, **step),
            y,
        )
        for y in ("asr_all", "accuracy")
        for step in steps
        for ratio in ratios_of(rows)
    }
    (rate, worst_step, worst_ratio), worst = max(differences.items(), key=lambda item: abs(item[1].mean))
    apart = abs(worst.mean)
    gains = [(gain(rows, **step), gain(rows, origin="other", **step)) for step in steps]
    shares = [
        outside.share / inside.share if inside.share > 0.0 and outside.share == outside.share else float("nan")
        for inside, outside in gains
    ]
    smallest = least(shares)
    return Finding(
        rules.OUTSIDE_RATES,
        graded(differences.values(), holds=apart <= 0.05, limits=apart <= 0.1),
        graded(
            [number for pair in gains for one in pair for number in (one.after, one.nothing, one.clean)],
            holds=all(share >= 0.8 for share in shares),
            limits=all(share >= 0.5 for share in shares),
        ),
        f"largest difference {100 * apart:.1f} points ({RATES[rate]}, {LETTERS[column]} = {worst_step[0]}, ratio "
        f"{worst_ratio:g}); smallest share of the gain {share_text(smallest)}",
        [_places(differences, y, steps, column) for y in ("asr_all", "accuracy")],
        why,
    )


def _places(
    differences: dict[tuple[str, tuple[Any, ...], float], TrialSummary],
    y: str,
    steps: Sequence[dict[str, Any]],
    column: str,
) -> Evidence:
    ratios = sorted({ratio for _, _, ratio in differences})
    return Evidence(
        f"{RATES[y].capitalize()} with images outside less that with training images, in points, "
        + trials_of(differences.values()),
        ["", *(f"ratio {ratio:g}" for ratio in ratios)],
        [
            [f"{LETTERS[column]} = {value}", *(points(differences[y, (value,), ratio]) for ratio in ratios)]
            for step in steps
            for value in step.values()
        ],
    )
