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
Law = Callable[[np.random.Generator, tuple[int, int]], Matrix]


@dataclass(frozen=True, slots=True)
class Target:
    """What our solver is asked to reach: so many times faster than the best peer, within so many matrix products."""

    speedup: float
    gemms: float = np.inf

    def __str__(self) -> str:
        return f"{self.speedup:g}x" + (f", {self.gemms:g} GEMMs" if np.isfinite(self.gemms) else "")


def shifted_normal(generator: np.random.Generator, shape: tuple[int, int]) -> Matrix:
    """N(1, 1), the paper's alterations."""
    return generator.normal(1.0, 1.0, shape)


def student(generator: np.random.Generator, shape: tuple[int, int]) -> Matrix:
    """Student's t with three degrees of freedom: heavy tails, as in regressions of money or time."""
    return generator.standard_t(3, shape)


@dataclass(frozen=True, slots=True)
class Case:
    """B = A U + noise, with Gaussian U and each entry hit with probability ``eps`` by noise of the ``law``.

    Attributes:
        size: Name of the design.
        eps: Probability that an entry is hit.
        design: Draws A.
        rounded: Whether A and B are rounded to float32, as stored weights are; the arrays stay float64. Our solver then
            runs a second time, with ``noise_floor=0``.
        target: What is asked of us, where something is.
        exact_target: What is asked of us with ``noise_floor=0``.
        law: Noise of given shape; N(1, 1) if nothing else is said.
        quantile: Which quantile is regressed.
    """

    size: str
    eps: float
    design: DesignOf
    rounded: bool = False
    target: Target | None = None
    exact_target: Target | None = None
    law: Law = shifted_normal
    quantile: float = 0.5

    @property
    def name(self) -> str:
        """What the tables call it."""
        if self.law is student:
            return f"{self.size} t(3) quantile {self.quantile:g}"
        return f"{self.size} eps {self.eps:g}" + (" float32" if self.rounded else "")

    @property
    def floors(self) -> tuple[float | None, ...]:
        """The noise floors with which our solver runs: detected; then, if the data are rounded, 0."""
        return (None, 0.0) if self.rounded else (None,)

    def matrix(self) -> Matrix:
        """The design; the same for every ``eps``, law and quantile."""
        return self._stored(self.design(np.random.default_rng(crc32(self.size.encode()))))

    def columns(self, A: Matrix, count: int, *, block: int = 0) -> Matrix:
        """``count`` right-hand sides [k, count]; the first ones are the same whatever ``count`` is."""
        seed = np.random.SeedSequence([crc32(self.size.encode()), block])
        truth, place, noise = (np.random.default_rng(child) for child in seed.spawn(3))
        k, q = A.shape
        hit = place.random((count, k)) < self.eps
        rows = truth.standard_normal((count, q)) @ A.T + hit * self.law(noise, (count, k))
        return self._stored(np.ascontiguousarray(rows.T))

    def _stored(self, values: Matrix) -> Matrix:
        return values.astype(np.float32).astype(np.float64) if self.rounded else values


def gaussian(k: int, q: int) -> DesignOf:
    """A design of independent N(0, 1) entries."""
    return lambda generator: generator.standard_normal((k, q))


def mnist_patches(images: int, m: int) -> DesignOf:
    """The m patches of so many images of the bundled MNIST sample, [784 / m, images m]; some rows are dark.

    The patches are those of the paper's network, ``paper.PatchCNN.patches``: 784 / m pixels one after the other.
    """

    def draw(generator: np.random.Generator) -> Matrix:
        sample = data.load("mnist-sample")
        chosen = generator.choice(len(sample), images, replace=False)
        return sample.pixels[chosen].double().div(255).reshape(images * m, 784 // m).numpy().T.copy()

    return draw


def _planted(size: str, design: DesignOf, **targets: Target) -> list[Case]:
    return [Case(size, eps, design, target=targets.get(name)) for name, eps in (("easy", 0.1), ("hard", 0.4))]


def _rounded(k: int, q: int) -> Case:
    return Case(f"{k}x{q}", 0.1, gaussian(k, q), rounded=True, exact_target=Target(10))


def _dense(k: int, q: int, *, quantiles: tuple[float, ...], target: Target | None = None) -> list[Case]:
    return [
        Case(f"{k}x{q}", 1.0, gaussian(k, q), target=target, law=student, quantile=quantile) for quantile in quantiles
    ]


HALVES, FEW_HALVES, QUARTERS = mnist_patches(99, 2), mnist_patches(21, 2), mnist_patches(99, 4)
CASES = [
    *_planted("100x25", gaussian(100, 25), easy=Target(15), hard=Target(10)),
    *_planted("392x198", gaussian(392, 198), easy=Target(100), hard=Target(25)),
    *_planted("784x200", gaussian(784, 200), easy=Target(100, 40), hard=Target(25)),
    *_planted("2000x100", gaussian(2000, 100), easy=Target(50), hard=Target(25)),
    _rounded(392, 198),
    _rounded(784, 200),
    *(Case("MNIST 392x198", eps, HALVES, target=Target(25)) for eps in (0.05, 0.1, 0.4)),
    Case("MNIST 392x42", 0.1, FEW_HALVES),
    Case("MNIST 196x396", 0.1, QUARTERS),
    *_planted("5000x1000", gaussian(5000, 1000), easy=Target(100)),
]
"""In this order: what a peer needs for the smaller cases tells whether it is worth trying on the last."""
QUANTILES = [
    *_dense(100, 25, quantiles=(0.05, 0.5, 0.95)),
    *_dense(500, 8, quantiles=(0.05, 0.5, 0.95), target=Target(8)),
    *_dense(2000, 20, quantiles=(0.05, 0.5, 0.95), target=Target(8)),
    *_dense(5000, 50, quantiles=(0.05, 0.5, 0.95), target=Target(5)),
]
"""Dense noise, as statisticians have it: nothing fits exactly, and nobody recovers anything."""
MEMORY = Case("392x198", 0.1, gaussian(392, 198))
"""The case whose memory is measured."""
