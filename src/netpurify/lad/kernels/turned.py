"""The walk of ``tableau`` for designs that span more than half of all directions, on what they do not span.

Let N be an orthonormal basis of what is orthogonal to Q. If the rows Z fit exactly and S are the others, then the edges
of the vertex are T = Q_S Q_Z^-1 = -(N_Z N_S^-1)'. N has fewer columns than Q, so N_Z N_S^-1 is cheaper to find. Here
a row of the table belongs to a fitted row, with its dual, and a column to a row with a residual.
"""

import numpy as np

from netpurify.lad.kernels.compiled import inner, kernel
from netpurify.lad.kernels.exchange import choose_vertex
from netpurify.lad.kernels.rows import add_row, dot
from netpurify.lad.kernels.select import weighted_select
from netpurify.lad.kernels.tableau import PATIENCE, SMALLEST_PIVOT, TOLERANCE, exchange

_LEAST, _MOST = 0.02, 100.0
"""Preference for S grows with the residual between these multiples of what is typical at the edge of the fit."""


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
        edges: Receives N_Z N_S^-1 in float32, [n, rank, padded columns].
        sign: Receives the signs of the residuals, [n, padded rows]; 0 for Z.
        pivots: Receives how many pivots were made, or -1 where no optimal vertex was found, [n].
    """
    (rank, columns), width = (vertex.shape[1], others.shape[1]), null.shape[1]
    table, weight = np.empty(null.shape, np.float32), np.empty(null.shape[0], np.float32)
    place = np.empty(null.shape[0], np.int64)
    for i in range(residual.shape[0]):
        for t in range(null.shape[0]):
            weight[t] = 0.0
            if t < rank + columns:
                weight[t] = (abs(residual[i, t]) + _LEAST * scale[i]) / (abs(residual[i, t]) + _MOST * scale[i])
            for c in range(width):
                table[t, c] = null[t, c]
        pivots[i] = -1
        if not choose_vertex(table, columns, weight, place, others[i]):
            continue
        pivots[i] = _walk(table, residual[i], tilt, most_pivots, place, others[i], sign[i])
        taken = 0
        for t in range(rank + columns):
            if place[t] >= 0:
                vertex[i, taken] = place[t]
                for c in range(width):
                    edges[i, taken, c] = table[t, c]
                taken += 1


@inner
def _walk(table, start, tilt, most_pivots, place, others, sign):
    """Pivot until no edge improves. ``place`` goes by the rows of the table, ``others`` by its columns."""
    (rows, width), columns = table.shape, others.size
    residual, side, pull = np.zeros(width), np.zeros(width), np.zeros(width)
    dual, length = np.zeros(rows), np.ones(rows)
    kink, weight, position = np.empty(columns), np.empty(columns), np.empty(columns, np.int64)
    factor, pivot_row = np.empty((rows, 1), np.float32), np.empty((1, width), np.float32)
    for c in range(columns):
        residual[c] = start[others[c]]
    for t in range(rows):
        if place[t] >= 0 and start[place[t]] != 0.0:
            add_row(residual, start[place[t]], table[t], 0)
    for c in range(columns):
        side[c] = 1.0 if residual[c] >= 0.0 else -1.0
        pull[c] = side[c] + tilt
    for t in range(rows):
        if place[t] >= 0:
            dual[t] = dot(pull, table[t], 0) - tilt
            length[t] = 1.0 + dot(table[t], table[t], 0)
    idle, made = 0, np.int64(-1)
    for pivot in range(most_pivots):
        leaving, best = np.int64(-1), 0.0
        for t in range(rows):
            excess = abs(dual[t]) - 1.0
            if excess > TOLERANCE and excess * excess > best * length[t] and place[t] >= 0:
                leaving, best = t, excess * excess / length[t]
        if leaving < 0:
            made = pivot
            break
        way = 1.0 if dual[leaving] > 0.0 else -1.0
        count = np.int64(0)
        for c in range(columns):
            speed = -way * table[leaving, c]
            if speed * side[c] < -SMALLEST_PIVOT:
                kink[count], weight[count] = max(-residual[c] / speed, 0.0), 2.0 * abs(speed)
                position[count] = c
                count += 1
        if count == 0:
            break
        stop = weighted_select(kink, weight, position, count, abs(dual[leaving]) - 1.0)
        entering, step = position[stop], kink[stop]
        add_row(residual, -step * way, table[leaving], 0)
        for a in range(count):
            c = position[a]
            if kink[a] < step and c != entering:
                for t in range(rows):
                    dual[t] -= 2.0 * side[c] * table[t, c]
                side[c] = -side[c]
        turn = 1.0 / table[leaving, entering]
        moved = (dual[leaving] - way) * turn
        reference = length[leaving]
        for t in range(rows):
            ratio = turn * table[t, entering]
            dual[t] -= moved * table[t, entering]
            length[t] = max(length[t], ratio * ratio * reference)
        dual[leaving], length[leaving] = side[entering] - moved, max(reference * turn * turn, 1.0)
        place[leaving], others[entering] = others[entering], place[leaving]
        residual[entering], side[entering] = step * way, way
        exchange(table, leaving, entering, np.float32(turn), factor, pivot_row)
        idle = idle + 1 if step <= 0.0 else 0
        if idle > PATIENCE:
            break
    for t in range(rows):
        if place[t] >= 0:
            sign[place[t]] = 0.0
    for c in range(columns):
        sign[others[c]] = side[c]
    return made
