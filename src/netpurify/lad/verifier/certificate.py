"""The verifier: what A, B, coefficients and dual alone prove about an answer.

For any y with A'y = 0 and |y| <= 1, and any u, |b - A u|_1 >= y'(b - A u) = y'b: so y'b bounds the minimum from below,
whoever found y and however. A dual that is handed in is first projected on A'y = 0 and shrunk into the box, so the
bound holds even for a wrong one; the gap between objective and bound is all that a wrong answer could hide in.

For the quantile tau the loss of a residual r is 2 tau r above zero and -2 (1 - tau) r below, which is |r| for the
median; the box is then -2 (1 - tau) <= y <= 2 tau. Weights of rows multiply the rows of A and b, and all else stays as
it is.

A minimum is the truth when the fitted rows confirm one another: there are more zero residuals than the rank, every
fitted row is predicted by the other fitted rows (leverage below 1), and, where alterations tie, no other fit would be
explained by only a few more of them (``rivals``).

This room imports nothing of the solver. Given a plain matrix, rank, basis and products come from numpy
(``PlainSpace``). Given a ``Design``, which is a ``ColumnSpace`` too, they come from the solver's own factorisation,
product and compiled loops; then an error in these would be shared by solver and verifier. No other module may call an
answer optimal or recovered.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.lad.arrays import ArrayLike, to_numpy
from netpurify.lad.loss import tilt_of, weighted
from netpurify.lad.status import certified
from netpurify.lad.verifier.check import check
from netpurify.lad.verifier.column_space import ColumnSpace
from netpurify.lad.verifier.plain_space import PlainSpace
from netpurify.lad.verifier.residuals import Candidate
from netpurify.threads import one_blas_thread

ACCURACY = 1e-9
"""Largest gap, relative to the objective, that counts as proven unless the caller says otherwise."""
_BLOCK = 512
"""Columns that are checked together, to bound the memory."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What is claimed to be a minimiser of |B - A U|_1, and what is to prove it.

    Attributes:
        coefficients: U, [q, p] or [q].
        dual: Y, [k, p] or [k], with A'Y = 0, |Y| <= 1 and Y = sign(B - A U) off zero, up to what the verifier finds.
        noise_floor: Residuals up to this count as zero, [p] or one number; with weights, residuals times weights.
    """

    coefficients: ArrayLike
    dual: ArrayLike
    noise_floor: NDArray[np.float64] | float = 0.0


@dataclass(frozen=True, slots=True)
class Certificate:
    """What the verifier computed for each column; arrays [p], or [] for a right-hand side [k].

    Attributes:
        status: ``Status`` codes.
        objective: |b - A u|_1; for other quantiles, and with weights, the sum of the losses times the weights.
        lower_bound: A bound that no fit can go below.
        gap: objective - lower_bound.
        infeasibility: Largest change of an entry of the dual that was needed for A'y = 0 and |y| <= 1.
        noise_floor: The noise floor of the claim.
        zeros: Residuals at or below the noise floor.
        surplus: Zeros that are evidence: distinct rows beyond the rank, less those explained by ties or by the noise
            floor; 0 where some fitted row is predicted by no other fitted row, or a rival fit is plausible.
        unique: Whether the rows with |y| < 1 determine the fit, so that no other fit is as good.
        stability: Fitted values move by at most ``stability`` * |e|_1 (Euclidean norm) when the data change by e;
            infinite where the minimiser is not unique or no dual proves it.
    """

    status: NDArray[np.int8]
    objective: NDArray[np.float64]
    lower_bound: NDArray[np.float64]
    gap: NDArray[np.float64]
    infeasibility: NDArray[np.float64]
    noise_floor: NDArray[np.float64]
    zeros: NDArray[np.int64]
    surplus: NDArray[np.int64]
    unique: NDArray[np.bool_]
    stability: NDArray[np.float64]

    @property
    def certified(self) -> NDArray[np.bool_]:
        """Which columns are proven minima."""
        return certified(self.status)

    @property
    def relative_gap(self) -> NDArray[np.float64]:
        """Gap over objective; 0 where both are 0."""
        return self.gap / np.where(self.objective > 0.0, self.objective, 1.0)


def verify(
    A: ArrayLike | ColumnSpace,  # noqa: N803
    B: ArrayLike,  # noqa: N803
    claim: Claim,
    *,
    quantile: float = 0.5,
    weights: ArrayLike | None = None,
    accuracy: float = ACCURACY,
) -> Certificate:
    """Check every column of ``claim`` from scratch.

    Cost per column: two matrix-vector products, and one factorisation for uniqueness and stability.

    Args:
        A: The design [k, q], which is checked by numpy alone, without any code of the solver; or a prepared ``Design``,
            whose rank, basis and products are taken as they are, which saves its factorisation.
        B: The right-hand sides [k, p] or [k] that were solved; NaN entries are missing.
        claim: Coefficients, dual and noise floor; ``Solution.claim`` has those of a solution.
        quantile: Which quantile was to be regressed; as in ``solve``.
        weights: Weights of the rows, as in ``solve``.
        accuracy: Largest gap, relative to the objective, that counts as proven.

    Raises:
        InputError: Shapes do not fit together, or weights come with a prepared design.
    """
    if not 0.0 <= accuracy < 1.0:
        raise InputError(f"accuracy must lie in [0, 1), as a share of the objective; got {accuracy}")
    tilt = tilt_of(quantile)
    matrix, right = (A, B) if weights is None else weighted(A, B, weights)
    with one_blas_thread():
        space = matrix if isinstance(matrix, ColumnSpace) else PlainSpace.of(matrix)
        values, coefficients, dual, floor = _as_rows(space, right, claim)
        blocks = [slice(start, start + _BLOCK) for start in range(0, max(1, floor.size), _BLOCK)]
        parts = [_verify_block(space, values[i], coefficients[i], dual[i], floor[i], accuracy, tilt) for i in blocks]
    shape = np.shape(B)[1:]
    names = Certificate.__slots__
    return Certificate(*(np.concatenate([getattr(part, name) for part in parts]).reshape(shape) for name in names))


def _as_rows(space: ColumnSpace, right: ArrayLike, claim: Claim) -> tuple[NDArray[np.float64], ...]:
    """B, coefficients and dual with one row for each column, and the noise floors; checked against the design."""
    given = (
        to_numpy(right, "the right-hand side"),
        to_numpy(claim.coefficients, "coefficients"),
        to_numpy(claim.dual, "the dual"),
    )
    values, coefficients, dual = (np.atleast_2d(array.astype(np.float64).T) for array in given)
    count = values.shape[0]
    expected = (count, space.fan_in), (count, space.columns), (count, space.fan_in)
    if (values.shape, coefficients.shape, dual.shape) != expected:
        raise InputError(
            f"for a design {[space.fan_in, space.columns]} and {count} columns, expected B and dual "
            f"{[space.fan_in, count]} and coefficients {[space.columns, count]}; got "
            f"{[list(array.shape) for array in given]} for B, coefficients and dual"
        )
    floor = np.asarray(claim.noise_floor, np.float64)
    if floor.size not in (1, count) or not (np.isfinite(floor) & (floor >= 0.0)).all():
        raise InputError(f"the noise floor must be one finite number >= 0 for each of {count} columns; got {floor}")
    return values, coefficients, dual, np.broadcast_to(floor.reshape(-1), (count,)).copy()


def _verify_block(
    space: ColumnSpace,
    data: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    dual: NDArray[np.float64],
    floor: NDArray[np.float64],
    accuracy: float,
    tilt: float,
) -> Certificate:
    # A floor at the level of rounding holds for sums in the order of whoever chose it. Sums in another order may differ
    # by their rounding, for which as much again as the floor is allowed at most: coefficients that cancel hide nothing.
    widened = floor + np.fmin(floor, space.rounding(coefficients))
    checked = check(space, Candidate(data, space.predicted(coefficients), dual, widened, tilt), accuracy=accuracy)
    inside = np.where(np.isnan(data), 1.0, checked.dual - tilt)[:, space.live]
    unique, stability = space.uniqueness(np.ascontiguousarray(inside), certified(checked.status))
    stability *= 1.0 + abs(tilt)  # by so much the loss changes at most when a datum changes by 1
    return Certificate(
        status=checked.status,
        objective=checked.objective,
        lower_bound=checked.lower_bound,
        gap=checked.gap,
        infeasibility=checked.infeasibility,
        noise_floor=floor,
        zeros=checked.zeros,
        surplus=checked.surplus,
        unique=unique,
        stability=stability,
    )
