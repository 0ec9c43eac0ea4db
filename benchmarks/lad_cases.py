"""The problems that the solvers are compared on: designs, planted columns, and what is asked of us on them.

A new design is one more ``Case`` with its own function from a generator to a matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from netpurify import data

Matrix = NDArray[np.float64]
DesignOf = Callable[[np.random.Generator], Matrix]


@dataclass(frozen=True, slots=True)
class Target:
    """What our solver is asked to reach: so many times faster than the best peer, within so many matrix products."""

    speedup: float
    gemms: float = np.inf

    def __str__(self) -> str:
        return f"{self.speedup:g}x" + (f", {self.gemms:g} GEMMs" if np.isfinite(self.gemms) else "")


@dataclass(frozen=True, slots=True)
class Case:
    """B = A U + noise, with Gaussian U and each entry hit with probability ``eps`` by N(1, 1).

    Attributes:
        size: Name of the design.
        eps: Probability that an entry is hit.
        design: Draws A.
        rounded: Whether A and B are rounded to float32, as stored weights are; the arrays stay float64.
        target: What is asked of us, where something is.
    """

    size: str
    eps: float
    design: DesignOf
    rounded: bool = False
    target: Target | None = None

    @property
    def name(self) -> str:
        """What the tables call it."""
        return f"{self.size} eps {self.eps:g}" + (" float32" if self.rounded else "")

    def matrix(self) -> Matrix:
        """The design; the same for every ``eps``."""
        return self._stored(self.design(np.random.default_rng(crc32(self.size.encode()))))

    def columns(self, A: Matrix, count: int, *, block: int = 0) -> Matrix:
        """``count`` right-hand sides [k, count]; the first ones are the same whatever ``count`` is."""
        seed = np.random.SeedSequence([crc32(self.size.encode()), block])
        truth, place, noise = (np.random.default_rng(child) for child in seed.spawn(3))
        k, q = A.shape
        hit = place.random((count, k)) < self.eps
        rows = truth.standard_normal((count, q)) @ A.T + hit * noise.normal(1.0, 1.0, (count, k))
        return self._stored(np.ascontiguousarray(rows.T))

    def _stored(self, values: Matrix) -> Matrix:
        return values.astype(np.float32).astype(np.float64) if self.rounded else values


def gaussian(k: int, q: int) -> DesignOf:
    """A design of independent N(0, 1) entries."""
    return lambda generator: generator.standard_normal((k, q))


def mnist_patches(generator: np.random.Generator) -> Matrix:
    """The upper and lower halves of 99 images of the bundled MNIST sample, [392, 198]; some rows are dark."""
    images = data.load("mnist-sample")
    chosen = generator.choice(len(images), 99, replace=False)
    return images.pixels[chosen].double().div(255).reshape(198, 392).numpy().T.copy()


def _planted(k: int, q: int, easy: Target | None, hard: Target | None, *, rounded: bool = False) -> list[Case]:
    return [Case(f"{k}x{q}", eps, gaussian(k, q), rounded, target) for eps, target in ((0.1, easy), (0.4, hard))]


CASES = [
    *_planted(100, 25, Target(10), Target(2)),
    *_planted(392, 198, Target(50), Target(8)),
    *_planted(784, 200, Target(50, 40), Target(8)),
    *_planted(2000, 100, Target(50), Target(25)),
    *_planted(392, 198, None, None, rounded=True),
    *_planted(784, 200, None, None, rounded=True),
    *(Case("MNIST 392x198", eps, mnist_patches) for eps in (0.1, 0.4)),
    *_planted(5000, 1000, Target(100), None),
]
"""In this order: what a peer needs for the smaller cases tells whether it is worth trying on the last."""
MEMORY = Case("392x198", 0.1, gaussian(392, 198))
"""The case whose memory is measured."""
