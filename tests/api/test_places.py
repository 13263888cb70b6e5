"""What fails in `y = f(x)` is shown at that line, or in `f`, though the program returns `y` on a later one."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import CompileError

XS = np.array([8.0, 2.0], np.float32)
NS = np.array([2, 0], np.int32)


def encoded(x):
    return tf.size(tf.unique(tf.stack([x, x])).y)


@pcbatch.autobatch
def without_rule(x):
    y = encoded(x)
    return y


@pcbatch.autobatch(jit=False)
def divided(a, b):
    y = a // b
    return y


@pcbatch.autobatch(jit=False)
def divided_in_a_loop(a, b):
    while a > 1:
        y = a // b
        a = y
    z = a // b
    return z


def test_an_operation_without_a_rule() -> None:
    with pytest.raises(CompileError) as caught:
        without_rule(XS)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "PCB402"
    assert diagnostic.span.text.strip() == "return tf.size(tf.unique(tf.stack([x, x])).y)"


@pytest.mark.parametrize(
    "function",
    [
        (lambda x: tf.ensure_shape(tf.math.segment_sum(x, tf.constant([0, 0, 1])), [2])),
        (lambda x: tf.reduce_sum(tf.sparse.reorder(tf.sparse.from_dense([[1.0, 0.0]])).values) * x),
    ],
    ids=["segments", "sparse"],
)
def test_what_no_variable_can_hold_lives_in_a_line(function) -> None:
    @pcbatch.autobatch(jit=False)
    def applied(x):
        part = function(x)
        return part + 0.0

    batch = np.array([[1.0, 2.0, 1.0], [3.0, 3.0, 4.0]], np.float32)
    np.testing.assert_allclose(applied(batch), [function(tf.constant(row)) for row in batch])


def unshaped(x):
    found = tf.unique(tf.stack([x, x])).y
    return found


def test_what_no_variable_can_hold_is_refused_where_a_lane_would_keep_it() -> None:
    with pytest.raises(CompileError, match="must be static") as caught:
        pcbatch.autobatch(unshaped).check(XS)
    assert caught.value.diagnostics[0].span.text.strip() == "return found"


@pytest.mark.parametrize("function", [divided, divided_in_a_loop])
def test_a_fault_of_a_lane(function) -> None:
    run = function.run(np.array([8, 3], np.int32), NS)
    assert [fault.lane for fault in run.errors] == [1]
    assert run.errors[0].span.text.strip() == "y = a // b"


def test_a_fault_after_a_loop() -> None:
    run = divided_in_a_loop.run(np.array([8, 1], np.int32), NS)
    assert run.errors[0].span.text.strip() == "z = a // b"
