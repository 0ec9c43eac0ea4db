"""Least absolute deviations: many L1 regressions that share one design, solved exactly and proven.

    solution = lad.solve(A, B)               argmin |B - A U|_1, column by column
    certificate = lad.verify(A, B, solution) what A, B, U and the dual alone prove about it

``Design.prepare(A)`` factors a design once for many calls; ``stream`` takes right-hand sides block by block.
"""

from netpurify.lad.certificate import Certificate, verify
from netpurify.lad.design import Design
from netpurify.lad.solution import Solution, Statistics
from netpurify.lad.solver import solve, stream
from netpurify.lad.status import Status

__all__ = ["Certificate", "Design", "Solution", "Statistics", "Status", "solve", "stream", "verify"]
