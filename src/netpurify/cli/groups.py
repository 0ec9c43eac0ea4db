"""Groups of options that several commands share: a dataclass whose fields are options.

The parser has no groups, so ``with_groups`` takes them apart: an argument of a command whose type is a dataclass
becomes one option for each field, and the command gets the dataclass.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_type_hints

import typer


def with_groups(command: Callable[..., int | None]) -> Callable[..., None]:
    """Replace each argument whose type is a dataclass by one option for each of its fields.

    What the command returns becomes the exit code.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: parameter.annotation for name, parameter in parameters.items() if is_dataclass(parameter.annotation)
    }

    @functools.wraps(command)
    def with_options(**arguments: Any) -> None:
        for name, group in groups.items():
            arguments[name] = group(**{field.name: arguments.pop(field.name) for field in fields(group)})
        code = command(**arguments)
        if code is not None:
            raise typer.Exit(code)

    flat = [option for name, it in parameters.items() for option in _options(it, groups.get(name))]
    # What typer reads.
    with_options.__signature__ = inspect.Signature(flat)  # pyright: ignore[reportAttributeAccessIssue]
    with_options.__annotations__ = {option.name: option.annotation for option in flat}
    return with_options


def _options(parameter: inspect.Parameter, group: Any | None) -> list[inspect.Parameter]:
    if group is None:
        return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    hints = get_type_hints(group, include_extras=True)
    return [_option(field, hints) for field in fields(group)]


def _option(field: Field[Any], hints: Mapping[str, Any]) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])
