"""Lemma 1: the constants of a design, (8) to (10), with certified intervals where no formula gives them."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from netpurify import lad
from netpurify.errors import InputError
from netpurify.lad import ArrayLike, to_numpy


class Interval(NamedTuple):
    """Two numbers between which a quantity is proven to lie."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants of Lemma 1 for one design A with k rows a_i and q columns.

    Attributes:
        sigma2: (8): the least sigma^2 with |1/k sum c_i a_i|^2 <= sigma^2 q / k for all |c_i| <= 1. Equal to
            (sup_{|D|=1} |A D|_1)^2 / (k q). The paper asks it only of fixed c, with high probability.
        sigma2_signs: The same in the mean over random signs c_i, |A|_F^2 / (k q): about 1 for a Gaussian design.
        lambda_low: (9): inf_{|D|=1} |A D|_1 / k.
        lambda_high: (10): sqrt(sup_{|D|=1} |A D|_2^2 / k).
    """

    sigma2: Interval
    sigma2_signs: float
    lambda_low: Interval
    lambda_high: float


def constants(
    design: ArrayLike,
    *,
    generator: torch.Generator,
    worst: lad.WorstCase | None = None,
    starts: int = 8,
    quick: bool = False,
) -> Constants:
    """The constants of Lemma 1 for a design [k, q].

    (9) and, taken over all c at once, (8) are not convex: no method gives their value. Lower bounds of (9) are the best
    of three proofs, upper bounds come from a local search over L1 regressions; the truth lies between.

    Args:
        design: A, one row per weight of a unit, one column per clean input.
        generator: Source of the search's random starts.
        worst: ``lad.worst_case`` of this design, if it is known already.
        starts: Number of starts of the search, half of them random.
        quick: Leave out the proof that needs the worst case, which takes most of the time where there are many rows.
    """
    A = to_numpy(design, "the design").astype(np.float64)  # noqa: N806
    if A.ndim != 2 or not A.size:
        raise InputError(f"the design must be a matrix [k, q] with k, q >= 1; got {list(A.shape)}")
    if not np.isfinite(A).all():
        raise InputError("the design must be finite; got NaN or infinite entries")
    k, q = A.shape
    left, singular, _ = np.linalg.svd(A, full_matrices=False)
    # In the basis of the right singular vectors: norms of D do not change, and the bounds get better.
    turned = left * singular
    # What the factorisation may have rounded away of any A D.
    slack = 8.0 * max(k, q) * float(np.finfo(float).eps) * float(singular[0])
    smallest = float(singular[-1]) if singular.size == q else 0.0
    most = (_search(turned, generator, starts) if smallest else 0.0) + math.sqrt(k) * slack
    least = 0.0
    if smallest > slack:
        rho = 1.0
        if not quick and lad.Design.prepare(A).rank == q:  # else rho is that of a smaller span
            rho = (worst or lad.worst_case(A)).rho[1]
        least = max(smallest, smallest / math.sqrt(rho), _by_coordinates(turned)) - math.sqrt(k) * slack
    low = Interval(max(0.0, least) / k, most / k)
    return Constants(_sigma2(turned, k, q), float((A**2).sum() / (k * q)), low, _high(singular, k))


def fixed_sigma2(design: ArrayLike, c: ArrayLike) -> float:
    """The sigma^2 of (8) for one fixed c [k], |A'c|^2 / (k q); Lemma 2 needs it for c_i = 1 - 2 Q_i(0) only."""
    A = to_numpy(design, "the design").astype(np.float64)  # noqa: N806
    return float(np.square(A.T @ to_numpy(c, "c")).sum() / A.size)


def _high(singular: NDArray[np.float64], k: int) -> float:
    return float(singular[0] / math.sqrt(k))


def _by_coordinates(A: NDArray[np.float64]) -> float:  # noqa: N803
    """A proven lower bound of inf |A D|_1: with d_i = min {|A D|_1 : D_i = 1}, |A D|_1 >= max_i |D_i| d_i.

    Each d_i is an L1 regression of one column on the others, taken at its proven lower bound; over |D|_2 = 1 the
    maximum is at least (sum d_i^-2)^-1/2.
    """
    if A.shape[1] == 1:
        return float(np.abs(A).sum())
    bounds = []
    for i in range(A.shape[1]):
        others, column = np.delete(A, i, axis=1), A[:, i]
        proof = lad.verify(others, column, lad.solve(others, column, noise_floor=0.0).claim)
        bounds.append(max(0.0, float(proof.lower_bound)))
    return float(1.0 / np.sqrt(np.sum(1.0 / np.square(bounds)))) if min(bounds) > 0.0 else 0.0


def _search(A: NDArray[np.float64], generator: torch.Generator, starts: int) -> float:  # noqa: N803
    """A small |A D|_1 over the unit sphere, by descent from several starts.

    At D the problem min {|A E|_1 : D'E = 1} is an L1 regression; its E has |E|_2 >= 1, so E / |E| is at least as good.
    """
    q = A.shape[1]
    directions = np.eye(q)[::-1][: max(1, starts // 2)]
    drawn = torch.randn(max(1, starts - len(directions)), q, generator=generator, dtype=torch.float64).numpy()
    best = math.inf
    for start in (*directions, *drawn):
        current, value = start / np.linalg.norm(start), math.inf
        while (reached := float(np.abs(A @ current).sum())) < value * (1.0 - 1e-9):
            value = reached
            around = np.linalg.svd(current[None])[2][1:].T
            step = around @ np.asarray(lad.solve(A @ around, A @ current, noise_floor=0.0).coefficients)
            current = current - step
            current = current / np.linalg.norm(current)
        best = min(best, value)
    return best


def _sigma2(A: NDArray[np.float64], k: int, q: int) -> Interval:  # noqa: N803
    """(8) over all c: (sup |A D|_1)^2 / (k q), between what sign iterations reach and sqrt(k) |A|_op."""
    reached = 0.0
    for start in np.eye(A.shape[1]):
        current, value = start, 0.0
        while (now := float(np.abs(A @ current).sum())) > value * (1.0 + 1e-9):
            value = now
            current = A.T @ np.sign(A @ current)
            current = current / np.linalg.norm(current)
        reached = max(reached, value)
    most = math.sqrt(k) * float(np.linalg.norm(A, 2))
    return Interval(reached**2 / (k * q), max(reached, most) ** 2 / (k * q))
