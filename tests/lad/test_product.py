"""The product whose bits depend on nothing but its factors."""

import numpy as np
import pytest

from netpurify.lad.kernels.product import product


def in_order(left, right):
    """Sums over 64 products each, in the order of the inner index and rounded as numpy rounds, and then their sum."""
    total = np.zeros((left.shape[0], right.shape[1]), left.dtype)
    for low in range(0, left.shape[1], 64):
        part = np.zeros_like(total)
        for k in range(low, min(low + 64, left.shape[1])):
            part = part + left[:, k, None] * right[k]
        total = total + part
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 4, 1), (3, 8, 7), (8, 64, 33), (13, 68, 100), (128, 200, 392), (5, 0, 3)])
def test_every_element_is_its_sum_in_order(shape, dtype):
    rng = np.random.default_rng(0)
    n, m, p = shape
    left, right = rng.standard_normal((n, m)).astype(dtype), rng.standard_normal((m, p)).astype(dtype)
    found = product(left, right)
    assert found.dtype == dtype
    assert found.tobytes() == in_order(left, right).tobytes()


def test_factors_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="multiple of 4"):
        product(np.zeros((2, 6)), np.zeros((6, 3)))
    with pytest.raises(ValueError, match="multiple of 4"):
        product(np.zeros((2, 8)), np.zeros((4, 3)))
