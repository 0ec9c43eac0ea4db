"""A hunt as one page that loads nothing: triggers as images, then every family and class. It calls no network clean."""

from netpurify.network import Hunt
from netpurify.report.hunt.pictures import margins
from netpurify.report.hunt.summary import summarise_hunt
from netpurify.report.hunt.tables import classes_note, families_table
from netpurify.report.hunt.triggers import gallery
from netpurify.report.kit.canvas import can_draw
from netpurify.report.kit.context import Context
from netpurify.report.kit.numbers import count, duration, number
from netpurify.report.kit.pages import NO_PICTURES, render_result

_TITLE = "Report of a hunt"
_POLICY = "hunt: families of universal triggers are searched for ones that lead to one class; nothing was changed"
_DIGESTS = {"Network": "model", "Clean inputs": "data"}


def hunt_page(result: Hunt, context: Context) -> str:
    """One HTML file for desktop, phone and paper, light and dark, that needs no network.

    Without matplotlib the drawing is left out, and the page says so; images of triggers need nothing.
    """
    content = {
        "title": context.title or _TITLE,
        "summary": summarise_hunt(result),
        "triggers": gallery(result),
        "families": families_table(result),
        "classes_note": classes_note(result),
        "no_pictures": None if can_draw() else NO_PICTURES,
        "drawn": [margins(result)] if can_draw() else [],
        "asked": [*context.asked(_POLICY), *settings(result), ("Took", duration(result.seconds))],
        "digests": [(name, result.provenance[key]) for name, key in _DIGESTS.items()],
        "versions": result.provenance["versions"],
    }
    return render_result("hunt.html", content)


def settings(result: Hunt) -> list[tuple[str, str]]:
    """What was asked of a hunt, as pages list it."""
    given = result.provenance["settings"]
    mean, std = (", ".join(number(value, 6) for value in given[name]) for name in ("mean", "std"))
    return [
        ("Families", ", ".join(given["families"])),
        ("Clean inputs", count(result.inputs)),
        ("Seed", str(result.seed)),
        ("Normalised by", f"mean {mean}, deviation {std}"),
        ("Healthy networks", f"{count(result.expected.networks)}: {result.expected.about}"),
    ]
