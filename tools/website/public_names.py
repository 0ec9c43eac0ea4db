"""A Sphinx extension: every public name has one place in the reference, and types lead there wherever they are defined.

A class may be defined in ``netpurify.network.policies.recover``, be exported by ``netpurify.network`` and again by
``netpurify``. It is described where a user imports it from, in the first of ``ROOMS`` that exports it, and references
to any of its names lead there.
"""

import importlib
import inspect
import re
from functools import cache
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python._object import PyObject
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

ROOMS = (
    "netpurify",
    "netpurify.lad",
    "netpurify.network",
    "netpurify.checkpoint",
    "netpurify.contaminate",
    "netpurify.data",
    "netpurify.paper",
    "netpurify.report",
    "netpurify.experiments",
    "netpurify.findings",
    "netpurify.engine",
    "netpurify.errors",
)
"""What the reference covers, in the order in which names are claimed."""
_LITERAL = re.compile(r"(``.+?``|:\w+:`.+?`)")
_COLON = "\ue000"
_MARKUP = re.compile(r"([\\`*|]|_(?!\w))")


def names_of(room: str) -> list[str]:
    """The public names of a room that are no rooms themselves."""
    module = importlib.import_module(room)
    exported = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    return [name for name in exported if not inspect.ismodule(getattr(module, name))]


@cache
def places() -> dict[str, str]:
    """Every name under which a public object can be met, and the one under which it is described."""
    described: dict[int, str] = {}
    found: dict[str, str] = {}
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in names_of(room):
            thing = getattr(module, name)
            place = f"{room}.{name}"
            if callable(thing):
                place = described.setdefault(id(thing), place)
                found[f"{thing.__module__}.{getattr(thing, '__qualname__', name)}"] = place
            found[f"{room}.{name}"] = place
    return found


def own_names(room: str) -> list[str]:
    """The names of a room that are described on its page."""
    return [name for name in names_of(room) if places()[f"{room}.{name}"] == f"{room}.{name}"]


def plain(_app: Sphinx, what: str, name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with literals and lists: signs of reStructuredText in mathematics mean themselves."""
    text = "\n".join(lines)
    if what in ("property", "attribute"):
        text = text.replace(":", _COLON)  # else napoleon takes what stands before the first one for a type
    if what == "module":  # its indented blocks are code
        text = re.sub(r"\n\n(?=    \S)", "\n\n.. code-block:: text\n\n", text)
    blocks = re.split(r"(^\.\. code-block:: text\n(?:\n|    .*\n?)*)", text, flags=re.MULTILINE)
    room = max((room for room in ROOMS if f"{name}.".startswith(f"{room}.")), key=len)
    blocks[::2] = [escaped(block, room) for block in blocks[::2]]
    lines[:] = "".join(blocks).split("\n")


def colons(_app: Sphinx, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Put the colons back, once napoleon is done."""
    lines[:] = [line.replace(_COLON, ":") for line in lines]


def escaped(text: str, room: str = "netpurify") -> str:
    """Plain text with literals as reStructuredText; literals that are public names of the room become links."""
    parts = _LITERAL.split(text)
    for place in range(1, len(parts), 2):
        if not parts[place + 1][:1].isalnum():  # a plural of a name is no reference
            parts[place] = _linked(parts[place], room)
    parts[::2] = [_MARKUP.sub(r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def _linked(literal: str, room: str) -> str:
    """A link, if a literal is a class or has dots; plain lower case may be the name of an argument."""
    found = re.fullmatch(r"``([A-Z]\w*|\w+(?:\.\w+)+)``", literal)
    if found is None:
        return literal
    if found[1] in ROOMS:
        return f":py:mod:`{found[1]}`"
    place = next(filter(None, (places().get(f"{start}{found[1]}") for start in (f"{room}.", "netpurify.", ""))), None)
    return f":py:obj:`{found[1]} <{place}>`" if place else literal


def bases(_app: Sphinx, _name: str, _thing: Any, _options: Any, found: list[Any]) -> None:
    """Leave out private bases, of which a user has nothing."""
    found[:] = [base for base in found if is_shown(base)]


def is_shown(base: Any) -> bool:
    """Whether a base is public here, or another library's."""
    name = f"{getattr(base, '__module__', '')}.{getattr(base, '__qualname__', '')}"
    return base is not object and (name in places() or not _is_private(name))


def resolve(app: Sphinx, _env: BuildEnvironment, node: pending_xref, content: nodes.Element) -> nodes.Element | None:
    """Find a public object by any of its names."""
    if node.get("refdomain") != "py":
        return None
    target, module = str(node.get("reftarget", "")), str(node.get("py:module") or "")
    objects = app.env.domains.python_domain.objects
    for name in (target, f"{module}.{target}", *(f"{room}.{target}" for room in ROOMS)):
        place = places().get(name)
        if place in objects:
            entry = objects[place]
            builder = app.builder
            return make_refnode(builder, node["refdoc"], entry.docname, entry.node_id, content, place)
    return content if _is_private(target) else None


def _is_private(target: str) -> bool:
    """Whether there is such a name, but not among the public ones: it is shown, and leads nowhere."""
    module, _, name = target.rpartition(".")
    if not module.startswith("netpurify."):
        return False
    try:
        return hasattr(importlib.import_module(module), name)
    except ImportError:
        return False


def skip(_app: Sphinx, _what: str, name: str, _thing: Any, _skipped: bool, _options: Any) -> bool | None:  # noqa: FBT001
    """Leave out what scikit-learn puts into its estimators; its text belongs to its own documentation."""
    return True if name.endswith("_request") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the handlers."""
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"  # as docstrings call them
    app.connect("autodoc-process-docstring", plain, priority=400)  # napoleon has 500
    app.connect("autodoc-process-docstring", colons, priority=600)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-bases", bases)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
