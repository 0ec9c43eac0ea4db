"""A vertex of the L1 problem by pivoting, for columns at or beyond the limit of recovery.

A vertex is given by ``rank`` rows Z that fit exactly. The inverse of Q_Z is kept explicitly: it gives the duals of Z,
the edge directions and, because Q is orthonormal, their lengths. Each pivot leaves along the steepest improving edge
and walks past every kink at which the objective still falls (Barrodale and Roberts's long step, a weighted median), so
2 to 50 pivots from the first estimate are typical.

Ties can let the walk go round in circles: when it stalls, a perturbation far below the data breaks them and is taken
out again at the end.

Reference: Barrodale and Roberts, An improved algorithm for discrete l1 linear approximation (1973).
"""

import numpy as np

from netpurify.lad.kernels.compiled import inner, kernel
from netpurify.lad.kernels.lapack import invert_chosen_rows, multiply, multiply_transposed
from netpurify.lad.kernels.select import weighted_select

_PERTURBATION = 1e-8
_TOLERANCE = 1e-9
_SMALLEST_PIVOT = 1e-9
_REFRESH = 50
_PATIENCE = 5
"""Pivots in a row that lead nowhere before ties are broken by a perturbation."""


@kernel
def walk(basis, data, guess, order, missing, tilt, most_pivots, coordinates, dual):
    """Minimise |data - Q x|_1 - tilt'x for one column over its rows that are not missing.

    Args:
        basis: Q, [rows, rank].
        data: The column, [>= rows].
        guess: An estimate of the residual, for the first vertex.
        order: The rows by the size of ``guess``, ascending.
        missing: Rows to ignore.
        tilt: The linear part of the loss, [>= rank]; 0 for the median.
        most_pivots: Where to stop unproven.
        coordinates: Receives x.
        dual: Receives y, with Q'y + tilt = 0, and y = 0 on missing rows.

    Returns:
        Pivots made. The last x and y are left in place, proven or not; nothing is where no vertex exists.
    """
    rows, rank = basis.shape
    vertex = np.empty(rank, np.int64)
    inverse = np.empty((rank, rank))
    if not _first_vertex(basis, guess, order, missing, vertex, inverse):
        return 0
    scale = 0.0
    for j in range(rows):
        scale += abs(guess[j])
    scale = scale / rows
    sign = np.empty(rows)
    for j in range(rows):
        sign[j] = 0.0
    tiny = 1e-12 * scale
    pivots, stalled = _descend(
        basis, data, missing, tilt, 0.0, tiny, most_pivots, vertex, inverse, sign, coordinates, dual
    )
    if stalled:
        jittered = np.empty(rows)
        _jitter(jittered)
        for j in range(rows):
            jittered[j] = data[j] + _PERTURBATION * scale * jittered[j]
        more, _ = _descend(
            basis, jittered, missing, tilt, 0.0, -1.0, most_pivots, vertex, inverse, sign, coordinates, dual
        )
        last, _ = _descend(
            basis, data, missing, tilt, tiny, -1.0, most_pivots, vertex, inverse, sign, coordinates, dual
        )
        pivots += more + last
    return pivots


