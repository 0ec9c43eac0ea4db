"""Channel Lipschitzness pruning: a defence that looks at nothing but the weights."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from netpurify.errors import InputError
from netpurify.experiments.studies.defence.baseline import Baseline, CleanData


@dataclass(frozen=True, slots=True)
class ChannelLipschitz(Baseline):
    """Prunes channels through which a small change of the input can grow unusually large (CLP).

    Zheng et al. 2022, u = 3 as for CIFAR-10 there. The bound of a channel is the spectral norm of its kernel as a
    matrix [inputs, taps], times what BatchNorm multiplies it by; pruned is what exceeds mean + u deviations of its
    layer. Convolutions without BatchNorm, of which the paper says nothing, are bounded by the kernel alone.
    """

    name: ClassVar[str] = "CLP"
    labels: ClassVar[bool] = False
    data: ClassVar[bool] = False
    initial: ClassVar[bool] = False

    u: float = 3.0

    def mend(self, network: nn.Module, _: CleanData, /) -> nn.Module:
        """The network, pruned."""
        with torch.no_grad():
            for convolution, norm in _pairs(network):
                bound = bounds(convolution, norm)
                pruned = bound > bound.mean() + self.u * bound.std()
                part = convolution if norm is None else norm
                part.weight[pruned] = 0.0
                if part.bias is not None:
                    part.bias[pruned] = 0.0
        return network


def bounds(convolution: nn.Conv2d, norm: nn.BatchNorm2d | None) -> Tensor:
    """Upper bound of each channel's Lipschitz constant, [channels]."""
    found = torch.linalg.matrix_norm(convolution.weight.detach().flatten(2), ord=2)
    if norm is None or norm.running_var is None:
        return found
    return found * norm.weight.detach().abs() / (norm.running_var + norm.eps).sqrt()


def _pairs(network: nn.Module) -> list[tuple[nn.Conv2d, nn.BatchNorm2d | None]]:
    """Every convolution with the BatchNorm that is defined right after it, as in the authors' code.

    Raises:
        InputError: A BatchNorm does not follow a convolution of its width, or lacks weights or statistics.
    """
    found: list[tuple[nn.Conv2d, nn.BatchNorm2d | None]] = []
    for name, module in network.named_modules():
        if isinstance(module, nn.Conv2d):
            found.append((module, None))
        elif isinstance(module, nn.BatchNorm2d):
            last, norm = found[-1] if found else (None, None)
            if last is None or norm is not None or last.out_channels != module.num_features:
                raise InputError(f"CLP needs each BatchNorm right after the convolution it normalises; {name} is not")
            if not module.affine or module.running_var is None:
                raise InputError(f"CLP needs BatchNorm with weights and running statistics; {name} has none")
            found[-1] = (last, module)
    return found
