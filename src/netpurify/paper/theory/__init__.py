"""The paper's theory as numbers: Lemma 1's constants, the bounds of Theorems 1 to 3, and the limits of recovery.

``examine`` runs the whole system once and sets every statement beside what was measured, ``sweep`` follows the
statements that hold up to a constant along one letter, and ``ERRATA`` are the paper's misprints and false bounds, each
with numbers; ``netpurify theory`` prints them. ``tolerance``, ``recovery_probability``, ``largest_share`` and
``worst_case`` are those of ``netpurify.lad``.
"""

from netpurify.lad import largest_share, recovery_probability, tolerance, worst_case
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.constants import Constants, Interval, constants
from netpurify.paper.theory.errata import ERRATA
from netpurify.paper.theory.erratum import Erratum
from netpurify.paper.theory.examination import Examination, ExaminedSystem, examine
from netpurify.paper.theory.expected import ExpectedKernels, corrected_kernels, exact_kernels, printed_kernels
from netpurify.paper.theory.false_bounds import surviving_orders
from netpurify.paper.theory.kernels import kernels, remainder, spectrum
from netpurify.paper.theory.row import Row
from netpurify.paper.theory.sweeping import LETTERS, SweptStatement, TheorySweep, sweep

__all__ = [
    "ERRATA",
    "LETTERS",
    "Constants",
    "Erratum",
    "Examination",
    "ExaminedSystem",
    "ExpectedKernels",
    "Interval",
    "Row",
    "Setting",
    "SweptStatement",
    "TheorySweep",
    "constants",
    "corrected_kernels",
    "exact_kernels",
    "examine",
    "kernels",
    "largest_share",
    "printed_kernels",
    "recovery_probability",
    "remainder",
    "spectrum",
    "surviving_orders",
    "sweep",
    "tolerance",
    "worst_case",
]
