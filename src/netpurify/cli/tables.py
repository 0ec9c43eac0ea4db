"""Plans, purifications, defences and re-checks as tables of text: what was found first, the rest counted."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from netpurify.cli.screen import show_line, show_table
from netpurify.network import (
    Defence,
    DefendedLayer,
    LayerPlan,
    LayerRecord,
    Plan,
    ProofCheck,
    Purification,
    Skipped,
)
from netpurify.report import (
    MEANING,
    TOLERANCES,
    count,
    duration,
    fold,
    fold_healthy,
    fold_skipped,
    healthy_words,
    largest_changes,
    module_name,
    number,
    place,
    plural,
    policy_name,
    same_reason,
    share,
    skipped_words,
    tolerance_rows,
    unit_columns,
    unsettled,
)

_PLAN = (
    *("layer", "kind", "units", "fan-in", "live", "rank", "ratio", "repairable"),
    "time",
)
_FITS = ("layer", "kind", "units", "fan-in", "rows", "forgotten", "weights changed by", "guarded", "values cut off")
_RECHECK = ("layer", "units", "certified", "with surplus", "largest gap", "not proven", "altered, but kept")
_NONE = "-"
Listed = TypeVar("Listed")
_MOST_ROWS = 20
"""Layers with findings that are listed one by one; what is beyond is counted, and ``--verbose`` lists all."""


def show_plan(plan: Plan, *, verbose: bool = False) -> None:
    """A line for each layer that was trained, then what recovery depends on, and what is not examined and why."""
    ordered = sorted(plan.layers, key=lambda layer: (layer.repairable, layer.frozen))
    folded = fold(ordered, lambda layer: "never trained" if layer.frozen and not verbose else None)
    listed = _first(folded.listed, verbose=verbose)
    show_table("", _PLAN, [_planned(layer) for layer in listed], numbers=(2, 3, 4, 5, 6, 8))
    _show_more(folded.listed, listed)
    for group in folded.groups:
        show_line(f"{plural(len(group), 'layer')} more, {group[0].reason}")
    _show_tolerances(listed)
    _show_reasons(folded.listed if not verbose else plan.layers, "on what it depends", verbose=verbose)
    _show_skipped(unsettled(plan.skipped), "not examined", verbose=verbose)


def _show_tolerances(layers: Sequence[LayerPlan]) -> None:
    """What each layer tolerates, under each law of alteration."""
    rows = tolerance_rows(tuple(layers))
    if rows:
        show_line("")
        show_table("", TOLERANCES, rows, numbers=(2, 3, 4, 5, 6))
        show_line(MEANING)


def show_layers(result: Purification, *, verbose: bool = False) -> None:
    """A line for each layer in which something was found, the others counted; why units were left alone."""
    project = policy_name(result) == "project"
    units = unit_columns(result)
    columns = ["layer", "units", "fan-in", "rank", *(column.label for column in units)]
    columns += ["changed" if project else "altered", "noise floor", "time", "decay", "error scale"]
    folded = fold_healthy(() if verbose else result.layers)
    listed = result.layers if verbose else _first(folded.listed, verbose=False)
    rows = [_purified(layer, [column.units(layer) for column in units], project=project) for layer in listed]
    # Without weight decay, or if every fit is exact, these columns say nothing.
    told = [position for position in range(len(columns)) if any(row[position] != _NONE for row in rows)]
    columns, rows = [columns[position] for position in told], [[row[position] for position in told] for row in rows]
    if rows:
        show_table("", columns, rows, numbers=range(1, len(columns)))
    _show_more(folded.listed, listed)
    for group in folded.groups:
        show_line(healthy_words(group))
    _show_reasons([layer for layer in result.layers if layer.reason], "without proof", verbose=verbose)
    _show_skipped(unsettled(result.skipped), "not examined", verbose=verbose)


def show_fits(result: Defence, *, verbose: bool = False) -> None:
    """A line for each layer that was defended, the most changed if there are many, and what was left as it was."""
    listed = _first(sorted(result.layers, key=lambda layer: -layer.change), verbose=verbose)
    names = {layer.name for layer in listed}
    rows = [_fitted(layer, guard=result.guard) for layer in result.layers if layer.name in names]
    show_table("", _FITS, rows, numbers=(2, 3, 4, 5, 6, 8))
    _show_more(result.layers, listed)
    _show_skipped(result.skipped, "left as it was", verbose=verbose)


def show_altered(result: Purification, most: int) -> None:
    """The largest changes, with both values, and where they are by axes."""
    shown = largest_changes(result, most) if most else []
    rows = [(place(entry), f"{entry.was:.6g}", f"{entry.now:.6g}", entry.grade.label) for entry in shown]
    if rows:
        show_line("")
        show_table("", ("altered weight", "was", "is now", "grade"), rows, numbers=(1, 2))
    if 0 < len(rows) < (total := len(result.altered)):
        show_line(f"The {count(len(rows))} largest changes of {count(total)}; --show lists more, --json all.")


def show_proof_check(checked: ProofCheck) -> None:
    """One line for each layer of a proof."""
    rows = [
        (
            module_name(layer.name),
            count(layer.units),
            count(layer.certified),
            count(layer.recovered),
            f"{layer.largest_gap:.1e}",
            count(layer.unexplained),
            count(layer.kept),
        )
        for layer in checked.layers
    ]
    show_line("")
    show_table("", _RECHECK, rows, numbers=(1, 2, 3, 4, 5, 6))


def _planned(layer: LayerPlan) -> tuple[str, ...]:
    return (
        module_name(layer.name),
        layer.kind,
        *map(count, (layer.units, layer.fan_in, layer.live, layer.rank)),
        number(layer.ratio),
        "yes" if layer.repairable else "perhaps" if layer.undecided else "no",
        duration(layer.seconds),
    )


def _purified(layer: LayerRecord, units: Sequence[int], *, project: bool) -> tuple[str, ...]:
    return (
        module_name(layer.name),
        *map(count, (layer.units, layer.fan_in)),
        _NONE if layer.frozen else count(layer.rank),  # it was compared with its initial weights, not fitted
        *map(count, units),
        count(layer.changed if project else len(layer.altered)),
        _NONE if layer.frozen else _median(layer.noise_floor),
        duration(layer.seconds),
        _NONE if layer.decay == 1.0 else number(layer.decay, 4),
        _median(layer.error_scale),
    )


def _fitted(layer: DefendedLayer, *, guard: bool) -> tuple[str, ...]:
    return (
        module_name(layer.name),
        layer.kind,
        *map(count, (layer.units, layer.fan_in, layer.rows)),
        share(layer.forgotten),
        share(layer.change),
        module_name(layer.guarded) if guard else _NONE,
        share(layer.clipped) if guard else _NONE,
    )


def _median(values: NDArray[np.float64]) -> str:
    finite = values[np.isfinite(values)]
    return f"{np.median(finite):.1e}" if finite.size else _NONE


def _first(layers: Sequence[Listed], *, verbose: bool) -> Sequence[Listed]:
    return layers if verbose else layers[:_MOST_ROWS]


def _show_more(layers: Sequence[object], listed: Sequence[object]) -> None:
    if len(listed) < len(layers):
        show_line(f"{plural(len(layers) - len(listed), 'layer')} more like these; --verbose lists all")


def _show_reasons(modules: Sequence[LayerPlan | LayerRecord], title: str, *, verbose: bool) -> None:
    """Why something can or cannot be proven of layers; the same reason is told once, with its first layer's figures."""
    folded = fold(modules, lambda module: None if verbose else same_reason(module.reason))
    rows = [(module_name(module.name), module.kind, module.reason) for module in folded.listed]
    for group in folded.groups:
        first, same = group[0], len({module.reason for module in group}) == 1
        about = "" if same else f" (the figures are those of {module_name(first.name)})"
        kinds = ", ".join(dict.fromkeys(module.kind for module in group))
        rows.append((plural(len(group), "layer"), kinds, first.reason + about))
    if rows:
        show_line("")
        show_table("", (title, "kind", "why"), rows)


def _show_skipped(skipped: Sequence[Skipped], title: str, *, verbose: bool) -> None:
    """What was not examined; modules of the same kind for the same reason are counted in one line."""
    folded = fold_skipped(skipped)
    listed = skipped if verbose else folded.listed
    if skipped:
        show_line("")
    if listed:
        rows = [(module_name(module.name), module.kind, module.reason) for module in listed]
        show_table("", (title, "kind", "why"), rows)
    for group in [] if verbose else folded.groups:
        show_line(f"{title}: {skipped_words(group)}")
