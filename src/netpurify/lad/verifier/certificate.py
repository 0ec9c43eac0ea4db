"""The verifier: what A, B, coefficients and dual alone prove about an answer.

For any y with A'y = 0 and |y| <= 1, and any u, |b - A u|_1 >= y'(b - A u) = y'b: so y'b bounds the minimum from below,
whoever found y and however. A dual that is handed in is first projected on A'y = 0 and shrunk into the box, so the
bound holds even for a wrong one; the gap between objective and bound is all that a wrong answer could hide in.

A minimum is the truth when the rows that fit it vouch for one another: more zero residuals than the rank, no row
among them that could take any value without the others noticing (leverage 1 within the rows that fit), and, where
alterations tie, no other fit that a few more of them would explain (``rivals``).

Of the solver only the factored design is used here, and its matrix product, so that both see the same residuals; only
this module and ``proof`` may call an answer optimal or recovered.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.lad.arrays import ArrayLike, to_numpy
from netpurify.lad.design import Design
from netpurify.lad.solution import Solution
from netpurify.lad.status import certified
from netpurify.lad.verifier.evidence import certify, demote_unvouched, strictly_inside
from netpurify.threads import one_blas_thread

ACCURACY = 1e-9
_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was recomputed for each column; arrays [p] (or scalars' worth, [], for a right-hand side [k]).

    Attributes:
        status: ``Status`` codes.
        objective: |b - A u|_1.
        lower_bound: A bound that no fit can go below.
        gap: objective - lower_bound.
        infeasibility: How far the dual had to be moved, entry by entry, to satisfy A'y = 0 and |y| <= 1.
        noise_floor: The floor that the solution claims.
        zeros: Residuals at or below the noise floor.
        surplus: Zeros that are evidence: distinct rows beyond the rank, less ties and what the floor gives by chance;
            0 where a row that fits is vouched for by no other, or a rival fit is plausible.
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


def verify(A: ArrayLike | Design, B: ArrayLike, solution: Solution, *, accuracy: float = ACCURACY) -> Certificate:  # noqa: N803
    """Check every column of ``solution`` from scratch.

    Cost per column: two matrix-vector products, and one Cholesky factorisation for uniqueness and stability.

    Args:
        A: The design [k, q], or a prepared ``Design``.
        B: The right-hand sides [k, p] or [k] that were solved; NaN entries are erased.
        solution: The answer; its coefficients, dual and noise floor are read, its status and residual are not.
        accuracy: Largest gap, relative to the objective, that counts as proven.

    Raises:
        InputError: Shapes do not fit together.
    """
    design = A if isinstance(A, Design) else Design.prepare(A)
    if not 0.0 <= accuracy < 1.0:
        raise InputError(f"accuracy must lie in [0, 1), as a share of the objective; got {accuracy}")
    columns, coefficients, dual, floor = _parts(design, B, solution)
    names = [name for name in Certificate.__slots__ if name != "noise_floor"]
    blocks: dict[str, list[NDArray]] = {name: [] for name in names}
    with one_blas_thread():
        for start in range(0, max(1, columns.shape[0]), _BLOCK):
            part = slice(start, start + _BLOCK)
            facts = _verify_block(design, columns[part], coefficients[part], dual[part], floor[part], accuracy)
            for name in names:
                blocks[name].append(facts[name])
    fields: dict[str, NDArray] = {name: np.concatenate(parts) for name, parts in blocks.items()}
    fields["noise_floor"] = floor
    shape = np.shape(solution.noise_floor)
    return Certificate(**{name: fields[name].reshape(shape) for name in Certificate.__slots__})


def _parts(design: Design, right: ArrayLike, solution: Solution) -> tuple[NDArray[np.float64], ...]:
    """B, coefficients and dual as rows, one per column, and the floors; checked against the design."""
    given = (
        to_numpy(right, "the right-hand side"),
        to_numpy(solution.coefficients, "coefficients"),
        to_numpy(solution.dual, "the dual"),
    )
    values, coefficients, dual = (np.atleast_2d(part.astype(np.float64).T) for part in given)
    count = values.shape[0]
    expected = (count, design.fan_in), (count, design.columns), (count, design.fan_in)
    if (values.shape, coefficients.shape, dual.shape) != expected:
        raise InputError(
            f"for a design {[design.fan_in, design.columns]} and {count} columns, expected B and dual "
            f"{[design.fan_in, count]} and coefficients {[design.columns, count]}; got "
            f"{[list(part.shape) for part in given]} for B, coefficients and dual"
        )
    floor = np.asarray(solution.noise_floor, np.float64).reshape(-1)
    if floor.shape != (count,) or not (np.isfinite(floor) & (floor >= 0.0)).all():
        raise InputError(f"the noise floor must be one finite number >= 0 for each of {count} columns; got {floor}")
    return values, coefficients, dual, floor


def _verify_block(
    design: Design,
    data: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    dual: NDArray[np.float64],
    floor: NDArray[np.float64],
    accuracy: float,
) -> dict[str, NDArray]:
    fitted = design.predicted(coefficients)
    residual, projected, facts = certify(design, data, fitted, dual, floor, accuracy=accuracy)
    demote_unvouched(design, residual, floor, np.zeros(data.shape[0], np.bool_), facts)
    inside = np.ascontiguousarray(np.where(np.isnan(data), 1.0, projected)[:, design.live])
    unique = np.zeros(data.shape[0], np.bool_)
    stability = np.full(data.shape[0], np.inf)
    strictly_inside(design.compact, inside, certified(facts["status"]), unique, stability)
    return facts | {"unique": unique, "stability": stability}
