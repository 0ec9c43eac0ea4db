"""Many contaminations of one trained layer at once, so that a share of exact units can be measured on one network.

A layer of units that are copies of one another is contaminated entry by entry, each copy by its own draws. So the
output layer of the paper's network, a single unit, gives a share as the hidden layer does.
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from netpurify.contaminate import Law, contaminate
from netpurify.experiments.figures.trials.altered_weights import NOISE_SEED, Cell
from netpurify.paper import PatchCNN, Purified, compare, purify

SEEN = 1e-6
"""Smaller changes do not count as alterations, since a unit counts as exact if every weight is within this."""


@dataclass(frozen=True, slots=True)
class TrainedLayer:
    """One layer whose units are contaminated: the network before and after training, and the layer's name."""

    initial: PatchCNN
    trained: PatchCNN
    name: str


def copies_of_beta(network: PatchCNN, times: int) -> PatchCNN:
    """A network of ``times`` outputs, each of them the single output of the given one."""
    unused = torch.Generator().manual_seed(0)  # every weight is overwritten
    many = PatchCNN(m=network.m, k=network.k, p=network.p, classes=times, generator=unused)
    many.hidden.load_state_dict(network.hidden.state_dict())
    with torch.no_grad():
        many.output.weight.copy_(network.output.weight.expand(times, -1))
    return many


def first_filters(network: PatchCNN, count: int) -> PatchCNN:
    """A network of the first ``count`` filters of the given one: the filters of a layer are fitted one by one."""
    unused = torch.Generator().manual_seed(0)
    few = PatchCNN(m=network.m, k=network.k, p=count, generator=unused)
    with torch.no_grad():
        few.layers[0].weight.copy_(network.layers[0].weight[:count])
        few.output.weight.copy_(network.output.weight[:, :count])
    return few


def contaminated(layer: TrainedLayer, law: Law, eps: float, seed: int) -> PatchCNN:
    """The network with its layer contaminated; a larger eps alters the same weights and more."""
    generator = torch.Generator().manual_seed(NOISE_SEED + seed)
    names = [f"{layer.name}.weight"]
    result = contaminate(layer.trained.state_dict(), law, share=eps, generator=generator, names=names)
    dirty = copy.deepcopy(layer.trained)
    dirty.load_state_dict(result.state)
    return dirty


def change(layer: TrainedLayer, dirty: PatchCNN) -> Tensor:
    """What contamination added, [units, fan-in]; 0 where that is too little to count."""
    before, after = (net.get_parameter(f"{layer.name}.weight").detach() for net in (layer.trained, dirty))
    added = after - before
    return torch.where(added.abs() <= SEEN, torch.zeros_like(added), added)


def recovered(layer: TrainedLayer, law: Law, eps: float, inputs: Tensor, seed: int) -> tuple[Cell, PatchCNN, Purified]:
    """Contaminate and purify the layer: shares altered, missing and exact, and both networks."""
    dirty = contaminated(layer, law, eps, seed)
    purified = purify(dirty, layer.initial, inputs, layers=[layer.name], certify=False)
    (fitted,) = purified.layers
    shares = {
        "altered": float((change(layer, dirty) != 0.0).double().mean()),
        "missing": float(fitted.difference.isnan().double().mean()),
        "exact": compare(purified.model, layer.trained)[layer.name].exact,
        "rank": fitted.rank,
    }
    return shares, dirty, purified
