"""The user's own network: built by a factory that the user names, filled with weights from a file."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netpurify.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor, nn

    Build = Callable[[], nn.Module]
_SHOWN = 5
"""Names that a message lists before it only counts."""
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


def fill(model: nn.Module, state: Mapping[str, Tensor], *, file: Path) -> None:
    """Put the weights of a file into the network, in the dtypes of the file, with the guards of a defended one.

    Raises:
        InputError: Names are missing, unexpected or of another shape; the message lists them. Or a guard is damaged.
    """
    from netpurify.network import place_guards

    place_guards(model, state)
    own: dict[str, Any] = model.state_dict(keep_vars=True)
    _check_fit(own, state, file)
    _check_dtypes(own, state, file)
    for name, value in state.items():
        # The file's dtype counts: weights that are rounded on the way in would all seem altered a little.
        if own[name].dtype != value.dtype:
            own[name].data = own[name].data.to(value.dtype)
    model.load_state_dict(state, strict=False)


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


def _check_fit(own: Mapping[str, Any], state: Mapping[str, Tensor], file: Path) -> None:
    from torch import Tensor

    # A file may hold tied weights once, under any of their names.
    places = {value.data_ptr() for name, value in own.items() if isinstance(value, Tensor) and name in state}
    missing = [
        name
        for name, value in own.items()
        if name not in state and not (isinstance(value, Tensor) and value.numel() and value.data_ptr() in places)
    ]
    shapes = [
        f"{name} {list(state[name].shape)} instead of {list(value.shape)}"
        for name, value in own.items()
        if name in state and state[name].shape != value.shape
    ]
    parts = [("missing", missing), ("unexpected", [name for name in state if name not in own]), ("mis-shaped", shapes)]
    problems = [f"{word}: {_some(names)}" for word, names in parts if names]
    if problems:
        raise InputError(
            f"{file} must hold the weights of the network that --factory builds; {'; '.join(problems)}; "
            "give the factory or the --factory-args of this file"
        )


def _check_dtypes(own: Mapping[str, Any], state: Mapping[str, Tensor], file: Path) -> None:
    """Refuse whole numbers, truth values and complex numbers where the network has real ones."""
    odd = [
        f"{name} of {value.dtype}"
        for name, value in state.items()
        if own[name].is_floating_point() and not value.is_floating_point()
    ]
    if odd:
        raise InputError(
            f"{file} must hold real floating weights where the network that --factory builds has them; got "
            f"{_some(odd)}; give the weights as they were trained, not quantised or converted"
        )


def _cut(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}..."


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