@inner
def _jitter(values):
    """Fill with numbers of size 1 to 2 and mixed signs: a fixed sequence (splitmix64), so that paths are repeatable."""
    state = np.uint64(0)
    for j in range(values.size):
        state += np.uint64(0x9E3779B97F4A7C15)
        mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        unit = np.float64((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
        values[j] = 1.0 + unit if unit > 0.5 else -1.0 - unit


@inner
def _first_vertex(basis, guess, order, missing, vertex, inverse):
    """Choose independent rows of small residual: LU with row pivoting on rows weighted by 1 / |residual|."""
    rows, rank = basis.shape
    candidates = np.empty(rows, np.int64)
    count = 0
    for a in range(rows):
        if not missing[order[a]]:
            candidates[count] = order[a]
            count += 1
    if count < rank:
        return False
    mean = 0.0
    for j in range(rows):
        mean += abs(guess[j]) / rows
    floor = max(1e-3 * abs(guess[candidates[min(rank, count - 1)]]), 1e-6 * mean) + 1e-300
    for attempt in range(3):
        # The rows of smallest residual first; if they are dependent, all rows; if weights drown some, none.
        tried = min(count, rank + rank // 4 + 2) if attempt == 0 else count
        weighted = np.empty((rank, tried))
        weight = np.empty(tried)
        for a in range(tried):
            weight[a] = floor / (abs(guess[candidates[a]]) + floor) if attempt < 2 else 1.0
            for c in range(rank):
                weighted[c, a] = weight[a] * basis[candidates[a], c]
        picked = np.empty(tried, np.int64)
        for a in range(tried):
            picked[a] = candidates[a]
        if invert_chosen_rows(weighted, picked, weight):
            for a in range(rank):
                vertex[a] = picked[a]
                for c in range(rank):
                    inverse[a, c] = weighted[a, c] * weight[a]
            return True
    return False


@inner
def _restart(q, data, missing, tilt, tiny, vertex, inverse, sign, coordinates, dual, residual, slope, duals, lengths):
    """Recompute x, r, signs, duals and edge lengths from the inverse; x and the duals with one step of refinement."""
    rows, rank = q.shape
    values, change = np.empty(rank), np.empty(rank)
    for c in range(rank):
        coordinates[c] = 0.0
    for _ in range(2):
        multiply(q, coordinates, residual)
        for a in range(rank):
            values[a] = data[vertex[a]] - residual[vertex[a]]
        multiply_transposed(inverse, values, change)
        for c in range(rank):
            coordinates[c] += change[c]
    multiply(q, coordinates, residual)
    for j in range(rows):
        residual[j] = data[j] - residual[j]
        if missing[j]:
            residual[j] = 0.0
            sign[j] = 0.0
        elif abs(residual[j]) > tiny or sign[j] == 0.0:
            sign[j] = 1.0 if residual[j] >= 0.0 else -1.0
    for a in range(rank):
        residual[vertex[a]] = 0.0
        sign[vertex[a]] = 0.0
    for j in range(rows):
        dual[j] = sign[j]
    multiply_transposed(q, dual, slope)
    for c in range(rank):
        slope[c] += tilt[c]
    for refinement in range(2):
        if refinement:
            multiply_transposed(q, dual, values)
            for c in range(rank):
                values[c] += tilt[c]
        else:
            for c in range(rank):
                values[c] = slope[c]
        multiply(inverse, values, change)
        for a in range(rank):
            dual[vertex[a]] -= change[a]
    for a in range(rank):
        duals[a] = dual[vertex[a]]
        square = 0.0
        for c in range(rank):
            square += inverse[a, c] * inverse[a, c]
        lengths[a] = np.sqrt(square)


@inner
def _descend(q, data, missing, tilt, tiny, idle_step, most_pivots, vertex, inverse, sign, coordinates, dual):
    """Pivot from ``vertex`` to an optimal one; returns the number of pivots and whether ties stalled the walk."""
    rows, rank = q.shape
    residual, slope = np.empty(rows), np.empty(rank)
    kink, weight, row = np.empty(rows), np.empty(rows), np.empty(rows, np.int64)
    duals, lengths = np.empty(rank), np.empty(rank)
    change, alpha = np.empty(rows), np.empty(rank)
    _restart(q, data, missing, tilt, tiny, vertex, inverse, sign, coordinates, dual, residual, slope, duals, lengths)
    fresh, idle = True, 0
    for pivot in range(most_pivots):
        leaving, best = np.int64(-1), 0.0
        for a in range(rank):
            excess = abs(duals[a]) - 1.0
            if excess > _TOLERANCE and excess > best * lengths[a]:
                leaving, best = a, excess / lengths[a]
        if leaving < 0 or pivot % _REFRESH == _REFRESH - 1:
            if leaving < 0 and fresh:
                return pivot, False
            _restart(
                q, data, missing, tilt, tiny, vertex, inverse, sign, coordinates, dual, residual, slope, duals, lengths
            )
            fresh = True
            continue
        # Raise the leaving row's residual in the direction of its dual; the others follow along the edge.
        way = 1.0 if duals[leaving] > 0.0 else -1.0
        multiply(q, inverse[leaving], change)
        count = np.int64(0)
        for j in range(rows):
            if sign[j] == 0.0:
                continue
            speed = way * change[j]
            if abs(speed) > _SMALLEST_PIVOT and speed * sign[j] < 0.0:
                kink[count] = max(-residual[j] * sign[j] / (speed * sign[j]), 0.0)
                weight[count] = 2.0 * abs(speed)
                row[count] = j
                count += 1
        if count == 0:
            return pivot, False
        stop = weighted_select(kink, weight, row, count, abs(duals[leaving]) - 1.0)
        entering, step = row[stop], kink[stop]
        for j in range(rows):
            if sign[j] != 0.0:
                residual[j] += step * way * change[j]
        left = vertex[leaving]
        for c in range(count):
            j = row[c]
            if kink[c] < step and j != entering:
                for a in range(rank):
                    slope[a] -= 2.0 * sign[j] * q[j, a]
                sign[j] = -sign[j]
        for a in range(rank):
            slope[a] += way * q[left, a] - sign[entering] * q[entering, a]
        sign[entering], sign[left] = 0.0, way
        residual[entering], residual[left] = 0.0, step * way
        vertex[leaving] = entering
        multiply(inverse, q[entering], alpha)
        _replace_row(inverse, leaving, alpha, slope, duals, lengths)
        fresh = False
        idle = idle + 1 if step <= idle_step else 0
        if idle > _PATIENCE:
            return pivot, True
    _restart(q, data, missing, tilt, tiny, vertex, inverse, sign, coordinates, dual, residual, slope, duals, lengths)
    return most_pivots, False


@inner(fastmath={"reassoc", "contract"})
def _replace_row(inverse, leaving, alpha, slope, duals, lengths):
    """Update the inverse when a row of Q_Z changes, given ``alpha``, the inverse times the new row.

    The duals and the lengths of the edges are updated in the same pass.
    """
    rank = inverse.shape[0]
    edge = np.empty(rank)
    for c in range(rank):
        edge[c] = inverse[leaving, c] / alpha[leaving]
    alpha[leaving] -= 1.0
    for a in range(rank):
        factor = alpha[a]
        dot, square = 0.0, 0.0
        for c in range(rank):
            value = inverse[a, c] - factor * edge[c]
            inverse[a, c] = value
            dot += value * slope[c]
            square += value * value
        duals[a] = -dot
        lengths[a] = np.sqrt(square)
