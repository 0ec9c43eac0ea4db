"""What a family of triggers is, and the table of all families."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import Tensor

from netpurify.errors import InputError

Shape = tuple[int, ...]
Try = Callable[[Sequence["TriggerFamily"], int], Tensor]
"""Tries triggers on so many inputs each: mean probability of every class over inputs of others [triggers, classes]."""
Class = TypeVar("Class", bound="type[TriggerFamily]")


class TriggerFamily(ABC):
    """One universal trigger of a family: a change that is made in the same way to every input.

    A family has few free numbers, such as the frequency and the phase of a wave. That is what makes it useful: changes
    with many free numbers lead every network to every class, while changes with few do so only where training has put
    a backdoor. To add a family, write ``draw``, ``apply`` and ``climb`` in a frozen dataclass, and register the class.

    Attributes:
        name: Name in the table, set by ``register_family``.
        images: Whether inputs must be images [n, c, h, w] with values in [0, 1]; otherwise any tensor [n, ...].
        draws: How many triggers a hunt draws at random.
        parameters: What gradients may change; an empty tensor if nothing is to be changed by them.
    """

    __slots__ = ()

    name: ClassVar[str]
    images: ClassVar[bool] = True
    draws: ClassVar[int] = 120
    parameters: Tensor

    @classmethod
    @abstractmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Any = None) -> Self:
        """A random trigger for inputs [n, *shape]; or a variation of ``near``, a trigger of this family."""

    @abstractmethod
    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """A changed copy of inputs [n, ...], with ``parameters`` in place of the trigger's own."""

    @abstractmethod
    def climb(self, slope: Tensor) -> Self:
        """The trigger after one step in the direction ``slope`` of its parameters; itself if it cannot climb."""

    @classmethod
    def scout(cls, generator: torch.Generator, shape: Shape, tried: Try) -> Sequence[Self]:
        """The first candidates of a search: random draws, unless the family knows how to look for better ones."""
        del tried
        return [cls.draw(generator, shape) for _ in range(cls.draws)]


FAMILIES: dict[str, type[TriggerFamily]] = {}
"""Every family by name, in the order in which a hunt searches them."""


def register_family(name: str) -> Callable[[Class], Class]:
    """A decorator that adds a class to ``FAMILIES`` under ``name``.

    A class that is defined again, as when a cell of a notebook is run twice, replaces the earlier one.

    Raises:
        InputError: The name is no text, or another class has it.
    """
    if not isinstance(name, str) or not name:
        raise InputError(f'a family must have a name, as in @register_family("stripes"); got {name!r}')

    def add(family: Class) -> Class:
        earlier = FAMILIES.get(name)
        if earlier is not None and _place(earlier) != _place(family):
            raise InputError(f"the family {name!r} is registered already, as {_place(earlier)}; choose another name")
        family.name = name
        FAMILIES[name] = family
        return family

    return add


def _place(family: type) -> str:
    """Where a class is defined."""
    return f"{family.__module__}.{family.__qualname__}"


def real(generator: torch.Generator, low: float, high: float) -> float:
    """A number drawn uniformly from [low, high)."""
    return low + (high - low) * float(torch.rand((), generator=generator))


def whole(generator: torch.Generator, low: int, high: int) -> int:
    """A whole number drawn uniformly from low to high, both included."""
    return int(torch.randint(low, high + 1, (), generator=generator))


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    """Normal numbers."""
    return torch.randn(*shape, generator=generator)


def nothing() -> Tensor:
    """The parameters of a trigger that gradients cannot change."""
    return torch.empty(0)


def scaled(values: Tensor) -> Tensor:
    """The values, scaled to a root mean square of 1."""
    return values / values.square().mean().sqrt().clamp(min=1e-12)
