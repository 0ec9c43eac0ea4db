"""Some units of a layer are fitted before anything is promised: does any of them agree on a fit?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.network.fitting import Regressions
from netpurify.network.policies.recovery.decay import agreeing, choose_decay, sample_units

_CANDIDATES = 64
"""Units, at equal distances over a layer, from which those that are tried are taken."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of trying some units of a layer.

    Attributes:
        probed: How many units were fitted.
        agreeing: How many of them would be recovered: enough of their weights agree on one fit.
        decay: The factor of weight decay with which they were fitted; 1 without decay.
    """

    probed: int
    agreeing: int
    decay: float


def probe(regressions: Regressions, count: int) -> Probe:
    """Fit about ``count`` units as ``Recover`` does, weight decay included, and count those that agree on a fit.

    Units that training changed are taken first. A unit that never changed, such as one that no input ever activated,
    agrees with any span whatever the optimiser was, and says nothing about the other units.

    Args:
        regressions: The regressions of the layer, without decay.
        count: Units to try.
    """
    units = _trained_first(regressions, count)
    decay, _ = choose_decay(regressions, None, units)
    agree = list(agreeing(regressions, decay, units))
    return Probe(sum(one.size for one in agree), sum(int(one.sum()) for one in agree), decay)


def _trained_first(regressions: Regressions, count: int) -> list[tuple[int, NDArray[np.intp]]]:
    """Up to ``count`` units at equal distances, those of which most reached weights changed before the others."""
    groups, units, trained = [], [], []
    for group, chosen in sample_units(regressions.weights, _CANDIDATES):
        live = regressions.spans[group].live()
        floors = regressions.noise_floors[group][..., chosen]
        changed = np.abs(regressions.difference(group, chosen)[live]) > (floors if floors.ndim == 1 else floors[live])
        trained.append(2 * changed.sum(axis=0) > live.sum())
        groups.append(np.full(chosen.size, group))
        units.append(chosen)
    group, unit, is_trained = (np.concatenate(parts) for parts in (groups, units, trained))
    preferred = np.flatnonzero(is_trained) if is_trained.any() else np.arange(unit.size)
    places = preferred[np.unique(np.linspace(0, preferred.size - 1, min(count, preferred.size)).astype(np.intp))]
    return [(int(number), unit[places][group[places] == number]) for number in np.unique(group[places])]
