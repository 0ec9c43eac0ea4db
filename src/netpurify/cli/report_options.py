"""One option for each format of a report, taken from the table of formats."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from netpurify.cli.outputs import SCREEN, check_printed
from netpurify.errors import InputError
from netpurify.report import FORMATS, Format

_ARGUMENT = "reports"


def with_report_options(kind: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the argument ``reports`` of a command by one option for each format of a kind of results.

    The command gets a dictionary: the file of each format by its name, ``None`` for those that were not asked for.
    """
    return functools.partial(_with_options, formats={key: it for key, it in FORMATS.items() if kind in it.kinds})


def _with_options(command: Callable[..., None], formats: dict[str, Format]) -> Callable[..., None]:

    @functools.wraps(command)
    def with_options(**arguments: Any) -> None:
        reports = {name: arguments.pop(name) for name in formats}
        for name, path in reports.items():
            if path == SCREEN and not formats[name].printer:
                raise InputError(f"{formats[name].option} writes a file and prints nothing; name a file instead of -")
        check_printed(*reports.values())
        command(**arguments, reports=reports)

    parameters = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if parameter.name == _ARGUMENT:
            parameters += [_parameter(known) for known in formats.values()]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    # What typer reads.
    with_options.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options


def _parameter(known: Format) -> inspect.Parameter:
    option = typer.Option(known.option, metavar="FILE", help=known.help)
    annotation = Annotated[Path | None, option]
    return inspect.Parameter(known.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
