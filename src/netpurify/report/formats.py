"""The formats of a report, in one table, and how all that were asked for are written together.

A further format is one module with a function that makes its text, and one entry here; the command line takes its
option from the entry. Functions are named by text and loaded when they are used, so that the table costs no time.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netpurify.atomic import write_together
from netpurify.errors import InputError

if TYPE_CHECKING:
    from netpurify.network import Plan
    from netpurify.report.results import Result


@dataclass(frozen=True, slots=True)
class Format:
    """One format of a report.

    Attributes:
        name: What it is called in ``write``, and the name of the argument of the command line.
        option: Its option on the command line, such as ``"--sarif"``.
        help: What the help of the command line says about the option.
        writer: ``"package.module:function"`` of a function that takes a result and a ``Context`` and gives the text.
        printer: The same for a function whose text is printed if ``-`` stands for the file; empty if it cannot be.
        kinds: Kinds of results that it is for: ``"purification"``, ``"defence"``, ``"scan"``, ``"hunt"``,
            ``"unlearning"``.
    """

    name: str
    option: str
    help: str
    writer: str
    printer: str = ""
    kinds: tuple[str, ...] = ("purification", "defence", "scan", "hunt", "unlearning")


FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        Format("page", "--report", "Write a page about it here, .html.", "netpurify.report.results:page_text"),
        Format(
            "record",
            "--json",
            "Write a JSON record here; - prints it.",
            "netpurify.report.results:record_text",
            printer="netpurify.report.results:record_print",
        ),
        Format(
            "sarif",
            "--sarif",
            "Write the altered tensors as SARIF 2.1.0 here; - prints it.",
            "netpurify.report.results:sarif_text",
            printer="netpurify.report.results:sarif_print",
            kinds=("purification", "scan"),
        ),
    )
}
"""Every format by its name."""


def render(
    result: Result,
    name: str,
    *,
    title: str | None = None,
    command: str | None = None,
    files: Mapping[str, str] | None = None,
    plan: Plan | None = None,
    printed: bool = False,
) -> str:
    """The text of one report.

    Args:
        result: What ``purify``, ``scan`` or ``hunt`` gave.
        name: Of the format, among ``FORMATS``.
        title: Heading of a page; ``None`` for a general one.
        command: The command that was run, if there was one.
        files: The files that went in and came out, by their role, such as ``"contaminated"``.
        plan: What ``check`` had said of the same network, if it was asked.
        printed: Whether it is for a screen.

    Raises:
        InputError: There is no such format, none of it for such a result, or none that can be printed.
    """
    from netpurify.report.kit.context import Context

    if name not in FORMATS:
        raise InputError(f"a report must be one of {', '.join(FORMATS)}; got {name!r}")
    writer = FORMATS[name].printer if printed else FORMATS[name].writer
    if not writer:
        raise InputError(f"{FORMATS[name].option} writes a file and prints nothing; name a file instead of -")
    return pkgutil.resolve_name(writer)(result, Context(title, command, files or {}, plan))


def write(result: Result, outputs: Mapping[str, str | Path | None], **context: Any) -> None:
    """Write a result in several formats: all of the files, or none if one of them cannot be made or written.

        report.write(result, {"page": "report.html", "record": "report.json"}, command="netpurify recover ...")

    Args:
        result: What ``purify``, ``scan`` or ``hunt`` gave.
        outputs: Files by the name of their format; formats with ``None`` are left out.
        **context: ``title``, ``command``, ``files`` and ``plan`` as in ``render``.

    Raises:
        InputError: A file cannot be written, or there is no such format for such a result.
    """
    from netpurify.report.kit.files import save

    wanted = {name: path for name, path in outputs.items() if path is not None}
    with write_together():
        for name, path in wanted.items():
            save(path, render(result, name, **context))
