"""The walk itself: from a vertex and all its edges to an optimal one, in float32.

As in ``pivoting``, each pivot leaves along the steepest improving edge and walks past every kink at which the objective
still falls. A pivot changes the table of edges by the product of one column and one row. Several such products are kept
and subtracted together, because a product of rank one would take no longer to compute than the table takes to read.
"""

import numpy as np

from netpurify.lad.kernels.compiled import inner
from netpurify.lad.kernels.exchange import subtract_product
from netpurify.lad.kernels.rows import add_row
from netpurify.lad.kernels.select import weighted_select

TOLERANCE = 1e-5
"""Duals may exceed 1 by this much: they are sums of many float32 numbers."""
SMALLEST_PIVOT = 1e-4
PATIENCE = 8
"""Pivots in a row that lead nowhere before the walk is given up."""
_PENDING = 16
"""So many pivots are applied to the table together."""


@inner
def walk(table, residual, side, dual, length, most_pivots, place, vertex):
    """Pivot until no edge improves; returns how many pivots were made, or -1 if that did not lead to an optimal vertex.

    Args:
        table: Edges T of the vertex, [padded rows, padded rank]: row t has the changes of its residual, less their
            sign, when a row of the vertex moves by 1. Rows without a side may hold a part of the inverse.
        residual: Residuals of the rows, [padded rows].
        side: Their signs, 1 or -1; 0 for rows that hold no edges.
        dual: Duals of the rows of the vertex, [rank].
        length: Squared lengths of the edges, by which the steepest is chosen, [rank].
        most_pivots: Where to give up.
        place: What the rows are called, [>= padded rows]; a pivot exchanges names.
        vertex: What the rows of the vertex are called, [rank].
    """
    (rows, width), rank = table.shape, vertex.size
    kink, weight, position = np.empty(rows), np.empty(rows), np.empty(rows, np.int64)
    left, right = np.zeros((_PENDING, rows), np.float32), np.zeros((_PENDING, width), np.float32)
    row, pending, idle, made = np.empty(width, np.float32), np.int64(0), np.int64(0), np.int64(-1)
    for pivot in range(most_pivots):
        leaving, best = np.int64(-1), 0.0
        for a in range(rank):
            excess = abs(dual[a]) - 1.0
            if excess > TOLERANCE and excess * excess > best * length[a]:
                leaving, best = a, excess * excess / length[a]
        if leaving < 0:
            made = pivot
            break
        way, column = 1.0 if dual[leaving] > 0.0 else -1.0, left[pending]
        for t in range(rows):
            column[t] = table[t, leaving]
        for j in range(pending):
            add_row(column, -right[j, leaving], left[j], 0)
        count = np.int64(0)
        for t in range(rows):
            speed = way * column[t]
            if speed * side[t] < -SMALLEST_PIVOT:
                kink[count], weight[count] = max(-residual[t] / speed, 0.0), 2.0 * abs(speed)
                position[count] = t
                count += 1
        if count == 0:
            break
        stop = weighted_select(kink, weight, position, count, abs(dual[leaving]) - 1.0)
        entering, step = position[stop], kink[stop]
        add_row(residual, step * way, column, 0)
        for c in range(count):
            t = position[c]
            if kink[c] < step and t != entering:
                _add_edges(dual, 2.0 * side[t], t, table, left, right, pending)
                side[t] = -side[t]
        for c in range(width):
            row[c] = 0.0
        _add_edges(row, 1.0, entering, table, left, right, pending)
        add_row(dual, side[entering], row, 0)
        turn, reference = 1.0 / row[leaving], length[leaving]
        moved = (dual[leaving] - way) * turn
        add_row(dual, -moved, row, 0)
        dual[leaving] = moved
        for a in range(rank):
            ratio = turn * row[a]
            length[a] = max(length[a], ratio * ratio * reference)
        length[leaving] = max(reference * turn * turn, 1.0)
        place[entering], vertex[leaving] = vertex[leaving], place[entering]
        residual[entering], side[entering] = step * way, way
        # The row and the column that are exchanged become what the new product makes of them alone.
        for t in range(rows):
            table[t, leaving] = 0.0
        for c in range(width):
            table[entering, c] = 0.0
            right[pending, c] = turn * row[c]
        for j in range(pending):
            left[j, entering], right[j, leaving] = 0.0, 0.0
        column[entering], right[pending, leaving] = 1.0, -turn
        pending += 1
        if pending == _PENDING:
            subtract_product(left.T, right, table, 0, width)
            pending = np.int64(0)
        idle = idle + 1 if step <= 0.0 else np.int64(0)
        if idle > PATIENCE:
            break
    subtract_product(left[:pending].T, right[:pending], table, 0, width)
    return made


@inner
def _add_edges(total, factor, t, table, left, right, pending):
    """Add ``factor`` times row t of the table, with the products that are still to be subtracted, to ``total``."""
    add_row(total, factor, table[t], 0)
    for j in range(pending):
        add_row(total, -factor * left[j, t], right[j], 0)
