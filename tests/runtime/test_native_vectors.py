"""Vectors in native code: saved on stacks across calls, and added up."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch


@pcbatch.autobatch(form="native", max_depth=300)
def saved(n, x, k):
    if n <= 0:
        return x, k
    a, j = saved(n - 1, x + 1.0, k + 1)
    x[j % 20] = a[0]
    b, i = saved(n - 2, a, j + k)
    assert b[3] < 300.0, "large"
    return a + b + x, i + j


@pcbatch.autobatch(form="native", max_depth=300)
def summed(n, x, k):
    if n <= 0:
        return x, k
    total = x
    for i in range(3):
        y, k = summed(n - i - 1, total + x, k + 1)
        total = total * 0.5 + y
    return total, k


@pytest.mark.parametrize("function", [saved, summed], ids=lambda f: f.__name__)
def test_vectors_on_stacks(function):
    numbers = np.arange(7, dtype=np.int32)
    rows = np.random.default_rng(0).normal(size=(7, 20)).astype(np.float32)
    arguments = tuple(map(tf.constant, (numbers, rows, numbers)))
    run = function.run(*arguments)
    for lane, fault in enumerate(run.status):
        if fault:
            with pytest.raises(AssertionError, match="large"):
                function.single(numbers[lane], rows[lane], numbers[lane])
        else:
            values = function.single(numbers[lane], rows[lane], numbers[lane])
            for found, wanted in zip(run.value, values, strict=True):
                np.testing.assert_allclose(found[lane], wanted, rtol=2e-5)
    assert (function is saved) == run.status.any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums(dtype):
    @pcbatch.autobatch(form="native")
    def total(n, x):
        found = tf.reduce_sum(x)
        while n > 0:
            found = found + tf.reduce_sum(x * found)
            n = n - 1
        return found, tf.reduce_sum(x[:8]), tf.reduce_sum(tf.reshape(x, (2, 20)), axis=1)

    rows = np.random.default_rng(0).normal(size=(4, 40)).astype(dtype) / 9
    rows[2, 7], rows[3, 33] = np.nan, np.inf
    numbers = np.arange(4, dtype=np.int32)
    found = total(numbers, rows)
    for lane in range(4):
        for one, wanted in zip(found, total.single(numbers[lane], rows[lane]), strict=True):
            np.testing.assert_allclose(one[lane], wanted, rtol=1e-5 if dtype == "float32" else 1e-13)
