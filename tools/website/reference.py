"""Writes the pages of the API reference: for each room its docstring, a table of its names, and each name described."""

import ast
import importlib
import inspect
import itertools
import re
from pathlib import Path

from public_names import ROOMS, escaped, is_shown, names_of, own_names, places

_LONGEST = 80
"""Letters of a constant's value that are shown."""


def write_reference(folder: Path) -> None:
    """A page for each room, and nothing of what is private."""
    folder.mkdir()
    for room in ROOMS:
        (folder / f"{room.removeprefix('netpurify.')}.rst").write_text(page(room), encoding="utf-8")


def page(room: str) -> str:
    """The page of a room as reStructuredText, which the directives of autodoc need."""
    title = f"{room}\n{'=' * len(room)}"
    described = "\n\n".join(_described(room, name) for name in own_names(room))
    return f"{title}\n\n.. automodule:: {room}\n   :no-members:\n\n{_table(room)}\n\n{described}\n"


def _table(room: str) -> str:
    """All names of a room with the first sentence on each, also of those that are described on another page."""
    rows = []
    for name in names_of(room):
        place = places()[f"{room}.{name}"]
        sentence = _first_sentence(inspect.cleandoc(docstring(room, name)))
        rows.append(f"   * - :py:obj:`{name} <{place}>`\n     - {escaped(sentence)}")
    return ".. list-table::\n   :widths: 30 70\n   :class: names\n\n" + "\n".join(rows)


def _described(room: str, name: str) -> str:
    thing, place = getattr(importlib.import_module(room), name), f"{room}.{name}"
    if inspect.isclass(thing):
        inherited = "\n   :show-inheritance:" if any(map(is_shown, thing.__bases__)) else ""
        return f".. autoclass:: {place}{inherited}" + ("\n   :undoc-members:" if _is_enum(thing) else "")
    if inspect.isroutine(thing):
        return f".. autofunction:: {place}"
    value = repr(thing)
    shown = f"\n   :value: {value}" if len(value) <= _LONGEST and "<" not in value else ""
    text = escaped(inspect.cleandoc(docstring(room, name))).replace("\n", "\n   ")
    return f".. py:data:: {place}{shown}\n\n   {text}"


def docstring(room: str, name: str) -> str:
    """What is said of a name: its docstring, or the text below the assignment of a constant.

    Raises:
        LookupError: Nothing is said of it.
    """
    thing = getattr(importlib.import_module(room), name)
    if inspect.isclass(thing) or inspect.isroutine(thing):
        text = thing.__doc__
    else:
        text = _below_assignment(name, Path(str(importlib.import_module(room).__file__)).parent)
        text = text or (f'The text "{thing}"' if isinstance(thing, str) else None)
    if not text:
        raise LookupError(f"{room}.{name} has no docstring")
    return text


def _below_assignment(name: str, folder: Path) -> str | None:
    for path in sorted(folder.rglob("*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for statement, below in itertools.pairwise(body):
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            is_named = any(isinstance(target, ast.Name) and target.id == name for target in targets)
            if is_named and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                return str(below.value.value)
    return None


def _is_enum(thing: type) -> bool:
    return hasattr(thing, "__members__")


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z])", paragraph)[0]
