"""Sums of long rows in lockstep, of parts that are added as vectors first."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow.xla_cpu import gathering
from pcbatch.runtime.costs.device import CPU

LONG = CPU.quartered


@pcbatch.autobatch(form="lockstep")
def total(x):
    """The sum of a row."""
    return tf.reduce_sum(x)


def rows(length, dtype):
    return np.random.default_rng(length).normal(size=(7, length)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [LONG - 1, LONG, LONG + 1, LONG + 2, LONG + 3])
def test_every_number_counts_once(length, dtype):
    x = rows(length, dtype)
    np.testing.assert_allclose(total(x), x.sum(axis=1), rtol=1e-4 if dtype == "float32" else 1e-12)
    ones = np.eye(length, dtype=dtype)[[0, length // 4, length // 2, length - 1]] * 3
    np.testing.assert_array_equal(total(ones), np.full(4, 3, dtype))


def test_a_lane_has_the_same_bits_in_every_batch():
    x = rows(LONG + 1, "float32")
    together = np.asarray(total(x))
    for lanes in (1, 2, 5):
        np.testing.assert_array_equal(np.asarray(total(x[:lanes])).view(np.int32), together[:lanes].view(np.int32))


def test_what_is_quartered():
    """Sums of all numbers of a row of floats, under XLA, and nothing else."""
    found = {}

    def noted(x):
        cases = {
            "a sum": (tf.reduce_sum(x[0]), x),
            "a mean": (tf.reduce_mean(x[0]), x),
            "of ints": (tf.reduce_sum(tf.cast(x[0], tf.int32)), tf.cast(x, tf.int32)),
            "with its axis": (tf.reduce_sum(x[0], keepdims=True), x),
            "short": (tf.reduce_sum(x[0, 1:]), x[:, 1:]),
        }
        for name, (result, given) in cases.items():
            found[name] = gathering.of_rows(result.op, given) is not None
        return x

    x = tf.ones([3, LONG])
    tf.function(noted, jit_compile=True, autograph=False)(x)
    assert {name for name, made in found.items() if made} == {"a sum"}
    tf.function(noted, autograph=False)(x)
    assert not any(found.values())
