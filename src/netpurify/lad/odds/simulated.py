"""The odds on one given design, from simulated columns: how likely recovery is at a share, and the share at odds."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, gammaincinv, stdtrit

from netpurify.errors import InputError

Floats = NDArray[np.float64]

_TAIL = 0.025
"""Of both sides: every interval has a confidence of 95 %."""
_SEEN = 5.0
"""Fewer failures than this among the columns are too few to estimate a rarer failure from: a normal law is fitted."""
_NODES = np.linspace(-7.0, 7.0, 141)
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()
_HALVINGS = 40


@dataclass(frozen=True, slots=True)
class OddsEstimate:
    """A number from a simulation.

    Attributes:
        value: The estimate.
        low: Lower end of an interval with a confidence of 95 %.
        high: Upper end.
        extrapolated: Whether it says more than the columns have seen: failures rarer than they can show are computed
            from a normal law fitted to their critical counts.
    """

    value: float
    low: float
    high: float
    extrapolated: bool = False


@dataclass(frozen=True, slots=True)
class SimulatedOdds:
    """The odds of recovery on one design, under alterations of which a given share is positive; see ``simulate``.

    Every column has a random order of the rows and a random sign for each. Its critical count is the largest number of
    rows, from the first on, that may be altered. As the number of altered entries is binomial and independent of the
    order, P(recovered) at any share is the mean over the columns of P(Binomial(live, share) <= critical count): one set
    of columns gives the whole curve, and its only error is that of the mean.

    Attributes:
        counts: Critical count of each column, [columns].
        live: Rows of the design that are not zero.
        rank: Rank of the design.
        positive: Probability that an alteration is positive, the mean over the rows.
    """

    counts: NDArray[np.int64]
    live: int
    rank: int
    positive: float

    @property
    def columns(self) -> int:
        """How many columns were simulated."""
        return self.counts.size

    def recovery(self, share: float, *, units: float = 1) -> OddsEstimate:
        """Probability that all ``units`` units are recovered, each entry altered with probability ``share``.

        Units are independent, given the design, so that it is the probability of one unit to the power ``units``. The
        interval is that of Clopper and Pearson for as many failures as the columns expect, each column worth up to 3:
        the number of alterations is averaged over and not drawn. Where the columns see fewer than 5 failures, that of
        more than one unit is extrapolated: the value takes the counts to be normal, which on images can promise too
        much, and the interval is at least as wide as what Clopper and Pearson allow without that assumption.

        Raises:
            InputError: An argument is out of its range.
        """
        if not 0.0 <= share <= 1.0:
            raise InputError(f"share must lie in [0, 1], as a probability; got {share}")
        if not 0 <= units < np.inf:
            raise InputError(f"units must be a number >= 0; got {units}")
        if self._certain or share == 0.0 or units == 0:
            return OddsEstimate(1.0, 1.0, 1.0)
        failures = float(_beyond(self.counts, self.live, share).sum())
        extrapolated = units > 1 and failures < _SEEN
        found = (self._beyond_sight if extrapolated else self._mixed)(share)
        value, low, high = (0.0 if failure >= 1.0 else float(np.exp(units * np.log1p(-failure))) for failure in found)
        return OddsEstimate(value, low, high, extrapolated)

    def largest_share(self, *, units: float = 1, probability: float = 0.95) -> OddsEstimate:
        """Largest share of altered entries at which all ``units`` units are recovered with this ``probability``.

        The inverse of ``recovery``, apart from where one of the two is extrapolated. This one is where the columns
        would see fewer than 5 failures of the one in 1 / (1 - probability^(1/units)) that is allowed; the lower end of
        its interval is then 0 unless there are enough columns to show so rare a failure.

        Raises:
            InputError: An argument is out of its range.
        """
        if not 0.0 < probability < 1.0:
            raise InputError(f"probability must lie strictly between 0 and 1; got {probability}")
        if not 0 <= units < np.inf:
            raise InputError(f"units must be a number >= 0; got {units}")
        if self._certain or units == 0:
            return OddsEstimate(1.0, 1.0, 1.0)
        allowed = -float(np.expm1(np.log(probability) / units))
        extrapolated = allowed * self.columns < _SEEN * (1.0 - 1e-9)
        failure = self._beyond_sight if extrapolated else self._mixed
        value, low, high = (_largest(lambda share, part=part: failure(share)[part], allowed) for part in range(3))
        return OddsEstimate(value, low, high, extrapolated)

    def error(self, share: float) -> float:
        """Standard error of ``recovery(share).value``."""
        return float(_beyond(self.counts, self.live, share).std(ddof=1) / np.sqrt(self.columns))

    @property
    def _certain(self) -> bool:
        return self.rank == 0

    def _mixed(self, share: float) -> tuple[float, float, float]:
        """P(failure) of one unit as the mean over the columns: the estimate, then its largest and smallest value."""
        each = _beyond(self.counts, self.live, share)
        return _clopper_pearson(float(each.mean()), self.columns * _worth(each))

    def _beyond_sight(self, share: float) -> tuple[float, float, float]:
        """The same where failures are too rare to be seen: a value for normal counts, within bounds without a law."""
        value, most, least = self._normal(share)
        _, high, low = _clopper_pearson(float(_beyond(self.counts, self.live, share).mean()), self.columns)
        return value, max(value, most, high), min(value, least, low)

    def _normal(self, share: float) -> tuple[float, float, float]:
        """The same for normal counts: the largest with the lowest mean and widest spread that the columns allow."""
        mean, spread, free = float(self.counts.mean()), float(self.counts.std(ddof=1)), self.columns - 1
        shift = float(stdtrit(free, 1.0 - _TAIL)) * spread / np.sqrt(self.columns)
        wide, narrow = (float(np.sqrt(free / (2.0 * gammaincinv(0.5 * free, p)))) for p in (_TAIL, 1.0 - _TAIL))
        laws = ((mean, spread), (mean - shift, wide * spread), (mean + shift, narrow * spread))
        value, high, low = (
            float(_WEIGHTS @ _beyond(np.clip(mean + spread * _NODES, 0.0, self.live), self.live, share))
            for mean, spread in laws
        )
        return value, high, low


def _clopper_pearson(share: float, count: float) -> tuple[float, float, float]:
    """A share of ``count`` draws, and the largest and the smallest probability that it allows."""
    failures = share * count
    high = 1.0 if failures >= count else float(betaincinv(failures + 1.0, count - failures, 1.0 - _TAIL))
    low = 0.0 if failures <= 0.0 else float(betaincinv(failures, count - failures + 1.0, _TAIL))
    return min(share, 1.0), high, low


def _beyond(counts: NDArray, live: int, share: float) -> Floats:
    """P(Binomial(live, share) > count) for each count, whole or not."""
    safe = np.minimum(counts, live - 1)
    return np.where(counts >= live, 0.0, betainc(safe + 1.0, live - safe, share))


def _worth(each: Floats) -> float:
    """How many draws of success or failure a column is worth: the ratio of variances, from 1 (rare events) up to 3."""
    mean, most = float(each.mean()), each.size
    drawn = mean * (1.0 - mean)
    gain = 3.0 if each.var() * 3.0 <= drawn else drawn / max(float(each.var()), 1e-300)
    seen = min(mean, 1.0 - mean) * most
    return 1.0 + (max(gain, 1.0) - 1.0) * min(1.0, seen / (2.0 * _SEEN))


def _largest(failure: Callable[[float], float], allowed: float) -> float:
    """Largest share at which ``failure`` is at most ``allowed``, from below."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if failure(middle) <= allowed else (low, middle)
    return low
