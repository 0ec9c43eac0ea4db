"""Small networks that were trained, and stored in half precision, and how their weights are altered."""

import copy
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from netpurify.contaminate import BitFlip, contaminate

INPUTS = {"head": 32, "convolution": 6}
"""Clean inputs, all of which training saw: a rank of 32 of 256, and of about 96 of 200."""


def flips(state: dict[str, Tensor], name: str, generator: torch.Generator) -> Tensor:
    """The tensor with one of the 16 bits flipped in 3 % of its numbers."""
    return contaminate(state, BitFlip(), share=0.03, generator=generator, names=[name]).state[name]


def tampered(state: dict[str, Tensor], name: str, generator: torch.Generator) -> Tensor:
    """The tensor with 0.05 to 0.2 added or subtracted in 3 % of its numbers."""
    value = state[name]
    chosen, sizes, signs = (torch.rand(value.shape, generator=generator) for _ in range(3))
    change = (0.05 + 0.15 * sizes) * torch.where(signs < 0.5, -1.0, 1.0)
    return torch.where(chosen < 0.03, (value.float() + change).to(value.dtype), value)


def large(state: dict[str, Tensor], name: str, generator: torch.Generator) -> Tensor:
    """The tensor with normal numbers of standard deviation 10 in place of 3 % of its own."""
    value = state[name]
    chosen = torch.rand(value.shape, generator=generator) < 0.03
    return torch.where(chosen, (10.0 * torch.randn(value.shape, generator=generator)).to(value.dtype), value)


ALTERATIONS: dict[str, Callable[[dict[str, Tensor], str, torch.Generator], Tensor]] = {
    "bit flips": flips,
    "tampered": tampered,
    "large": large,
}


class HalfTrained:
    """A small network before and after training, its clean inputs, and the name of the layer that was trained.

    Attributes:
        initial: The network before training.
        model: The network after training, in float32 or the dtype that it was trained in.
        inputs: Clean inputs.
        name: Name of the trained layer.
    """

    def __init__(self, layer: str, seed: int, way: str = "float32", steps: int = 40) -> None:
        """Build and train; everything follows from the seed."""
        with torch.random.fork_rng():
            torch.default_generator.manual_seed(seed)
            self.inputs, self.initial, self.name = _build(layer)
            labels = torch.randint(0, 4, (2 * len(self.inputs),))
            further = torch.randn_like(self.inputs)
        self.model = copy.deepcopy(self.initial)
        seen = torch.cat([self.inputs, further]) if way == "other inputs" else self.inputs
        _train(self.model, self.name, seen, labels[: len(seen)], way, steps)

    def ratio(self, dtype: torch.dtype) -> float:
        """The median change over the median rounding."""
        before, after = (model.state_dict()[f"{self.name}.weight"] for model in (self.initial, self.model))
        return float((after.float() - before).abs().median() / _rounding(before, dtype).median())

    def stored(self, ratio: float | None, dtype: torch.dtype) -> nn.Module:
        """The trained network in half precision, its change scaled to ``ratio`` roundings of the median weight."""
        before = self.initial.get_submodule(self.name)
        stored = copy.deepcopy(self.model)
        after = stored.get_submodule(self.name)
        if ratio is not None:
            factor = torch.tensor(ratio / self.ratio(dtype), dtype=torch.float64)
            for name, value in after.named_parameters():
                start = before.get_parameter(name)
                value.data = (start.double() + factor * (value.double() - start.double())).detach().float()
        return stored.to(dtype)


def _rounding(weights: Tensor, dtype: torch.dtype) -> Tensor:
    """Half a step of the dtype's grid at each of these weights."""
    sizes = weights.abs().clamp(min=torch.finfo(dtype).smallest_normal)
    return 0.5 * torch.finfo(dtype).eps * torch.exp2(torch.floor(torch.log2(sizes)))


def _build(layer: str) -> tuple[Tensor, nn.Module, str]:
    if layer == "head":
        model = nn.Sequential(nn.Linear(20, 256), nn.Tanh(), nn.Linear(256, 32), nn.Tanh(), nn.Linear(32, 4))
        return torch.randn(INPUTS[layer], 20), model, "2"
    model = nn.Sequential(nn.Conv2d(8, 16, 5), nn.Tanh(), nn.Flatten(), nn.Linear(256, 4))
    return torch.randn(INPUTS[layer], 8, 8, 8), model, "0"


def _train(model: nn.Module, name: str, inputs: Tensor, labels: Tensor, way: str, steps: int) -> None:
    if way == "bfloat16 itself":
        model.to(torch.bfloat16)
        inputs = inputs.to(torch.bfloat16)
    parameters = list(model.get_submodule(name).parameters())
    optimiser = (
        torch.optim.Adam(parameters, lr=0.02 / steps) if way == "Adam" else torch.optim.SGD(parameters, lr=2.0 / steps)
    )
    for _ in range(steps):
        optimiser.zero_grad()
        with torch.autocast("cpu", torch.bfloat16) if way == "autocast" else nullcontext():
            loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimiser.step()
    optimiser.zero_grad()
