"""Least absolute deviations: many L1 regressions that share one design, solved exactly and proven.

    solution = lad.solve(A, B)                       argmin |B - A U|_1, column by column
    certificate = lad.verify(A, B, solution.claim)   what A, B, U and the dual alone prove about it

    lad.simulate(A, positive=0.84).recovery(0.3)     the odds for this design, if so many alterations are positive
    lad.largest_share(392, 42, units=300)            how much may be altered, for a generic random design of this size
    lad.worst_case(A).alterations                    how many entries may always be altered, for this design

    lad.solve(A, B, quantile=0.9, weights=w)         another quantile than the median, rows that count differently
    lad.LADRegressor(quantile=0.9).fit(X, y)         the same with scikit-learn's conventions

``Design.prepare(A)`` factors a design once for many calls; ``stream`` takes right-hand sides block by block.
``recovery_probability`` and ``tolerance`` give the odds for a generic design, whose span is uniformly random.

The rooms within: ``stages`` solve a panel of columns, ``verifier`` checks every answer, ``odds`` say how many
alterations are tolerated, ``kernels`` are compiled loops, ``experimental`` is the torch backend. Other packages import
from here only.
"""

from typing import TYPE_CHECKING, Any

from netpurify.lad.arrays import ArrayLike as ArrayLike
from netpurify.lad.arrays import to_numpy
from netpurify.lad.design import Design
from netpurify.lad.kernels.compiled import compilation
from netpurify.lad.loss import Loss
from netpurify.lad.odds.adversarial import WorstCase, worst_case
from netpurify.lad.odds.limits import largest_share, recovery_probability, tolerance
from netpurify.lad.odds.simulated import OddsEstimate, SimulatedOdds
from netpurify.lad.odds.simulation import simulate
from netpurify.lad.solution import Solution, Statistics
from netpurify.lad.solver import solve, stream
from netpurify.lad.status import Status
from netpurify.lad.verifier.certificate import Certificate, Claim, verify

if TYPE_CHECKING:
    from netpurify.lad.regressor import LADRegressor

__all__ = [
    "Certificate",
    "Claim",
    "Design",
    "LADRegressor",
    "Loss",
    "OddsEstimate",
    "SimulatedOdds",
    "Solution",
    "Statistics",
    "Status",
    "WorstCase",
    "compilation",
    "largest_share",
    "recovery_probability",
    "simulate",
    "solve",
    "stream",
    "to_numpy",
    "tolerance",
    "verify",
    "worst_case",
]


def __getattr__(name: str) -> Any:
    """The estimator, loaded when it is first used: scikit-learn is not needed for anything else."""
    if name != "LADRegressor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from netpurify.lad.regressor import LADRegressor
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("sklearn"):
            raise
        raise ModuleNotFoundError(
            "LADRegressor needs scikit-learn; install it with: pip install 'netpurify[sklearn]'", name=error.name
        ) from error

    return LADRegressor
