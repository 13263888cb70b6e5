"""`pcbatch.per_example_gradients`: of each example what a tape over `single` gives for it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import GradientError, UsageError, per_example_gradients
from pcbatch.runtime.adjoint import tape as tapes
from tests.adjoint import programs
from tests.adjoint.programs import CASES, COUNTS, TABLE, B, W
from tests.adjoint.truth import TINY

slow = pytest.mark.slow


def one_by_one(function, variables, arguments):
    """The gradients by a tape for each example, zeros for those of which nothing depends on a variable."""
    rows = []
    for example in zip(*arguments, strict=True):
        with tf.GradientTape() as tape:
            result = function.single(*example)
        found = tape.gradient(result, variables, unconnected_gradients="zero")
        rows.append([tf.convert_to_tensor(each) for each in found])
    return [tf.stack(each) for each in zip(*rows, strict=True)]


def assert_like_one_by_one(found, function, variables, arguments):
    for ours, theirs in zip(found, one_by_one(function, variables, arguments), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pcbatch.autobatch(jit=False)
def mixed(x, n):
    """A product, a lookup, a sum, a value made of the variables alone, a helper's variable, two floats and an int."""
    scale = tf.reduce_sum(W[0]) * 0.1
    while n > 0:
        x = tf.tanh(tf.linalg.matvec(W, x) * scale + tf.gather(TABLE, n % 7) + helper(x))
        n = n - 1
    return tf.reduce_sum(x), (n, x * 2.0)


def helper(x):
    return x * B


QUICK = {("mixed", "graph", "whole")}


@pytest.mark.parametrize(
    ("name", "mode", "segments"),
    [
        pytest.param(name, mode, segments, marks=() if (name, mode, segments) in QUICK else slow)
        for name in ("mixed", "loop", "tree", "cells", "layered")
        for mode, segments in (("graph", "whole"), ("graph", "many"), ("xla", "whole"))
    ],
)
def test_like_one_example_after_another(name, mode, segments, monkeypatch):
    if segments == "many":
        monkeypatch.setattr(tapes, "Sizes", lambda: TINY)
    _, arguments, _ = CASES["loop"]
    function, arguments, variables = CASES.get(name, (mixed, arguments, (W, TABLE, B)))
    run = function.options(jit=mode == "xla", name=f"{name}_by_example_{segments}")
    assert_like_one_by_one(per_example_gradients(run, variables)(*arguments), function, variables, arguments)


def test_failed_lanes_have_none_and_nothing_is_raised():
    x = tf.constant([1.0, 0.0, 2.0, -3.0, 0.0, 0.5], tf.float64)
    found = per_example_gradients(programs.fails.options(jit=False), W)(x, COUNTS)
    assert found.shape == (6, 3, 3)
    sound = np.flatnonzero(x)
    assert not np.any(found.numpy()[x.numpy() == 0.0])
    given = tf.gather(x, sound), tf.gather(COUNTS, sound)
    assert_like_one_by_one([tf.gather(found, sound)], programs.fails, [W], given)


@slow
def test_in_functions_and_in_batches_of_every_size():
    by = per_example_gradients(programs.loop.options(jit=False), [W, B, TABLE])
    _, (x, n), _ = CASES["loop"]
    expected = by(x, n)
    assert expected[2] is None  # which the function does not read
    for ours, theirs in zip(tf.function(lambda *given: by(*given)[:2])(x, n), expected, strict=False):
        np.testing.assert_allclose(ours, theirs)
    spec = [tf.TensorSpec([None, 3], tf.float64), tf.TensorSpec([None], tf.int32)]
    traced = tf.function(lambda x, n: by(x, n)[0], input_signature=spec)
    for count in (1, 3, 0):
        np.testing.assert_allclose(traced(x[:count], n[:count]), expected[0][:count], atol=1e-12)
        np.testing.assert_allclose(by(x[:count], n[:count])[0], expected[0][:count], atol=1e-12)
    total = tf.reduce_sum(expected[0], axis=0)
    with tf.GradientTape() as tape:
        y = programs.loop(x, n)
    np.testing.assert_allclose(tape.gradient(y, W), total)


@pcbatch.autobatch(jit=False, in_axes={"v": None})
def scaled(x, v):
    return x * v


def test_what_is_refused():
    by = per_example_gradients(programs.loop.options(jit=False), W)
    _, (x, n), _ = CASES["loop"]
    with tf.GradientTape() as tape:
        tape.watch(x)
        first = by(x, n)
    with pytest.raises(GradientError, match="PCB604"):
        tape.gradient(first, x)
    with pytest.raises(GradientError, match="PCB607"):
        tf.function(by, jit_compile=True)(x, n)
    with pytest.raises(UsageError, match=r"PCB569: .*argument"):
        per_example_gradients(scaled, B)(tf.ones([2, 3], tf.float64), B)
    with pytest.raises(UsageError, match=r"PCB569: .*reference"):
        per_example_gradients(programs.loop.options(backend="reference"), W)(x, n)
    for function, variables in ((len, W), (programs.loop, x), (programs.loop, [W, tf.Variable(1)])):
        with pytest.raises(UsageError, match="PCB569"):
            per_example_gradients(function, variables)
