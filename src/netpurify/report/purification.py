"""A purification as one page that loads nothing: the verdict first, then everything it rests on."""

import base64
import hashlib
import math
from collections.abc import Mapping
from importlib import resources

from netpurify.network import Agreement, Grade, Plan, Purification
from netpurify.report import sections
from netpurify.report.canvas import can_draw
from netpurify.report.layer_pictures import chosen, pictures
from netpurify.report.markup import Html, join, tag
from netpurify.report.numbers import count, plural, seconds, share, size
from netpurify.report.summary import Summary

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
_NO_PICTURES = "Pictures need matplotlib, which is not installed: pip install 'netpurify[report]' brings it."
_SECTIONS = {
    "asked": "What was asked",
    "layers": "Layers",
    "skipped": "Not examined",
    "pictures": "Pictures",
    "altered": "Altered weights",
    "units": "Certificates",
    "provenance": "Provenance",
}


def page(
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
    content = {
        "asked": _asked(result, command, files or {}),
        "layers": join(sections.layers(result, links), sections.expected(plan) if plan else Html()),
        "skipped": sections.skipped(result),
        "pictures": _pictures(result, links),
        "altered": sections.weights(result),
        "units": join(_legend(summary), sections.units(result)),
        "provenance": _provenance(result),
    }
    body = tag(
        "body",
        tag("header", tag("h1", title)),
        tag(
            "main",
            _verdict(summary, result),
            _contents(),
            *(_section(name, part) for name, part in content.items()),
        ),
        tag("script", Html(_asset("purification.js"))),
    )
    return f"<!DOCTYPE html>\n{tag('html', _head(title), body, lang='en')}\n"


def _asset(name: str) -> str:
    return resources.files("netpurify.report").joinpath(name).read_text(encoding="utf-8")


def _head(title: str) -> Html:
    digest = base64.b64encode(hashlib.sha256(_asset("purification.js").encode()).digest()).decode()
    # For the browser: nothing is loaded, and no script but the page's own runs, whatever a name may hold.
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(_asset("page.css") + _asset("purification.css"))),
    )


def _contents() -> Html:
    links = [tag("li", tag("a", title, href=f"#{name}")) for name, title in _SECTIONS.items()]
    return tag("nav", tag("ul", *links), aria_label="On this page")


def _section(name: str, content: Html) -> Html:
    return tag("section", tag("h2", _SECTIONS[name]), content, id=name)


def _verdict(summary: Summary, result: Purification) -> Html:
    if summary.whole:
        look = "✓", "holds"
    elif not sum(summary.units.values()) or sum(summary.units.values()) == summary.units[Grade.LEFT_ALONE]:
        look = "○", "unseen"
    else:
        look = "▣" if summary.policy == "project" else "◐", "limits"
    said = [*summary.statements, (None, _agreement(result.agreement))]
    facts = [
        tag("li", tag("span", class_="grade") if grade is None else sections.badge(grade), tag("span", text))
        for grade, text in said
    ]
    return tag(
        "section",
        tag("p", f"{look[0]} {summary.headline}.", class_=f"headline {look[1]}"),
        tag("ul", *facts, class_="statements"),
        tag("p", _RESTS + (_AGAIN if summary.fits and result.provenance["settings"]["proof"] else ""), class_="rests"),
        id="verdict",
        aria_label="Verdict",
    )


def _asked(result: Purification, command: str | None, files: Mapping[str, str]) -> Html:
    named = [("Policy", _POLICIES[result.policy])]
    named += [("Command", command)] if command else []
    named += list(files.items())
    named += list(_settings(result).items())
    named.append(("Took", _effort(result)))
    return _named(named)


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


def _agreement(found: Agreement) -> str:
    """How the two networks compare on the clean inputs, in words."""
    if not found.inputs:
        return "Outputs on the clean inputs were not compared: they are no tensors."
    inputs = f"On {plural(found.inputs, 'clean input')}"
    if math.isnan(found.change):
        return f"{inputs}, outputs cannot be compared: those of the contaminated network are not finite."
    same = "" if math.isnan(found.same) else f", and the largest output is the same for {share(found.same)}"
    return f"{inputs}, outputs changed by {share(found.change)} of their size{same}."


def _pictures(result: Purification, links: Mapping[str, str]) -> Html:
    if not can_draw():
        return tag("p", _NO_PICTURES)
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
        figures = [
            tag("figure", tag("div", Html(one.svg), class_="card"), tag("figcaption", one.caption))
            for one in pictures(layer)
        ]
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


def _provenance(result: Purification) -> Html:
    kept = result.provenance
    digests = {"Contaminated": kept["model"], "Initial": kept["initial"], "Clean inputs": kept["data"]}
    named: list[tuple[str, str]] = [(name, tag("code", text or "none")) for name, text in digests.items()]
    named.append(("Versions", ", ".join(f"{name} {version}" for name, version in kept["versions"].items())))
    return join(tag("p", "SHA-256 of weights and data, whatever files they were in.", class_="note"), _named(named))


def _named(pairs: list[tuple[str, str]]) -> Html:
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", text)) for name, text in pairs))
