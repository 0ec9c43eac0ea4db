"""Making things dirty: altered weights, triggers and poisoned training data, with a record of what was done.

A law is a class with ``alter``, a trigger a class with ``stamp``: they propose, the functions here choose and measure.
Every draw comes from the generator that the caller gives.
"""

from netpurify.contaminate.laws import (
    BitFlip,
    Cauchy,
    Constant,
    Erase,
    Laplace,
    Law,
    Normal,
    Quantise,
    Scale,
    SignFlip,
    Uniform,
    Zero,
)

__all__ = [
    "BitFlip",
    "Cauchy",
    "Constant",
    "Erase",
    "Laplace",
    "Law",
    "Normal",
    "Quantise",
    "Scale",
    "SignFlip",
    "Uniform",
    "Zero",
]
