"""Exchange of a matrix' rows with its columns: a vertex, its inverse and all edges at once, in float32.

A matrix T [m, n] says how m row variables depend on n column variables: z = T x. Exchanging the variables of row p and
column c makes z_p independent and x_c dependent; after n exchanges the columns stand for n chosen rows Z, the rows
where these were hold the inverse of T_Z, and all other rows hold T_S T_Z^-1: the edges of the vertex that fits Z.
"""

import numpy as np

from netpurify.lad.kernels.compiled import inner
from netpurify.lad.kernels.rows import add_row
from netpurify.lad.kernels.tiles import ROWS, VECTOR_BYTES, subtract_block

_BLOCK = 16
"""Columns that are exchanged together; a multiple of 8."""
_SMALLEST = np.float32(1e-5)
"""Rows whose weighted entries are all smaller than this depend on the rows already chosen."""


@inner
def choose_vertex(table, rank, weight, place, vertex):
    """Exchange all columns with rows, by preference rows of large ``weight``.

    Args:
        table: T, [m, n] in float32, m a multiple of ``ROWS`` and n of 8; overwritten by the exchanged matrix.
        rank: How many columns there are; the others are zero and stay.
        weight: Preference for each row, [m]; 0 for rows that must not be chosen. Set to 0 where a row was chosen.
        place: Receives which variable each row stands for: i >= 0 for row i, -1 - c for column c, [m].
        vertex: Receives which row each column stands for, [rank].

    Returns:
        Whether ``rank`` independent rows were found.
    """
    rows, columns = table.shape
    panel, above = np.empty((_BLOCK, rows), np.float32), np.empty((_BLOCK, columns), np.float32)
    for i in range(rows):
        place[i] = i
    for low in range(0, rank, _BLOCK):
        width = min(_BLOCK, rank - low)
        for i in range(rows):
            for c in range(_BLOCK):
                panel[c, i] = table[i, low + c] if c < width else np.float32(0.0)
        if not _exchange_panel(panel, width, weight, place, low, vertex):
            return False
        for c in range(_BLOCK):
            for j in range(columns):
                above[c, j] = np.float32(0.0)
        for c in range(width):
            p = vertex[low + c]
            for j in range(columns):
                above[c, j] = table[p, j]
                table[p, j] = np.float32(0.0)
        subtract_product(panel.T, above, table, 0, low)
        subtract_product(panel.T, above, table, min(low + _BLOCK, columns), columns)
        for i in range(rows):
            for c in range(width):
                table[i, low + c] = panel[c, i]
    return True


@inner
def _exchange_panel(panel, width, weight, place, first, vertex):
    """Exchange the columns of a panel, [``_BLOCK``, rows], one by one; rows are chosen by weighted size, once each."""
    rows = panel.shape[1]
    column, score = np.empty(rows, np.float32), np.empty(rows, np.float32)
    ordered = score.view(np.int32)
    for c in range(width):
        for i in range(rows):
            column[i] = panel[c, i]
            panel[c, i] = np.float32(0.0)
            score[i] = abs(column[i]) * weight[i]
        # The bits of positive numbers are ordered as the numbers are, and the largest whole number is found faster.
        best = np.int32(0)
        for i in range(rows):
            best = max(best, ordered[i])
        p = 0
        while ordered[p] != best:
            p += 1
        if not score[p] > _SMALLEST:
            return False
        vertex[first + c], place[p], weight[p] = p, -1 - (first + c), 0.0
        turn = np.float32(1.0) / column[p]
        column[p] = np.float32(1.0)
        for d in range(width):
            factor = -turn if d == c else turn * panel[d, p]
            panel[d, p] = np.float32(0.0)
            add_row(panel[d], -factor, column, 0)
    return True


@inner
def subtract_product(left, right, out, start, stop):
    """Subtract ``left`` times ``right`` from the columns ``start`` to ``stop`` of ``out``; both are multiples of 8."""
    wide = 3 * VECTOR_BYTES
    for j in range(start, stop, wide):
        for i in range(0, out.shape[0], ROWS):
            subtract_block(left, right, out, i, j, min(j + wide, stop), 0, left.shape[1])
