"""Writes that wait for each other write the same, and only where they are many and short."""

import numpy as np
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend, graphs
from pcbatch.runtime.costs.device import CPU

LANES = 6
DTYPES = ["bool", "uint8", "int8", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"]
BACKEND = TensorFlowBackend()


def arrays_of(seed):
    """One of each dtype, `[LANES, 3]`, the first number of a lane being anything, NaN too."""
    rng = np.random.default_rng(seed)
    found = [tf.cast(rng.integers(-3, 3, (LANES, 3)), dtype) for dtype in DTYPES]
    return [
        tf.where(array > 0, tf.cast(np.nan, array.dtype), array) if array.dtype.is_floating else array
        for array in found
    ]


def test_the_same_is_written():
    new, old = arrays_of(0), arrays_of(1)
    masks = [tf.constant(np.random.default_rng(place).random(LANES) < 0.5) for place in range(len(old))]
    together = tf.function(BACKEND.where, jit_compile=True)(masks, new, old)
    for dtype, found, *each in zip(DTYPES, together, masks, new, old, strict=True):
        expected = BACKEND.where(*each)
        if dtype == "bfloat16":  # of which NumPy does not know that NaN is NaN
            found, expected = tf.cast(found, tf.float32), tf.cast(expected, tf.float32)
        np.testing.assert_array_equal(found, expected, err_msg=dtype)


def waits(count, numbers):
    """How many of so many writes of so many numbers a lane wait for others."""
    one = tf.TensorSpec([LANES, numbers], tf.float32)
    mask = tf.TensorSpec([LANES], tf.bool)
    function = tf.function(BACKEND.where, jit_compile=True)
    graph = function.get_concrete_function([mask] * count, [one] * count, [one] * count).graph
    return sum(op.type == "LogicalAnd" for op in graph.get_operations())


def test_who_waits(monkeypatch):
    few = CPU.written_at_once
    monkeypatch.setattr(graphs, "has_gpu", lambda: False)
    assert waits(few, 8) == 0
    assert waits(few + 2, 8) == 2
    assert waits(few + 2, CPU.short_write // 4 // LANES + 1) == 0
    monkeypatch.setattr(graphs, "has_gpu", lambda: True)
    assert waits(few + 2, 8) == 0


@pcbatch.autobatch
def shuffled(n, a, b, c, d, e):
    while n > 0:
        a, b, c, d, e = b + 1, c - a, d * 2, e + c, a
        n = n - 1
    return a + b + c + d + e


def test_a_block_of_many_variables():
    columns = [np.arange(LANES, dtype=np.int32) * factor for factor in (1, 3, -2, 5, 7, 11)]
    expected = [int(shuffled.single(*(int(column[lane]) for column in columns))) for lane in range(LANES)]
    for jit in (True, False):
        np.testing.assert_array_equal(shuffled.options(jit=jit)(*columns), expected)
