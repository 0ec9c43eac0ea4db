"""Tables of a purification's page: layers, units, altered weights, what was not examined, what had been expected."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from netpurify.network import Grade, LayerRecord, Plan, Purification, Skipped
from netpurify.report.kit.markup import Cell, Html, join, table, tag
from netpurify.report.kit.numbers import count, exact, number, plural, seconds, share, size
from netpurify.report.purification.entries import change, largest
from netpurify.report.purification.summary import SYMBOLS, status_label

MOST_WEIGHTS = 2000
MOST_UNITS = 1000
_UNITS = ("Layer", "Unit", "Grade", "L1 fit", "Relative gap", "Surplus", "Unique", "Noise floor", "Error scale")
_WEIGHTS = ("Tensor", "Index", "Was", "Now", "Change", "Grade of the unit")


def badge(grade: Grade) -> Html:
    """A grade with its symbol; the colour only repeats it."""
    return tag("span", f"{SYMBOLS[grade]} {grade.label}", class_=f"grade {grade.label.replace(' ', '-')}")


def name_of(name: str) -> str:
    """A module's name; the network itself has none."""
    return name or "the network itself"


def layers(result: Purification, pictured: dict[str, str]) -> Html:
    """What was done to each layer.

    Args:
        result: The purification.
        pictured: Where the pictures of a layer are on the page, by its name.
    """
    grades = [
        grade for grade in Grade if result.count(grade) or (grade != Grade.PROJECTED) == (result.policy == "recover")
    ]
    columns = ["Layer", "Kind", "Fan-in", "Live", "Rank", "Ratio", "Tolerated", "Found altered"]
    columns += [f"{SYMBOLS[grade]} {grade.label.capitalize()}" for grade in grades]
    counts = {
        title: values
        for title, values in {
            "Unjudged": [layer.unjudged for layer in result.layers],
            "Suspicious": [len(layer.suspicious) for layer in result.layers],
        }.items()
        if any(values)
    }
    columns += list(counts)
    columns += ["Changed", "Decay", "Noise floor", "Error scale", "Time"]
    rows = [
        _layer(layer, grades, pictured.get(layer.name), [values[place] for values in counts.values()])
        for place, layer in enumerate(result.layers)
    ]
    return table(columns, rows, label="Layers", kind="layers sortable")


def _layer(layer: LayerRecord, grades: list[Grade], link: str | None, counts: list[int]) -> list[str | Cell]:
    name = name_of(layer.name)
    title = tag("a", name, href=f"#{link}") if link else tag("span", name)
    why = [tag("span", text, class_="why") for text in (_frozen(layer), layer.reason) if text]
    fitted = not layer.frozen
    decays = number(layer.decay, 4)
    return [
        Html(join(title, *why)),
        layer.kind,
        Cell(count(layer.fan_in), layer.fan_in),
        Cell(count(layer.live), layer.live),
        _cell(count(layer.rank), layer.rank, known=fitted),
        _cell(number(layer.live / layer.rank) if layer.rank else "", layer.live / max(1, layer.rank), known=fitted),
        _cell(share(layer.tolerance), layer.tolerance, known=fitted),
        _cell(share(layer.share_altered), layer.share_altered, known=not layer.count(Grade.PROJECTED)),
        *(_counted(layer.count(grade)) for grade in grades),
        *(_counted(one) for one in counts),
        _counted(layer.changed),
        _cell(decays, layer.decay, known=fitted),
        _median(layer.noise_floor),
        _median(layer.error_scale),
        Cell(seconds(layer.seconds), layer.seconds),
    ]


def _frozen(layer: LayerRecord) -> str:
    return "never trained: compared with the initial weights, not fitted" if layer.frozen else ""


def _counted(value: int) -> Cell:
    """A count that steps back if it is zero, so that the eye finds the others."""
    return Cell(tag("span", count(value), class_="some" if value else "none"), value)


def _cell(text: str, value: float, *, known: bool) -> Cell:
    """A number, or a dash where it would mean nothing."""
    return Cell(text, value) if known else Cell(tag("span", number(math.nan), class_="none"), math.nan)


def _median(values: NDArray[np.float64]) -> Cell:
    there = values[np.isfinite(values)]
    middle = float(np.median(there)) if there.size else math.nan
    return _cell(number(middle), middle, known=bool(there.size))


