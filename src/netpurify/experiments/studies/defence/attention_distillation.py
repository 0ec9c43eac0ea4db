"""Neural attention distillation: a network learns to look where a fine-tuned copy of itself looks."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from netpurify.errors import InputError
from netpurify.experiments.studies.defence.baseline import Baseline, CleanData

TINY = 1e-6
"""Added to the norm by which a map is divided, as in the authors' code."""


@dataclass(frozen=True, slots=True)
class AttentionDistillation(Baseline):
    """Fine-tunes towards the attention of a teacher, which is the network itself after plain fine-tuning (NAD).

    Minimises the clean loss plus, for each of three layers, beta times the mean squared difference of the attention
    maps of student and teacher; a map is the sum over channels of |activation|^2, scaled to norm 1 for each image.
    Li et al. 2021, authors' code: power 2, betas 500, 1000, 1000, batch 64. BackdoorBench (config/defense/nad): a
    teacher of 10 epochs; SGD, momentum 0.9, weight decay 5e-4, rate 0.01, which for the student is 1e-4 after 20 of
    its 100 epochs. (Authors' code: 20 epochs at rates of 0.1 and 0.01, with Nesterov's momentum and augmentation.)
    The authors' three layers are the residual groups, one for each resolution. Here, see ``layers``, they are the last
    activations at each of the last three resolutions: the three blocks of a residual network, else activations of
    convolutions; a network with fewer resolutions has fewer, with the last betas. The teacher is in evaluation mode,
    and its rate is constant; BackdoorBench's falls by 2 % in 10 epochs. Augmented only if the clean data are.
    """

    name: ClassVar[str] = "NAD"
    labels: ClassVar[bool] = True
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = False

    betas: tuple[float, ...] = (500.0, 1000.0, 1000.0)
    power: float = 2.0
    teaching_epochs: int = 10
    epochs: int = 100
    rate: float = 0.01
    late_rate: float = 1e-4
    late: int = 20
    momentum: float = 0.9
    decay: float = 5e-4
    batch: int = 64

    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The student."""
        generator = torch.Generator().manual_seed(clean.seed)
        chosen = layers(network, clean.images[:1], len(self.betas))
        teacher = copy.deepcopy(network)

        def plain(images: Tensor, labels: Tensor) -> Tensor:
            return nn.functional.cross_entropy(teacher(images), labels)

        def distilled(images: Tensor, labels: Tensor) -> Tensor:
            with torch.no_grad(), _outputs(teacher, chosen) as wanted:
                teacher(images)
            with _outputs(network, chosen) as seen:
                loss = nn.functional.cross_entropy(network(images), labels)
            return loss + self.distance([seen[name] for name in chosen], [wanted[name] for name in chosen])

        self.descend(teacher, plain, [self.rate] * self.teaching_epochs, clean, generator)
        teacher.eval()
        rates = [self.rate if epoch < self.late else self.late_rate for epoch in range(self.epochs)]
        self.descend(network, distilled, rates, clean, generator)
        return network

    def descend(
        self,
        network: nn.Module,
        loss: Callable[[Tensor, Tensor], Tensor],
        rates: Sequence[float],
        clean: CleanData,
        generator: torch.Generator,
    ) -> None:
        """Train the network in place, BatchNorm included, for one epoch at each of the rates."""
        optimiser = torch.optim.SGD(network.parameters(), lr=self.rate, momentum=self.momentum, weight_decay=self.decay)
        network.train()
        for rate in rates:
            for group in optimiser.param_groups:
                group["lr"] = rate
            for drawn in torch.randperm(len(clean.images), generator=generator).split(self.batch):
                optimiser.zero_grad()
                loss(clean.batch(drawn, generator), clean.labels[drawn]).backward()
                optimiser.step()
        optimiser.zero_grad()

    def distance(self, student: Sequence[Tensor], teacher: Sequence[Tensor]) -> Tensor:
        """The betas times the mean squared differences of the maps; of fewer layers the last betas count."""
        betas = self.betas[len(self.betas) - len(student) :]
        parts = [
            beta * nn.functional.mse_loss(attention(seen, self.power), attention(wanted, self.power))
            for beta, seen, wanted in zip(betas, student, teacher, strict=True)
        ]
        return torch.stack(parts).sum()


def attention(activations: Tensor, power: float) -> Tensor:
    """The attention maps of activations [n, c, h, w], each of norm 1, [n, h, w]."""
    maps = activations.abs().pow(power).sum(1)
    return maps / (maps.flatten(1).norm(dim=1)[:, None, None] + TINY)


def layers(network: nn.Module, image: Tensor, count: int) -> list[str]:
    """Names of the parts of the network whose outputs are compared, from the input on.

    A part with a convolution, together with BatchNorm and ReLU right after it, makes a stage; of the stages whose
    outputs have the same height and width only the last one is taken, and of these the last ``count``.

    Raises:
        InputError: No part of the network has a convolution.
    """
    stages: list[str] = []
    open_stage = False
    for name, part in network.named_children():
        if any(isinstance(module, nn.Conv2d) for module in part.modules()):
            stages.append(name)
            open_stage = True
        elif open_stage and isinstance(part, (nn.BatchNorm2d, nn.ReLU)):
            stages[-1] = name
        else:
            open_stage = False
    if not stages:
        raise InputError("NAD compares maps of convolutions; expected a part with a Conv2d in the network, got none")
    with torch.no_grad(), _outputs(network, stages) as found:
        network(image)
    last = {found[name].shape[2:]: name for name in stages}
    return [name for name in stages if name in last.values()][-count:]


@contextmanager
def _outputs(network: nn.Module, names: Sequence[str]) -> Iterator[dict[str, Tensor]]:
    """A dictionary that the next forward pass fills with the outputs of these parts."""
    found: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[nn.Module, object, Tensor], None]:
        def hook(_: nn.Module, __: object, output: Tensor) -> None:
            found[name] = output

        return hook

    handles = [network.get_submodule(name).register_forward_hook(keep(name)) for name in names]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
