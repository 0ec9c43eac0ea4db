"""Layers whose change has a low rank: what does not agree with it is altered. Needs no clean inputs."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.network.adapter.weights import Array, Weights
from netpurify.network.fitting import Regressions
from netpurify.network.outcome import Outcome
from netpurify.network.policies.recovery.low_rank_fit import estimate
from netpurify.network.records import Grade

_PRECISE = (torch.float32, torch.float64)
"""Dtypes whose rounding is far below what an adapter changes."""


@dataclass(frozen=True, slots=True)
class LowRankFinding:
    """What a tensor's change of low rank says about its entries, without any inputs.

    Attributes:
        rank: Rank of the change. An edit of rank one that was made on purpose counts as well: compare with the rank
            that the adapter is known to have.
        singular_values: Of the change without alterations, largest first, [rank].
        gap: The smallest of them, divided by the next one, which is rounding.
        examined: How many entries of the tensor lie in units that agree with the change of low rank.
        unjudged: How many entries differ from it in a pattern that training may have made.
        index: Positions of altered entries in the flattened tensor, [n].
        was: Their values in the contaminated tensor, [n].
        expected: What they would be if they agreed, [n].
    """

    rank: int
    singular_values: Array
    gap: float
    examined: int
    unjudged: int
    index: NDArray[np.int64]
    was: Array
    expected: Array


def low_rank_alterations(contaminated: Tensor, initial: Tensor) -> LowRankFinding | None:
    """Entries that do not agree with a change of low rank; ``None`` if the change has no low rank up to rounding.

    Needs no inputs and no network: the rows of the tensor are units, all further axes are their fan-in.

    Args:
        contaminated: The tensor as it came, [units, ...]. Of other dtypes than float32 and float64 nothing is said.
        initial: The tensor before training, of the same shape and of any floating dtype.
    """
    if contaminated.dim() < 2 or contaminated.shape != initial.shape or contaminated.dtype not in _PRECISE:
        return None
    matrix, reference = (value.detach().reshape(value.shape[0], -1).T[None] for value in (contaminated, initial))
    weights = Weights.of(matrix, reference.to(matrix), bias=False)
    fit = estimate(weights.difference(0, slice(None)), weights.rounding(0))
    if fit is None:
        return None
    rows, units = np.nonzero(fit.altered)
    before = weights.start(0, slice(None))[rows, units]
    return LowRankFinding(
        rank=fit.rank,
        singular_values=fit.singular_values,
        gap=fit.gap,
        examined=int(fit.proven.sum()) * fit.altered.shape[0],
        unjudged=int(fit.unjudged.sum()),
        index=units * fit.altered.shape[0] + rows,
        was=weights.contaminated[0][rows, units].astype(np.float64),
        expected=(before + fit.fitted).astype(weights.contaminated.dtype).astype(np.float64),
    )


def recover_low_rank(regressions: Regressions, outcome: Outcome) -> None:
    """In units that were not recovered, replace what does not agree with a change of low rank, if the layer has one.

    Args:
        regressions: The regressions of the layer.
        outcome: Takes the new weights and what is known of them.
    """
    weights = regressions.weights
    if weights.grid is not None:  # its rounding has full rank, and hides where the low rank ends
        return
    for group in range(weights.groups):
        grades = outcome.grade[group * weights.units : (group + 1) * weights.units]
        left = grades != Grade.RECOVERED
        if not left.any():
            continue
        bias = weights.bias_row if regressions.decay == 1.0 else np.zeros_like(weights.bias_row)
        change = regressions.difference(group, slice(None))
        fit = estimate(change, regressions.noise_floors[group], bias=bias, asked=left)
        if fit is None:
            continue
        chosen = fit.altered & left
        values = np.zeros(chosen.shape)
        values[fit.altered] = fit.fitted
        outcome.replace(group, chosen, (regressions.start(group, slice(None)) + values)[chosen])
        outcome.unjudged += int((fit.unjudged & left).sum())
        outcome.note_low_rank(fit.rank, fit.singular_values)
        grades[left & fit.proven] = Grade.LOW_RANK
