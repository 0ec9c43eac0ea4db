"""How many altered entries L1 regression tolerates on a generic design: the threshold, and the odds around it."""

from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from scipy.special import gammaln, ndtr, ndtri_exp, xlog1py, xlogy

from netpurify.errors import InputError
from netpurify.lad.odds.descent_cone import log_failure, log_success

_NODES = 96
_REACH = 6.0
"""In units of sqrt(fan_in): twelve standard deviations from the threshold nothing is left to chance (1e-20)."""


@cache
def tolerance(fan_in: int, rank: int) -> float:
    """Share of altered entries at which half of all units are still recovered, for a generic design.

    The phase transition of l1 decoding: the eps that solves

        1 - rank / fan_in = min_t { eps (1 + t^2) + (1 - eps) E (|g| - t)_+^2 },   g ~ N(0, 1).

    At the minimum eps = 2 h / (t + 2 h) with h = phi(t) - t Phi(-t), which leaves one equation in t.

    Reference: Donoho and Tanner, Counting faces of randomly projected polytopes (2009); Amelunxen et al. (2014).
    """
    if not (rank >= 0 and fan_in >= 0):
        raise InputError(f"fan_in and rank must be whole numbers, at least 0; got {fan_in} and {rank}")
    return _threshold(rank / fan_in) if fan_in > 0 else 1.0


def recovery_probability(fan_in: int, rank: int, share: float, *, units: float = 1) -> float:
    """Probability that all ``units`` units of a layer are recovered, each entry altered with probability ``share``.

    Exact (to about 1e-5) for one unit on a design whose column space is uniformly random, as a Gaussian design's is,
    whatever the sizes and signs of the alterations: the mean of the kinematic formula in ``descent_cone`` over the
    binomial number of altered entries. For a layer, that to the power ``units``. In simulations this is right to
    sampling error where alterations have both signs equally often, or lean to one sign as N(1, 1) does. Where nearly
    all have one sign, a design that is unlucky for one unit is unlucky for all; units then fail together, and the mean
    over designs is higher than this: up to 0.65 instead of 0.50, for 1000 units of 50 x 6.

    A design with structure may do worse than a generic one; ``worst_case`` says what a given design always tolerates.

    Cost: 2 to 30 milliseconds for a new pair of ``fan_in`` and ``rank`` up to a thousand, then a tenth of one.

    Args:
        fan_in: Number of rows of the design, k; rows of zeros do not count.
        rank: Rank of the design. 0: nothing to fit, always recovered; ``fan_in``: recovered only if not altered.
        share: Probability that an entry is altered, the same for all and independent.
        units: Number of right-hand sides.

    Raises:
        InputError: An argument is out of its range.
    """
    _check(fan_in, rank, units)
    if not 0.0 <= share <= 1.0:
        raise InputError(f"share must lie in [0, 1], as a probability; got {share}")
    return _layer(fan_in, rank, share, units)


def largest_share(fan_in: int, rank: int, *, units: float = 1, probability: float = 0.95) -> float:
    """Largest share of altered entries at which all ``units`` units are recovered with this ``probability``.

    The inverse of ``recovery_probability``, to rounding and from below.

    Raises:
        InputError: An argument is out of its range.
    """
    _check(fan_in, rank, units)
    if not 0.0 < probability < 1.0:
        raise InputError(f"probability must lie strictly between 0 and 1; got {probability}")
    if _layer(fan_in, rank, 1.0, units) >= probability:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(52):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _layer(fan_in, rank, middle, units) >= probability else (low, middle)
    return low


def _threshold(fraction: float) -> float:
    """``tolerance`` for rank / fan_in = ``fraction``."""
    if not 0.0 < fraction < 1.0:
        return 0.0 if fraction > 0.0 else 1.0

    def excess(t: float) -> float:
        density = np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
        eps = _share(t)
        return eps * (1 + t * t) + (1 - eps) * 2 * ((1 + t * t) * ndtr(-t) - t * density) - (1.0 - fraction)

    root: Any = brentq(excess, 1e-6, 30.0)
    return float(_share(root))


def _share(t: float) -> float:
    tail = 2.0 * (np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi) - t * ndtr(-t))
    return tail / (t + tail)


def _check(fan_in: int, rank: int, units: float) -> None:
    if not (fan_in >= 1 and fan_in == int(fan_in)):
        raise InputError(f"fan_in must be a whole number of rows, at least 1; got {fan_in}")
    if not (0 <= rank <= fan_in and rank == int(rank)):
        raise InputError(f"rank must be a whole number from 0 to the fan-in, {fan_in}; got {rank}")
    if not 0 <= units < np.inf:
        raise InputError(f"units must be a number >= 0; got {units}")


def _layer(fan_in: int, rank: int, share: float, units: float) -> float:
    scores = _scores(int(fan_in), int(rank))
    altered = np.arange(fan_in + 1.0)
    ways = gammaln(fan_in + 1.0) - gammaln(altered + 1.0) - gammaln(fan_in - altered + 1.0)
    weights = np.exp(ways + xlogy(altered, share) + xlog1py(fan_in - altered, -share))
    failure, success = float(weights @ ndtr(-scores)), float(weights @ ndtr(scores))
    if units == 0 or success == 0.0:
        return float(units == 0)
    # Each from the side that has digits: a million units turn a failure of 1e-8 into one of 0.01.
    log_unit = np.log1p(-failure) if failure < 0.5 else np.log(success)
    return float(np.exp(units * log_unit))


@lru_cache(maxsize=128)
def _scores(fan_in: int, rank: int) -> NDArray[np.float64]:
    """Standard score z(s), s = 0..fan_in, such that s altered entries are recovered with probability Phi(z)."""
    altered = np.arange(fan_in + 1)
    if rank == 0:
        return np.full(fan_in + 1, np.inf)
    middle = fan_in * _threshold(rank / fan_in)
    low = max(1, int(fan_in * _threshold(rank / fan_in + _REACH / np.sqrt(fan_in))))
    # Beyond fan_in - rank altered entries the cone holds a subspace that no column space of this rank can avoid.
    high = min(fan_in - rank, int(fan_in * _threshold(rank / fan_in - _REACH / np.sqrt(fan_in))) + 1)
    scores = np.where(altered < max(low, 1), np.inf, -np.inf)
    if low > high:
        return scores
    # The score is all but linear in s, except towards the ends: a wide window needs no more nodes than a narrow one.
    grid = np.linspace(low, high, high - low + 1) if high - low < _NODES else _dense_at_the_ends(low, high)
    nodes = np.unique(grid.round().astype(int))
    few, many = nodes[nodes <= middle], nodes[nodes > middle]
    exact = np.append(-ndtri_exp(log_failure(fan_in, rank, few)), ndtri_exp(log_success(fan_in, rank, many)))
    # Never rising: rounding must not make more alterations look better.
    exact = np.minimum.accumulate(exact)
    window = slice(low, high + 1)
    scores[window] = PchipInterpolator(nodes, exact)(altered[window]) if nodes.size > 1 else exact
    return scores


def _dense_at_the_ends(low: int, high: int) -> NDArray[np.float64]:
    return low + (high - low) * 0.5 * (1.0 - np.cos(np.linspace(0.0, np.pi, _NODES)))
