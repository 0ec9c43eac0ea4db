"""Plans, purifications, defences and re-checks as tables of text."""

import numpy as np
from numpy.typing import NDArray

from netpurify.cli.screen import show_line, show_table
from netpurify.network import (
    Altered,
    Defence,
    Grade,
    LayerFit,
    LayerPlan,
    LayerRecord,
    Plan,
    ProofCheck,
    Purification,
    Skipped,
)
from netpurify.report.kit.numbers import share

_SHOWN = 5
"""Layers that a sentence names before it only counts."""


def show_plan(plan: Plan) -> None:
    """One line for each layer, then what is left alone and why."""
    columns = ("layer", "kind", "units", "fan-in", "live", "rank", "ratio", "unit tolerates", "layer tolerates",
               "repairable", "seconds")  # fmt: skip
    show_table("", columns, [_planned(layer) for layer in plan.layers], numbers=(2, 3, 4, 5, 6, 7, 8, 10))
    _show_reasons([(layer.name, layer.kind, layer.reason) for layer in plan.layers], "on what it depends")
    show_skipped(plan.skipped)


def show_layers(result: Purification) -> None:
    """One line for each layer, why units were left alone, what was not examined."""
    project = result.policy == "project"
    grades = [Grade.PROJECTED, Grade.LEFT_ALONE] if project else [Grade.RECOVERED, Grade.APPROXIMATE, Grade.LEFT_ALONE]
    columns = ("layer", "units", "fan-in", "rank", *(it.label for it in grades), "changed" if project else "altered",
               "decay", "noise floor", "seconds", "error scale")  # fmt: skip
    rows = [_purified(layer, grades) for layer in result.layers]
    if all(row[-1] == "-" for row in rows):  # every fit is exact
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    show_table("", columns, rows, numbers=range(1, len(columns)))
    _show_reasons([(layer.name, layer.kind, layer.reason) for layer in result.layers if layer.reason], "without proof")
    show_skipped(result.skipped)


def show_fits(result: Defence) -> None:
    """One line for each layer that was defended, and what was left as it was."""
    columns = ("layer", "kind", "units", "fan-in", "rows", "forgotten", "weights changed by", "guarded",
               "values cut off")  # fmt: skip
    rows = [_fitted(layer, guard=result.guard) for layer in result.layers]
    show_table("", columns, rows, numbers=(2, 3, 4, 5, 6, 8))
    show_skipped(result.skipped, "left as it was")
    show_line("")


def show_altered(altered: Altered, count: int) -> None:
    """The first altered weights, with both values."""
    rows = [
        (f"{altered.names[altered.tensor[place]]}[{altered.index[place]}]", f"{altered.was[place]:.6g}",
         f"{altered.now[place]:.6g}", Grade(int(altered.grade[place])).label)
        for place in range(min(count, len(altered)))
    ]  # fmt: skip
    if rows:
        show_line("")
        show_table("", ("altered weight", "was", "is now", "grade"), rows, numbers=(1, 2))


def show_skipped(skipped: tuple[Skipped, ...], title: str = "not examined") -> None:
    """What was not looked at, and why."""
    _show_reasons([(part.name, part.kind, part.reason) for part in skipped], title)


def show_proof_check(found: ProofCheck) -> None:
    """One line for each layer of a proof."""
    rows = [
        (named(layer.name), str(layer.units), str(layer.certified), str(layer.recovered), f"{layer.largest_gap:.1e}",
         str(layer.unexplained), str(layer.kept))
        for layer in found.layers
    ]  # fmt: skip
    show_line("")
    columns = ("layer", "units", "certified", "with surplus", "largest gap", "not proven", "altered, but kept")
    show_table("", columns, rows, numbers=(1, 2, 3, 4, 5, 6))


def missed_parts(skipped: tuple[Skipped, ...], words: str) -> list[str]:
    """Parts that nobody knows to be right, by their names: layers after ``words``, and parts of other kinds."""
    layers = [part.name for part in skipped if part.missed and not part.changed]
    others = [part.name for part in skipped if part.changed]
    kinds = (
        "parts that differ from their initial weights, or have none, and are of a kind that is not examined, so that "
        "they may have been trained, or altered"
    )
    return [f"{text}: {_quoted(names)}" for text, names in ((words, layers), (kinds, others)) if names]


def _quoted(names: list[str]) -> str:
    """Names in quotes, since a layer may well be called 0."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f'"{name}"' if name else named(name) for name in names[:_SHOWN]) + more


def named(layer: str) -> str:
    """The name of a layer; a network that is one layer has none."""
    return layer or "(network)"


def _planned(layer: LayerPlan) -> tuple[str, ...]:
    return (
        named(layer.name), layer.kind, str(layer.units), str(layer.fan_in), str(layer.live), str(layer.rank),
        f"{layer.ratio:.2f}", f"{100 * layer.unit_tolerance:.0f} %", f"{100 * layer.layer_tolerance:.0f} %",
        "yes" if layer.repairable else "no", f"{layer.seconds:.1f}",
    )  # fmt: skip


def _purified(layer: LayerRecord, grades: list[Grade]) -> tuple[str, ...]:
    return (
        named(layer.name), str(layer.units), str(layer.fan_in), str(layer.rank),
        *(str(layer.count(grade)) for grade in grades),
        f"{layer.changed if Grade.PROJECTED in grades else len(layer.altered):,}", f"{layer.decay:.4g}",
        _middle(layer.noise_floor), f"{layer.seconds:.1f}", _middle(layer.error_scale),
    )  # fmt: skip


def _fitted(layer: LayerFit, *, guard: bool) -> tuple[str, ...]:
    return (
        named(layer.name), layer.kind, str(layer.units), str(layer.fan_in), f"{layer.rows:,}", share(layer.forgotten),
        share(layer.change), named(layer.guarded) if guard else "-", share(layer.clipped) if guard else "-",
    )  # fmt: skip


def _middle(values: NDArray[np.float64]) -> str:
    known = values[np.isfinite(values)]
    return f"{np.median(known):.1e}" if known.size else "-"


def _show_reasons(rows: list[tuple[str, str, str]], title: str) -> None:
    if rows:
        show_line("")
        show_table("", (title, "kind", "why"), [(named(name), kind, why) for name, kind, why in rows])
