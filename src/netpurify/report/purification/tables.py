"""Tables of a purification's page: layers, units, altered weights, advice, what had been expected."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from netpurify.network import Grade, LayerRecord, Plan, Purification
from netpurify.report.kit.names import module_name, policy_name
from netpurify.report.kit.numbers import count, duration, exact, number, plural, share, size
from netpurify.report.kit.summary import Summary
from netpurify.report.kit.tables import Cell, Table, counted, if_known
from netpurify.report.purification.advice import status_label
from netpurify.report.purification.counts import SYMBOLS, unit_columns
from netpurify.report.purification.entries import change, largest_changes
from netpurify.report.purification.tolerances import MEANING, tolerated

MOST_WEIGHTS = 2000
MOST_UNITS = 1000
_LAYERS = ("Layer", "Kind", "Fan-in", "Live", "Rank", "Ratio", "Tolerated", "Found altered")
_UNITS = ("Layer", "Unit", "Grade", "L1 fit", "Relative gap", "Surplus", "Unique", "Noise floor", "Error scale")
_WEIGHTS = ("Tensor", "Index", "Was", "Now", "Change", "Grade of the unit")
_ADVICE = ("L1 fit", "Units", "Layers", "What it means", "What to do")
_EXPECTED = ("Layer", "Exact recovery", "One unit tolerates", "The layer tolerates", "On what it depends", "Time")
_FROZEN = "never trained: compared with the initial weights, not fitted"
_WEAKEST_FIRST = (
    Grade.LEFT_ALONE, Grade.APPROXIMATE, Grade.PROJECTED, Grade.LOW_RANK, Grade.RECOVERED, Grade.RESTORED
)  # fmt: skip


class Noted(NamedTuple):
    """A table with a sentence above it; no table if there is nothing to list."""

    note: str
    table: Table | None


def grade_label(grade: Grade) -> str:
    """A grade with its symbol."""
    return f"{SYMBOLS[grade]} {grade.label}"


def layers_table(result: Purification, pictured: dict[str, str], layers: Sequence[LayerRecord]) -> Table:
    """What was done to each layer.

    Args:
        result: The purification, which decides on the columns.
        pictured: Where the pictures of a layer are on the page, by its name.
        layers: The layers to list.
    """
    columns = unit_columns(result)
    rare: dict[str, Callable[[LayerRecord], int]] = {
        "Unjudged": lambda layer: layer.unjudged,
        "Suspicious": lambda layer: len(layer.suspicious),
    }
    rare = {title: counts for title, counts in rare.items() if any(map(counts, result.layers))}
    titles = [*_LAYERS, *(f"{column.sign} {column.label.capitalize()}" for column in columns), *rare]
    titles += ["Changed", "Decay", "Noise floor", "Error scale", "Time"]
    rows = []
    for layer in layers:
        counts = [column.units(layer) for column in columns] + [counts(layer) for counts in rare.values()]
        rows.append([*_layer_shape(layer, pictured.get(layer.name, "")), *map(counted, counts), *_layer_fit(layer)])
    return Table.of(titles, rows, label="Layers", kind="layers sortable")


def _layer_shape(layer: LayerRecord, link: str) -> list[str | Cell]:
    fitted = not layer.frozen
    notes = [text for text in (_FROZEN if layer.frozen else "", layer.reason) if text]
    ratio = layer.live / layer.rank if layer.rank else math.nan
    return [
        Cell(module_name(layer.name), link=link, notes=notes),
        layer.kind,
        Cell(count(layer.fan_in), layer.fan_in),
        Cell(count(layer.live), layer.live),
        if_known(count(layer.rank), layer.rank, known=fitted),
        if_known(number(ratio), ratio, known=fitted and bool(layer.rank)),
        _tolerated(layer),
        if_known(share(layer.share_altered), layer.share_altered, known=not layer.count(Grade.PROJECTED)),
    ]


def _tolerated(layer: LayerRecord) -> Cell:
    if layer.tolerance is None:
        return if_known("", math.nan, known=False)
    return Cell(tolerated(layer.tolerance.layer), layer.tolerance.layer.value)


def _layer_fit(layer: LayerRecord) -> list[Cell]:
    return [
        counted(layer.changed),
        if_known(number(layer.decay, 4), layer.decay, known=not layer.frozen),
        if_known("", math.nan, known=False) if layer.frozen else _median(layer.noise_floor),
        _median(layer.error_scale),
        Cell(duration(layer.seconds), layer.seconds),
    ]


def _median(values: NDArray[np.float64]) -> Cell:
    finite = values[np.isfinite(values)]
    median = float(np.median(finite)) if finite.size else math.nan
    return if_known(number(median), median, known=bool(finite.size))


def altered_table(result: Purification) -> Noted:
    """The altered weights, the largest changes first."""
    total = len(result.altered)
    if not total:
        project = policy_name(result) == "project"
        return Noted("Project does not tell which weights had been altered." if project else "None.", None)
    shown = largest_changes(result, MOST_WEIGHTS)
    sizes = change(np.array([entry.was for entry in shown]), np.array([entry.now for entry in shown]))
    rows = [
        [
            entry.tensor,
            ", ".join(map(str, entry.index)),
            exact(entry.was),
            exact(entry.now),
            exact(float(moved)),
            grade_label(entry.grade),
        ]
        for entry, moved in zip(shown, sizes, strict=True)
    ]
    note = f"All {plural(total, 'weight')}, the largest changes first." if total > 1 else "One weight."
    if total > len(shown):
        note = f"The {count(len(shown))} largest changes of {count(total)}; the JSON record has all."
    return Noted(note, Table.of(_WEIGHTS, rows, label="Altered weights", kind="altered sortable", stacked=False))


def advice_table(summary: Summary) -> Table:
    """What the status of fits says about units that were not recovered, and what to do."""
    rows = [
        (
            advice.status,
            Cell(count(advice.units), advice.units),
            advice.where,
            advice.meaning,
            advice.remedy,
        )
        for advice in summary.advice
    ]
    return Table.of(_ADVICE, rows, label="Units that were not recovered", kind="advice")


def units_table(result: Purification) -> Noted:
    """Grade and certificate of each unit, the weakest evidence first."""
    facts = {
        layer.name: {fact: _by_unit(layer, fact) for fact in ("relative_gap", "surplus", "unique")}
        for layer in result.layers
    }
    units = [(layer, unit) for layer in result.layers for unit in range(layer.units)]
    units.sort(
        key=lambda pair: (
            _WEAKEST_FIRST.index(Grade(int(pair[0].grade[pair[1]]))),
            np.nan_to_num(facts[pair[0].name]["surplus"][pair[1]], nan=np.inf),
        )
    )
    rows = [_unit(layer, unit, facts[layer.name]) for layer, unit in units[:MOST_UNITS]]
    note = f"All {plural(len(units), 'unit')}, the weakest evidence first."
    if len(units) > len(rows):
        note = f"{count(len(rows))} of {count(len(units))} units, the weakest evidence first; the JSON record has all."
    note += " Gaps include what residuals up to the noise floor add."
    return Noted(note, Table.of(_UNITS, rows, label="Units and certificates", kind="units sortable", stacked=False))


def _unit(layer: LayerRecord, unit: int, facts: dict[str, NDArray[np.float64]]) -> list[str]:
    gap, surplus, unique = (float(facts[fact][unit]) for fact in ("relative_gap", "surplus", "unique"))
    return [
        module_name(layer.name),
        str(unit),
        _unit_label(layer, unit),
        status_label(int(layer.status[unit])),
        number(gap, 2),
        number(surplus, 9),
        number(math.nan) if math.isnan(unique) else "yes" if unique else "no",
        number(float(layer.noise_floor[unit])),
        number(float(layer.error_scale[unit])),
    ]


def _unit_label(layer: LayerRecord, unit: int) -> str:
    grade = Grade(int(layer.grade[unit]))
    return "✓ intact" if grade.certain and not layer.replaced[unit] and not layer.kept[unit] else grade_label(grade)


def _by_unit(layer: LayerRecord, fact: str) -> NDArray[np.float64]:
    """A fact of the certificate for each unit; NaN where a unit has none."""
    values = np.full(layer.units, np.nan)
    if layer.certificate is not None:
        values[layer.certified_units] = getattr(layer.certificate, fact)
    return values


def expected_table(plan: Plan) -> Noted:
    """What ``check`` had said of the layers."""
    rows = [
        (
            module_name(layer.name),
            "possible" if layer.repairable else "perhaps" if layer.undecided else "not possible",
            "; ".join(f"{found.law}: {tolerated(found.unit)}" for found in layer.tolerances),
            "; ".join(f"{found.law}: {tolerated(found.layer)}" for found in layer.tolerances),
            layer.reason,
            duration(layer.seconds),
        )
        for layer in plan.layers
    ]
    cost = f"Estimated: {duration(plan.seconds)} and {size(plan.bytes)} of working memory for the largest layer."
    return Noted(f"{cost} {MEANING}", Table.of(_EXPECTED, rows, label="What had been expected", kind="expected"))
