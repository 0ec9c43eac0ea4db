"""L1 fits of many units of one group, in blocks: in this process, on local processes, or on a cluster."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify import engine as engines
from netpurify import lad
from netpurify.network.records import EDGES

Array = NDArray[np.float64]
BLOCK = 256
"""Units that are fitted together; what a worker holds at a time grows with it, the bits do not."""


@dataclass(frozen=True, slots=True)
class Block:
    """Units of one group to fit.

    Attributes:
        design: What their inputs span.
        difference: Contaminated minus (decayed) initial weights, [fan-in, units]; NaN where missing.
        noise_floor: For each unit, [units].
        proof: Whether coefficients and duals are wanted.
        everything: Whether all fitted values are wanted, not only those of altered weights.
    """

    design: lad.Design
    difference: Array
    noise_floor: Array
    proof: bool
    everything: bool


@dataclass(frozen=True, slots=True)
class BlockFit:
    """The fits of one block, and what was proven of them.

    Attributes:
        certificate: Recomputed for each unit; only its status is believed.
        altered: Weights with a residual above the noise floor, or missing, [fan-in, units].
        fitted: Fitted differences, [fan-in, units]; only of altered weights, in row-major order, unless everything was
            asked for.
        coefficients: Of the design's independent columns, [rank, units]; ``None`` unless a proof was asked for.
        dual: [fan-in, units]; likewise.
        histogram: Sizes of residuals in the bins of ``EDGES``.
        zeros: Residuals at most the noise floor.
    """

    certificate: lad.Certificate
    altered: NDArray[np.bool_]
    fitted: Array
    coefficients: Array | None
    dual: Array | None
    histogram: NDArray[np.int64]
    zeros: int


def fit_block(block: Block, threads: int | None = 1) -> BlockFit:
    """Solve, verify, and keep what is needed."""
    design = block.design
    solution = lad.solve(design, block.difference, noise_floor=block.noise_floor, threads=threads)
    certificate = lad.verify(design, block.difference, solution)
    coefficients, residual = np.asarray(solution.coefficients), np.asarray(solution.residual)
    altered = ~(residual == 0.0)  # NaN, where a weight is missing, is not zero
    used = np.ascontiguousarray(coefficients[design.pivots])
    fitted = design.matrix[:, design.pivots] @ used
    return BlockFit(
        certificate=certificate,
        altered=altered,
        fitted=fitted if block.everything else fitted[altered],
        coefficients=used if block.proof else None,
        dual=np.asarray(solution.dual) if block.proof else None,
        histogram=np.histogram(np.abs(residual[altered & np.isfinite(residual)]), EDGES)[0],
        zeros=int((~altered).sum()),
    )


def fit_units(
    design: lad.Design,
    units: int,
    difference: Callable[[slice], Array],
    noise_floor: Array,
    *,
    proof: bool = False,
    everything: bool = False,
    engine: str | None = None,
    jobs: int | None = None,
) -> Iterator[tuple[slice, BlockFit]]:
    """Fits of all units of a group, block by block, in order.

    Args:
        design: What their inputs span.
        units: How many there are.
        difference: Gives the right-hand sides of a block, [fan-in, block]; asked for one block at a time in process.
        noise_floor: For each unit, [units].
        proof: As in ``Block``.
        everything: As in ``Block``.
        engine: ``None`` runs here, on all cores; else as in ``netpurify.engine``.
        jobs: Most blocks at the same time, on an engine.
    """
    places = [slice(start, min(start + BLOCK, units)) for start in range(0, units, BLOCK)]

    def block(place: slice) -> Block:
        return Block(design, difference(place), noise_floor[place], proof, everything)

    if engine is None:
        for place in places:
            yield place, fit_block(block(place), threads=None)
        return
    tasks = [block(place) for place in places]
    found = dict(engines.run(fit_block, tasks, engine=engine, jobs=jobs))
    yield from ((place, found[position]) for position, place in enumerate(places))
