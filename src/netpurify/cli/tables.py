"""Plans, purifications, defences and re-checks as tables of text."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from netpurify.cli.screen import show_line, show_table
from netpurify.network import (
    Altered,
    Defence,
    DefendedLayer,
    Grade,
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
    module_name,
    number,
    policy_name,
    share,
    tolerance_rows,
)

_PLAN = (
    *("layer", "kind", "units", "fan-in", "live", "rank", "ratio", "repairable"),
    "time",
)
_FITS = ("layer", "kind", "units", "fan-in", "rows", "forgotten", "weights changed by", "guarded", "values cut off")
_RECHECK = ("layer", "units", "certified", "with surplus", "largest gap", "not proven", "altered, but kept")
_NONE = "-"


def show_plan(plan: Plan) -> None:
    """One line for each layer, then what recovery depends on, and what is not examined and why."""
    show_table("", _PLAN, [_planned(layer) for layer in plan.layers], numbers=(2, 3, 4, 5, 6, 8))
    _show_tolerances(plan)
    _show_reasons(plan.layers, "on what it depends")
    _show_reasons(plan.skipped, "not examined")


def _show_tolerances(plan: Plan) -> None:
    """What each layer tolerates, under each law of alteration."""
    rows = tolerance_rows(plan.layers)
    if rows:
        show_line("")
        show_table("", TOLERANCES, rows, numbers=(2, 3, 4, 5, 6))
        show_line(MEANING)


def show_layers(result: Purification) -> None:
    """One line for each layer, why units were left alone, what was not examined."""
    project = policy_name(result) == "project"
    grades = [Grade.PROJECTED, Grade.LEFT_ALONE] if project else _recovery_grades(result)
    changes = "changed" if project else "altered"
    columns = ["layer", "units", "fan-in", "rank", *(grade.label for grade in grades), changes]
    columns += ["decay", "noise floor", "time", "error scale"]
    rows = [_purified(layer, grades) for layer in result.layers]
    if all(row[-1] == _NONE for row in rows):  # every fit is exact
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    show_table("", columns, rows, numbers=range(1, len(columns)))
    _show_reasons([layer for layer in result.layers if layer.reason], "without proof")
    _show_reasons(result.skipped, "not examined")


def show_fits(result: Defence) -> None:
    """One line for each layer that was defended, and what was left as it was."""
    rows = [_fitted(layer, guard=result.guard) for layer in result.layers]
    show_table("", _FITS, rows, numbers=(2, 3, 4, 5, 6, 8))
    _show_reasons(result.skipped, "left as it was")


def show_altered(altered: Altered, most: int) -> None:
    """The first altered weights, with both values."""
    rows = [
        (
            f"{altered.names[altered.tensor[entry]]}[{altered.index[entry]}]",
            f"{altered.was[entry]:.6g}",
            f"{altered.now[entry]:.6g}",
            Grade(int(altered.grade[entry])).label,
        )
        for entry in range(min(most, len(altered)))
    ]
    if rows:
        show_line("")
        show_table("", ("altered weight", "was", "is now", "grade"), rows, numbers=(1, 2))


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


def _purified(layer: LayerRecord, grades: Sequence[Grade]) -> tuple[str, ...]:
    return (
        module_name(layer.name),
        *map(count, (layer.units, layer.fan_in, layer.rank)),
        *(count(layer.count(grade)) for grade in grades),
        count(layer.changed if Grade.PROJECTED in grades else len(layer.altered)),
        number(layer.decay, 4),
        _median(layer.noise_floor),
        duration(layer.seconds),
        _median(layer.error_scale),
    )


def _recovery_grades(result: Purification) -> list[Grade]:
    """Grades with a column: those of every recovery, and others that some unit has."""
    usual = (Grade.RECOVERED, Grade.APPROXIMATE, Grade.LEFT_ALONE)
    return [grade for grade in Grade if grade in usual or result.count(grade)]


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


def _show_reasons(modules: Sequence[LayerPlan | LayerRecord | Skipped], title: str) -> None:
    if modules:
        show_line("")
        rows = [(module_name(module.name), module.kind, module.reason) for module in modules]
        show_table("", (title, "kind", "why"), rows)
