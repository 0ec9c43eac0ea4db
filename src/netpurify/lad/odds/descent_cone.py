"""The directions in which |.|_1 does not grow, and how much of them a random subspace can avoid.

Alter s of k entries: the directions that do not raise |.|_1 form a cone D, the tangent cone of the cross-polytope at
a face of s vertices. L1 regression on a design of rank r recovers iff the column space meets D only in 0, and for a
uniformly random column space the conic kinematic formula gives

    P(failure) = 2 (v_{k-r+1} + v_{k-r+3} + ...),      P(success) = 2 (v_{k-r-1} + v_{k-r-3} + ...),

where v_l is the probability that the point of D nearest to a Gaussian vector lies inside a face of dimension l. Here
v_l = (number of faces) x (internal angle) x (external angle), three factors that need no more than one integral each.

Reference: Affentranger and Schneider (1992); Boeroeczky and Henk (1999); Donoho and Tanner (2009); Amelunxen, Lotz,
McCoy and Tropp (2014).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, erfcx, gammaln, logsumexp, wofz

Floats = NDArray[np.float64]

_ROOT_2, _ROOT_2_OVER_PI = np.sqrt(2.0), np.sqrt(2.0 / np.pi)
_STEP = 0.5
_ABSCISSAS = _STEP * np.arange(18)
"""In standard deviations. The trapezoidal rule on a Gaussian errs by exp(-2 pi^2 / step^2): nothing, at this step."""
_TILTS = np.concatenate([np.linspace(0.0, 1.0, 400), np.geomspace(1.0, 1e4, 2000)[1:]])
_TILTED_SHARES = _TILTS * erfcx(_TILTS / _ROOT_2) / _ROOT_2_OVER_PI
_STRETCH = np.linspace(-4.5, 4.5, 91)


def log_failure(fan_in: int, rank: int, altered: NDArray[np.integer]) -> Floats:
    """Log P(failure) for each number of ``altered`` entries; exact, and accurate in its digits however small."""
    return _log_tail(fan_in, altered, fan_in - rank + 1 + 2 * _terms(fan_in))


def log_success(fan_in: int, rank: int, altered: NDArray[np.integer]) -> Floats:
    """Log P(success), which is log(1 - P(failure)) with digits where failure is all but certain."""
    return _log_tail(fan_in, altered, fan_in - rank - 1 - 2 * _terms(fan_in))


def log_volumes(fan_in: int, altered: NDArray[np.integer], dimensions: NDArray[np.integer]) -> Floats:
    """Log v_l of the descent cone at ``altered`` >= 1 entries, for ``dimensions`` 0 <= l <= fan_in.

    Returns:
        Shape [altered, dimensions]; -inf where the cone has no face of that dimension.
    """
    s, face = (grid.astype(np.float64) for grid in np.meshgrid(altered, dimensions, indexing="ij"))
    more = face + 1.0 - s
    volumes = np.full(s.shape, -np.inf)
    flat = (more >= 0.0) & (face < fan_in)
    external = np.broadcast_to(_log_external_angle(fan_in, np.minimum(dimensions, fan_in - 1)), s.shape)
    choices = gammaln(fan_in - s[flat] + 1.0) - gammaln(more[flat] + 1.0) - gammaln(fan_in - face[flat])
    # The internal angle is 2^-more sqrt(2 pi (l+1)) times the density; 2^more faces share each choice of rows.
    density = _log_cancelled(s[flat], more[flat], whole=False)
    volumes[flat] = choices + 0.5 * np.log(2.0 * np.pi * (face[flat] + 1.0)) + density + external[flat]
    solid = face == fan_in
    volumes[solid] = _log_cancelled(s[solid], fan_in - s[solid], whole=True)
    return volumes


def _terms(fan_in: int) -> NDArray[np.int64]:
    # v has a standard deviation of at most about sqrt(fan_in) / 2; from its middle outwards this reaches 12 of them.
    return np.arange(int(3.0 * np.sqrt(fan_in)) + 8)


def _log_tail(fan_in: int, altered: NDArray[np.integer], dimensions: NDArray[np.int64]) -> Floats:
    dimensions = dimensions[(dimensions >= 0) & (dimensions <= fan_in)]
    if not dimensions.size:
        return np.full(altered.shape, -np.inf)
    tail = np.log(2.0) + logsumexp(log_volumes(fan_in, altered, dimensions), axis=1)
    return np.minimum(tail, 0.0)


def _log_external_angle(fan_in: int, dimensions: NDArray[np.integer]) -> Floats:
    """Log of sqrt(w / 2 pi) int_0^inf exp(-w t^2 / 2) erf(t / sqrt 2)^(fan_in - w) dt for w = l + 1 vertices."""
    w = dimensions.astype(np.float64) + 1.0
    others = fan_in - w
    peak = _peak(w, others)
    t = np.exp(peak)
    slope = _hazard(t)
    width = 1.0 / np.sqrt(2.0 * w * t * t - others * slope * (1.0 - t * t - slope))
    # In log t, stretched by a sinh: the integrand has one peak and, with few other rows, a long tail to the left.
    y = peak[:, None] + width[:, None] * np.sinh(_STRETCH)
    t = np.exp(y)
    logs = y - 0.5 * w[:, None] * t * t + others[:, None] * np.log(erf(t / _ROOT_2)) + np.log(np.cosh(_STRETCH))
    return logsumexp(logs, axis=1) + np.log(width * (_STRETCH[1] - _STRETCH[0])) + 0.5 * np.log(w / (2.0 * np.pi))


def _peak(w: Floats, others: Floats) -> Floats:
    """Log t at which t exp(-w t^2 / 2) erf(t / sqrt 2)^others is largest, by bisection."""
    low, high = np.full(w.shape, -40.0), np.full(w.shape, 4.0)
    for _ in range(50):
        middle = 0.5 * (low + high)
        t = np.exp(middle)
        rising = 1.0 + others * _hazard(t) > w * t * t
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return low


def _hazard(t: Floats) -> Floats:
    """D log erf(t / sqrt 2) / d log t."""
    return _ROOT_2_OVER_PI * t * np.exp(-0.5 * t * t) / erf(t / _ROOT_2)


def _log_cancelled(s: Floats, more: Floats, *, whole: bool) -> Floats:
    """Log of the chance that N(0, s) cancels a sum of ``more`` half-normals: density at 0, or ``whole``: P(sum <= 0).

    The integral of the characteristic function, along a line through the saddle point: there the integrand is close to
    a Gaussian and nothing cancels, so that chances of 1e-300 come out with all their digits.
    """
    tilt = np.interp(more / (s + more), _TILTED_SHARES, _TILTS)
    if whole:
        tilt = np.maximum(tilt, 2.0 / np.sqrt(s))  # keeps the line away from the pole at 0
    half = erfcx(tilt / _ROOT_2)
    hazard = _ROOT_2_OVER_PI / half
    width = 1.0 / np.sqrt(s + more * (1.0 - hazard * (hazard - tilt)))
    top = 0.5 * s * tilt * tilt + more * np.log(half)
    line = 1j * tilt[:, None] + width[:, None] * _ABSCISSAS
    logs = more[:, None] * np.log(wofz(line / _ROOT_2)) - 0.5 * s[:, None] * line * line
    values = np.exp(logs - top[:, None])
    values = (values / (-1j * line) if whole else values).real
    return top + np.log(width * _STEP / (2.0 * np.pi) * (2.0 * values.sum(axis=1) - values[:, 0]))
