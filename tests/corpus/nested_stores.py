"""Elements of arrays inside structures: in objects, dicts, lists and tuples, of rows, by slices."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "int32", *["float32"] * 6)


@dataclasses.dataclass
class Board:
    """A grid, and how many moves were made on it."""

    grid: Any
    moves: Any


@pcbatch.autobatch
def nested_stores(x, n):
    state = {"board": Board(tf.zeros([3, 4]), 0), "lines": [tf.zeros([4]), tf.ones([4])]}
    fixed = (tf.zeros([2, 2]), x)
    before = state["board"].grid[0, 0]
    for i in range(n):
        state["board"].grid[i % 3, i % 4] += x
        state["board"].moves += 1
        state["lines"][0][i % 4] = float(i)
        first = i % 2
        state["lines"][1][first : first + 2] *= 2.0
        fixed[0][1, i % 2] = x + 1.0
    m = tf.zeros([2, 3])
    m[0][1] = x
    m[-1][n % 3] += 2.0
    return state, fixed, m, before


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 6, lanes, dtype=np.int32)
