"""Walks from vertex to vertex in float32: a first vertex, all its edges, and then ``walking.walk``.

If the rows Z fit exactly and S are others, the edges of the vertex are T = Q_S Q_Z^-1. There are two ways to them.
``walk_near`` exchanges rows of Q with its columns, of the rows near the fit alone; rows far from it take part by their
signs, as a linear part of the loss. ``walk_turned`` is for designs that span more than half of all directions: let N be
an orthonormal basis of what is orthogonal to Q; then T = -(N_Z N_S^-1)', and N has fewer columns to exchange.

In float32 this finds the vertex. Fit and dual are then computed in float64 by the caller, who also looks whether a row
far from the fit has changed its sign.
"""

import numpy as np

from netpurify.lad.kernels.compiled import inner, kernel
from netpurify.lad.kernels.exchange import choose_vertex
from netpurify.lad.kernels.rows import add_row, dot
from netpurify.lad.kernels.walking import walk

_PREFERENCE = 0.02
"""Rows whose residual is below this share of that of the rank-th nearest row are equally good for the first vertex."""
_LEAST, _MOST = 0.02, 100.0
"""On N, preference for S grows with the residual between these multiples of what is typical at the edge of the fit."""


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
    place, near, side = np.empty(rows, np.int64), np.empty(rows), np.empty(rows)
    fit, dual, length = np.empty(rank), np.empty(rank), np.empty(rank)
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
        for a in range(rank):
            fit[a], dual[a], length[a] = near[vertex[i, a]], 0.0, 0.0
        for t in range(rows):
            side[t] = 0.0
            if place[t] < 0:
                add_row(dual, -slope[i, -1 - place[t]], table[t], 0)
                _add_squares(length, table[t])
            elif t < count:
                near[t] -= dot(fit, table[t], 0)
                side[t] = 1.0 if near[t] >= 0.0 else -1.0
                add_row(dual, -side[t], table[t], 0)
        pivots[i] = walk(table, near, side, dual, length, most_pivots, place, vertex[i])
        for t in range(rows):
            if side[t] != 0.0:
                sign[i, order[i, place[t]]] = side[t]
            elif place[t] < 0:
                for c in range(width):
                    inverse[i, -1 - place[t], c] = table[t, c]
        for a in range(rank):
            vertex[i, a] = order[i, vertex[i, a]]
            sign[i, vertex[i, a]] = 0.0


@kernel
def walk_turned(null, residual, scale, tilt, most_pivots, vertex, others, edges, sign, pivots):
    """Minimise the sum of |residual| + tilt residual over all rows, for each column.

    Args:
        null: N in float32, [padded rows, padded columns].
        residual: Residuals of a first fit, [n, padded rows]; none may be missing.
        scale: The residual of the rank-th nearest row: larger ones are likely not to be zero at the minimum, [n].
        tilt: 2 quantile - 1.
        most_pivots: Where to give up.
        vertex: Receives the rows Z that fit exactly, [n, rank].
        others: Receives the rows S, [n, columns].
        edges: Receives T in float32, [n, columns, padded rank].
        sign: Receives the signs of the residuals, [n, padded rows]; 0 for Z.
        pivots: Receives how many pivots were made, or -1 where no optimal vertex was found, [n].
    """
    (rank, columns), width = (vertex.shape[1], others.shape[1]), edges.shape[2]
    exchanged, weight = np.empty(null.shape, np.float32), np.empty(null.shape[0], np.float32)
    place, rows = np.empty(null.shape[0], np.int64), -(-columns // 8) * 8
    table, far, side = np.zeros((rows, width), np.float32), np.zeros(rows), np.zeros(rows)
    fit, dual, length = np.empty(rank), np.empty(rank), np.empty(rank)
    for i in range(residual.shape[0]):
        for t in range(null.shape[0]):
            weight[t] = 0.0
            if t < rank + columns:
                weight[t] = (abs(residual[i, t]) + _LEAST * scale[i]) / (abs(residual[i, t]) + _MOST * scale[i])
            for c in range(null.shape[1]):
                exchanged[t, c] = null[t, c]
        pivots[i] = -1
        if not choose_vertex(exchanged, columns, weight, place, others[i]):
            continue
        a = np.int64(0)
        for t in range(rank + columns):
            if place[t] >= 0:
                vertex[i, a], fit[a], dual[a], length[a] = t, residual[i, t], -tilt, 1.0
                for c in range(columns):
                    table[c, a] = -exchanged[t, c]
                a += 1
        for c in range(columns):
            far[c] = residual[i, others[i, c]] - dot(fit, table[c], 0)
            side[c] = 1.0 if far[c] >= 0.0 else -1.0
            add_row(dual, -side[c] - tilt, table[c], 0)
            _add_squares(length, table[c])
        pivots[i] = walk(table, far, side, dual, length, most_pivots, others[i], vertex[i])
        for a in range(rank):
            sign[i, vertex[i, a]] = 0.0
        for c in range(columns):
            sign[i, others[i, c]] = side[c]
            for a in range(width):
                edges[i, c, a] = table[c, a]


@inner
def _add_squares(total, row):
    for a in range(total.size):
        total[a] += row[a] * row[a]
