"""Small networks trained on the bundled digits in every way of which the study asks whether recovery is exact."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, get_swa_multi_avg_fn

from netpurify import data
from netpurify.experiments.studies.optimisers import rules
from netpurify.network import Seeded

STEPS = 100
Make = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


@dataclass(frozen=True, slots=True)
class Method:
    """A way of training.

    Attributes:
        optimiser: Makes the optimiser.
        batch: Inputs of a step; 0 for all of them.
        accumulate: Batches whose gradients are added up before a step.
        cosine: Whether the learning rate falls to zero along a cosine.
        clip_norm: Gradients are scaled down together to this norm; 0 for no clipping.
        clip_value: Every entry of the gradients is cut off at this size; 0 for no clipping.
        gradient_noise: Standard deviation of noise that is added to gradients, as in private training.
        smoothing: Label smoothing.
        mixup: Whether each input is mixed with another one, and their losses too.
        shift: Whether images are shifted by up to two pixels at random.
        autocast: Whether the network computes in bfloat16, with weights in float32.
        average: ``"ema"`` or ``"swa"`` for averages of the weights over the steps; ``""`` for the last weights.
        slots: Options of ``Slots``: dropout and BatchNorm within the network.
    """

    optimiser: Make = lambda values: torch.optim.SGD(values, lr=0.1)
    batch: int = 0
    accumulate: int = 1
    cosine: bool = False
    clip_norm: float = 0.0
    clip_value: float = 0.0
    gradient_noise: float = 0.0
    smoothing: float = 0.0
    mixup: bool = False
    shift: bool = False
    autocast: bool = False
    average: str = ""
    slots: dict[str, Any] = field(default_factory=dict)


OPTIMISERS: dict[str, Method] = {
    "SGD": Method(),
    "SGD, momentum": Method(lambda values: torch.optim.SGD(values, lr=0.03, momentum=0.9)),
    "SGD, Nesterov momentum": Method(lambda values: torch.optim.SGD(values, lr=0.03, momentum=0.9, nesterov=True)),
    "SGD, coupled decay": Method(lambda values: torch.optim.SGD(values, lr=0.1, weight_decay=1e-2)),
    "momentum, coupled decay": Method(lambda values: torch.optim.SGD(values, lr=0.03, momentum=0.9, weight_decay=1e-2)),
    "SGD, decoupled decay": Method(lambda values: rules.DirectedSteps(values, rules.gradient, lr=0.1, decay=1e-2)),
    "L-BFGS": Method(lambda values: torch.optim.LBFGS(values, lr=0.1, max_iter=2)),
    "Adam": Method(lambda values: torch.optim.Adam(values, lr=1e-3)),
    "Adam, coupled decay": Method(lambda values: torch.optim.Adam(values, lr=1e-3, weight_decay=1e-2)),
    "AdamW": Method(lambda values: torch.optim.AdamW(values, lr=1e-3, weight_decay=1e-2)),
    "NAdam": Method(lambda values: torch.optim.NAdam(values, lr=1e-3)),
    "RMSprop": Method(lambda values: torch.optim.RMSprop(values, lr=3e-4)),
    "Adagrad": Method(lambda values: torch.optim.Adagrad(values, lr=3e-3)),
    "Adadelta": Method(lambda values: torch.optim.Adadelta(values, lr=1.0)),
    "Adafactor": Method(lambda values: torch.optim.Adafactor(values, lr=1e-2)),
    "Rprop": Method(lambda values: torch.optim.Rprop(values, lr=1e-3)),
    "sign descent": Method(lambda values: rules.DirectedSteps(values, rules.sign, lr=1e-3)),
    "Lion": Method(lambda values: rules.DirectedSteps(values, rules.lion, lr=3e-4, decay=1e-2)),
    "Muon": Method(lambda values: rules.MuonAndSGD(values, lr=1e-3, decay=1e-2)),
}
"""Ways of training by the name of their optimiser, all with full batches."""
VARIANTS: dict[str, Method] = {
    "batches of 5": Method(batch=5),
    "batches of 5, gradients of 4 accumulated": Method(batch=5, accumulate=4),
    "cosine schedule": Method(cosine=True),
    "gradients clipped by norm": Method(clip_norm=0.5),
    "gradients clipped by value": Method(clip_value=3e-3),
    "noise added to gradients": Method(gradient_noise=1e-4),
    "label smoothing": Method(smoothing=0.1),
    "mixup": Method(mixup=True),
    "images shifted at random": Method(shift=True),
    "dropout after each ReLU": Method(slots={"dropout": 0.2}),
    "dropout of the layer's inputs": Method(slots={"input_dropout": 0.2}),
    "BatchNorm in training mode": Method(slots={"norm": True}),
    "exponential mean of weights": Method(average="ema"),
    "mean of weights (SWA)": Method(average="swa"),
    "autocast to bfloat16": Method(autocast=True),
}
"""Ways of training with SGD, by what is special about them."""
METHODS = OPTIMISERS | {f"SGD, {name}": method for name, method in VARIANTS.items()}


class Dropout(nn.Module):
    """Dropout that draws from a generator of its own."""

    def __init__(self, share: float) -> None:
        """``share`` of the entries are set to zero in training mode."""
        super().__init__()
        self.share = share
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, inputs: Tensor) -> Tensor:
        """The inputs, some of them zero in training mode and the others larger."""
        if not self.training or not self.share:
            return inputs
        kept = torch.rand(inputs.shape, generator=self.generator) >= self.share
        return inputs * kept / (1.0 - self.share)

    def __deepcopy__(self, _: dict[int, Any]) -> "Dropout":  # a generator cannot be copied
        return Dropout(self.share)


@dataclass(frozen=True, slots=True)
class Slots:
    """What stands between the layers of a network."""

    input_dropout: float = 0.0
    dropout: float = 0.0
    norm: bool = False

    def normalise(self, width: int, *, image: bool = False) -> nn.Module:
        """BatchNorm, or nothing."""
        kind = nn.BatchNorm2d if image else nn.BatchNorm1d
        return kind(width) if self.norm else nn.Identity()


def mlp(slots: Slots) -> nn.Sequential:
    """Three layers on 784 pixels."""
    return nn.Sequential(
        nn.Flatten(), Dropout(slots.input_dropout), nn.Linear(784, 64),
        slots.normalise(64), nn.ReLU(), Dropout(slots.dropout), nn.Linear(64, 64),
        slots.normalise(64), nn.ReLU(), Dropout(slots.dropout), nn.Linear(64, 10),
    )  # fmt: skip


def head(slots: Slots) -> nn.Sequential:
    """A head on 256 features of a convolution that is never trained."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), slots.normalise(256),
        Dropout(max(slots.input_dropout, slots.dropout)), nn.Linear(256, 10),
    )  # fmt: skip


