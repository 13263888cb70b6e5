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


@pytest.mark.parametrize("size", [5, 8, 40])
@pytest.mark.parametrize("lanes", [1, 19])
def test_arrays_that_are_written_together(size, lanes):
    """Some are read where they are written, some elsewhere, some by nobody but those that are written with them."""

    def written(n, x):
        k = tf.range(size)
        a = tf.sin(x) * x + x / 2
        while n > 0:
            b = a * a + tf.exp(-a * a)
            c = b + tf.reverse(a, [0]) * b - a
            d = c * a + tf.reverse(b + c, [0]) + tf.roll(c, 1, 0)
            e = tf.where(d > 0, d * c, c - d) + b[0] + (c + d)[size - 1]
            f = k * k + 3 + tf.reverse(k, [0])
            k = tf.bitwise.bitwise_xor(k + f // 3, tf.bitwise.left_shift(f, k % 7)) + f
            a = e / (1 + tf.reduce_sum(e * e)) + tf.cast(k % 5, tf.float64) + x[: size // 2][0] * a
            n = n - 1
        return a, k, tf.reduce_max(a + tf.reverse(a, [0])), (a * a + a)[:, tf.newaxis] * (a - 1)

    function = pcbatch.autobatch(written, form="native")
    numbers = np.arange(lanes, dtype=np.int32) % 3 + 1
    rows = np.random.default_rng(size).normal(size=(lanes, size))
    found = function(numbers, rows)
    assert function.stats().forms == ("native",)
    for lane in range(lanes):
        for got, wanted in zip(found, function.single(numbers[lane], rows[lane]), strict=True):
            np.testing.assert_allclose(got[lane], wanted, rtol=1e-11, atol=1e-11)


def test_rounds_of_draws_are_one_loop():
    """Seven normals took 8,400 lines in a sampler when each of twenty rounds went through all numbers."""

    @pcbatch.autobatch(form="native")
    def drawn(key):
        return pcbatch.random.normal(key, (7,))

    assert len(drawn.ir("llvm", pcbatch.random.keys(0, 2)).splitlines()) < 2500
