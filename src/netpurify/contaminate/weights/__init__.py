"""Altered weights: the laws of alteration, their application to a state, and the comparison of two states."""

from netpurify.contaminate.weights import laws
from netpurify.contaminate.weights.apply import Contaminated, contaminate
from netpurify.contaminate.weights.comparison import Difference, TensorDifference, difference
from netpurify.contaminate.weights.laws import *  # noqa: F403  # a new law is exported by its own file alone

__all__ = ["Contaminated", "Difference", "TensorDifference", "contaminate", "difference"]
__all__ += laws.__all__
