"""The product whose bits depend on nothing but its factors."""

from fractions import Fraction

import numpy as np
import pytest
from llvmlite.binding import get_host_cpu_features
from numba.core import config

from netpurify.lad.kernels.product import product

FUSED = config.CPU_FEATURES is None and get_host_cpu_features().get("fma", False)
"""Whether a multiplication and its addition are rounded once."""


def dot(left, right):
    """The sum over up to 64 products in order, computed with fractions and rounded as the processor rounds."""
    kind, total = left.dtype.type, Fraction(0)
    for a, b in zip(left, right, strict=True):
        exact = Fraction(float(a)) * Fraction(float(b))
        total = rounded(kind, total + (exact if FUSED else rounded(kind, exact)))
    return total


def rounded(kind, value):
    """The nearest number of ``kind``; found among the neighbours of an approximation."""
    near = kind(float(value))
    candidates = (near, np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf)))  # ties go to the even one
    return min((Fraction(float(c)) for c in candidates), key=lambda c: abs(c - value))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 4, 1), (3, 8, 7), (8, 64, 33), (9, 70, 50), (5, 0, 3), (2, 66, 520)])
def test_every_element_is_its_sum_in_order(shape, dtype):
    rng = np.random.default_rng(0)
    n, m, p = shape
    left, right = rng.standard_normal((n, m)).astype(dtype), rng.standard_normal((m, p)).astype(dtype)
    found = product(left, right)
    assert found.dtype == dtype
    assert found.shape == (n, p)
    for i, j in {(0, 0), (n - 1, p - 1), (n // 2, p // 2), (0, p - 1), (n - 1, p // 3)}:
        parts = [dot(left[i, low : low + 64], right[low : low + 64, j]) for low in range(0, m, 64)]
        total = Fraction(0)
        for part in parts:
            total = rounded(dtype, total + part)
        assert Fraction(float(found[i, j])) == total


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [8, 24, 200, 392, 520])
def test_bits_depend_neither_on_the_place_nor_on_neighbours(dtype, width):
    rng = np.random.default_rng(1)
    left, right = rng.standard_normal((37, 130)).astype(dtype), rng.standard_normal((130, width)).astype(dtype)
    whole = product(left, right)
    turned = product(np.ascontiguousarray(left[::-1]), np.ascontiguousarray(right[:, ::-1]))[::-1, ::-1]
    assert whole.tobytes() == np.ascontiguousarray(turned).tobytes()
    assert whole[5:6].tobytes() == product(left[5:6], right).tobytes()
    assert np.abs(whole - left.astype(np.longdouble) @ right).max() < 300 * np.finfo(dtype).eps


def test_factors_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"must be \[n, m\] and \[m, p\]"):
        product(np.zeros((2, 8)), np.zeros((4, 3)))
