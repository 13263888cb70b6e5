"""Recursion inside a loop, with a lane array that each level changes and its caller keeps."""

import itertools

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def queens(n):
    return place(tf.zeros([4], tf.int32), 0, n)


@pcbatch.autobatch
def place(board, row, n):
    if row == n:
        return 1
    total = 0
    for column in range(n):
        safe = True
        for previous in range(row):
            gap = board[previous] - column
            if gap == 0 or abs(gap) == row - previous:
                safe = False
                break
        if safe:
            board[row] = column
            total += place(board, row + 1, n)
    return total


def batch(rng, lanes):
    return (rng.integers(0, 5, lanes, dtype=np.int32),)


def twin(n):
    boards = itertools.permutations(range(n))
    return sum(len({i + c for i, c in enumerate(b)}) == len({i - c for i, c in enumerate(b)}) == n for b in boards)
