"""How many altered rows L1 regression survives, for a generic design."""

from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr


@cache
def tolerance(fan_in: int, rank: int) -> float:
    """Share of altered rows at which half of all columns are still recovered, for a generic design.

    The phase transition of l1 decoding: the eps that solves

        1 - rank / fan_in = min_t { eps (1 + t^2) + (1 - eps) E (|g| - t)_+^2 },   g ~ N(0, 1).

    At the minimum eps = 2 h / (t + 2 h) with h = phi(t) - t Phi(-t), which leaves one equation in t.

    Reference: Donoho and Tanner, Counting faces of randomly projected polytopes (2009); Amelunxen et al. (2014).
    """
    if not 0 < rank < fan_in:
        return 0.0 if rank else 1.0
    share = 1.0 - rank / fan_in

    def excess(t: float) -> float:
        density = np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
        eps = _share(t)
        return eps * (1 + t * t) + (1 - eps) * 2 * ((1 + t * t) * ndtr(-t) - t * density) - share

    root: Any = brentq(excess, 1e-6, 30.0)
    return float(_share(root))


def _share(t: float) -> float:
    tail = 2.0 * (np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi) - t * ndtr(-t))
    return tail / (t + tail)
