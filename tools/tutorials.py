"""Execute the tutorials in docs/tutorials and write them as Markdown with their output and pictures.

    python tools/tutorials.py build/tutorials                 all of them, and their index
    python tools/tutorials.py build/tutorials audit backdoored

A tutorial is a Python script in the percent format, which Jupyter (by jupytext), VS Code, PyCharm and Spyder open as a
notebook: ``# %% [markdown]`` begins a text of comments, ``# %%`` begins code. Every cell of code is executed, and what
it prints, and the figures of matplotlib that it leaves open, follow it on the page. The title of a cell,
``# %% Title``, is the caption of its figure. A picture that a text names, ``![caption](file.svg)``, is copied from
where the script wrote it. Scripts run in an empty folder of their own.

jupytext with nbconvert would do the same through a Jupyter kernel, at the price of some thirty further packages, of a
kernel's start for each tutorial, and of pages whose output the tests could only compare as text. Here a test has the
variables of the executed script.
"""

import argparse
import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt  # after the backend is chosen

SOURCES = Path(__file__).parents[1] / "docs" / "tutorials"
NAMES = ("flipped-bits", "backdoored", "reproduce", "regressions", "audit")
"""The tutorials, in the order of the index."""
_CELL = re.compile(r"^# %%(?P<text> \[markdown\])?(?: (?P<title>.+))?$")
_SCRIPT = re.compile(r"\]\(([\w-]+)\.py(#[\w-]+)?\)")
"""A link to a tutorial: in the repository to its script, on the site to its page."""
_PICTURE = re.compile(r"!\[[^\]]*\]\((?P<file>[^):]+)\)")
_DOTS = 160
"""Dots for an inch in pictures: sharp also on screens of double density."""


class TutorialError(Exception):
    """A tutorial that cannot be read, or that raised when it was executed."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a tutorial.

    Attributes:
        text: Markdown, or Python.
        is_text: Whether it is Markdown.
        title: What follows ``# %%``: the caption of the cell's figure.
        line: Its first line in the script, counted from 1.
    """

    text: str
    is_text: bool
    title: str
    line: int


@dataclass(slots=True)
class Executed:
    """A tutorial after it was executed.

    Attributes:
        name: Its name.
        markdown: The page.
        pictures: File names of the pictures and what is in them.
        names: The variables that the script left.
        printed: All that it printed.
        seconds: How long it took.
    """

    name: str
    markdown: str = ""
    pictures: dict[str, bytes] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""
    seconds: float = 0.0


def cells_of(source: str) -> list[Cell]:
    """The cells of a script in the percent format; blank ones are left out.

    Raises:
        TutorialError: Something stands before the first cell, or a text has lines that are no comments.
    """
    found: list[Cell] = []
    lines = source.splitlines()
    starts = [number for number, line in enumerate(lines) if _CELL.match(line)]
    if not starts or starts[0] != 0:
        raise TutorialError("line 1: expected a cell, '# %% [markdown]'")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        head = _CELL.match(lines[start])
        assert head is not None
        body, is_text = lines[start + 1 : end], head["text"] is not None
        if is_text:
            strange = [start + 2 + place for place, line in enumerate(body) if line and not line.startswith("#")]
            if strange:
                raise TutorialError(f"line {strange[0]}: expected a comment in a text; begin code with '# %%'")
            body = [line.removeprefix("#").removeprefix(" ") for line in body]
        text = "\n".join(body).strip("\n")
        if text:
            blank = next(place for place, line in enumerate(body) if line)
            found.append(Cell(text, is_text, head["title"] or "", start + 2 + blank))
    return found


def execute(name: str) -> Executed:
    """Execute a tutorial in an empty folder, cell by cell.

    Raises:
        TutorialError: It cannot be read, it raised, or a picture is missing.
    """
    source = SOURCES / f"{name}.py"
    done = Executed(name, names={"__name__": "__main__"})
    begun = time.perf_counter()
    try:
        cells = cells_of(source.read_text(encoding="utf-8"))
        with _empty_folder(), plt.rc_context():
            parts = [_text(cell, done) if cell.is_text else _code(cell, source, done) for cell in cells]
    except TutorialError as error:
        raise TutorialError(f"{source}: {error}") from error
    link = f"This page was made by executing [`{source.name}`]({source.name}), which runs anywhere as a plain script."
    done.markdown = "\n\n".join([*parts, f"*{link}*"]) + "\n"
    done.seconds = time.perf_counter() - begun
    return done


