"""A defence as one page that loads nothing: what it costs and what was forgotten. It never calls a network clean."""

from collections.abc import Mapping

from netpurify.network import Defence, LayerFit, Step
from netpurify.report.defence.pictures import curve, kept
from netpurify.report.defence.summary import DefenceSummary
from netpurify.report.kit.canvas import can_draw
from netpurify.report.kit.markup import Cell, Html, table, tag
from netpurify.report.kit.numbers import count, number, seconds, share
from netpurify.report.kit.pages import NO_PICTURES, Section, figure, frame, named, provenance, verdict
from netpurify.report.purification import tables as sections
from netpurify.report.purification.summary import in_words

_TITLE = "Report of a defence"
_POLICY = (
    "defend: a deep network was poisoned during training; each layer keeps what clean inputs justify, nothing is proven"
)
_RESTS = (
    "What this rests on: that the inputs are clean and like those in use. The bound is for inputs drawn like those "
    "held out, which the fit never saw, and allows for the choice among the strengths."
)
_CHECKS = (
    "Accuracy on inputs with labels, if you have any: the bound speaks only of inputs like those held out.",
    "A trigger that you know or suspect: stamp it on inputs and count how many go to one class, before and after.",
    "Where the inputs came from: one that carries the trigger justifies what the backdoor needs, and it is kept.",
    "Triggers made of what ordinary inputs contain, such as faint waves or warps: they can survive any strength that "
    "leaves the network of use.",
    "A greater strength, if you can pay for it, or more clean inputs, if the bound is wide.",
)
_DIGESTS = {"Contaminated": "model", "Defended": "purified", "Clean inputs": "data"}
_LAYERS = ("Layer", "Kind", "Units", "Fan-in", "Rows", "Forgotten", "Weights changed by", "Values cut off", "Guarded")
_CURVE = ("Strength", "Held-out inputs", "Another class", "Share", "95 % bound")


def defence_page(
    result: Defence, *, title: str | None = None, command: str | None = None, files: Mapping[str, str] | None = None
) -> str:
    """One HTML file for desktop, phone and paper, light and dark, that needs no network.

    Without matplotlib the pictures are left out, and the page says so.

    Args:
        result: What ``purify(policy="defend")`` gave.
        title: Its heading; ``None`` for a general one.
        command: The command that was run, if it was one.
        files: The files that went in and came out, by what they are.

    Returns:
        The text of the file, for ``report.write``.
    """
    parts = [
        Section("checks", "What to check", tag("ul", *(tag("li", text) for text in _CHECKS))),
        Section("pictures", "Pictures", _pictures(result)),
        Section("strengths", "Strengths tried", _strengths(result)),
        Section("layers", "Layers", _layers(result)),
        Section("skipped", "Left as it was", sections.skipped(result.skipped)),
        Section("asked", "What was asked", _asked(result, command, files or {})),
        Section("provenance", "Provenance", provenance(result.provenance, _DIGESTS)),
    ]
    return frame(title or _TITLE, _verdict(result), parts)


def _verdict(result: Defence) -> Html:
    summary = DefenceSummary.of(result)
    said = [*summary.statements, ("outputs", in_words(result.agreement))]
    marked = [(tag("span", name, class_="grade"), text) for name, text in said]
    return verdict(f"◐ {summary.headline}", "limits", marked, _RESTS)


def _pictures(result: Defence) -> Html:
    if not can_draw():
        return tag("p", NO_PICTURES)
    drawn = [curve(result)] if result.chosen.inputs else []
    return tag("div", *map(figure, [*drawn, kept(result.layers)]), class_="pictures")


def _strengths(result: Defence) -> Html:
    level = DefenceSummary.of(result).level
    rows = [_step(step, level, chosen=step == result.chosen) for step in result.curve]
    return table(_CURVE, rows, label="Strengths tried", kind="strengths")


def _step(step: Step, level: float, *, chosen: bool) -> list[str]:
    first = f"{step.strength:g}{' (chosen)' if chosen else ''}"
    return [first, count(step.inputs), count(step.differing), share(step.disagreement), share(step.bound(level))]


def _layers(result: Defence) -> Html:
    rows = [_layer(layer, guard=result.guard) for layer in result.layers]
    return table(_LAYERS, rows, label="Layers", kind="layers sortable")


def _layer(layer: LayerFit, *, guard: bool) -> list[str | Cell]:
    none = tag("span", number(float("nan")), class_="none")
    return [
        sections.name_of(layer.name),
        layer.kind,
        Cell(count(layer.units), layer.units),
        Cell(count(layer.fan_in), layer.fan_in),
        Cell(count(layer.rows), layer.rows),
        Cell(share(layer.forgotten), layer.forgotten),
        Cell(share(layer.change), layer.change),
        Cell(share(layer.clipped), layer.clipped) if guard else none,
        sections.name_of(layer.guarded) if guard else none,
    ]


def _asked(result: Defence, command: str | None, files: Mapping[str, str]) -> Html:
    settings = result.provenance["settings"]
    layers, most = settings["layers"], settings["max_disagreement"]
    pairs = [("Policy", _POLICY)]
    pairs += [("Command", command)] if command else []
    pairs += [
        *files.items(),
        ("Strength", "chosen without labels" if settings["strength"] == "auto" else f"{settings['strength']:g}"),
        ("Guard", "placed" if result.guard else "not wanted"),
        ("Disagreement", "as much as it takes" if most is None else f"at most {share(most)}"),
        ("Layers", "all that can be" if layers is None else ", ".join(layers)),
        ("Took", seconds(result.seconds)),
    ]
    return named(pairs)
