"""Sums over rows of matrices, for compiled code."""

from netpurify.lad.kernels.compiled import inner


@inner
def add_row(total, factor, row, start):
    """Add ``factor`` times ``row`` to ``total``, from position ``start`` to the end of ``total``."""
    for c in range(start, total.size):
        total[c] += factor * row[c]


@inner(fastmath={"contract"})
def add_rows(total, factors, side, rows, index, count, sign):
    """Add the first ``count`` rows of ``rows`` that ``index`` names, times ``sign`` factors[:, side], to ``total``.

    Four rows at a time, because a sum in memory takes longer to read and to write than to add to.
    """
    a = 0
    while a + 4 <= count:
        w, x = sign * factors[a, side], sign * factors[a + 1, side]
        y, z = sign * factors[a + 2, side], sign * factors[a + 3, side]
        r, s, t, u = rows[index[a]], rows[index[a + 1]], rows[index[a + 2]], rows[index[a + 3]]
        for c in range(total.size):
            total[c] += (w * r[c] + x * s[c]) + (y * t[c] + z * u[c])
        a += 4
    while a < count:
        add_row(total, sign * factors[a, side], rows[index[a]], 0)
        a += 1


@inner(fastmath={"reassoc", "contract"})
def dot(values, row, start):
    """The sum of the products from position ``start`` to the end of ``values``."""
    total = 0.0
    for c in range(start, values.size):
        total += values[c] * row[c]
    return total
