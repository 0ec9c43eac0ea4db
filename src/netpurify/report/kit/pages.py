"""HTML pages from templates: one file that loads nothing, with every text escaped."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from netpurify.network import Skipped
from netpurify.report.kit.groups import fold_skipped
from netpurify.report.kit.names import module_name
from netpurify.report.kit.numbers import plural
from netpurify.report.kit.tables import Table
from netpurify.report.kit.themes import themed

NO_PICTURES = "Pictures need matplotlib, which is not installed: pip install 'netpurify[report]' brings it."


def render_page(template: str, content: dict[str, Any], *, styles: Sequence[str], script: str | None = None) -> str:
    """A whole page; the same content gives the same text.

    Args:
        template: Name of the template.
        content: What the template shows, by name; ``title`` is the heading. Texts are escaped.
        styles: Names of the style sheets among the assets, in order.
        script: Name of the script among the assets, if the page has one.
    """
    code = None if script is None else _asset(script)
    frame = {
        "security_policy": _security_policy(code),
        "style": Markup("".join(map(_asset, styles))),
        "script": None if code is None else Markup(code),
    }
    return _environment().get_template(template).render(frame | content)


def render_result(template: str, content: dict[str, Any]) -> str:
    """The page of one result: tables can be sorted, and ``content`` has its ``summary``."""
    return render_page(template, content, styles=("page.css", "result.css"), script="sort.js")


def render_fragment(template: str, content: dict[str, Any]) -> str:
    """A part of a page, for a notebook; texts are escaped."""
    return _environment().get_template(template).render(content)


class SkippedTables(NamedTuple):
    """What was not examined: with groups counted in one row each, and one by one if there are groups."""

    table: Table
    whole: Table | None


def skipped_tables(skipped: Sequence[Skipped]) -> SkippedTables:
    """What was not examined, with the reason: first what should have been."""
    folded = fold_skipped(skipped)
    rows = [(module_name(module.name), module.kind, module.reason) for module in folded.listed]
    rows += [(plural(len(group), "module"), group[0].kind, group[0].reason) for group in folded.groups]
    every = [(module_name(module.name), module.kind, module.reason) for module in skipped]
    return SkippedTables(_skipped_table(rows), _skipped_table(every) if folded.groups else None)


def _skipped_table(rows: Sequence[tuple[str, str, str]]) -> Table:
    return Table.of(("Module", "Kind", "Reason"), rows, label="Not examined", kind="skipped")


def _security_policy(script: str | None) -> str:
    """For the browser: nothing is loaded, and no script but the page's own runs, whatever a name in a file may hold."""
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    if script is None:
        return policy
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{policy}; script-src 'sha256-{digest}'"


def _asset(name: str) -> str:
    return resources.files("netpurify.report.kit").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("netpurify.report.kit"),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelled name is an error, not an empty text
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["themed"] = themed
    return environment
