"""The paper's theory as numbers: Lemma 1's constants, the bounds of Theorems 1 to 3, and the limits of recovery.

``examine`` runs the whole system once and sets every statement beside what was measured; ``netpurify theory`` prints
it. ``tolerance``, ``recovery_probability``, ``largest_share`` and ``worst_case`` are those of ``netpurify.lad``.
"""

from netpurify.lad import largest_share, recovery_probability, tolerance, worst_case
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.constants import Constants, Interval, constants
from netpurify.paper.theory.examination import Examination, ExaminedSystem, examine
from netpurify.paper.theory.kernels import kernels, remainder, spectrum
from netpurify.paper.theory.row import Row

__all__ = [
    "Constants",
    "Examination",
    "ExaminedSystem",
    "Interval",
    "Row",
    "Setting",
    "constants",
    "examine",
    "kernels",
    "largest_share",
    "recovery_probability",
    "remainder",
    "spectrum",
    "tolerance",
    "worst_case",
]
