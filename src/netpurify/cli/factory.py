"""The user's own network: built by a factory that the user names."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netpurify.errors import InputError

if TYPE_CHECKING:
    from torch import nn

    Build = Callable[[], nn.Module]
_LETTERS = 200
"""Letters of an argument that a message repeats."""


def find_factory(name: str, arguments: str | None = None) -> Build:
    """The function ``package.module:function``, ready to be called without arguments.

    Args:
        name: Module and function; the current folder comes first in the search.
        arguments: Keyword arguments as a JSON object.

    Returns:
        A function that builds the network and raises ``InputError`` if the user's code fails or gives something else.

    Raises:
        InputError: The name is malformed, there is no such module or function, or the arguments are no JSON object.
    """
    module_name, mark, path = name.partition(":")
    if not (mark and module_name and path):
        raise InputError(f"--factory must be package.module:function; got {name!r}; for example models:build")
    keywords = _keywords(arguments)
    function = _attribute(_import(module_name), module_name, path)

    def build() -> nn.Module:
        from torch import nn

        with _user_code(f"--factory {name} must build the network"):
            found = function(**keywords)
        if not isinstance(found, nn.Module):
            raise InputError(f"--factory {name} must return a torch.nn.Module; it returned {type(found).__name__}")
        return found

    return build


def _import(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as python -m does; an installed command does not
    with _user_code(f"--factory: the module {name} could not be imported"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
                raise
            raise InputError(
                f"--factory: there is no module {error.name!r}, neither in the current folder nor installed; run the "
                "command where it can be imported, or set PYTHONPATH"
            ) from error


def prints_aside() -> AbstractContextManager[object]:
    """What the network prints when it is run goes to standard error: standard output is for tables and JSON."""
    return redirect_stdout(sys.stderr)


@contextmanager
def _user_code(trouble: str) -> Iterator[None]:
    """What the user's code prints goes to standard error, and what it raises becomes an ``InputError``."""
    try:
        with prints_aside():
            yield
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a script that ends itself (SystemExit) must not end us with its code
        raise InputError(f"{trouble}; it raised {type(error).__name__}: {error}") from error


def _attribute(module: Any, module_name: str, path: str) -> Callable[..., Any]:
    from torch import nn

    found = module
    for part in path.split("."):
        if not hasattr(found, part):
            raise InputError(f"--factory: {module_name} has no {path!r}; name a function or class that it defines")
        found = getattr(found, part)
    if isinstance(found, nn.Module) or not callable(found):
        raise InputError(
            f"--factory {module_name}:{path} must be a function that builds the network; got {type(found).__name__}"
        )
    return found


def _keywords(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f'--factory-args must be a JSON object such as {{"width": 64}}; got {_cut(text)!r} ({type(error).__name__})'
        ) from error
    if not isinstance(found, dict):
        raise InputError(f'--factory-args must be a JSON object such as {{"width": 64}}; got {type(found).__name__}')
    return found


def _cut(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}..."
