"""Options of several commands as one dataclass: each field is an option, and the command gets one argument."""

import dataclasses
import inspect
import typing
from collections.abc import Callable
from typing import Any


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every parameter that is a dataclass replaced by the fields of the dataclass.

    The fields keep their annotations and defaults, so that typer shows each as an option; the command is called with
    the dataclass that they make.
    """
    hints = typing.get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Any]] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if not dataclasses.is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        assert isinstance(kind, type)
        groups[parameter.name] = kind
        annotations = typing.get_type_hints(kind, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=annotations[field.name]
            )
            for field in dataclasses.fields(kind)
        ]

    def call(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{field.name: values.pop(field.name) for field in dataclasses.fields(kind)})
        command(**values)

    call.__doc__ = command.__doc__
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    setattr(call, "__signature__", inspect.Signature(parameters))  # noqa: B010 (functions have no such attribute)
    return call
