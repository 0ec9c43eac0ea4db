"""Results as ``print`` and notebooks show them: the verdict, then the layers in which something was found."""

from collections.abc import Iterable

from netpurify.network import (
    Defence,
    DefendedLayer,
    Hunt,
    LayerPlan,
    LayerRecord,
    Plan,
    Purification,
    Scan,
    Unlearning,
)
from netpurify.report.comparison.detection import Detection
from netpurify.report.comparison.page import findings_table
from netpurify.report.defence.page import defended_table
from netpurify.report.kit.groups import fold, fold_healthy, fold_skipped, healthy_words, skipped_words, unsettled
from netpurify.report.kit.names import module_name
from netpurify.report.kit.numbers import count, number, plural, share
from netpurify.report.kit.pages import render_fragment
from netpurify.report.kit.tensor_findings import finding_words, other_words, told_first
from netpurify.report.purification.counts import unit_columns
from netpurify.report.purification.entries import largest_changes, place
from netpurify.report.purification.tables import expected_table, layers_table
from netpurify.report.results import summarise
from netpurify.report.unlearning.short import family_lines, short_families

Printed = Purification | Defence | Plan | Scan | Hunt | Unlearning
"""What shows itself."""
_MOST_LAYERS = 10
"""Layers that are listed; a text has at most about 25 lines."""
_MOST_GROUPS = 4
_MOST_WEIGHTS = 3
_WIDEST = 160
"""Letters of a line; what is longer is cut, since names and reasons may have any length."""


def short_text(result: Printed) -> str:
    """The verdict and the layers with findings, in at most about 25 lines."""
    verdict = [_printable(f"{line.symbol} {line.text}") for line in summarise(result).verdict]
    return "\n".join([*verdict, *(f"  {_cut(_printable(line))}" for line in _lines(result))])


def short_html(result: Printed) -> str:
    """The verdict and the table of layers, as a notebook shows them; names are escaped, and nothing is loaded."""
    if isinstance(result, Scan):
        found = Detection(result)
        content = {"table": findings_table(found), "notes": [text for _, text in found.verdicts]}
        return render_fragment("short.html", {"summary": summarise(result)} | content)
    if isinstance(result, Hunt | Unlearning):
        return render_fragment("short.html", {"summary": summarise(result)} | short_families(result))
    if isinstance(result, Purification):
        folded = fold_healthy(result.layers)
        table = layers_table(result, {}, folded.listed)
        notes = [healthy_words(group) for group in folded.groups]
    elif isinstance(result, Defence):
        table, notes = defended_table(result), []
    else:
        table, notes = expected_table(result).table, []
    notes += [] if isinstance(result, Defence) else _others(result)
    skipped = fold_skipped(unsettled(result.skipped))
    notes += [f"not examined: {module_name(one.name)} ({one.kind}): {one.reason}" for one in skipped.listed]
    notes += [f"not examined: {skipped_words(group)}" for group in skipped.groups]
    return render_fragment("short.html", {"summary": summarise(result), "table": table, "notes": notes})


def _lines(result: Printed) -> list[str]:
    """What follows the verdict."""
    if isinstance(result, Scan):
        return _scanned(Detection(result))
    if isinstance(result, Hunt | Unlearning):
        return family_lines(result)
    if isinstance(result, Plan):
        folded = fold(sorted(result.layers, key=lambda one: one.repairable), lambda one: one.frozen or None)
        layers = [_planned(layer) for layer in folded.listed]
        groups = [f"{plural(len(group), 'layer')} more, {group[0].reason}" for group in folded.groups]
        layers, more = _limited(layers, _MOST_LAYERS, "layer"), []
    elif isinstance(result, Defence):
        layers, groups, more = _limited(map(_defended, result.layers), _MOST_LAYERS, "layer"), [], []
    else:
        found = fold_healthy(result.layers)
        columns = unit_columns(result)
        layers = [_purified(layer, {it.label: it.units(layer) for it in columns}) for layer in found.listed]
        layers = _limited(layers, _MOST_LAYERS, "layer")
        groups = [healthy_words(group) for group in found.groups]
        more = [
            f"largest change: {place(it)}: {it.was:.6g} -> {it.now:.6g}"
            for it in largest_changes(result, _MOST_WEIGHTS)
        ]
    tensors = [] if isinstance(result, Defence) else _others(result)
    skipped = fold_skipped(unsettled(result.skipped))
    others = [f"{module_name(one.name)} ({one.kind}) not examined: {one.reason}" for one in skipped.listed]
    others += [f"not examined: {skipped_words(group)}" for group in skipped.groups]
    return [*layers, *groups[:_MOST_GROUPS], *tensors, *_limited(others, _MOST_GROUPS, "module"), *more]


def _scanned(result: Detection) -> list[str]:
    """Tensors with findings, then how many have which verdict."""
    findings = [
        f"{it.tensor.name}: {count(it.count)} {it.label} of {count(it.tensor.entries)}; {next(it.rows(1)).text}"
        for it in result.findings
    ]
    unknown = [f"{one.name}: unknown: {one.reason}" for one in result.unknown]
    counted = [text for _, text in result.verdicts]
    return [*_limited(findings, _MOST_LAYERS, "finding"), *_limited(unknown, _MOST_GROUPS, "tensor"), *counted]


def _others(result: Purification | Plan) -> list[str]:
    """Tensors that are not part of a layer: those of which there is something to say, the others counted."""
    told, others = told_first(result.compared)
    words = [f"{one.name}: {finding_words(one, mended=isinstance(result, Purification))}" for one in told]
    return [*_limited(words, _MOST_GROUPS, "tensor"), *other_words(others)]


def _limited(lines: Iterable[str], most: int, noun: str) -> list[str]:
    every = list(lines)
    return every if len(every) <= most else [*every[:most], f"{plural(len(every) - most, noun)} more"]


def _purified(layer: LayerRecord, units: dict[str, int]) -> str:
    counts = ", ".join(f"{count(value)} {label}" for label, value in units.items() if value)
    altered = f"; {plural(len(layer.altered), 'weight')} altered" if len(layer.altered) else ""
    return f"{module_name(layer.name)} ({layer.kind}): {counts} of {plural(layer.units, 'unit')}{altered}"


def _planned(layer: LayerPlan) -> str:
    size = f"{plural(layer.units, 'unit')}, fan-in {count(layer.fan_in)}, rank {count(layer.rank)}"
    can = "can be recovered" if layer.repairable else "cannot be recovered"
    return f"{module_name(layer.name)} ({layer.kind}; {size}; ratio {number(layer.ratio)}): {can}, {layer.reason}"


def _defended(layer: DefendedLayer) -> str:
    forgot, moved = share(layer.forgotten), share(layer.change)
    return f"{module_name(layer.name)} ({layer.kind}): forgot {forgot} of its directions, weights changed by {moved}"


def _printable(text: str) -> str:
    """The text with escapes for what is not printable: a name must neither end a line nor clear a screen."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _cut(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
