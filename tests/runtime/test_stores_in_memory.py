"""Arrays that native code among expensive blocks keeps in memory: what is read after a store in the same block."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.runtime.test_mixed_compiled import assert_singles, layer

LANES = 6
RANDOM = np.random.default_rng(0)
ARGUMENTS = (
    RANDOM.normal(size=(LANES, 9)).astype(np.float32),
    RANDOM.integers(0, 4, LANES).astype(np.int32),
    RANDOM.integers(0, 5, LANES).astype(np.int32),
)


@pcbatch.autobatch
def numbers(points, i, n):
    """A read between two stores, a store before the first read, an array made anew behind one, one in an arm."""
    x = tf.ones(40)
    k = 0
    s = 0.0
    while k < n:
        x = layer(x)
        points[i] = x[1]
        s = s + points[3] + points[0]
        points[0] = s
        points[i + 1] = points[i] * 0.5
        s = s + tf.reduce_sum(points)
        points[-1] = s
        points = points * 1.5
        points[2] = points[1] + 1.0
        if points[2] > 0.0:
            points[4] = points[2] + points[4]
        s = s + points[4]
        k = k + 1
    return points, s


@pcbatch.autobatch
def rows(points, i, n):
    """Two arrays, one of rows; swaps."""
    x = tf.ones(40)
    table = tf.zeros((3, 9))
    k = 0
    while k < n:
        x = layer(x)
        table[k % 3] = points + x[0]
        points[i] = table[k % 3, 1]
        table[0] = points * 2.0
        points[1], points[2] = points[2] + table[0, 0], points[1]
        table[2, i], table[i % 3, 0] = table[i % 3, 0], points[1] + table[2, i]
        k = k + 1
    return points, table


@pytest.mark.parametrize("function", [numbers, rows], ids=["numbers", "rows"])
def test_what_was_stored_is_read(function):
    value = function(*ARGUMENTS)
    assert function.stats().forms[0].startswith("mixed: ")
    assert_singles(function, value, ARGUMENTS)
