"""What commands write: refused before the long work rather than after it, and there whole or not at all."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile, gettempdir, mkdtemp
from typing import TYPE_CHECKING, Any

import netpurify
from netpurify.atomic import check_target, write_together
from netpurify.cli.model_folders import within_input
from netpurify.cli.screen import show_json
from netpurify.errors import InputError
from netpurify.report import json_text, save

if TYPE_CHECKING:
    from netpurify.network import Defence, Hunt, Purification, Unlearning
    from netpurify.report import Detection

SCREEN = Path("-")


def check_outputs(paths: Iterable[Path | None], *, inputs: Iterable[Path | None]) -> None:
    """Refuse outputs that could not be written, are no regular file, are an input, or are given twice.

    Raises:
        InputError: One of them is.
    """
    taken = [path for path in inputs if path is not None]
    for path in paths:
        if path is None or path == SCREEN:
            continue
        _check_place(path)
        if any(_same(path, other) or within_input(path, other) for other in taken):
            raise InputError(f"{path} is named twice, or is an input, which is never overwritten; name another file")
        taken.append(path)


def check_printed(*paths: Path | None) -> None:
    """Refuse to print several reports: a program that reads one could not tell where the other begins.

    Raises:
        InputError: More than one of the paths is ``-``.
    """
    if paths.count(SCREEN) > 1:
        raise InputError("only one report can be printed; got - for several; name files for the others")


def check_new(path: Path | None, *, force: bool) -> None:
    """Refuse to replace a file of weights or a proof.

    Raises:
        InputError: It is there already, and ``force`` is not set; or its name does not end in .safetensors.
    """
    if path is None:
        return
    if path.suffix != ".safetensors":
        raise InputError(f"{path} will be written as safetensors; give it a name that ends in .safetensors")
    if path.exists() and not force:
        raise InputError(f"{path} is there already; name another file, or give --force to replace it")


def check_drawing(page: Path | None) -> None:
    """Give matplotlib a folder for its cache beside the page if there is no other, since it does not draw without one.

    It takes its own folder, or else makes a temporary one; so only where no temporary folder can be made is there
    something to do. The folder beside the page is private, and gone when the process ends.

    Raises:
        InputError: No folder can be made there.
    """
    if page is None:
        return
    try:
        gettempdir()
    except FileNotFoundError:
        given = os.environ.get("MPLCONFIGDIR")
        if given and Path(given).is_dir() and os.access(given, os.W_OK):
            return
        beside = Path(os.path.realpath(page)).parent
        try:
            folder = mkdtemp(prefix=".matplotlib-", dir=beside)
        except OSError as problem:
            raise InputError(
                f"the drawings of {page} need a temporary folder; none can be made ({problem.strerror}); set TMPDIR or "
                "MPLCONFIGDIR to a folder that can be written"
            ) from problem
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["MPLCONFIGDIR"] = folder


@contextmanager
def all_or_none() -> Iterator[None]:
    """What is written within the block is there when it ends, all of it; if anything fails, none of it.

    Whatever the block prints is on its way before the files get their names: if standard output is full, there are no
    files either, and the same command works again once there is room.

    Raises:
        InputError: A file could not get its name.
    """
    try:
        with write_together():
            yield
            sys.stdout.flush()
    except OSError as problem:
        raise InputError(
            f"{problem.filename or 'the outputs'} cannot be written ({problem.strerror or problem}); nothing was "
            "written; make room, or name other files"
        ) from problem


def write_json(path: Path, record: dict[str, Any]) -> None:
    """Write a record as JSON, or print it if the path is ``-``.

    Raises:
        InputError: It cannot be written.
    """
    if path == SCREEN:
        show_json(record)
    else:
        save(path, json_text(record))


def write_reports(
    result: Purification | Defence | Unlearning | Hunt | Detection,
    reports: Mapping[str, Path | None],
    files: Mapping[str, Path],
) -> None:
    """Write all reports that were asked for, then print those whose file is ``-``.

    Args:
        result: What ``purify`` or ``hunt`` gave, or what was detected.
        reports: Files by the name of their format.
        files: The files that went in and came out, by their role.

    Raises:
        InputError: One of them cannot be written.
    """
    context: dict[str, Any] = {
        "command": shlex.join(["netpurify", *sys.argv[1:]]),
        "files": {role: path.as_posix() for role, path in files.items()},
    }
    written = {name: path for name, path in reports.items() if path != SCREEN}
    netpurify.report.write(result, written, **context)
    for name in [name for name in reports if name not in written]:
        sys.stdout.write(netpurify.report.render(result, name, **context, printed=True))


def _same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


def _check_place(path: Path) -> None:
    """Refuse what cannot be written to, before the long work rather than after it."""
    try:
        check_target(path)
        folder = Path(os.path.realpath(path)).parent
        if not folder.is_dir():
            raise InputError(f"{path} cannot be written: there is no folder {folder}; make it first")
        with TemporaryFile(dir=folder):
            pass
    except IsADirectoryError as problem:
        raise InputError(f"{path} is a folder; name a file in it") from problem
    except OSError as problem:
        raise InputError(f"{path} cannot be written ({problem.strerror}); name another file") from problem
