"""What is asked of a family of triggers, which may be a user's own: what it gives is checked, its errors name it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from netpurify.errors import InputError, NetpurifyError
from netpurify.network.hunting.families.family import Shape, TriggerFamily, Try


def scouted(family: type[TriggerFamily], generator: torch.Generator, shape: Shape, tried: Try) -> list[TriggerFamily]:
    """The first candidates of a search.

    Raises:
        InputError: The family gives none, or something else.
    """
    with _naming(family, "scout"):
        found = list(family.scout(generator, shape, tried))
    if not found:
        raise InputError(f"the family {family.name!r} must give some triggers to begin with; scout gave none")
    return [_checked(family, one) for one in found]


def drawn(
    family: type[TriggerFamily], generator: torch.Generator, shape: Shape, near: TriggerFamily | None = None
) -> TriggerFamily:
    """A random trigger, or a variation of one.

    Raises:
        InputError: The family gives something else.
    """
    with _naming(family, "draw"):
        made = family.draw(generator, shape) if near is None else family.draw(generator, shape, near)
    return _checked(family, made)


def applied(trigger: TriggerFamily, inputs: Tensor, parameters: Tensor) -> Tensor:
    """Inputs that carry a trigger.

    Raises:
        InputError: The trigger gives something else than changed inputs, or changes those that it is given.
    """
    version = inputs._version  # counts changes in place; no public name
    with _naming(type(trigger), "apply"):
        made = trigger.apply(inputs, parameters)
    if not isinstance(made, Tensor) or made.shape != inputs.shape or made.dtype != inputs.dtype:
        got = f"{made.dtype} {list(made.shape)}" if isinstance(made, Tensor) else type(made).__name__
        raise InputError(
            f"the family {_name(type(trigger))!r} must keep the dtype and shape of inputs, {inputs.dtype} "
            f"{list(inputs.shape)}; apply gave {got}"
        )
    if inputs._version != version:
        name = _name(type(trigger))
        raise InputError(f"the family {name!r} must give a changed copy; apply changed the inputs themselves")
    return made


def after_a_step(trigger: TriggerFamily, slope: Tensor | None) -> TriggerFamily:
    """The trigger after one step along a slope; itself if there is none, or if the step leads to no number.

    Raises:
        InputError: The trigger climbs to something else.
    """
    if slope is None or not slope.numel() or not bool(slope.isfinite().all()):
        return trigger
    with _naming(type(trigger), "climb"):
        made = trigger.climb(slope)
    moved = _checked(type(trigger), made)
    return moved if bool(moved.parameters.isfinite().all()) else trigger


def check_families(families: Sequence[object]) -> None:
    """Refuse what is no family, before anything is searched.

    Raises:
        InputError: One is no class, has no name, lacks a method, or has the name of another.
    """
    names: dict[str, object] = {}
    for family in families:
        if not (isinstance(family, type) and issubclass(family, TriggerFamily)):
            raise InputError(f"a family must be a name or a subclass of TriggerFamily; got {family!r}")
        name = getattr(family, "name", None)
        if not isinstance(name, str) or not name:
            raise InputError(
                f"the family {family.__name__} must have a name, a text; got {name!r}; decorate it with register_family"
            )
        if family.__abstractmethods__:
            raise InputError(
                f"the family {name!r} must have the methods draw, apply and climb; "
                f"{' and '.join(sorted(family.__abstractmethods__))} is missing"
            )
        if names.setdefault(name, family) is not family:
            raise InputError(f"families must have names of their own; two classes have the name {name!r}")


def _name(family: type[TriggerFamily]) -> str:
    """Its name; candidates of ``scout`` may be of a class without one."""
    return getattr(family, "name", family.__name__)


def _checked(family: type[TriggerFamily], made: Any) -> TriggerFamily:
    numbers = getattr(made, "parameters", None)
    if not isinstance(made, family) or not isinstance(numbers, Tensor) or not numbers.is_floating_point():
        raise InputError(
            f"the family {_name(family)!r} must draw and climb to triggers, {family.__name__} with a float tensor as "
            f"parameters; got {type(made).__name__} with {type(numbers).__name__}"
        )
    return made


@contextmanager
def _naming(family: type[TriggerFamily], method: str) -> Iterator[None]:
    """An error of a family says which family and which method."""
    try:
        yield
    except (NetpurifyError, MemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"the family {_name(family)!r} failed: {method} raised {type(error).__name__}: {error}; docs/extend.md "
            "says what each method is given and must give"
        ) from error
