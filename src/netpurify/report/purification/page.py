"""A purification as one page that loads nothing: the verdict first, then everything it rests on."""

from collections.abc import Mapping

from netpurify.network import Grade, Plan, Purification
from netpurify.report.kit.canvas import can_draw
from netpurify.report.kit.markup import Html, join, tag
from netpurify.report.kit.numbers import count, plural, seconds, size
from netpurify.report.kit.pages import NO_PICTURES, Section, figure, frame, named, provenance, verdict
from netpurify.report.purification import tables as sections
from netpurify.report.purification.pictures import chosen, pictures
from netpurify.report.purification.summary import Summary, in_words

MOST_PICTURED = 24
_TITLE = "Report of a purification"
_POLICIES = {
    "recover": "recover: weights were altered after training; what is proven to be altered is replaced, the rest stays",
    "project": "project: weights were poisoned during training; every weight takes the fitted value",
}
_RESTS = (
    "What this rests on: that the initial weights are those with which training began, and that the inputs are clean "
    "and like those of training. Neither can be seen from the weights."
)
_AGAIN = " The certificates can be checked again by anyone who has both files of weights and the proof."
_DIGESTS = {"Contaminated": "model", "Initial": "initial", "Clean inputs": "data"}


def purification_page(
    result: Purification,
    *,
    title: str | None = None,
    command: str | None = None,
    files: Mapping[str, str] | None = None,
    plan: Plan | None = None,
) -> str:
    """One HTML file for desktop, phone and paper, light and dark, that needs no network.

    Without matplotlib the pictures are left out, and the page says so.

    Args:
        result: What ``purify`` gave.
        title: Its heading; ``None`` for a general one.
        command: The command that was run, if it was one.
        files: The files that went in and came out, by what they are.
        plan: What ``check`` had said of the same network.

    Returns:
        The text of the file, for ``report.write``.
    """
    title = title or _TITLE
    summary = Summary.of(result)
    drawn = chosen(result.layers, MOST_PICTURED) if can_draw() else []
    links = {layer.name: f"layer-{place}" for place, layer in enumerate(drawn)}
    parts = [
        Section("asked", "What was asked", _asked(result, command, files or {})),
        Section("layers", "Layers", join(sections.layers(result, links), sections.expected(plan) if plan else Html())),
        Section("skipped", "Not examined", sections.skipped(result.skipped)),
        Section("pictures", "Pictures", _pictures(result, links)),
        Section("altered", "Altered weights", sections.weights(result)),
        Section("units", "Certificates", join(_legend(summary), sections.units(result))),
        Section("provenance", "Provenance", provenance(result.provenance, _DIGESTS)),
    ]
    return frame(title, _verdict(summary, result), parts)


def _verdict(summary: Summary, result: Purification) -> Html:
    if summary.whole:
        look = "✓", "holds"
    elif not sum(summary.units.values()) or sum(summary.units.values()) == summary.units[Grade.LEFT_ALONE]:
        look = "○", "unseen"
    else:
        look = "▣" if summary.policy == "project" else "◐", "limits"
    said = [*summary.statements, (None, in_words(result.agreement))]
    marked = [(tag("span", class_="grade") if grade is None else sections.badge(grade), text) for grade, text in said]
    again = _AGAIN if summary.fits and result.provenance["settings"]["proof"] else ""
    return verdict(f"{look[0]} {summary.headline}", look[1], marked, _RESTS + again)


def _asked(result: Purification, command: str | None, files: Mapping[str, str]) -> Html:
    pairs = [("Policy", _POLICIES[result.policy])]
    pairs += [("Command", command)] if command else []
    pairs += [*files.items(), *_settings(result).items(), ("Took", _effort(result))]
    return named(pairs)


def _settings(result: Purification) -> dict[str, str]:
    """The settings in words: not the policy again, and none of the other policy."""
    unset = {"layers": ("Layers", "all that can be"), "noise_floor": ("Noise floor", "by the rounding of each unit")}
    if result.policy == "recover":
        unset["decay"] = ("Decay", "estimated for each layer")
    else:
        unset["rank"] = ("Rank", "all that the clean inputs span")
    settings = result.provenance["settings"]
    found = {
        title: words if settings[name] is None else _setting(settings[name]) for name, (title, words) in unset.items()
    }
    return found | {"Proof": "kept, to be checked again" if settings["proof"] else "not kept"}


def _setting(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _effort(result: Purification) -> str:
    memory = f", {size(result.peak_bytes)} of memory at most" if result.peak_bytes else ""
    return f"{seconds(result.seconds)}{memory}"


def _pictures(result: Purification, links: Mapping[str, str]) -> Html:
    if not can_draw():
        return tag("p", NO_PICTURES)
    drawn = [layer for layer in result.layers if layer.name in links]
    rest = len(result.layers) - len(drawn)
    if not drawn:
        return tag("p", "Nothing was altered and every unit is recovered, so there is nothing to show.")
    parts = []
    if rest:
        note = (
            f"{plural(rest, 'layer')} without a picture: at most {MOST_PICTURED} are drawn, of layers in which weights"
        )
        parts.append(tag("p", f"{note} were replaced or units not recovered.", class_="note"))
    for layer in drawn:
        figures = [figure(one) for one in pictures(layer)]
        shape = " \N{MULTIPLICATION SIGN} ".join(map(str, layer.shape))
        heading = tag("h3", sections.name_of(layer.name), tag("span", f" {layer.kind}, {shape}", class_="none"))
        parts.append(tag("div", heading, tag("div", *figures, class_="pictures"), class_="layer", id=links[layer.name]))
    return join(*parts)


def _legend(summary: Summary) -> Html:
    rows = [
        tag("li", sections.badge(grade), tag("span", f"{count(summary.units[grade])}: {grade.meaning}."))
        for grade in Grade
        if summary.units[grade]
    ]
    return tag("ul", *rows, class_="statements")
