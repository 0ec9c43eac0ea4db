"""Tables of hunts: the highest success for every family and class beside what healthy networks show."""

from netpurify.network import FamilyHunt, Hunt
from netpurify.report.hunt.words import percent
from netpurify.report.kit.numbers import count, plural
from netpurify.report.kit.tables import Cell, Table

_MOST_CLASSES = 20
"""Networks with more classes have only those in their table that were followed up in some family."""
_MOST_COLUMNS = 40
"""Classes of the table, at most: those with the highest success."""
_SHADES = 10
_OTHERS = (*("Runner-up", "Margin, points", "Suspect from", "Success from", "Healthy, median", "Healthy, highest"),)
_NONE = Cell("\N{EN DASH}", float("nan"), "none")
_BEFORE_AND_AFTER = (
    *("Family", "Class before", "Success before", "Margin before", "Class after", "Success after", "Margin after"),
    *("Margin from", "Success from", "Found"),
)


def families_table(result: Hunt) -> Table:
    """What was found in every family, class by class; the shade of a cell says again what its number says."""
    classes = classes_shown(result)
    columns = ["Family", *(f"Class {number}" for number in classes), *_OTHERS]
    rows = [_family(one, classes, result.classes) for one in result.families]
    return Table.of(columns, rows, label="Success", kind="layers heat sortable")


def classes_shown(result: Hunt) -> list[int]:
    """The classes of the table: all, or if there are many those that were followed up."""
    if result.classes <= _MOST_CLASSES:
        return list(range(result.classes))
    highest: dict[int, float] = {}
    for one in result.found:
        highest.setdefault(one.target, one.success)
    return sorted(sorted(highest, key=lambda target: -highest[target])[:_MOST_COLUMNS])


def classes_note(result: Hunt) -> str:
    """Which classes the table does not show; empty if it shows all."""
    shown = len(classes_shown(result))
    if shown == result.classes:
        return ""
    return (
        f"Of {count(result.classes)} classes, {plural(shown, 'class').replace('classs', 'classes')} to which first "
        "draws led are shown; a dash is for a class that a family did not follow up."
    )


def compared_table(before: Hunt, after: Hunt) -> Table:
    """What each family showed before and after a repair."""
    later = {one.family: one for one in after.families}
    rows = [_compared(one, later[one.family]) for one in before.families]
    return Table.of(_BEFORE_AND_AFTER, rows, label="Before and after", kind="layers compared sortable")


def _family(one: FamilyHunt, classes: list[int], total: int) -> list[str | Cell]:
    successes, level = one.successes(total), one.expected
    known = level.hunts > 0
    return [
        Cell(one.family, notes=_notes(one)),
        *(_success(successes[number]) for number in classes),
        _share(one.runner_up),
        _points(one.margin, "limits" if one.suspect else ""),
        _points(level.threshold),
        _share(level.success_threshold),
        *(_share(value) if known else _NONE for value in (level.success, level.highest)),
    ]


def _notes(one: FamilyHunt) -> list[str]:
    notes = [f"▲ suspect: class {one.best.target}"] if one.suspect else []
    return notes if one.expected.hunts else [*notes, "never calibrated"]


def _success(value: float | None) -> Cell:
    """A cell with a shade; a dash for a class that was not followed up."""
    if value is None:
        return _NONE
    return Cell(percent(value), value, f"heat-{min(_SHADES, int(_SHADES * value + 0.5))}")


def _share(value: float) -> Cell:
    return Cell(percent(value), value)


def _points(value: float, style: str = "") -> Cell:
    return Cell(f"{100.0 * value:.0f}", value, style)


def _compared(before: FamilyHunt, after: FamilyHunt) -> list[str | Cell]:
    found = {(True, True): "before and after", (True, False): "before", (False, True): "after"}
    said = found.get((before.suspect, after.suspect))
    return [
        Cell(before.family, notes=[] if before.expected.hunts else ["never calibrated"]),
        str(before.best.target),
        _share(before.best.success),
        _points(before.margin, "limits" if before.suspect else ""),
        str(after.best.target),
        _share(after.best.success),
        _points(after.margin, "limits" if after.suspect else ""),
        _points(after.expected.threshold),
        _share(after.expected.success_threshold),
        Cell("not suspect", style="none") if said is None else said,
    ]
