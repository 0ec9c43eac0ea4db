"""The arithmetic of the verifier: the duality gap of a candidate fit, and the status that follows from it.

See ``certificate`` for what is proven and why, and ``evidence`` for when a minimum may be called recovered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.status import Status
from netpurify.lad.verifier import evidence
from netpurify.lad.verifier.column_space import ColumnSpace
from netpurify.lad.verifier.residuals import Candidate, Residuals

_INFEASIBLE = 1e-9
"""Largest entry of A'y that passes for zero where some entries are missing, so that y cannot be projected exactly."""
_ROUNDING = 8 * np.finfo(np.float64).eps
"""A residual is known no better than this share of the two numbers that were subtracted to get it."""
_WILD = 100.0
"""The gap is compared with the objective, or with this many times (altered entries) x (their lower quartile)."""
_ONE = 1e-12
"""A dual this close to the sign of its residual counts as that sign, or a huge residual would multiply its rounding."""

_BLOCK = 1 << 16, 8
"""Columns are checked in blocks of about so many entries, which stay in the cache, but of at least so many columns."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What the check of a block of columns has shown; [p] unless said otherwise.

    Attributes:
        residual: data - fitted, [p, >= k].
        dual: The dual, projected on A'y = 0 and scaled into the box |y - tilt| <= 1, [p, >= k].
        status: ``Status`` codes.
        objective: Sum of the losses of the residuals, |r| + tilt r.
        lower_bound: No fit has a smaller objective.
        gap: objective - lower_bound.
        infeasibility: The largest change of an entry of the dual by projection and scaling.
        zeros: How many residuals are at or below the noise floor.
        surplus: How many zeros count as evidence that the fit is the truth.
    """

    residual: NDArray[np.float64]
    dual: NDArray[np.float64]
    status: NDArray[np.int8]
    objective: NDArray[np.float64]
    lower_bound: NDArray[np.float64]
    gap: NDArray[np.float64]
    infeasibility: NDArray[np.float64]
    zeros: NDArray[np.int64]
    surplus: NDArray[np.int64]

    @classmethod
    def nothing(cls, count: int, rows: int) -> "Checked":
        """For ``count`` columns of which none was checked yet: all are ``FAILED``."""
        return cls(
            np.full((count, rows), np.nan), np.zeros((count, rows)), np.full(count, Status.FAILED, np.int8),
            *np.full((4, count), np.nan), *np.zeros((2, count), np.int64),
        )  # fmt: skip

    @classmethod
    def joined(cls, blocks: Sequence["Checked"]) -> "Checked":
        """Blocks of columns, one after the other."""
        return cls(*(np.concatenate([getattr(block, name) for block in blocks]) for name in cls.__slots__))

    def put(self, chosen: NDArray[np.intp], other: "Checked") -> None:
        """Take over what another check has shown of the ``chosen`` columns."""
        for name in self.__slots__:
            getattr(self, name)[chosen] = getattr(other, name)


