"""How two networks' outputs on the same inputs compare."""

from dataclasses import dataclass

import torch
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
