"""Changes of low rank whose directions are not known: a merged adapter, or training on few samples.

The change of a layer, [fan-in, units], is the sum of a matrix of low rank, of alterations at some places, and of
rounding. ``estimate`` needs nothing but the change itself:

1. A block of rows and columns, drawn at random, is decomposed (see ``decomposition``): this gives the rank and the
   coordinates of the block's columns.
2. Each row of the layer is fitted on these coordinates by L1 regression: this gives the directions of all units.
3. Each unit is fitted on these directions by L1 regression, and verified as if they had been given by clean inputs.

The directions are estimated from weights of which some are altered, so that there is no proof. What speaks for them is
that the weights agree with them up to rounding, while the next singular value is many times smaller, and that most of
the weights of every unit must agree.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from netpurify import lad
from netpurify.network.adapter.weights import Array, Mask
from netpurify.network.fitting import BLOCK
from netpurify.network.policies.recovery import evidence
from netpurify.network.policies.recovery.decomposition import Decomposition, decompose
from netpurify.threads import one_blas_thread

_BLOCKS = (512, 1024)
"""Most rows and columns of the block that is decomposed. The second size is tried if the first finds nothing, for
ranks above 85."""
_GAP = 10.0
"""The smallest singular value of the change must be this many times the next one, which is rounding. It is about 10^5
for weights in float32."""
_ROOM, _FEWEST = 4, 64
"""There must be 4 rows and 4 units for each direction and 64 more of each, so that their agreement is evidence. In
heads of few units, steps of equal size that Rprop makes looked like a low rank."""
_AGREEING = 0.5
"""At least this share of the block's weights must agree with the directions up to rounding."""
_NEAR = 4.0
"""Residuals up to this many noise floors are near. If more residuals are near than beyond, they are the tail of what
the directions do not explain, and not alterations."""
_EQUAL = 0.125
"""If in most units more than this share of the changes are of one size, optimisers with steps of equal size made them,
and no product of factors: nothing is judged by their rank."""
_STRUCTURED = 0.01
"""If more than this share of the weights differ from the fit in a pattern that training may have made, the change has
no low rank: training made the rest too."""


@dataclass(frozen=True, slots=True)
class LowRankFit:
    """The fit of a change of low rank.

    Attributes:
        rank: How many directions it has.
        singular_values: Of the change of the fitted units without alterations, largest first, [rank].
        gap: The smallest of them, divided by the next singular value, which is rounding; both of the block.
        proven: Units whose fit is verified, given the directions, [units].
        altered: Weights of these units that are called altered, [fan-in, units].
        unjudged: Weights of these units that differ from the fit in a pattern that training may have made.
        fitted: Fitted change, of the altered weights alone, in row-major order.
    """

    rank: int
    singular_values: Array
    gap: float
    proven: Mask
    altered: Mask
    unjudged: Mask
    fitted: Array


def estimate(change: Array, floors: Array, *, bias: Mask | None = None, asked: Mask | None = None) -> LowRankFit | None:
    """The fit of a change of low rank; ``None`` if the change has no low rank up to rounding.

    Args:
        change: Contaminated minus initial weights, [fan-in, units]; NaN where missing.
        floors: Differences up to these are rounding, [units].
        bias: The row of the bias, which may have been trained in its own way, [fan-in].
        asked: Units about which something is asked, [units]; ``None`` for all. Besides these, only units are fitted
            from which the low rank was found; all others are as if they were not proven.
    """
    if min(change.shape) < _ROOM + _FEWEST or not float(np.median(floors)) > 0.0:
        return None
    with one_blas_thread():
        generator = np.random.default_rng(0)  # draws decide nothing but which rows and units are looked at first
        for most in _BLOCKS[: 1 + (min(change.shape) > _BLOCKS[0])]:
            rows, units = (_draw(change, axis, most, generator) for axis in (0, 1))
            block = change[np.ix_(rows, units)]
            if min(block.shape) < _FEWEST:  # most rows or units never changed
                return None
            found = decompose(block, float(np.median(floors[units])), generator)
            if found is not None and _is_clear(found, change, block) and not _equal_sizes(block, floors[units]):
                return _fit(change, floors, units, found, bias, asked)
    return None


