"""Purify contaminated neural networks without labels and without retraining.

A tour, from the mathematics up:

- ``netpurify.lad``: many L1 regressions that share one design, solved exactly, with a proof for every answer.
- ``netpurify.errors``: the errors raised on purpose.
"""

from netpurify import lad
from netpurify.errors import InputError, NetpurifyError

__all__ = ["InputError", "NetpurifyError", "lad"]
__version__ = "0.1.0"
