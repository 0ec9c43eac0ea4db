"""What a layer is: a part of a module that can be written as regressions. Each kind of layer derives from ``Layer``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from netpurify.network.adapter.form import Form, module_form
from netpurify.network.adapter.span import Span

Rows = Tensor | Sequence[Tensor]
"""For each group of a layer its rows, [rows, fan-in]; one tensor [groups, rows, fan-in] if all have as many."""
Gather = Callable[[Sequence[Span], tuple, dict[str, Any]], None]
"""Adds what a layer sees in one call of a module to its spans; takes the arguments of the call."""


@dataclass(frozen=True, slots=True)
class Layer(ABC):
    """One layer of a network, written as regressions. A kind of layer derives from this class once.

    A kind says which classes of modules it describes (``modules``), and what one unit sees of the layer's inputs
    (``input_rows``). As it stands, this class is for modules with a ``weight`` [units, ...] and perhaps a ``bias``
    [units]. A module of another build gives one or more layers (``parts``), each with its own tensors (``form``).

    Attributes:
        name: Name of the layer in the network.
        module: The module that has its tensors.
        tied: Further names of its tensors in a state dict, each with the name of the tensor that it is.
        without_bias: Whether its bias is left out of the regressions, because another module uses it as well.
    """

    name: str
    module: Any
    _: KW_ONLY
    tied: tuple[tuple[str, str], ...] = ()
    without_bias: bool = False

    modules: ClassVar[tuple[type[nn.Module], ...]]
    """Classes of modules that this kind describes."""
    computing: ClassVar[tuple[str, ...]] = ("forward",)
    """Methods that compute the output; a subclass that overrides one of them is refused."""
    layout: ClassVar[str] = "plain"
    """How the weight is stored, one of ``form.LAYOUTS``."""
    called_alone: ClassVar[bool] = True
    """Whether a call of the module with one tensor gives the rows times the matrix, which a defence needs."""

    @abstractmethod
    def input_rows(self, inputs: Tensor) -> Tensor:
        """What the units see when the layer is called with ``inputs``, without the bias: [groups, rows, fan-in]."""

    @classmethod
    def bases(cls) -> tuple[type[nn.Module], ...]:
        """Classes of modules that this kind describes, those of other libraries included if they are loaded."""
        return cls.modules

    @classmethod
    def weight_names(cls, module: nn.Module) -> tuple[str, ...]:
        """Names of the weights that such a module must have as parameters of its own."""
        del module
        return ("weight",)

    @classmethod
    def refusal(cls, module: nn.Module) -> str | None:
        """Why this module cannot be written as regressions, for a reason that only this kind has."""
        del module
        return None

    @classmethod
    def parts(cls, name: str, module: nn.Module) -> "tuple[Layer, ...]":
        """The layers that a module gives."""
        return (cls(name, module),)

    def pieces(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """``inputs``, cut into pieces whose rows take little memory at a time."""
        return (inputs,)

    def seen(self, given: tuple, named: dict[str, Any]) -> Iterator[Rows]:
        """What the units see in one call of ``watched``, without the bias: piece by piece, for each group its rows."""
        inputs = given[0] if given else named.get("input", next(iter(named.values())))
        for piece in self.pieces(inputs.detach()):
            yield self.input_rows(piece)

    @property
    def watched(self) -> nn.Module:
        """The module whose calls tell what the layer sees."""
        return self.module

    def watch(self) -> list[tuple[nn.Module, Gather]]:
        """The modules whose calls tell what the layer sees, each with what is to be done in such a call."""
        return [(self.watched, self.gather)]

    def gather(self, spans: Sequence[Span], given: tuple, named: dict[str, Any]) -> None:
        """Add what the layer sees in one call to its spans.

        Raises:
            SpanError: The rows are not finite, or take too much memory.
        """
        for groups in self.seen(given, named):
            for span, rows in zip(spans, groups, strict=True):
                span.add(with_biases(rows, len(self.form.biases), None if self.free_bias else 0))

    def spans(self) -> list[Span]:
        """Spans without any rows, one for each group."""
        unit = torch.finfo(self.weight.dtype).eps
        return [Span(self.fan_in, unit) for _ in range(self.groups)]

    @property
    def groups(self) -> int:
        """How many independent regressions the layer is, each with its own inputs."""
        return 1

    @property
    def free_bias(self) -> bool:
        """Whether the bias is alone in some of the layer's outputs, so that training may set it freely.

        Such a bias proves nothing and disproves nothing. It is then left out of the rows, as if no input reached it:
        one weight that no other predicts would void the evidence for the whole unit.
        """
        return False

    @property
    def trailing(self) -> int:
        """How many dimensions follow the channels in the layer's output, such as height and width."""
        return 0

    @property
    def kind(self) -> str:
        """Name of the module's class."""
        return type(self.module).__name__

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """The layer's tensors by the names that ``form`` gives them."""
        return {name: self.module.get_parameter(name.rpartition(".")[2]) for name in self.form.tensors}

    @property
    def form(self) -> Form:
        """How the layer's tensors become its matrix."""
        bias = self.module.bias is not None and not self.without_bias
        form = module_form(self.name, bias=bias, layout=self.layout, groups=self.groups)
        return replace(form, tied=self.tied) if self.tied else form

    @property
    def weight(self) -> Tensor:
        """The layer's weight."""
        return self.parameters[self.form.weight]

    @property
    def units(self) -> int:
        """Units of all groups."""
        return self.form.units(self.weight.shape)

    @property
    def fan_in(self) -> int:
        """Length of a unit's weight vector, biases included."""
        return self.form.fan_in(self.weight.shape)

    @property
    def has_bias(self) -> int:
        """How many of the last rows of the matrix are biases: none, one, or several if layers share a weight."""
        return len(self.form.biases)

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of the layer's tensors in a state dict: the weight, and the bias if there is one."""
        return self.form.tensors

    def asked_for(self, names: Collection[str]) -> bool:
        """Whether the layer, or the module of which it is a part, is among these names."""
        return self.name in names or self.name.rpartition(".")[0] in names

    def matrix(self) -> Tensor:
        """The layer's weights, [groups, fan-in, units of a group]. Without a bias it may be a view of the weights."""
        return self.form.matrix({name: value.detach() for name, value in self.parameters.items()})

    def rows(self, inputs: Tensor) -> Tensor:
        """What the units see when the layer is called with ``inputs``: [groups, rows, fan-in], bias included."""
        return with_biases(self.input_rows(inputs), len(self.form.biases))

    def write(self, matrix: Tensor) -> None:
        """Set the layer's weights from [groups, fan-in, units of a group]."""
        form = self.form
        weight, *biases = self.parameters.values()
        values = form.split(matrix, weight.shape)
        with torch.no_grad():
            weight.copy_(values[0])
            for bias, new in zip(biases, values[1:], strict=True):
                bias[form.first : form.first + new.numel()].copy_(new)


def with_biases(rows: Tensor, biases: int, own: int | None = 0) -> Tensor:
    """Rows [..., fan-in] with one more coordinate for each bias: 1 for the bias that is added, 0 for the others."""
    if not biases:
        return rows
    more = rows.new_zeros(*rows.shape[:-1], biases)
    if own is not None:
        more[..., own] = 1.0
    return torch.cat([rows, more], dim=-1)


_Kind = TypeVar("_Kind", bound=type[Layer])
KINDS: list[type[Layer]] = []
"""Every kind of layer that can be purified."""


def register_layer(kind: _Kind) -> _Kind:
    """Add a kind of layer to ``KINDS``; to be used as a class decorator."""
    KINDS.append(kind)
    return kind