def convolution(slots: Slots) -> nn.Sequential:
    """A convolution that sees half an image at a time, as in the paper, and a head that is trained with it."""
    return nn.Sequential(
        Dropout(slots.input_dropout), nn.Conv2d(1, 32, (14, 28), stride=(14, 28)), slots.normalise(32, image=True),
        nn.ReLU(), nn.Flatten(), Dropout(slots.dropout), nn.Linear(64, 10),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Architecture:
    """A kind of network.

    Attributes:
        build: Makes the network.
        images: How many images train and purify it.
        parts: Names of the layers that are judged together, by what they are called in the tables.
        frozen: Number of modules at the beginning that are not trained.
    """

    build: Callable[[Slots], nn.Sequential]
    images: int
    parts: dict[str, tuple[str, ...]]
    frozen: int = 0


FIRST, LATER, HEAD, CONVOLUTION = "first layer", "later layers", "head over a frozen network", "convolution"
NETWORKS = {
    "MLP": Architecture(mlp, 20, {FIRST: ("2",), LATER: ("6", "10")}),
    "head": Architecture(head, 40, {HEAD: ("6",)}, frozen=4),
    "convolution": Architecture(convolution, 20, {CONVOLUTION: ("1",)}),
}


@dataclass(frozen=True, slots=True)
class OptimisedNetwork:
    """A trained network.

    Attributes:
        network: The network, in evaluation mode.
        initial: The network before training.
        inputs: The images that trained it.
        snapshots: Copies of the network after the numbers of steps that were asked for, with the optimiser's state of
            the first tensor that is trained.
    """

    network: nn.Sequential
    initial: nn.Sequential
    inputs: Tensor
    snapshots: dict[int, tuple[nn.Sequential, dict[str, Any]]]


def train(kind: str, method: Method, seed: int, *, snapshots: tuple[int, ...] = ()) -> OptimisedNetwork:
    """A network of a kind, trained on digits of the bundled sample.

    Args:
        kind: One of ``NETWORKS``.
        method: The way of training.
        seed: For initial weights, images and everything else that is drawn.
        snapshots: Numbers of steps after which copies are kept.
    """
    design = NETWORKS[kind]
    generator = torch.Generator().manual_seed(seed)
    drawn = data.balanced(data.load("mnist-sample"), design.images, generator=generator)
    inputs, labels = data.to_inputs(drawn).float().reshape(-1, 1, 28, 28), drawn.labels
    network = Seeded(lambda: design.build(Slots(**method.slots)), seed).build().train()
    assert isinstance(network, nn.Sequential)
    initial = copy.deepcopy(network).eval()
    values = list(network[design.frozen :].parameters())
    optimiser = method.optimiser(values)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS) if method.cosine else None
    averages = {"ema": get_ema_multi_avg_fn(0.95), "swa": get_swa_multi_avg_fn()}
    average = AveragedModel(network, multi_avg_fn=averages[method.average]) if method.average else None
    kept = {}
    for step in range(1, 1 + (max(snapshots) if snapshots else STEPS)):
        optimiser.step(lambda: _gradients(network, inputs, labels, method, generator))
        if schedule is not None:
            schedule.step()
        if average is not None:
            average.update_parameters(network)
        if step in snapshots:
            kept[step] = copy.deepcopy(network).eval(), copy.deepcopy(dict(optimiser.state[values[0]]))
    final = network if average is None else average.module
    assert isinstance(final, nn.Sequential)
    return OptimisedNetwork(final.eval(), initial, inputs, kept)


