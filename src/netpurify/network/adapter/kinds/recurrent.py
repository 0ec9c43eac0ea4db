"""LSTM, GRU and RNN: each of their weights is a layer, whose rows are inputs or hidden states of all time steps."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, unpack_sequence

from netpurify.network.adapter.form import Form
from netpurify.network.adapter.kinds.layer import Layer, Rows, register_layer

Sequences = tuple[Tensor, tuple[Tensor, ...]]
"""Inputs [time, batch, features], and the first hidden state (an LSTM has two) of each layer and direction."""


@register_layer
@dataclass(frozen=True, slots=True)
class RecurrentLayer(Layer):
    """One weight of an LSTM, GRU or RNN, with its bias. Every row of every gate is a unit.

    What a deeper layer sees, and what the hidden weights see, are outputs of torch's own kernels for one layer and
    direction at a time.

    Attributes:
        part: Name of the weight within the module, such as ``weight_hh_l0_reverse``.
    """

    part: str = ""

    modules = (nn.LSTM, nn.GRU, nn.RNN)
    called_alone = False

    @classmethod
    def weight_names(cls, module: nn.Module) -> tuple[str, ...]:  # noqa: D102
        names = [name for names in getattr(module, "_all_weights", [["weight_ih_l0"]]) for name in names]
        return tuple(name for name in names if name.startswith("weight"))

    @classmethod
    def parts(cls, name: str, module: nn.Module) -> tuple[Layer, ...]:  # noqa: D102
        prefix = f"{name}." if name else ""
        return tuple(cls(prefix + part, module, part=part) for part in cls.weight_names(module))

    @property
    def form(self) -> Form:  # noqa: D102
        prefix = self.name.removesuffix(self.part)
        has_bias = self.module.bias and not self.without_bias and not self.part.startswith("weight_hr")
        biases = (prefix + self.part.replace("weight", "bias", 1),) if has_bias else ()
        return Form(prefix + self.part, biases, tied=self.tied)

    @property
    def free_bias(self) -> bool:
        """A hidden state begins at zero: there the bias of the hidden weights is alone."""
        return self.part.startswith("weight_hh")

    def seen(self, given: tuple, named: dict[str, Any]) -> Iterator[Rows]:
        """The rows of one call: inputs, hidden states before each step, or (``weight_hr``) states to be projected."""
        inputs = given[0] if given else named["input"]
        state = given[1] if len(given) > 1 else named.get("hx")
        which, _, place = self.part.removeprefix("weight_").partition("_l")
        number, _, reverse = place.partition("_")
        for sequence, first in _sequences(self.module, inputs, state):
            values = sequence
            for layer in range(int(number)):
                values = torch.cat([_run(self.module, layer, side, values, first) for side in _sides(self.module)], 2)
            side = int(bool(reverse))
            if which == "ih":
                rows = values
            else:
                before = _before(self.module, int(number), side, values, first)
                if side:
                    values = values.flip(0)
                rows = before if which == "hh" else _unprojected(self.module, self.part, values, before, first)
            yield [rows.reshape(-1, rows.shape[-1])]

    def input_rows(self, inputs: Tensor) -> Tensor:
        """The rows of a call with these inputs alone."""
        return torch.stack([torch.cat([rows for (rows,) in self.seen((inputs,), {})])])


def _sides(module: nn.RNNBase) -> range:
    return range(2 if module.bidirectional else 1)


def _sequences(module: nn.RNNBase, inputs: Tensor | PackedSequence, state: Any) -> Iterator[Sequences]:
    """The sequences of a call, [time, batch, features], with their first states: packed ones come one by one."""
    packed = isinstance(inputs, PackedSequence)
    given = () if state is None else tuple(state) if isinstance(state, tuple | list) else (state,)
    given = tuple(value.detach() for value in given)
    if packed:
        for number, sequence in enumerate(unpack_sequence(inputs)):
            one = tuple(value[:, number : number + 1] for value in given)
            yield sequence.detach()[:, None], one or _zeros(module, sequence, 1)
        return
    inputs = inputs.detach()
    if inputs.dim() == 2:
        yield inputs[:, None], tuple(value[:, None] for value in given) or _zeros(module, inputs, 1)
        return
    values = inputs.transpose(0, 1) if module.batch_first else inputs
    yield values, given or _zeros(module, values, values.shape[1])


def _zeros(module: nn.RNNBase, like: Tensor, batch: int) -> tuple[Tensor, ...]:
    count = module.num_layers * len(_sides(module))
    hidden = like.new_zeros(count, batch, module.proj_size or module.hidden_size)
    return (hidden, like.new_zeros(count, batch, module.hidden_size)) if module.mode == "LSTM" else (hidden,)


def _run(module: nn.RNNBase, layer: int, side: int, values: Tensor, first: tuple[Tensor, ...]) -> Tensor:
    """The hidden states of one layer and direction after each step, [time, batch, hidden], in the order of time."""
    weights = [getattr(module, name) for name in module._all_weights[layer * len(_sides(module)) + side]]
    place = layer * len(_sides(module)) + side
    state: Any = tuple(value[place : place + 1].contiguous() for value in first)
    kernel: Any = {"LSTM": torch.lstm, "GRU": torch.gru, "RNN_TANH": torch.rnn_tanh, "RNN_RELU": torch.rnn_relu}[
        module.mode
    ]
    values = values.flip(0) if side else values
    # Arguments after the weights: bias, layers, dropout, training, two directions, batch first.
    output = kernel(
        values, state if module.mode == "LSTM" else state[0], weights, module.bias, 1, 0.0, False, False, False
    )[0]
    return output.flip(0) if side else output


def _before(module: nn.RNNBase, layer: int, side: int, values: Tensor, first: tuple[Tensor, ...]) -> Tensor:
    """The hidden states before each step, in the order in which the steps are made."""
    after = _run(module, layer, side, values, first)
    after = after.flip(0) if side else after
    return torch.cat([first[0][layer * len(_sides(module)) + side][None], after[:-1]])


def _unprojected(module: nn.RNNBase, part: str, values: Tensor, before: Tensor, first: tuple[Tensor, ...]) -> Tensor:
    """An LSTM's hidden states before their projection: o * tanh(c), by torch's equations, for all steps at once."""
    ending = part.removeprefix("weight_hr")
    weights = [getattr(module, f"weight_{which}{ending}") for which in ("ih", "hh")]
    biases = [getattr(module, f"bias_{which}{ending}") if module.bias else None for which in ("ih", "hh")]
    gates = sum(nn.functional.linear(*pair) for pair in zip((values, before), weights, biases, strict=True))
    entry, forget, cell, output = gates.chunk(4, dim=2)  # type: ignore[union-attr]
    number, _, reverse = ending.removeprefix("_l").partition("_")
    state = first[1][int(number) * len(_sides(module)) + bool(reverse)]
    states = []
    for step in range(len(values)):
        state = forget[step].sigmoid() * state + entry[step].sigmoid() * cell[step].tanh()
        states.append(output[step].sigmoid() * state.tanh())
    return torch.stack(states)
