"""What pages about one network share: one file that loads nothing, the verdict first, then section after section."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

from netpurify.report.kit.canvas import Picture
from netpurify.report.kit.markup import Html, join, tag

NO_PICTURES = "Pictures need matplotlib, which is not installed: pip install 'netpurify[report]' brings it."


class Section(NamedTuple):
    """A part of the page, with its heading; its name is what links lead to."""

    name: str
    title: str
    content: Html


def frame(title: str, verdict: Html, sections: Sequence[Section]) -> str:
    """The whole file, for desktop, phone and paper, light and dark."""
    links = [tag("li", tag("a", section.title, href=f"#{section.name}")) for section in sections]
    body = tag(
        "body",
        tag("header", tag("h1", title)),
        tag(
            "main",
            verdict,
            tag("nav", tag("ul", *links), aria_label="On this page"),
            *(tag("section", tag("h2", one.title), one.content, id=one.name) for one in sections),
        ),
        tag("script", Html(_asset("frame.js"))),
    )
    return f"<!DOCTYPE html>\n{tag('html', _head(title), body, lang='en')}\n"


def verdict(headline: str, look: str, statements: Sequence[tuple[Html, str]], rests: str) -> Html:
    """The verdict: one sentence, the facts behind it, and what all of it rests on.

    Args:
        headline: The sentence, with its sign.
        look: Its class in the style sheet.
        statements: Sentences, each with what stands before it.
        rests: What cannot be seen from the weights.
    """
    facts = [tag("li", mark, tag("span", text)) for mark, text in statements]
    return tag(
        "section",
        tag("p", f"{headline}.", class_=f"headline {look}"),
        tag("ul", *facts, class_="statements"),
        tag("p", rests, class_="rests"),
        id="verdict",
        aria_label="Verdict",
    )


def named(pairs: Sequence[tuple[str, str]]) -> Html:
    """Facts by name."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", text)) for name, text in pairs))


def figure(picture: Picture) -> Html:
    """A picture on its card, with its caption."""
    card = tag("div", Html(picture.svg), class_="card")
    return tag("figure", card, tag("figcaption", picture.caption))


def provenance(kept: Mapping[str, Any], digests: Mapping[str, str]) -> Html:
    """Digests of what went in and came out, and the versions of what was used.

    Args:
        kept: The result's provenance.
        digests: Which of its entries are digests, by what the page calls them.
    """
    pairs: list[tuple[str, str]] = [(name, tag("code", kept[key] or "none")) for name, key in digests.items()]
    pairs.append(("Versions", ", ".join(f"{name} {version}" for name, version in kept["versions"].items())))
    return join(tag("p", "SHA-256 of weights and data, whatever files they were in.", class_="note"), named(pairs))


def _asset(name: str) -> str:
    return resources.files("netpurify.report.kit").joinpath("assets", name).read_text(encoding="utf-8")


def _head(title: str) -> Html:
    digest = base64.b64encode(hashlib.sha256(_asset("frame.js").encode()).digest()).decode()
    # For the browser: nothing is loaded, and no script but the page's own runs, whatever a name may hold.
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(_asset("page.css") + _asset("frame.css"))),
    )
