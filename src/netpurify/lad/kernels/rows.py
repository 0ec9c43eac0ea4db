"""Sums over rows of matrices, for compiled code."""

from netpurify.lad.kernels.compiled import inner


@inner
def add_row(total, factor, row, start):
    """Add ``factor`` times ``row`` to ``total``, from position ``start`` to the end of ``total``."""
    for c in range(start, total.size):
        total[c] += factor * row[c]


@inner(fastmath={"reassoc", "contract"})
def dot(values, row, start):
    """The sum of the products from position ``start`` to the end of ``values``."""
    total = 0.0
    for c in range(start, values.size):
        total += values[c] * row[c]
    return total
