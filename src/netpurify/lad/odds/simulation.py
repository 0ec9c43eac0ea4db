"""Simulated columns on a given design: how many of its rows may be altered, in a random order and with random signs."""

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.lad.arrays import ArrayLike, to_numpy
from netpurify.lad.design import Design
from netpurify.lad.odds.limits import tolerance
from netpurify.lad.odds.simulated import SimulatedOdds
from netpurify.lad.solver import solve

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_ZERO = 1e-7
"""A fit of alterations between 1 and 2 in size that is nowhere above this is the zero that it should be."""
_FEWEST = 6
"""Columns below which a spread says nothing."""
_PILOT = 20
"""One column of so many looks for the place from which the others start."""


def simulate(
    design: ArrayLike | Design,
    *,
    positive: float | ArrayLike = 0.5,
    columns: int = 200,
    seed: int = 0,
    threads: int | None = None,
) -> SimulatedOdds:
    """The odds of recovery on this design, by solving columns with random alterations.

    Choose this over ``recovery_probability``, which is right for a uniformly random span only: rows of one sign, such
    as pixels or features after a ReLU, tolerate far fewer alterations that lean to one sign.

    A law of alteration enters by its share and by the probability that an alteration is positive, and by nothing else.
    With z altered in the rows S, L1 regression recovers if and only if, for every u with A u != 0,

        sum over S of sign(z_i) a_i'u  <  sum over the other rows of |a_i'u|,

    which does not know the sizes of z. (The probabilities p and 1 - p give the same odds: turn u around.) If one more
    row i is altered, the left side grows by at most |a_i'u| and the right side loses |a_i'u|: what is recovered with
    some rows altered is recovered with fewer. So each column, a random order of the rows with random signs, has one
    critical count. It is found with ``solve`` from above: a fit that misses is a u that breaks the condition, and
    shows by itself the smallest number of rows at which it does.

    Rows of zeros never count. Where both sides are equal for some u, as they may be on one-hot, binary or repeated
    rows, sizes do matter, and the count may be one off the solver's own answer.

    Cost: 3 to 5 fits for each column, most of them at the limit, where they are slowest: about rows times rank times
    (200 + rank) nanoseconds.

    Args:
        design: Matrix [k, q], or a prepared ``Design``.
        positive: Probability that an alteration is positive: 0.5 for N(0, 1), Phi(1) = 0.841 for N(1, 1). One number
            for each row [k] where a law looks at the weight: a flipped sign is negative where the weight is positive.
        columns: How many columns to simulate, at least 6; the error falls with the square root.
        seed: Of the random orders and signs. Orders are the same for every ``positive``.
        threads: As in ``solve``.

    Raises:
        InputError: An argument is out of its range, or the matrix is none.
    """
    if not isinstance(columns, Integral) or columns < _FEWEST:
        raise InputError(f"columns must be a whole number, at least {_FEWEST}; got {columns!r}")
    if not isinstance(seed, Integral) or seed < 0:
        raise InputError(f"seed must be a whole number, at least 0; got {seed!r}")
    design = design if isinstance(design, Design) else Design.prepare(design)
    chance = _chances(positive, design)
    counts = np.zeros(columns, np.int64)
    if design.rank == 0:
        counts[:] = design.live.size
    elif not design.full:
        random = np.random.default_rng(seed)
        order = np.argsort(random.random((columns, design.live.size)), axis=1)
        signs = np.where(random.random(order.shape) < chance, 1.0, -1.0)
        # The sizes do not matter; equal ones would make ties among the residuals.
        counts = _critical(design, order, signs * (1.0 + random.random(order.shape)), threads)
    return SimulatedOdds(counts, design.live.size, design.rank, float(chance.mean()) if chance.size else 0.5)


def _chances(positive: float | ArrayLike, design: Design) -> Floats:
    """The probability of a positive alteration for each live row."""
    given = np.asarray(positive, np.float64) if isinstance(positive, float | int) else to_numpy(positive, "positive")
    if given.shape not in ((), (design.fan_in,)):
        raise InputError(f"positive must be one number or one per row [{design.fan_in}]; got {list(given.shape)}")
    if not ((given >= 0.0) & (given <= 1.0)).all():
        raise InputError(f"positive must lie in [0, 1], as a probability; got {positive}")
    return np.broadcast_to(given.astype(np.float64), (design.fan_in,))[design.live]


def recovered(design: Design, alterations: Floats, threads: int | None = None) -> tuple[NDArray[np.bool_], Floats]:
    """Whether each row of ``alterations`` [n, live rows] is told apart from the span, and what was fitted to it."""
    right = np.zeros((design.fan_in, alterations.shape[0]))
    right[design.live] = alterations.T
    solution = solve(design, right, noise_floor=0.0, threads=threads)
    fitted = (right - np.asarray(solution.residual))[design.live].T
    return np.abs(fitted).max(axis=1) <= _ZERO, fitted


def _critical(design: Design, order: NDArray[np.intp], alterations: Floats, threads: int | None) -> Counts:
    """Largest number of rows of each column, in its order [n, live rows], that may be altered.

    A few columns start from the limit of a generic design, the others from what these have found.
    """
    few = -(-order.shape[0] // _PILOT)
    start = int(design.live.size * tolerance(design.live.size, design.rank))
    first = _search(design, order[:few], alterations[:few], start, threads)
    rest = _search(design, order[few:], alterations[few:], int(np.median(first)), threads)
    return np.concatenate([first, rest])


def _search(design: Design, order: NDArray[np.intp], alterations: Floats, start: int, threads: int | None) -> Counts:
    count, live = order.shape
    place = np.argsort(order, axis=1)
    low = np.zeros(count, np.int64)
    # With fewer than rank rows left, some fit passes through all of them.
    high = np.full(count, live - design.rank + 1)
    # A twentieth of sqrt(rows) is far below the spread of the counts; up to 1,599 rows they are exact.
    close = max(1, int(np.sqrt(live)) // 20)
    step = np.full(count, max(1, int(np.sqrt(live)) // 4))
    probe = np.full(count, start)
    while (open_ := np.flatnonzero(high - low > close)).size:
        tried = np.clip(probe[open_], low[open_] + 1, high[open_] - 1)
        altered = np.where(place[open_] < tried[:, None], alterations[open_], 0.0)
        right, fitted = recovered(design, altered, threads)
        broken = np.minimum(tried, _breaks(fitted, alterations[open_], order[open_]))
        low[open_] = np.where(right, tried, low[open_])
        high[open_] = np.where(right, high[open_], broken)
        probe[open_] = np.where(right, tried + step[open_], broken - close)
        step[open_] *= np.where(right, 2, 1)
    # The middle, rounded up and down in turn.
    return (low + high - 1 + np.arange(count) % 2) // 2


def _breaks(fitted: Floats, alterations: Floats, order: NDArray[np.intp]) -> Counts:
    """Smallest number of altered rows at which moving to ``fitted`` costs nothing, for each column."""
    gained = np.take_along_axis(np.maximum(np.sign(alterations) * fitted, 0.0), order, axis=1)
    enough = 2.0 * np.cumsum(gained, axis=1) >= (1.0 - 1e-12) * np.abs(fitted).sum(axis=1, keepdims=True)
    return np.where(enough.any(axis=1), enough.argmax(axis=1) + 1, order.shape[1]).astype(np.int64)