def _draw(change: Array, axis: int, most: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Up to ``most`` rows or units, of those in which most weights changed."""
    changed = np.flatnonzero(2 * np.count_nonzero(change, axis=1 - axis) > change.shape[1 - axis])
    return np.sort(generator.permutation(changed)[:most])


def _is_clear(found: Decomposition, change: Array, block: Array) -> bool:
    """Whether a decomposition is a clear low rank: a gap in the singular values, room, and agreement up to rounding."""
    rank = found.singular_values.size
    room = _ROOM * rank + _FEWEST <= min(change.shape)
    gap = found.singular_values[-1] >= _GAP * found.next_value
    return bool(room and gap and found.unexplained <= (1.0 - _AGREEING) * np.isfinite(block).sum())


def _equal_sizes(block: Array, floors: Array) -> bool:
    """Whether many changes of most units are of one size up to rounding, as the steps of sign descent and Rprop are."""
    equal = np.zeros(block.shape[1], np.bool_)
    for unit, floor in enumerate(floors):
        sizes = np.sort(np.abs(block[:, unit]))
        sizes = sizes[sizes > floor]  # neither missing nor unchanged
        apart = max(1, int(_EQUAL * sizes.size))
        equal[unit] = bool((sizes[apart:] - sizes[:-apart] <= floor / 16.0).any())
    return bool(2 * equal.sum() > equal.size)


def _fit(
    change: Array,
    floors: Array,
    units: NDArray[np.intp],
    found: Decomposition,
    bias: Mask | None,
    asked: Mask | None,
) -> LowRankFit | None:
    """Fit all rows on the coordinates of the block's units, then units on the rows."""
    rank = found.singular_values.size
    rows = _row_fits(found.right * found.singular_values, change[:, units], float(np.median(floors[units])))
    strange = np.asarray(np.isnan(rows).any(axis=1))
    design = _design(np.where(strange[:, None], 0.0, rows))
    if design.full or design.rank < design.columns:
        return None
    all_units = np.arange(change.shape[1])
    fitted = all_units if asked is None else np.union1d(np.flatnonzero(asked), units)
    fits = _UnitFits(change[:, fitted], floors[fitted], strange, design)
    for block in _blocks(fitted.size):
        fits.add(block)
    if fits.near > fits.beyond or not fits.proven.any():
        return None
    values = np.linalg.svd(np.linalg.qr(design.matrix)[1] @ fits.coefficients, compute_uv=False)
    fit = LowRankFit(
        rank=rank,
        singular_values=np.asarray(values[:rank], np.float64),
        gap=float(found.singular_values[-1] / max(found.next_value, np.finfo(np.float64).tiny)),
        proven=fits.proven,
        altered=fits.altered,
        unjudged=np.zeros_like(fits.altered),
        fitted=fits.fitted,
    )
    judged = fits.judged(fit, bias)
    return None if judged is None else _among_all(judged, fitted, all_units.size)


def _among_all(fit: LowRankFit, fitted: NDArray[np.intp], units: int) -> LowRankFit:
    """The fit of some units as one of all units, of which the others are not proven."""
    proven = np.zeros(units, np.bool_)
    altered, unjudged = np.zeros((2, fit.altered.shape[0], units), np.bool_)
    proven[fitted], altered[:, fitted], unjudged[:, fitted] = fit.proven, fit.altered, fit.unjudged
    return replace(fit, proven=proven, altered=altered, unjudged=unjudged)


class _UnitFits:
    """The fits of all units on the estimated directions, gathered block by block. Arrays as in ``LowRankFit``.

    Attributes:
        strange: Rows that do not agree with the directions, such as a bias that was trained in its own way, [fan-in].
        steps: Weights that changed by as much as others of their unit, or whose unit repeats values: see ``evidence``.
        near: How many residuals are a little above the noise floor.
        beyond: How many are larger.
    """

    def __init__(self, change: Array, floors: Array, strange: Mask, design: lad.Design) -> None:
        self.change, self.floors, self.strange, self.design = change, floors, strange, design
        self.proven = np.zeros(change.shape[1], np.bool_)
        self.altered: Mask = np.zeros(change.shape, np.bool_)
        self.steps: Mask = np.zeros(change.shape, np.bool_)
        self.fitted = np.zeros(change.shape)
        self.coefficients = np.zeros((design.columns, change.shape[1]))
        self.near, self.beyond = 0, 0

    def add(self, block: slice) -> None:
        """Fit and verify a block of units."""
        seen, floor, design = self.change[:, block].copy(), self.floors[block], self.design
        seen[self.strange] = np.nan
        solution = lad.solve(design, seen, noise_floor=floor)
        certificate = lad.verify(design, seen, solution.claim)
        differs, missing = ~(np.asarray(solution.residual) == 0.0), np.isnan(seen)
        # A missing weight in a row without a fit cannot be rebuilt here.
        rebuilt = ~np.isnan(self.change[self.strange, block]).any(axis=0)
        self.proven[block] = rebuilt & evidence.proven(certificate, design, differs, missing)
        self.coefficients[:, block] = np.asarray(solution.coefficients)
        self.fitted[:, block] = design.matrix @ self.coefficients[:, block]
        altered = differs & self.proven[block]
        self.altered[:, block] = altered
        residual = seen - self.fitted[:, block]
        usual = evidence.largest_usual(seen, floor, differs)
        repeating = evidence.repeated(seen, residual, floor, differs, design.rank)
        small = ~(np.abs(residual) > evidence.BEYOND * usual)
        self.steps[:, block] = evidence.equal_steps(seen, floor, differs) | (repeating & small)
        sizes = np.abs(residual) / floor
        self.near += int((altered & (sizes > 1.0) & (sizes <= _NEAR)).sum())
        self.beyond += int((altered & (sizes > _NEAR)).sum())

    def judged(self, fit: LowRankFit, bias: Mask | None) -> LowRankFit | None:
        """The fit without those differences that training may have made; ``None`` if there are many of them."""
        missing, proven = np.isnan(self.change), self.proven
        differs = self.altered & ~missing
        dead = ~self.fitted[:, proven].any(axis=1) & ~self.strange
        rows = np.zeros_like(dead) if bias is None else bias
        common = evidence.common_rows(differs[:, proven], dead, rows, decayed=False, doubt=False)
        unjudged = differs & (common[:, None] | self.steps)
        if not evidence.scattered((differs & ~unjudged)[:, proven]):
            unjudged = differs
        altered = (differs & ~unjudged) | (missing & proven)
        with np.errstate(invalid="ignore"):
            unjudged |= self.strange[:, None] & proven & (np.abs(self.change) > self.floors)
        if unjudged.sum() > _STRUCTURED * unjudged[:, proven].size:
            return None
        return replace(fit, altered=altered, unjudged=unjudged, fitted=self.fitted[altered])


def _design(directions: Array) -> lad.Design:
    """Directions as a design. A single one gets a random one beside it.

    The rows of a single direction are multiples of one another, and the verifier takes no agreement of such rows for
    evidence, because equal inputs make them. Here they are no inputs. With one more direction, in which nothing
    changed, the rows differ; the fit has one freedom more than it needs.
    """
    if directions.shape[1] == 1:
        draws = np.random.default_rng(1).standard_normal(directions.shape)
        directions = np.hstack([directions, draws * directions])
    return lad.Design.prepare(directions)


def _row_fits(coordinates: Array, change: Array, floor: float) -> Array:
    """The directions of each row, [fan-in, rank], by L1 regression on the units' coordinates; NaN if units disagree.

    Units that changed more than usual, such as those of the classes that training saw, are scaled down to the usual
    size, so that no single unit decides.
    """
    sizes = np.linalg.norm(coordinates, axis=1, keepdims=True)
    scale = np.maximum(sizes / max(float(np.median(sizes)), np.finfo(np.float64).tiny), 1.0)
    design = _design(coordinates / scale)
    rows = np.full((change.shape[0], coordinates.shape[1]), np.nan)
    for block in _blocks(change.shape[0]):
        columns = np.ascontiguousarray(change[block].T / scale)
        solution = lad.solve(design, columns, noise_floor=floor)
        certificate = lad.verify(design, columns, solution.claim)
        differs = ~(np.asarray(solution.residual) == 0.0)
        known = evidence.proven(certificate, design, differs, np.isnan(columns))
        rows[block][known] = np.asarray(solution.coefficients).T[known, : rows.shape[1]]
    return rows


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK))
