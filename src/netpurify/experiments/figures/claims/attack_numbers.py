"""Numbers and small tables that the claims about backdoors are judged by: rates, differences, gains."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from netpurify.experiments.figures.claims import rules
from netpurify.experiments.figures.claims.trends import change
from netpurify.experiments.figures.claims.verdicts import cell, graded, level, trials_of, values
from netpurify.experiments.figures.trials.backdoors import ORIGINS
from netpurify.findings import Evidence, TableRow, TrialSummary, Verdict, select

PLACES = {"training": "training images", "other": "images outside the training set"}
LETTERS = {"clean": "n", "layers": "l"}
"""The paper's letters for columns: number of clean images, number of hidden layers."""
RATES = {"asr_all": "attack success, all images", "accuracy": "accuracy", "ra": "robust accuracy"}


@dataclass(frozen=True, slots=True)
class Gain:
    """What purification adds to the robust accuracy of doing nothing.

    Attributes:
        share: As a share of what a network trained without poisoned images would add; NaN if that adds nothing.
        after: Robust accuracy after purification.
        nothing: The larger of those of the poisoned network and of its initial weights.
        clean: That of the network trained without poisoned images.
    """

    share: float
    after: TrialSummary
    nothing: TrialSummary
    clean: TrialSummary


def gain(rows: list[TableRow], *, origin: str = "training", **purified: Any) -> Gain:
    """The gain at the largest ratio that the paper speaks of; ``purified`` names clean images and layers."""
    network = {name: value for name, value in purified.items() if name == "layers"}
    at: dict[str, Any] = {"ratio": rules.UP_TO}
    after = level(rows, "ra", method="l1", origin=origin, **at, **purified)
    kept, initial = (level(rows, "ra", method=method, **at, **network) for method in ("before", "initial weights"))
    clean = level(rows, "ra", method="before", ratio=0.0, **network)
    nothing = max(kept, initial, key=lambda found: found.mean)
    possible = clean.mean - nothing.mean
    return Gain((after.mean - nothing.mean) / possible if possible > 0.0 else float("nan"), after, nothing, clean)


def by_gain(gains: Iterable[Gain], holds: float, limits: float) -> Verdict:
    """Whether every gain reaches a share; a share that is not a number reaches none."""
    gains = list(gains)
    needed = [number for found in gains for number in (found.after, found.nothing, found.clean)]
    return graded(
        needed,
        holds=all(found.share >= holds for found in gains),
        limits=all(found.share >= limits for found in gains),
    )


def points(found: TrialSummary) -> str:
    """A difference of rates in points of a hundred, such as ``19.5 ± 4.1``."""
    if not found.count:
        return "-"
    spread = f" ± {100 * found.deviation:.1f}" if found.count > 1 else ""
    return f"{100 * found.mean:.1f}{spread}"


def ratios_of(rows: list[TableRow]) -> list[float]:
    """The ratios up to the largest that the paper speaks of."""
    return [ratio for ratio in values(rows, "ratio") if ratio <= rules.UP_TO]


def fall(rows: list[TableRow], ratio: float, *, origin: str = "training", **purified: Any) -> TrialSummary:
    """By how much accuracy falls, within trials."""
    network = {name: value for name, value in purified.items() if name == "layers"}
    after = select(rows, method="l1", origin=origin, ratio=ratio, **purified)
    return change(after, select(rows, method="before", ratio=ratio, **network), "accuracy")


def kept_share(rows: list[TableRow], ratio: float, *, origin: str = "training", **purified: Any) -> float:
    """The share of the accuracy above that of the initial weights that purification keeps, from means over trials."""
    network = {name: value for name, value in purified.items() if name == "layers"}
    after = level(rows, "accuracy", method="l1", origin=origin, ratio=ratio, **purified).mean
    before, start = (
        level(rows, "accuracy", method=method, ratio=ratio, **network).mean for method in ("before", "initial weights")
    )
    return (after - start) / (before - start) if before > start else float("nan")


def least(shares: Iterable[float]) -> float:
    """The smallest share; one that is not a number is smaller than all."""
    return min(shares, key=lambda share: share if share == share else float("-inf"))


def over_ratios(rows: list[TableRow], y: str, lines: dict[str, dict[str, Any]], place: str = "") -> Evidence:
    """A rate over the ratios, a row for each named choice of rows."""
    ratios = ratios_of(rows)
    found = {(name, ratio): level(rows, y, ratio=ratio, **wanted) for name, wanted in lines.items() for ratio in ratios}
    title = ", ".join(part for part in (RATES[y].capitalize(), place, trials_of(found.values())) if part)
    body = [[name, *(cell(found[name, ratio]) for ratio in ratios)] for name in lines]
    return Evidence(title, ["", *(f"ratio {ratio:g}" for ratio in ratios)], body)


def gains_table(gains: dict[str, Gain]) -> Evidence:
    """Gains of robust accuracy by name, with what they are made of."""
    numbers = [number for found in gains.values() for number in (found.after, found.nothing, found.clean)]
    return Evidence(
        f"Robust accuracy at ratio {rules.UP_TO:g}, {trials_of(numbers)}",
        ["", "doing nothing", "after", "without poison", "gain"],
        [
            [name, cell(found.nothing), cell(found.after), cell(found.clean), share_text(found.share)]
            for name, found in gains.items()
        ],
    )


def share_text(value: float) -> str:
    """A share with two digits, or that there was nothing to share."""
    return f"{value:.2f}" if value == value else "none to gain"


def after_by_number(rows: list[TableRow], y: str, origin: str) -> Evidence:
    """A rate over the ratios: before, with the initial weights, and after purification with every number of images."""
    lines: dict[str, dict[str, Any]] = {
        "before": {"method": "before"},
        "initial weights": {"method": "initial weights"},
    }
    for n in values(select(rows, method="l2"), "clean"):
        lines[f"n = {n}"] = {"method": "l1", "clean": n, "origin": origin}
        lines[f"n = {n}, l2"] = {"method": "l2", "clean": n, "origin": origin}
    return over_ratios(rows, y, lines, PLACES[origin])


def gains_by_number(rows: list[TableRow]) -> Evidence:
    """The gain of robust accuracy with every number of images from both places."""
    return gains_table(
        {
            f"n = {n}, {PLACES[origin]}": gain(rows, clean=n, origin=origin)
            for origin in ORIGINS
            for n in values(select(rows, method="l2"), "clean")
        }
    )


def by_depth(rows: list[TableRow], y: str, origin: str) -> Evidence:
    """A rate over the ratios, before and after purification, for every number of hidden layers."""
    lines: dict[str, dict[str, Any]] = {}
    for depth in values(rows, "layers"):
        lines[f"l = {depth}, before"] = {"method": "before", "layers": depth}
        lines[f"l = {depth}, initial weights"] = {"method": "initial weights", "layers": depth}
        for method in ("l1", "l2"):
            lines[f"l = {depth}, {method}"] = {"method": method, "layers": depth, "origin": origin}
    return over_ratios(rows, y, lines, PLACES[origin])
