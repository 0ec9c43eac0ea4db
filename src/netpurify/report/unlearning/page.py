"""A repair by training as one page that loads nothing: both hunts side by side, and what it costs."""

from netpurify.network import Unlearning
from netpurify.report.hunt.page import settings
from netpurify.report.hunt.pictures import margins
from netpurify.report.hunt.tables import compared_table, families_table
from netpurify.report.hunt.triggers import gallery
from netpurify.report.kit.canvas import can_draw
from netpurify.report.kit.context import Context
from netpurify.report.kit.numbers import count, duration, share
from netpurify.report.kit.pages import NO_PICTURES, render_result
from netpurify.report.kit.tables import Table
from netpurify.report.unlearning.summary import lost, summarise_unlearning

_TITLE = "Report of a backdoor that was trained away"
_UNCHANGED = "Report of a hunt that changed nothing"
_POLICY = "unlearn: hunt for a backdoor, train it away without labels, and hunt again; nothing is proven"
_DIGESTS = {"Contaminated": "model", "Repaired": "purified", "Clean inputs": "data"}


def unlearning_page(result: Unlearning, context: Context) -> str:
    """One HTML file for desktop, phone and paper, light and dark, that needs no network.

    Without matplotlib the drawing is left out, and the page says so; images of triggers need nothing.
    """
    after = result.after
    content = {
        "title": context.title or (_TITLE if result.changed else _UNCHANGED),
        "summary": summarise_unlearning(result),
        "changed": result.changed,
        "triggers": gallery(result.before),
        "triggers_left": None if after is None else gallery(after),
        "families": searched_table(result),
        "no_pictures": None if can_draw() else NO_PICTURES,
        "drawn": [margins(result.before, after)] if can_draw() else [],
        "price": _price(result),
        "asked": _asked(result, context),
        "digests": [(name, result.provenance[key]) for name, key in _DIGESTS.items()],
        "versions": result.provenance["versions"],
    }
    return render_result("unlearning.html", content)


def searched_table(result: Unlearning) -> Table:
    """Both hunts side by side, or the one that there was."""
    after = result.after
    return families_table(result.before) if after is None else compared_table(result.before, after)


def _price(result: Unlearning) -> list[tuple[str, str]]:
    if not result.changed:
        return [("Weights", "as they came, bit for bit"), ("Accuracy", "as it was")]
    chosen = result.chosen
    return [
        ("Held-out inputs", count(chosen.inputs)),
        ("Another class", f"{count(chosen.differing)} ({share(chosen.share)})"),
        ("95 % bound", f"at most {lost(result)} of accuracy can be lost on inputs like these"),
        ("Steps of training", count(result.steps)),
    ]


def _asked(result: Unlearning, context: Context) -> list[tuple[str, str]]:
    most = result.provenance["settings"]["max_disagreement"]
    return [
        *context.asked(_POLICY),
        *settings(result.before),
        ("Disagreement", "as much as it takes" if most is None else f"at most {share(most)}"),
        ("Took", duration(result.seconds)),
    ]