def _gradients(
    network: nn.Sequential, inputs: Tensor, labels: Tensor, method: Method, generator: torch.Generator
) -> float:
    """Fill the gradients of one step, in the way of the method; gives the loss."""
    network.zero_grad()
    total = 0.0
    for _ in range(method.accumulate):
        chosen = torch.randperm(len(inputs), generator=generator)[: method.batch or len(inputs)]
        images, wanted = inputs[chosen], labels[chosen]
        if method.shift:
            across, down = torch.randint(-2, 3, (2,), generator=generator).tolist()
            images = images.roll((down, across), dims=(2, 3))
        targets = [(1.0, wanted)]
        if method.mixup:
            share = float(torch.rand((), generator=generator))
            images = share * images + (1.0 - share) * images.flip(0)
            targets = [(share, wanted), (1.0 - share, wanted.flip(0))]
        with torch.autocast("cpu", torch.bfloat16, enabled=method.autocast):
            outputs = network(images)
        losses = [
            share * nn.functional.cross_entropy(outputs.float(), target, label_smoothing=method.smoothing)
            for share, target in targets
        ]
        loss = torch.stack(losses).sum() / method.accumulate
        loss.backward()
        total += float(loss.detach())
    _reshape(list(network.parameters()), method, generator)
    return total


def _reshape(values: list[nn.Parameter], method: Method, generator: torch.Generator) -> None:
    """Clip gradients or add noise to them, as the method wants."""
    if method.clip_norm:
        nn.utils.clip_grad_norm_(values, method.clip_norm)
    if method.clip_value:
        nn.utils.clip_grad_value_(values, method.clip_value)
    for value in values:
        if method.gradient_noise and value.grad is not None:
            value.grad += method.gradient_noise * torch.randn(value.shape, generator=generator)
