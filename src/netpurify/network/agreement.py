"""How two networks' outputs on the same inputs compare."""

import math
from dataclasses import dataclass

import torch
from scipy.special import betaincinv
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Agreement:
    """How the contaminated and the purified network compare on the clean inputs.

    Attributes:
        inputs: How many inputs were compared.
        same: Share of inputs with the same largest output; NaN if the outputs are not class scores, or not finite.
        change: Norm of the change of the outputs, relative to the norm of the outputs before; NaN if not finite.
    """

    inputs: int
    same: float
    change: float


@dataclass(frozen=True, slots=True)
class Disagreement:
    """How many held-out clean inputs change their class: no more of their accuracy can be lost.

    Attributes:
        inputs: How many clean inputs were held out.
        differing: How many of them the repaired network gives another class than the contaminated network does.
    """

    inputs: int
    differing: int

    @property
    def share(self) -> float:
        """Share of the held-out inputs that change their class."""
        return self.differing / self.inputs if self.inputs else math.nan

    def bound(self, level: float = 0.95) -> float:
        """Upper end of the exact one-sided interval for the share on inputs like these (Clopper and Pearson)."""
        if not self.inputs:
            return math.nan
        if self.differing == self.inputs:
            return 1.0
        return float(betaincinv(self.differing + 1, self.inputs - self.differing, level))


def compare(before: list[Tensor | None], after: list[Tensor | None]) -> Agreement:
    """Compare outputs before and after, given batch by batch; ``None`` for a batch without an output tensor."""
    pairs = [(old, new) for old, new in zip(before, after, strict=True) if old is not None and new is not None]
    if not pairs:
        return Agreement(0, float("nan"), float("nan"))
    unordered = any(old.is_complex() or old.dtype == torch.bool for old, _ in pairs)
    scores = not unordered and all(old.dim() == 2 and old.shape[1] > 1 for old, _ in pairs)
    scores &= all(bool(torch.isfinite(output).all()) for pair in pairs for output in pair)
    same = torch.cat([old.argmax(1) == new.argmax(1) for old, new in pairs]).double().mean() if scores else torch.nan
    old, new = (torch.cat([pair[side].reshape(-1).to(torch.complex128) for pair in pairs]) for side in (0, 1))
    inputs = sum(len(old) if old.dim() else 1 for old, _ in pairs)
    return Agreement(inputs, float(same), float((new - old).norm() / old.norm().clamp(min=1e-300)))
