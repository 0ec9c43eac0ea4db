"""The paper's claims about several hidden layers, judged on the main line of Figures 10 to 13."""

from typing import Any

from netpurify.experiments.figures.claims import rules
from netpurify.experiments.figures.claims.attack_numbers import (
    by_depth,
    by_gain,
    fall,
    gain,
    gains_table,
    kept_share,
    least,
    points,
    ratios_of,
    share_text,
)
from netpurify.experiments.figures.claims.trends import above, below, change
from netpurify.experiments.figures.claims.verdicts import graded, trials_of, values
from netpurify.findings import Evidence, Finding, TableRow, select


def attack_reduced(rows: list[TableRow], origin: str, why: str = "") -> Finding:
    """C14: points taken off at every depth."""
    depths = values(rows, "layers")
    at: dict[str, Any] = {"ratio": rules.UP_TO}
    taken = {
        depth: change(
            select(rows, method="l1", layers=depth, origin=origin, **at),
            select(rows, method="before", layers=depth, **at),
            "asr_all",
        )
        for depth in depths
    }
    gains = {depth: gain(rows, layers=depth, origin=origin) for depth in depths}
    least = min(found.mean for found in taken.values())
    return Finding(
        rules.DEEP_ATTACK,
        graded(taken.values(), holds=least >= 0.2, limits=least >= 0.1),
        by_gain(gains.values(), 0.5, 0.2),
        "points off: " + ", ".join(f"{points(taken[depth])} (l = {depth})" for depth in depths),
        [by_depth(rows, "asr_all", origin), gains_table({f"l = {depth}": gains[depth] for depth in depths})],
        why,
    )


def accuracy_kept(rows: list[TableRow], origin: str, why: str = "") -> Finding:
    """C15: accuracy at every depth and ratio."""
    falls = {
        (depth, ratio): fall(rows, ratio, origin=origin, layers=depth)
        for depth in values(rows, "layers")
        for ratio in ratios_of(rows)
    }
    kept = least(kept_share(rows, ratio, origin=origin, layers=depth) for depth, ratio in falls)
    most = max(found.mean for found in falls.values())
    return Finding(
        rules.DEEP_ACCURACY,
        graded(falls.values(), holds=most <= 0.03, limits=most <= 0.06),
        graded(falls.values(), holds=kept >= 0.9, limits=kept >= 0.75),
        f"falls by at most {100 * most:.1f} points; at least {share_text(kept)} of what training gained is kept",
        [by_depth(rows, "accuracy", origin)],
        why,
    )


def accuracy_by_depth(rows: list[TableRow], origin: str, why: str = "") -> Finding:
    """C16: accuracy from the fewest hidden layers to the most, before and after purification."""
    depths = values(rows, "layers")
    wanted: dict[str, dict[str, Any]] = {"before": {"method": "before"}, "after": {"method": "l1", "origin": origin}}
    moves = {
        (when, ratio): change(
            select(rows, layers=depths[0], ratio=ratio, **fixed),
            select(rows, layers=depths[-1], ratio=ratio, **fixed),
            "accuracy",
        )
        for when, fixed in wanted.items()
        for ratio in ratios_of(rows)
    }
    marginal = [below(found) and found.mean >= -0.05 for found in moves.values()]
    rising = [place for place, found in moves.items() if above(found)]
    return Finding(
        rules.DEPTH,
        graded(moves.values(), holds=all(marginal), limits=any(marginal) and not rising, trials=2),
        None,
        f"falls clearly in {sum(below(found) for found in moves.values())} of {len(moves)} cases and rises clearly in "
        f"{len(rising)}",
        [
            Evidence(
                f"Points of accuracy from l = {depths[0]} to l = {depths[-1]}, {trials_of(moves.values())}",
                ["", *(f"ratio {ratio:g}" for ratio in ratios_of(rows))],
                [[when, *(points(moves[when, ratio]) for ratio in ratios_of(rows))] for when in wanted],
            )
        ],
        why,
    )
