"""The L1 regressions of one layer: one design for each group, one column for each unit, fitted and verified."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify import engine as engines
from netpurify import lad
from netpurify.errors import InputError
from netpurify.network.adapter.layers import Layer
from netpurify.network.adapter.span import Span
from netpurify.network.adapter.weights import Array, Mask, Weights
from netpurify.network.records import EDGES
from netpurify.network.rounded import Judgement, judge, refit

BLOCK = 256
"""Units that are fitted together. The memory of a worker grows with it; the bits of the fits do not depend on it."""


@dataclass(frozen=True, slots=True)
class Regressions:
    """What is to be fitted in one layer: for each unit, the change that training made, on the layer's clean inputs.

    Attributes:
        layer: The layer.
        weights: Its contaminated and initial weights.
        spans: What its clean inputs span, group by group.
        designs: The spans as designs, group by group; ``None`` where they span every direction.
        noise_floors: Residuals up to these are rounding: [units of a group], group by group; in half precision those of
            each weight, [fan-in, units of a group].
        decay: Factor that weight decay left on the initial weights.
        doubt: Whether a layer before this one could not be recovered, so that rows of its inputs may be wrong.
        solvable: Whether fits are worth making; if not, ``fit_units`` makes none.
    """

    layer: Layer
    weights: Weights
    spans: tuple[Span, ...]
    designs: tuple[lad.Design | None, ...]
    noise_floors: tuple[Array, ...]
    decay: float = 1.0
    doubt: bool = False
    solvable: bool = True

    def start(self, group: int, units: slice | NDArray) -> Array:
        """The weights that training started from, times the decay: [fan-in, units]."""
        return self.weights.start(group, units, self.decay)

    def difference(self, group: int, units: slice | NDArray) -> Array:
        """Contaminated weights minus ``start``, [fan-in, units]; NaN where a weight is missing."""
        return self.weights.difference(group, units, self.decay)


@dataclass(frozen=True, slots=True)
class FitOptions:
    """How regressions are solved, and what of the solutions is kept.

    Attributes:
        all_values: Whether the fitted values of all weights are kept, not only of those that are altered.
        proof: Whether coefficients and duals are kept.
        verify: Whether every fit is verified.
        refit: Whether weights in half precision are fitted again, each by its own rounding, and judged by that fit.
        engine: ``None`` solves here, on all cores; else as in ``netpurify.engine``.
        jobs: Most blocks of units at the same time, on an engine.
    """

    all_values: bool = False
    proof: bool = False
    verify: bool = True
    refit: bool = True
    engine: str | None = None
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class UnitFits:
    """The fits of a block of units, and what was proven of them.

    Attributes:
        group: Number of the group that the units belong to.
        units: The units, counted within the group.
        design: The design of the group.
        status: ``lad.Status`` of each unit, [units]; that of the certificate, if there is one.
        certificate: What was proven of each unit, recomputed from the fit; ``None`` if ``verify`` was off.
        altered: Weights with a residual above the noise floor, or missing: [fan-in, units].
        fitted: Fitted differences. [fan-in, units] if all values are kept; else of the altered weights alone, in
            row-major order.
        coefficients: Of the design's independent columns, [rank, units]; ``None`` unless a proof was asked for.
        dual: [fan-in, units]; ``None`` unless a proof was asked for.
        histogram: Sizes of residuals, counted in the bins of ``EDGES``.
        zeros: How many residuals are at most the noise floor.
        judgement: In half precision, what the second fit proves, from which ``altered``, ``fitted`` and
            ``coefficients`` come; else ``None``. Status and certificate are those of the L1 fit, with one noise floor.
    """

    group: int
    units: slice
    design: lad.Design
    status: NDArray[np.int8]
    certificate: lad.Certificate | None
    altered: Mask
    fitted: Array
    coefficients: Array | None
    dual: Array | None
    histogram: NDArray[np.int64]
    zeros: int
    judgement: Judgement | None = None

    @property
    def proven_certificate(self) -> lad.Certificate:
        """The certificate, which is there unless ``verify`` was off."""
        if self.certificate is None:
            raise InputError("these fits were not verified; make them with verify=True")
        return self.certificate

    def fitted_values(self) -> Array:
        """Fitted differences, [fan-in, units]; zero where they were not kept."""
        if self.fitted.ndim == 2:
            return self.fitted
        values = np.zeros(self.altered.shape)
        values[self.altered] = self.fitted
        return values


@dataclass(frozen=True, slots=True)
class _Block:
    """Some units of one group, ready to be sent to a worker."""

    group: int
    units: slice
    design: lad.Design
    difference: Array
    noise_floor: Array
    options: FitOptions


def build_design(span: Span, rank: float | None = None) -> lad.Design | None:
    """The strongest directions of a span as a design; ``None`` if they are all there are, so that any weights fit.

    Args:
        span: What a layer's clean inputs span.
        rank: How many directions; below 1, as many as hold this share of the inputs' energy; ``None`` for all.
    """
    if rank is None:
        design = None if span.full else span.design()
        return None if design is None or design.full else design
    if not isinstance(rank, int):
        energies = span.energies()
        shares = np.cumsum(energies) / max(float(energies.sum()), 1e-300)
        rank = int(np.searchsorted(shares, rank)) + 1
    directions = span.strongest(rank)
    return lad.Design.prepare(directions) if directions.shape[1] < span.live().sum() else None


def pose(
    layer: Layer,
    weights: Weights,
    spans: Sequence[Span],
    designs: Sequence[lad.Design | None],
    *,
    noise_floor: float | None = None,
    doubt: bool = False,
) -> Regressions:
    """The regressions of a layer.

    Args:
        layer: The layer.
        weights: Its contaminated and initial weights.
        spans: What its clean inputs span, group by group.
        designs: The spans as designs.
        noise_floor: Residuals up to this are rounding; ``None`` for 256 rounding units of a unit's typical weight. In
            half precision the rounding of each weight is known, and counts where it is larger.
        doubt: Whether a layer before this one could not be recovered.
    """
    floors = tuple(floors_of(weights, group, noise_floor) for group in range(weights.groups))
    return Regressions(layer, weights, tuple(spans), tuple(designs), floors, doubt=doubt)


def floors_of(weights: Weights, group: int, noise_floor: float | None) -> Array:
    """The noise floors of one group, as in ``Regressions``; ``noise_floor`` as in ``pose``."""
    if noise_floor is None:
        return weights.rounding(group)
    if weights.grid is None:
        return np.full(weights.units, noise_floor)
    return np.maximum(weights.rounding(group), noise_floor)


def fit_units(regressions: Regressions, options: FitOptions | None = None) -> Iterator[UnitFits]:
    """Solve the regressions of all units with ``lad.solve``, and verify each solution with ``lad.verify``.

    The fits come block by block, in order, group by group. They are made when they are asked for.
    """
    options = options or FitOptions()
    for group, design in enumerate(regressions.designs):
        if design is not None and regressions.solvable:
            yield from _fit_group(regressions, group, design, options)


def _fit_group(regressions: Regressions, group: int, design: lad.Design, options: FitOptions) -> Iterator[UnitFits]:
    count = regressions.weights.units
    slices = [slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK)]

    def block(units: slice) -> _Block:
        floors = regressions.noise_floors[group][..., units]
        return _Block(group, units, design, regressions.difference(group, units), floors, options)

    if options.engine is None:
        yield from (fit_block(block(units), threads=None) for units in slices)
        return
    results = dict(engines.run(fit_block, [block(units) for units in slices], engine=options.engine, jobs=options.jobs))
    yield from (results[position] for position in range(len(slices)))


def fit_block(block: _Block, threads: int | None = 1) -> UnitFits:
    """Solve and verify the regressions of one block, and keep what was asked for."""
    design, options = block.design, block.options
    solution = lad.solve(design, block.difference, noise_floor=column_floors(block.noise_floor), threads=threads)
    certificate = lad.verify(design, block.difference, solution.claim) if options.verify else None
    coefficients, residual = np.asarray(solution.coefficients), np.asarray(solution.residual)
    altered = ~(residual == 0.0)  # NaN, where a weight is missing, is not zero
    used = np.ascontiguousarray(coefficients[design.pivots])
    fitted = design.matrix[:, design.pivots] @ used
    judgement = None
    if block.noise_floor.ndim == 2 and options.refit:
        used = refit(design, block.difference, block.noise_floor, fitted)
        fitted = design.matrix[:, design.pivots] @ used
        judgement = judge(design, block.difference, block.noise_floor, fitted)
        altered, residual = judgement.altered, block.difference - fitted
    return UnitFits(
        group=block.group,
        units=block.units,
        design=design,
        status=np.asarray(solution.status if certificate is None else certificate.status),
        certificate=certificate,
        altered=altered,
        fitted=fitted if options.all_values or judgement is not None else fitted[altered],
        coefficients=used if options.proof else None,
        dual=np.asarray(solution.dual) if options.proof else None,
        histogram=np.histogram(np.abs(residual[altered & np.isfinite(residual)]), EDGES)[0],
        zeros=int((~altered).sum()),
        judgement=judgement,
    )


def column_floors(floors: Array) -> Array:
    """One noise floor for each unit, [units], as ``lad`` needs; in half precision nine in ten weights round less."""
    return np.quantile(floors, 0.9, axis=0) if floors.ndim == 2 else floors


def check_rank(rank: float | None) -> None:
    """Refuse anything but a whole number from 1 on, or a share between 0 and 1.

    Raises:
        InputError: The rank is neither.
    """
    whole = isinstance(rank, int) and not isinstance(rank, bool) and rank >= 1
    if rank is not None and not whole and not (isinstance(rank, float) and 0.0 < rank < 1.0):
        raise InputError(
            f"rank must be a number of directions, at least 1, or a share of the energy between 0 and 1; got {rank!r}"
        )
