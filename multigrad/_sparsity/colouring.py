"""Colouring: columns of a sparse matrix that share no row may share one direction.

A. R. Curtis, M. J. D. Powell, J. K. Reid, "On the estimation of sparse Jacobian matrices", J. Inst. Maths Applics 13,
1974. In a product of the Jacobian with such a group every place still holds one entry.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from multigrad._differences.directions import Index, Mask
from multigrad._sparsity.sparse import Pattern


def colours(pattern: Pattern) -> Index:
    """Give every column a colour such that no row has two places of one colour; shape (n,), counted from 0.

    Columns with the same rows are told apart last, so that a batch of rows is no more work than one of them.
    """
    rows, columns = pattern.alike
    rank, copies = _ranks(columns)
    # One row and one column of each kind show all that is to be known.
    shown = _first(rows)[pattern.rows] & _first(columns)[pattern.columns]
    first = _first_colours(columns[pattern.columns[shown]], pattern.rows[shown], copies)
    empty = np.bincount(pattern.columns, minlength=pattern.shape[1]) == 0
    return np.where(empty, 0, first[columns] + rank)


def _first(kinds: Index) -> Mask:
    """Whether each line is the first of its kind."""
    found = np.zeros(len(kinds), np.bool_)
    found[np.unique(kinds, return_index=True)[1]] = True
    return found


def _ranks(kinds: Index) -> tuple[Index, Index]:
    """The position of each line among those of its kind, and how many there are of each kind."""
    copies = np.bincount(kinds)
    order = np.argsort(kinds, kind="stable")
    rank = np.empty_like(kinds)
    rank[order] = np.arange(len(kinds)) - np.repeat(np.cumsum(copies) - copies, copies)
    return rank, copies


def _first_colours(columns: Index, rows: Index, copies: Index) -> Index:
    """Greedily give each kind of columns, in turn, the first run of colours that is free in all its rows."""
    first = np.zeros(len(copies), np.intp)
    shared = np.bincount(rows)[rows] > 1
    crowded = np.isin(columns, columns[shared])
    order = np.argsort(columns[crowded], kind="stable")
    columns, rows = columns[crowded][order], rows[crowded][order]
    taken = [0] * (int(rows.max(initial=-1)) + 1)
    bounds = np.flatnonzero(np.diff(columns, prepend=-1, append=-1)).tolist()
    its_rows = rows.tolist()
    for start, stop in pairwise(bounds):
        kind = int(columns[start])
        first[kind] = colour = _free(taken, its_rows[start:stop], int(copies[kind]))
        run = ((1 << int(copies[kind])) - 1) << colour
        for row in its_rows[start:stop]:
            taken[row] |= run
    return first


def _free(taken: list[int], rows: list[int], length: int) -> int:
    """The first colour from which ``length`` colours are free in all rows; ``taken`` has a bit for each colour."""
    used = 0
    for row in rows:
        used |= taken[row]
    colour = 0
    while True:
        rest = used >> colour
        if not rest & ((1 << length) - 1):
            return colour
        colour += (rest & ((1 << length) - 1)).bit_length()
