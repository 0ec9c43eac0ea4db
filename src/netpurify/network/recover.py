"""The policy *recover*: replace what is proven to be altered, keep the bits of everything else, do no harm."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify import lad
from netpurify.network import decay, evidence
from netpurify.network.approximate import approximate
from netpurify.network.blocks import fit_units
from netpurify.network.outcome import Outcome
from netpurify.network.records import EDGES, Grade
from netpurify.network.span import Span
from netpurify.network.weights import Array, Mask, Weights

_WILD = 4.0
"""A unit that changed so many times more than is usual in its layer, without evidence, is not fed forward."""


@dataclass(frozen=True, slots=True)
class Options:
    """How fits are made.

    Attributes:
        noise_floor: Residuals up to this are rounding; ``None`` for 256 rounding units of a unit's typical weight.
        decay: Factor of the initial weights; ``None`` to estimate it.
        proof: Whether to keep what a re-check needs.
        engine: As in ``fit_units``.
        jobs: As in ``fit_units``.
    """

    noise_floor: float | None = None
    decay: float | None = None
    proof: bool = True
    engine: str | None = None
    jobs: int | None = None


def frozen(weights: Weights) -> Outcome | None:
    """Restore a layer that was never trained; ``None`` if it was."""
    equal = weights.contaminated == weights.initial
    altered = evidence.frozen(
        np.concatenate(list(weights.contaminated), axis=1),
        np.concatenate(list(weights.initial), axis=1),
        np.concatenate([weights.rounding(group) for group in range(weights.groups)]),
    )
    if altered is None or _rounded_away(weights, equal):
        return None
    found = Outcome(weights)
    found.frozen = True
    found.grade[:] = Grade.RECOVERED
    for group, place in enumerate(np.split(altered, weights.groups, axis=1)):
        found.replace(group, place, weights.initial[group][place])
        sizes = np.abs(weights.difference(group, slice(None))[place])
        found.histogram += np.histogram(sizes[np.isfinite(sizes)], EDGES)[0]
    found.zeros = int(altered.size - altered.sum())
    found.noise_floor[:] = 0.0
    return found


def _rounded_away(weights: Weights, equal: Mask) -> bool:
    """Whether most differences are as small as rounding: steps so short that most of them were rounded to nothing."""
    small, count = 0, int((~equal).sum())
    for group in range(weights.groups):
        sizes = np.abs(weights.difference(group, slice(None)))
        small += int((~equal[group] & (sizes <= weights.rounding(group))).sum())
    return 2 * small > count


def recover(weights: Weights, spans: Sequence[Span], designs: Sequence[lad.Design | None], *, doubt: bool,
            options: Options, name: str) -> Outcome:  # fmt: skip
    """Recover a layer that was trained.

    Args:
        weights: Its weights.
        spans: What its clean inputs span, group by group.
        designs: The spans as designs; ``None`` where every direction is spanned, so that nothing can be exact.
        doubt: Whether a layer before it could not be recovered, so that rows of its inputs may be wrong.
        options: How fits are made.
        name: Name of the layer, for its proofs.
    """
    found = Outcome(weights)
    floors = [
        weights.rounding(group) if options.noise_floor is None else np.full(weights.units, options.noise_floor)
        for group in range(weights.groups)
    ]
    found.decay, exact = decay.settle(weights, spans, designs, floors, options.decay)
    if exact:
        for group, design in enumerate(designs):
            if design is not None:
                _exact(weights, group, design, floors[group], options, found, doubt=doubt, name=name)
    approximate(weights, spans, found)
    return found


def _exact(
    weights: Weights,
    group: int,
    design: lad.Design,
    floor: Array,
    options: Options,
    found: Outcome,
    *,
    doubt: bool,
    name: str,
) -> None:
    """L1 fits of all units of a group; those with surplus evidence are repaired."""
    offset = group * weights.units
    altered = np.zeros(weights.contaminated.shape[1:], np.bool_)
    fitted = np.zeros(weights.contaminated.shape[1:], weights.contaminated.dtype)
    good = np.zeros(weights.units, np.bool_)
    idle = np.zeros(weights.units, np.bool_)
    moved = np.zeros(weights.units, np.bool_)
    even = np.zeros(weights.contaminated.shape[1:], np.bool_)
    repeated = np.zeros(weights.units, np.bool_)
    usual = 0.0
    dead = np.ones(design.fan_in, np.bool_)
    dead[design.live] = False

    def difference(units: slice) -> Array:
        return weights.difference(group, units, found.decay)

    for place, block in fit_units(design, weights.units, difference, floor, proof=options.proof, engine=options.engine,
                                  jobs=options.jobs):  # fmt: skip
        found.take(block, group, place, design, name)
        good[place] = evidence.proven(block.certificate, design, block.altered, weights.missing[group][:, place])
        altered[:, place] = block.altered & good[place]
        agreeing = ~block.altered & ~dead[:, None]
        change = difference(place)
        unchanged = np.abs(change) <= floor[place]
        idle[place] = 2 * (agreeing & unchanged).sum(axis=0) > agreeing.sum(axis=0)
        moved[place] = (np.abs(change) > floor[place]).any(axis=0)
        even[:, place] = evidence.even_steps(change, floor[place], block.altered)
        start = weights.start(group, place, found.decay)
        values = np.zeros(block.altered.shape)
        values[block.altered] = block.fitted
        fitted[:, place] = start + values
        repeated[place] = evidence.repeated(
            change[design.live], (change - values)[design.live], floor[place], block.altered[design.live], design.rank
        )
        usual = max(usual, evidence.largest_usual(change, floor[place], block.altered))
    differs = altered & ~weights.missing[group]
    # Units that never changed, since no input ever lit them, do not speak against what the others have in common.
    common = evidence.common_rows(
        differs[:, good & moved], dead, weights.bias_row, decayed=found.decay != 1.0, doubt=doubt
    )
    unjudged = differs & (common[:, None] | even)
    # What agrees in idle units are the initial weights, not a fit: training may have seen other inputs. Fewer than
    # four such units cannot tell; they are judged like the others if more units agree on what the clean inputs span.
    idle &= good
    if (2 * idle.sum() > good.sum() or idle.sum() >= evidence.FEW) and not evidence.one_by_one(differs[:, idle]):
        unjudged |= differs & idle
    repeated &= good
    sizes = np.abs(weights.contaminated[group][:, repeated].astype(np.float64) - fitted[:, repeated])
    unjudged[:, repeated] |= differs[:, repeated] & ((sizes <= evidence.BEYOND * usual) | (usual == 0.0))
    found.unjudged += int(unjudged.sum())
    place = altered & ~unjudged
    found.replace(group, place, fitted[place])
    found.grade[offset : offset + weights.units][good] = Grade.RECOVERED


def stand_in(weights: Weights, found: Outcome) -> NDArray | None:
    """Weights to go on with, if units that were left alone are far wilder than the others; ``None`` if not.

    What such a unit feeds forward would drown the rest. Its initial weights are the better guess.
    """
    changes = np.abs(found.matrix.astype(np.float64) - weights.initial)
    sizes = np.sqrt(np.mean(np.square(changes), axis=1)).reshape(-1)
    usual = float(np.median(sizes))
    wild = (found.grade == Grade.LEFT_ALONE) & ~(sizes <= _WILD * max(usual, np.finfo(np.float32).tiny))
    if not wild.any():
        return None
    chosen = wild.reshape(weights.groups, 1, weights.units)
    return np.where(chosen, found.decay * weights.initial, found.matrix).astype(found.matrix.dtype)