def check(
    space: ColumnSpace, candidate: Candidate, *, accuracy: float, redundant: NDArray[np.bool_] | None = None
) -> Checked:
    """Check ``candidate`` against the column space of A.

    Args:
        space: The column space.
        candidate: The columns.
        accuracy: Largest gap, relative to the objective, that counts as proven.
        redundant: Columns for which the caller has seen already that every fitted row is predicted by the other fitted
            rows, [p]. The solver knows this from its last fit; ``verify`` does not use it.
    """
    count, rows = candidate.data.shape
    known = np.zeros(count, np.bool_) if redundant is None else redundant
    entries, columns = _BLOCK
    step = max(entries // max(rows, 1), columns)
    blocks = [slice(start, start + step) for start in range(0, max(count, 1), step)]
    checked = [_check(space, candidate.some(block), accuracy, known[block]) for block in blocks]
    return checked[0] if len(checked) == 1 else Checked.joined(checked)


@np.errstate(all="ignore")  # a claim may hold any numbers; what is not finite is given the status FAILED
def _check(space: ColumnSpace, candidate: Candidate, accuracy: float, redundant: NDArray[np.bool_]) -> Checked:
    """``check`` for a block of columns."""
    residuals = Residuals.of(candidate)
    missing, altered = residuals.missing, residuals.altered_sizes
    dual, misplaced = _feasible(space, candidate.dual, missing, candidate.tilt)
    gap, open_gap = _gaps(candidate, residuals, dual)
    surplus = evidence.surplus(space, candidate, residuals)
    objective = residuals.sizes.sum(axis=1)
    if candidate.tilt:
        objective = (residuals.sizes + candidate.tilt * np.where(missing, 0.0, residuals.values)).sum(axis=1)
    # A few wild entries must not make every gap look small.
    some = altered.count > 0
    scale = np.where(some, np.minimum(objective, _WILD * altered.count * altered.quantile(4)), 0.0)
    proven = (open_gap <= accuracy * scale) & (misplaced <= _INFEASIBLE)
    few = np.count_nonzero(~missing[:, space.live], axis=1) <= space.rank
    unaltered = np.where(few & (space.rank > 0), Status.RANK_FULL, Status.CLEAN)
    status = np.where(proven, np.where(surplus > 0, Status.RECOVERED, Status.OPTIMAL), Status.WITHIN_GAP)
    finite = np.isfinite(objective) & np.isfinite(dual).all(axis=1)
    status = np.where(finite, np.where(some, status, unaltered), Status.FAILED).astype(np.int8)
    doubted = evidence.doubted(space, residuals, candidate.noise_floor, status == Status.RECOVERED, redundant)
    status[doubted], surplus[doubted] = Status.OPTIMAL, 0
    moved = np.where(missing, 0.0, np.abs(dual - candidate.dual)).max(axis=1, initial=0.0)
    return Checked(
        residual=residuals.values,
        dual=dual,
        status=status,
        objective=objective,
        lower_bound=objective - gap,
        gap=gap,
        infeasibility=np.maximum(misplaced, moved),
        zeros=np.count_nonzero(~missing, axis=1) - altered.count,
        surplus=surplus,
    )


def _feasible(
    space: ColumnSpace, dual: NDArray[np.float64], missing: NDArray[np.bool_], tilt: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Project ``dual`` on A'y = 0 and scale it into the box |y - tilt| <= 1, in which 0 lies.

    Returns:
        The dual, 0 where missing, and the largest entry [p] that was dropped from each column for that reason: by so
        much A'y = 0 may be violated.
    """
    feasible = np.where(missing, 0.0, dual)
    feasible[:, space.live_index] = space.orthogonal(feasible[:, space.live_index])
    misplaced = np.where(missing, np.abs(feasible), 0.0).max(axis=1, initial=0.0)
    feasible[missing] = 0.0
    sizes = np.abs(feasible)
    if tilt:
        sizes /= np.where(feasible > 0.0, 1.0 + tilt, 1.0 - tilt)
    feasible /= sizes.max(axis=1, initial=1.0, keepdims=True)
    return feasible, misplaced


def _gaps(
    candidate: Candidate, residuals: Residuals, dual: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The gap between the losses and y'r of each column, entry by entry: |r_j| (1 - (y_j - tilt) sign(r_j)).

    Returns:
        The whole gap, [p], and the part that speaks against the fit, [p]: that of the altered entries, less the
        rounding of their residuals. Below the noise floor a gap says nothing about the fit.
    """
    losses = (dual - candidate.tilt) * np.where(residuals.missing, 0.0, residuals.values)
    lacking = residuals.sizes - losses
    lacking[lacking <= _ONE * residuals.sizes] = 0.0
    altered = np.where(residuals.altered, lacking, 0.0)
    below = (lacking - altered).sum(axis=1)
    altered -= _ROUNDING * np.minimum(np.abs(candidate.data), np.abs(candidate.fitted))
    open_gap = np.where(residuals.altered, np.maximum(altered, 0.0), 0.0).sum(axis=1)
    return np.maximum(open_gap + below, 0.0), open_gap
