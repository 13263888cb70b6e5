"""Captured arrays, elements of these, a lane's numbers and bools of Python's where TensorFlow wants known numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

TABLE = np.array([1.0, 2.0, 3.0], np.float32)
NUMBERS = np.array([2, 0])
PLACES = np.array([[0], [2]])
IS_SCALED = True
WEIGHTS = tf.Variable([1.0, 2.0, 3.0])


def scaled(x):
    return tf.constant(TABLE) * x


def constants(x, n):
    k, y = 0, 0.5
    for _ in range(n):
        k, y = k + 1, y * 2.0
    return (
        tf.constant(TABLE) * x,
        tf.constant(TABLE, tf.float64),
        tf.constant(NUMBERS, dtype=tf.float32),
        tf.constant(TABLE, shape=(3, 1)) + x,
        tf.constant(WEIGHTS) * x,
        tf.constant([TABLE[0], 1.0]),
        tf.constant(TABLE.tolist()),
        tf.constant([[x, 1.0], [2.0, 3.0 * x]]),
        tf.constant(x, shape=[2]),
        tf.constant(k, tf.float32) * x,
        tf.constant([k, 7]),
        tf.constant(y) + x,
        tf.constant(n, tf.int64),
        tf.constant(2.5) * x,
        tf.constant("a" != "b"),
        scaled(x),
        tf.tensor_scatter_nd_update(tf.zeros([3]), PLACES, [x, x]),
        tf.tensor_scatter_nd_update(tf.constant(TABLE), PLACES, [1.0, 2.0]) * x,
        tf.pad([x, x], [[1, 0]], constant_values=y),
        tf.pad([n, n], [[1, 1]], "CONSTANT", k),
        tf.cond(IS_SCALED, lambda: x * 2.0, lambda: x),
    )


@pytest.mark.parametrize("options", [{}, {"form": "lockstep"}, {"jit": False}], ids=str)
def test_each_lane_is_what_it_is_alone(options: dict[str, Any]) -> None:
    function = pcbatch.autobatch(constants, **options)
    lanes = np.array([1.0, -2.0, 3.0], np.float32), np.array([0, 1, 3], np.int32)
    for one, alone in enumerate(function.single(*lane) for lane in zip(*lanes, strict=True)):
        for place, (found, wanted) in enumerate(zip(function(*lanes), alone, strict=True)):
            assert found.dtype == tf.convert_to_tensor(wanted).dtype, place
            np.testing.assert_array_equal(found[one], wanted, err_msg=str(place))


def weighted(x):
    return tf.reduce_sum(tf.constant(WEIGHTS) * x)


def test_a_constant_of_a_variable_has_its_gradient() -> None:
    function = pcbatch.autobatch(weighted)
    with tf.GradientTape() as tape:
        found = function(TABLE)
    with tf.GradientTape() as alone:
        wanted = sum(function.single(x) for x in tf.unstack(tf.constant(TABLE)))
    np.testing.assert_allclose(tape.gradient(found, WEIGHTS), alone.gradient(wanted, WEIGHTS))