def weights(result: Purification) -> Html:
    """The altered weights, the largest changes first."""
    total = len(result.altered)
    if not total:
        why = "Project does not tell which weights had been altered." if result.policy == "project" else "None."
        return tag("p", why)
    shown = largest(result, MOST_WEIGHTS)
    sizes = change(np.array([one.was for one in shown]), np.array([one.now for one in shown]))
    rows = [
        [
            one.tensor,
            ", ".join(map(str, one.index)),
            exact(one.was),
            exact(one.now),
            exact(float(moved)),
            _short(one.grade),
        ]
        for one, moved in zip(shown, sizes, strict=True)
    ]
    note = f"All {plural(total, 'weight')}, the largest changes first." if total > 1 else "One weight."
    if total > len(shown):
        note = f"The {count(len(shown))} largest changes of {count(total)}; the JSON record has all."
    content = table(_WEIGHTS, rows, label="Altered weights", kind="altered sortable", stacked=False)
    return join(tag("p", note, class_="note"), content)


def units(result: Purification) -> Html:
    """Grade and certificate of each unit, the weakest evidence first."""
    found = [(layer, unit) for layer in result.layers for unit in range(layer.units)]
    surplus = {layer.name: _by_unit(layer, "surplus") for layer in result.layers}
    # Left alone, then approximate, then recovered by the least surplus.
    order = {Grade.LEFT_ALONE: 0, Grade.APPROXIMATE: 1, Grade.PROJECTED: 2, Grade.RECOVERED: 3}
    found.sort(
        key=lambda one: (
            order[Grade(int(one[0].grade[one[1]]))],
            np.nan_to_num(surplus[one[0].name][one[1]], nan=np.inf),
        )
    )
    shown = found[:MOST_UNITS]
    facts = {
        layer.name: {fact: _by_unit(layer, fact) for fact in ("relative_gap", "surplus", "unique")}
        for layer, _ in shown
    }
    rows = [_unit(layer, unit, facts[layer.name]) for layer, unit in shown]
    note = f"All {plural(len(found), 'unit')}, the weakest evidence first."
    if len(found) > len(shown):
        note = f"{count(len(shown))} of {count(len(found))} units, the weakest evidence first; the JSON record has all."
    note += " Gaps include what residuals up to the noise floor add."
    content = table(_UNITS, rows, label="Units and certificates", kind="units sortable", stacked=False)
    return tag("details", tag("summary", "Grade and certificate of each unit"), tag("p", note, class_="note"), content)


def _unit(layer: LayerRecord, unit: int, facts: dict[str, NDArray[np.float64]]) -> list[str]:
    gap, surplus, unique = (float(facts[fact][unit]) for fact in ("relative_gap", "surplus", "unique"))
    return [
        name_of(layer.name),
        str(unit),
        _short(Grade(int(layer.grade[unit]))),
        status_label(int(layer.status[unit])),
        number(gap, 2),
        number(surplus, 9),
        number(math.nan) if math.isnan(unique) else "yes" if unique else "no",
        number(float(layer.noise_floor[unit])),
        number(float(layer.error_scale[unit])),
    ]


def _by_unit(layer: LayerRecord, fact: str) -> NDArray[np.float64]:
    """A fact of the certificate for each unit; NaN where a unit has none."""
    found = np.full(layer.units, np.nan)
    if layer.certificate is not None:
        found[layer.certified_units] = getattr(layer.certificate, fact)
    return found


def _short(grade: Grade) -> str:
    return f"{SYMBOLS[grade]} {grade.label}"


def skipped(parts: Sequence[Skipped]) -> Html:
    """What was not examined, with the reason."""
    if not parts:
        return tag("p", "Every module with weights was examined.")
    rows = [(name_of(one.name), one.kind, one.reason) for one in parts]
    return table(("Module", "Kind", "Reason"), rows, label="Not examined", kind="skipped")


def expected(plan: Plan) -> Html:
    """What ``check`` had said of the layers."""
    columns = ("Layer", "Exact recovery", "One unit tolerates", "The layer tolerates", "On what it depends", "Time")
    rows = [
        (
            name_of(layer.name),
            "possible" if layer.repairable else "not possible",
            share(layer.unit_tolerance),
            share(layer.layer_tolerance),
            layer.reason,
            seconds(layer.seconds),
        )
        for layer in plan.layers
    ]
    note = f"Estimated: {seconds(plan.seconds)} and {size(plan.bytes)} of working memory for the largest layer."
    content = table(columns, rows, label="What had been expected", kind="expected")
    return tag("details", tag("summary", "What check had said of each layer"), tag("p", note, class_="note"), content)
