"""The policy *project*: Algorithm 2 as written. Every weight takes the fitted value."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from netpurify import lad
from netpurify.errors import InputError
from netpurify.network.blocks import fit_units
from netpurify.network.outcome import Outcome
from netpurify.network.records import Grade
from netpurify.network.recover import Options
from netpurify.network.span import Span
from netpurify.network.weights import Weights


def cut(span: Span, rank: float | None) -> lad.Design | None:
    """The span's strongest directions as a design; ``None`` if they are all there are.

    Args:
        span: What the clean inputs span.
        rank: How many directions; below 1, as many as hold this share of the energy; ``None`` for all.
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


def check_rank(rank: float | None) -> None:
    """Refuses anything but a whole number from 1 on, or a share between 0 and 1."""
    whole = isinstance(rank, int) and not isinstance(rank, bool) and rank >= 1
    if rank is not None and not whole and not (isinstance(rank, float) and 0.0 < rank < 1.0):
        raise InputError(
            f"rank must be a number of directions, at least 1, or a share of the energy between 0 and 1; got {rank!r}"
        )


def project(weights: Weights, designs: Sequence[lad.Design | None], *, options: Options, name: str) -> Outcome:
    """Project a layer on what its clean inputs span; groups whose inputs span everything are left alone."""
    found = Outcome(weights)
    for group, design in enumerate(designs):
        if design is not None:
            _group(weights, group, design, options, found, name)
    return found


def _group(weights: Weights, group: int, design: lad.Design, options: Options, found: Outcome, name: str) -> None:
    floor = weights.rounding(group) if options.noise_floor is None else np.full(weights.units, options.noise_floor)

    def difference(units: slice) -> NDArray[np.float64]:
        return weights.difference(group, units)

    fits = fit_units(design, weights.units, difference, floor, proof=options.proof, everything=True,
                     engine=options.engine, jobs=options.jobs)  # fmt: skip
    for place, block in fits:
        found.grade[found.take(block, group, place, design, name)] = Grade.PROJECTED
        chosen = np.zeros(weights.contaminated.shape[1:], np.bool_)
        chosen[:, place] = True
        values = weights.start(group, place) + block.fitted
        found.replace(group, chosen, values.reshape(-1))
