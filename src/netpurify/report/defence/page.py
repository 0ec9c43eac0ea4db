"""A defence as one page that loads nothing: what it costs and what was forgotten. It never calls a network clean."""

from netpurify.network import Defence, DefendedLayer, Step
from netpurify.report.defence.pictures import curve, kept
from netpurify.report.defence.summary import Price, summarise_defence
from netpurify.report.kit.canvas import can_draw
from netpurify.report.kit.context import Context
from netpurify.report.kit.names import module_name
from netpurify.report.kit.numbers import count, duration, share
from netpurify.report.kit.pages import NO_PICTURES, render_result, skipped_tables
from netpurify.report.kit.tables import Cell, Table, if_known

_TITLE = "Report of a defence"
_POLICY = (
    "defend: a deep network was poisoned during training; each layer keeps what clean inputs justify, nothing is proven"
)
_DIGESTS = {"Contaminated": "model", "Defended": "purified", "Clean inputs": "data"}
_LAYERS = ("Layer", "Kind", "Units", "Fan-in", "Rows", "Forgotten", "Weights changed by", "Values cut off", "Guarded")
_CURVE = ("Strength", "Held-out inputs", "Another class", "Share", "95 % bound")


def defence_page(result: Defence, context: Context) -> str:
    """One HTML file for desktop, phone and paper, light and dark, that needs no network.

    Without matplotlib the pictures are left out, and the page says so.
    """
    level = Price.of(result).level
    strengths = [_step(step, level, chosen=step == result.chosen) for step in result.curve]
    content = {
        "title": context.title or _TITLE,
        "summary": summarise_defence(result),
        "no_pictures": None if can_draw() else NO_PICTURES,
        "drawn": _pictures(result) if can_draw() else [],
        "strengths": Table.of(_CURVE, strengths, label="Strengths tried", kind="strengths"),
        "layers": defended_table(result),
        "skipped": skipped_tables(result.skipped),
        "asked": _asked(result, context),
        "digests": [(name, result.provenance[key]) for name, key in _DIGESTS.items()],
        "versions": result.provenance["versions"],
    }
    return render_result("defence.html", content)


def defended_table(result: Defence) -> Table:
    """What became of each layer."""
    rows = [_layer(layer, guard=result.guard) for layer in result.layers]
    return Table.of(_LAYERS, rows, label="Layers", kind="layers sortable")


def _pictures(result: Defence) -> list:
    return [*([curve(result)] if result.chosen.inputs else []), kept(result.layers)]


def _step(step: Step, level: float, *, chosen: bool) -> list[str]:
    strength = f"{step.strength:g}{' (chosen)' if chosen else ''}"
    return [strength, count(step.inputs), count(step.differing), share(step.disagreement), share(step.bound(level))]


def _layer(layer: DefendedLayer, *, guard: bool) -> list[str | Cell]:
    return [
        module_name(layer.name),
        layer.kind,
        Cell(count(layer.units), layer.units),
        Cell(count(layer.fan_in), layer.fan_in),
        Cell(count(layer.rows), layer.rows),
        Cell(share(layer.forgotten), layer.forgotten),
        Cell(share(layer.change), layer.change),
        if_known(share(layer.clipped), layer.clipped, known=guard),
        module_name(layer.guarded) if guard else Cell("\N{EN DASH}", style="none"),
    ]


def _asked(result: Defence, context: Context) -> list[tuple[str, str]]:
    settings = result.provenance["settings"]
    strength, layers, most = settings["strength"], settings["layers"], settings["max_disagreement"]
    return [
        *context.asked(_POLICY),
        ("Strength", "chosen without labels" if strength == "auto" else f"{strength:g}"),
        ("Guard", "placed" if result.guard else "not wanted"),
        ("Disagreement", "as much as it takes" if most is None else f"at most {share(most)}"),
        ("Layers", "all that can be" if layers is None else ", ".join(layers)),
        ("Took", duration(result.seconds)),
    ]
