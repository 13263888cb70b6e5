"""Tuples and lists that are stored into rows of arrays, and into elements of lists, which keep them."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("int32", "float32", *["int32"] * 6)


@pcbatch.autobatch
def tuple_rows(n, x):
    queue = tf.zeros([6, 2], tf.int32)
    head, tail = 0, 1
    queue[0] = (n, 0)
    while head < tail:
        value, depth = queue[head]
        head += 1
        if value > 1 and tail < 5:
            queue[tail] = (value // 2, depth + 1)
            queue[tail + 1] = [value - 2, depth - 1]
            tail += 2
    grid = tf.zeros([3, 4])
    grid[0] = [0, x, 2.5, 0]
    grid[1] = (1, x, grid[0][1], -x)
    grid[2] = [4.0, 5, 6, x]
    pairs = [(n, 1), (2, 3)]
    pairs[0] = (n + 1, 7)
    stack = pcbatch.bounded([2], tf.int32, 3)
    stack.append([n, 1])
    stack[0] = (stack[0][1], n)
    return queue, grid, pairs, stack[0], tail


def batch(rng, lanes):
    return rng.integers(0, 20, lanes, dtype=np.int32), rng.random(lanes).astype(np.float32)