def write(name: str, folder: Path) -> Executed:
    """Execute a tutorial and write its page, its pictures and its script into a folder."""
    done = execute(name)
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in done.pictures.items():
        (folder / file).write_bytes(content)
    shutil.copyfile(SOURCES / f"{name}.py", folder / f"{name}.py")
    (folder / f"{name}.md").write_text(done.markdown, encoding="utf-8")
    return done


def write_index(folder: Path) -> None:
    """The index, whose links to scripts become links to pages."""
    text = (SOURCES / "index.md").read_text(encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.md").write_text(_to_pages(text), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Write the tutorials that are asked for, and say how long each took."""
    parser = argparse.ArgumentParser(description="Execute the tutorials and write them as Markdown.")
    parser.add_argument("folder", type=Path, help="where pages and pictures go")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which; all without it: {', '.join(NAMES)}")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown tutorial {unknown[0]}; there are {', '.join(NAMES)}")
    write_index(asked.folder)
    for name in asked.names or NAMES:
        try:
            done = write(name, asked.folder)
        except TutorialError as error:
            print(error, file=sys.stderr)
            return 1
        print(f"{asked.folder / name}.md: {done.seconds:.0f} s", flush=True)
    return 0


def _text(cell: Cell, done: Executed) -> str:
    """A text as it is; the pictures that it names are read from the script's folder."""
    for found in _PICTURE.finditer(cell.text):
        path = Path(found["file"])
        if not path.is_file():
            raise TutorialError(f"line {cell.line}: no cell wrote the picture {path}")
        done.pictures[f"{done.name}-{path.name}"] = path.read_bytes()
    text = _PICTURE.sub(
        lambda it: it[0].replace(f"({it['file']})", f"({done.name}-{Path(it['file']).name})"), cell.text
    )
    return _to_pages(text)


def _to_pages(text: str) -> str:
    """Markdown whose links to scripts of tutorials are links to their pages."""
    return _SCRIPT.sub(lambda it: f"]({it[1]}.md{it[2] or ''})", text)


def _code(cell: Cell, source: Path, done: Executed) -> str:
    """The code, what it printed, and its figures."""
    printed = io.StringIO()
    # Lines before the cell are left blank, so that errors name the line of the script.
    code = compile("\n" * (cell.line - 1) + cell.text, str(source), "exec")
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, done.names)
    except Exception as error:
        raise TutorialError(f"the cell of line {cell.line} raised\n{traceback.format_exc()}") from error
    done.printed += printed.getvalue()
    parts = [f"```python\n{cell.text}\n```"]
    if printed.getvalue().strip():
        parts.append(f"```text\n{printed.getvalue().rstrip()}\n```")
    return "\n\n".join([*parts, *_figures(cell, done)])


def _figures(cell: Cell, done: Executed) -> Iterator[str]:
    """The figures that the cell left open, saved and closed."""
    for number in plt.get_fignums():
        if not cell.title:
            raise TutorialError(
                f"line {cell.line}: a cell with a figure needs a title, '# %% Caption', for its caption"
            )
        figure, content = plt.figure(number), io.BytesIO()
        figure.savefig(content, format="png", dpi=_DOTS, bbox_inches="tight", facecolor="white")
        plt.close(figure)
        file = f"{done.name}-{len(done.pictures) + 1}.png"
        done.pictures[file] = content.getvalue()
        yield f"![{cell.title}]({file})\n\n*{cell.title}*"


@contextlib.contextmanager
def _empty_folder() -> Iterator[None]:
    """Work in an empty folder, and come back."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
            plt.close("all")


if __name__ == "__main__":
    sys.exit(main())
