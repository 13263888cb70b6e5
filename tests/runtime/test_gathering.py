"""Reading rows of arrays so large that XLA would read them with threads: the values are those of NumPy."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend
from pcbatch.runtime.backends.tensorflow.gathering import SPLIT, gather, is_split

BACKEND = TensorFlowBackend()
LANES = 4
SIZE = SPLIT // (4 * LANES)
"""The length of an array of 4-byte elements from which on all lanes' arrays together are split."""


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "bool", "complex64", "bfloat16", "uint8"])
@pytest.mark.parametrize("jit", [False, True])
def test_gather(dtype, jit):
    """As `tf.gather`, for every kind of dtype."""
    array = tf.cast(np.arange(SPLIT).reshape(-1, 2) % 2, dtype)
    rows = tf.constant([5, 0, SPLIT // 2 - 1, 5])
    assert is_split(array.shape.num_elements(), array.dtype)
    found = tf.function(gather, jit_compile=jit)(array, rows)
    np.testing.assert_array_equal(tf.cast(found, tf.complex64), tf.cast(tf.gather(array, rows), tf.complex64))


def test_load():
    """`load` with and without lanes, of elements and of rows, as NumPy."""
    array = np.random.default_rng(0).normal(size=(LANES, SIZE, 2)).astype(np.float32)
    index, inner, lanes = np.array([3, SIZE - 1, 0, 7]), np.array([0, 1, 1, 0]), np.array([2, 0])
    for kept in (None, lanes):
        rows = np.arange(LANES) if kept is None else kept
        given = None if kept is None else tf.constant(kept, tf.int32)
        places = [tf.constant(each[: len(rows)], tf.int32) for each in (index, inner)]
        n = len(rows)
        np.testing.assert_array_equal(BACKEND.load(tf.constant(array), places[:1], given), array[rows, index[:n]])
        np.testing.assert_array_equal(
            BACKEND.load(tf.constant(array), places, given), array[rows, index[:n], inner[:n]]
        )


TABLE = tf.constant(np.random.default_rng(1).normal(size=(SPLIT // 8, 2)), tf.float32)


@pcbatch.autobatch
def reads(a, i):
    """Elements, a window and a row of an array that all lanes share."""
    return a[i] + a[-i - 1], a[i : i + 3], TABLE[i]


@pytest.mark.parametrize("jit", [False, True])
def test_pieces(jit):
    """As lane by lane."""
    a = tf.constant(np.random.default_rng(2).normal(size=(LANES, SIZE)), tf.float32)
    i = np.array([0, 5, SIZE - 3, 77], np.int32)
    element, window, row = reads.options(jit=jit)(a, i)
    for lane, at in enumerate(i):
        np.testing.assert_array_equal(element[lane], a[lane, at] + a[lane, -at - 1])
        np.testing.assert_array_equal(window[lane], a[lane, at : at + 3])
        np.testing.assert_array_equal(row[lane], TABLE[at])
