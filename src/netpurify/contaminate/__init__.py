"""Making things dirty: altered weights, triggers and poisoned training data, with a record of what was done.

    dirty = contaminate(model.state_dict(), Normal(sd=1.0), share=0.1, generator=generator)
    dirty.state, dirty.altered              the weights, and exactly which entries changed

A law is a class with ``alter``, a trigger a class with ``stamp``: they propose, the functions here choose and measure.
Every draw comes from the generator that the caller gives.
"""

from netpurify.contaminate.entries import Contaminated, contaminate
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
    "Contaminated",
    "Erase",
    "Laplace",
    "Law",
    "Normal",
    "Quantise",
    "Scale",
    "SignFlip",
    "Uniform",
    "Zero",
    "contaminate",
]
