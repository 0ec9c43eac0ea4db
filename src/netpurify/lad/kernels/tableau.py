"""Walks from vertex to vertex on a float32 tableau that holds only the rows near the fit.

As in ``pivoting``, each pivot leaves along the steepest improving edge and walks past every kink at which the objective
still falls. Here all edges of the vertex are kept, T_S T_Z^-1, so a pivot is one update of rank one; rows far from the
fit take part by their signs alone, as a linear part of the loss. In float32 this finds the vertex; fit and dual are
then computed in float64 by the caller, who also looks whether a row far from the fit has changed its sign.
"""

import numpy as np

from netpurify.lad.kernels.compiled import inner, kernel
from netpurify.lad.kernels.exchange import choose_vertex, subtract_product
from netpurify.lad.kernels.rows import add_row, dot
from netpurify.lad.kernels.select import weighted_select

TOLERANCE = 1e-5
"""Duals may exceed 1 by this much: they are sums of many float32 numbers."""
SMALLEST_PIVOT = 1e-4
PATIENCE = 8
"""Pivots in a row that lead nowhere before the walk is given up."""
_PREFERENCE = 0.02
"""Rows whose residual is below this share of that of the rank-th nearest row are equally good for the first vertex."""


@kernel
def walk_near(basis, residual, order, slope, most_pivots, vertex, inverse, sign, pivots):
    """Minimise the sum of |residual| over the rows in ``order``, plus a linear part, for each column.

    Args:
        basis: Q in float32, [padded rows, padded rank].
        residual: Residuals of a first fit, [n, padded rows].
        order: Rows that take part, by the size of their residual, ascending, [n, m]; filled up with -1.
        slope: What the other rows and the tilt of the loss add to Q'y = 0, [n, padded rank].
        most_pivots: Where to give up.
        vertex: Receives the rows Z that fit exactly, [n, rank].
        inverse: Receives the inverse of Q_Z in float32, [n, padded rank, padded rank].
        sign: Signs of the residuals, [n, padded rows]; changed for the rows that take part, 0 for Z.
        pivots: Receives how many pivots were made, or -1 where no optimal vertex was found, [n].
    """
    rank, width = vertex.shape[1], basis.shape[1]
    rows = -(-order.shape[1] // 8) * 8
    table, weight = np.empty((rows, width), np.float32), np.empty(rows, np.float32)
    place, near = np.empty(rows, np.int64), np.empty(rows)
    for i in range(order.shape[0]):
        count = np.int64(0)
        for t in range(rows):
            row = order[i, t] if t < order.shape[1] else -1
            count += row >= 0
            near[t] = residual[i, row] if row >= 0 else 0.0
            for c in range(width):
                table[t, c] = basis[row, c] if row >= 0 else np.float32(0.0)
        pivots[i] = -1
        if count < rank:
            continue
        floor = max(_PREFERENCE * abs(near[rank - 1]), 1e-30)
        for t in range(rows):
            weight[t] = floor / (floor + abs(near[t])) if t < count else 0.0
        if not choose_vertex(table, rank, weight, place, vertex[i]):
            continue
        pivots[i] = _walk(table, rank, near, slope[i], most_pivots, place, vertex[i], sign[i], order[i])
        for t in range(rows):
            if place[t] < 0:
                for c in range(width):
                    inverse[i, -1 - place[t], c] = table[t, c]
        for a in range(rank):
            vertex[i, a] = order[i, vertex[i, a]]


@inner
def _walk(table, rank, residual, slope, most_pivots, place, vertex, sign, order):
    """Pivot until no edge improves; ``residual`` and ``place`` go by rows of the table, ``vertex`` by its columns."""
    rows = table.shape[0]
    fit, dual, length = np.empty(rank), np.zeros(rank), np.zeros(rank)
    side, kink, weight = np.zeros(rows), np.empty(rows), np.empty(rows)
    position = np.empty(rows, np.int64)
    factor, pivot_row = np.empty((rows, 1), np.float32), np.empty((1, table.shape[1]), np.float32)
    for a in range(rank):
        fit[a] = residual[vertex[a]]
    used = np.int64(0)  # rows of the table that hold something
    for t in range(rows):
        if place[t] < 0:
            add_row(dual, -slope[-1 - place[t]], table[t], 0)
        elif place[t] < order.size and order[place[t]] >= 0:
            residual[t] -= dot(fit, table[t], 0)
            side[t] = 1.0 if residual[t] >= 0.0 else -1.0
            add_row(dual, -side[t], table[t], 0)
        else:
            continue
        used = t + 1
    for t in range(used):
        _add_squares(length, table[t])
    idle, made = 0, np.int64(-1)
    for pivot in range(most_pivots):
        leaving, best = np.int64(-1), 0.0
        for a in range(rank):
            excess = abs(dual[a]) - 1.0
            if excess > TOLERANCE and excess * excess > best * length[a]:
                leaving, best = a, excess * excess / length[a]
        if leaving < 0:
            made = pivot
            break
        way = 1.0 if dual[leaving] > 0.0 else -1.0
        count = np.int64(0)
        for t in range(used):
            speed = way * table[t, leaving]
            if speed * side[t] < -SMALLEST_PIVOT:
                kink[count], weight[count] = max(-residual[t] / speed, 0.0), 2.0 * abs(speed)
                position[count] = t
                count += 1
        if count == 0:
            break
        stop = weighted_select(kink, weight, position, count, abs(dual[leaving]) - 1.0)
        entering, step = position[stop], kink[stop]
        for t in range(used):
            if side[t] != 0.0:
                residual[t] += step * way * table[t, leaving]
        for c in range(count):
            t = position[c]
            if kink[c] < step and t != entering:
                add_row(dual, 2.0 * side[t], table[t], 0)
                side[t] = -side[t]
        add_row(dual, side[entering], table[entering], 0)
        turn = 1.0 / table[entering, leaving]
        moved = (dual[leaving] - way) * turn
        add_row(dual, -moved, table[entering], 0)
        dual[leaving] = moved
        place[entering], vertex[leaving] = vertex[leaving], place[entering]
        residual[entering], side[entering] = step * way, way
        reference = length[leaving]
        for a in range(rank):
            ratio = turn * table[entering, a]
            length[a] = max(length[a], ratio * ratio * reference)
        length[leaving] = max(reference * turn * turn, 1.0)
        exchange(table, entering, leaving, np.float32(turn), factor, pivot_row)
        idle = idle + 1 if step <= 0.0 else 0
        if idle > PATIENCE:
            break
    for t in range(used):
        if place[t] >= 0:
            sign[order[place[t]]] = side[t]
    for a in range(rank):
        sign[order[vertex[a]]] = 0.0
    return made


@inner
def exchange(table, p, c, turn, factor, pivot):
    """Exchange row p with column c; ``turn`` is one over their element, ``factor`` and ``pivot`` are working memory."""
    for a in range(table.shape[1]):
        pivot[0, a] = turn * table[p, a]
        table[p, a] = np.float32(0.0)
    pivot[0, c] = -turn
    for t in range(table.shape[0]):
        factor[t, 0] = table[t, c]
        table[t, c] = np.float32(0.0)
    factor[p, 0] = np.float32(1.0)
    subtract_product(factor, pivot, table, 0, table.shape[1])


@inner
def _add_squares(total, row):
    for a in range(total.size):
        total[a] += row[a] * row[a]
