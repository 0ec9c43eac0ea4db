"""Hunts and repairs by training as ``print`` and notebooks show them: a line or a row for each family."""

from typing import Any

from netpurify.network import FamilyHunt, Hunt, Unlearning
from netpurify.report.hunt.tables import classes_note, families_table
from netpurify.report.hunt.words import percent, points, strongest_families
from netpurify.report.unlearning.page import searched_table

_MOST = 20
"""Families that are listed; a text has at most about 25 lines."""


def short_families(result: Hunt | Unlearning) -> dict[str, Any]:
    """The table of families and notes below it, for a notebook."""
    if isinstance(result, Unlearning):
        return {"table": searched_table(result), "notes": []}
    note = classes_note(result)
    return {"table": families_table(result), "notes": [note] if note else []}


def family_lines(result: Hunt | Unlearning) -> list[str]:
    """A line for each family, the widest margins first; further ones are counted."""
    before, after = (result, None) if isinstance(result, Hunt) else (result.before, result.after)
    later = {} if after is None else {one.family: one for one in after.families}
    lines = [_line(one, later.get(one.family)) for one in strongest_families(before)]
    more = len(lines) - _MOST
    return lines if more <= 0 else [*lines[:_MOST], f"{more} more {'family' if more == 1 else 'families'}"]


def _line(one: FamilyHunt, after: FamilyHunt | None) -> str:
    found = f"{one.family}: {_found(one)}"
    found += "" if after is None else f"; after the repair {_found(after)}"
    return found if one.expected.hunts else f"{found}; never calibrated"


def _found(one: FamilyHunt) -> str:
    suspect = ", suspect" if one.suspect else ""
    level = one.expected
    success = f"{percent(one.best.success)} (of {percent(level.success_threshold)})"
    margin = f"{points(one.margin)} (of {100.0 * level.threshold:.0f})"
    return f"class {one.best.target} with {success}, stands out by {margin}{suspect}"
