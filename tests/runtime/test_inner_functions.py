"""What XLA gets wrong is right in the functions that an operation runs, too: arms, turns, a `tf.function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

SCALES = tf.Variable([1.0, 2.0, 3.0])
LIMITS = tf.constant([0.5, np.nan, 2.0])


@tf.function
def of_both(a, b):
    return tf.maximum(a, b)


@tf.function
def of_a_variable(a, b):
    return tf.reduce_max(SCALES * a) + tf.minimum(b, SCALES[1])


@tf.function
def of_shared(a, b):
    """The first maximum has nothing of a lane's."""
    return a + 0.0 * tf.maximum(LIMITS[0], LIMITS[1]) + tf.reduce_max(tf.stack([b, LIMITS[2]]))


@tf.function
def in_a_list(a, b):
    found = tf.TensorArray(tf.float32, size=3)
    for i in tf.range(3):
        found = found.write(i, tf.maximum(a, b) + tf.cast(i, tf.float32))
    return tf.reduce_sum(found.stack())


def powers(a, b):
    whole = tf.cond(b > 2.0, lambda: tf.pow(tf.cast(b, tf.int32), 70), lambda: tf.constant(3))
    return tf.cast(whole, tf.float32) + a


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "call": of_both,
    "place": lambda a, b: tf.cast(tf.function(lambda x, y: tf.argmax(tf.stack([x, y, 1.0])))(a, b), tf.float32),
    "clip": lambda a, b: tf.function(lambda x, y: tf.clip_by_value(x, y, 5.0))(a, b),
    "variable": of_a_variable,
    "shared": of_shared,
    "arm": lambda a, b: tf.cond(b > 3.0, lambda: tf.maximum(a, b), lambda: tf.minimum(a, b)),
    "arm of an arm": lambda a, b: tf.cond(
        a > 1.0, lambda: tf.cond(b > 3.0, lambda: a, lambda: of_both(a, b)), lambda: b
    ),
    "one of several": lambda a, b: tf.switch_case(
        tf.cast(b > 2.0, tf.int32), [lambda: tf.maximum(a, b), lambda: tf.minimum(b, a)]
    ),
    "turn": lambda a, b: tf.while_loop(lambda i, _: i < 2, lambda i, z: (i + 1, tf.maximum(b, z)), (0, a))[1],
    "elements": lambda a, b: tf.reduce_sum(tf.map_fn(lambda v: tf.maximum(v, b), tf.stack([a, a]))),
    "folded": lambda a, b: tf.foldl(lambda c, v: tf.maximum(c, v), tf.stack([a, b, a])),
    "list": in_a_list,
    "powers": powers,
}
A = np.array([np.nan, 1.0, 2.0, np.nan, 4.0], np.float32)
B = np.array([1.0, np.nan, 4.0, np.nan, 2.5], np.float32)
TURNS = np.array([1, 1, 1, 2, 3], np.int32)


def repeated(function: Callable[[Any, Any], Any]) -> Any:
    @pcbatch.autobatch
    def program(x, y, n):
        while n > 0:
            n = n - 1
            x = function(x, y)
        return x

    return program


IN_LOCKSTEP = ("clip", "shared", "arm", "elements")


@pytest.mark.parametrize(
    ("name", "form"), [*((name, "auto") for name in CASES), *((name, "lockstep") for name in IN_LOCKSTEP)]
)
def test_each_lane_is_what_it_is_alone(name: str, form: Any) -> None:
    program = repeated(CASES[name])
    found = program.options(form=form)(A, B, TURNS)
    np.testing.assert_array_equal(found, [program.single(*each) for each in zip(A, B, TURNS, strict=True)])


def test_functions_that_a_gradient_was_asked_of() -> None:
    """Of their results and of what the gradient needs TensorFlow has made one function by then."""
    program = repeated(of_a_variable)
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(of_a_variable(tf.constant(2.0), tf.constant(1.0)))
    assert tape.gradient(value, SCALES) is not None
    with tf.GradientTape() as tape:
        value = program(A[1:], B[1:], TURNS[1:])
    assert tape.gradient(value, SCALES) is not None
    np.testing.assert_array_equal(value, program(A, B, TURNS)[1:])
    np.testing.assert_array_equal(value, [program.single(*each) for each in zip(A[1:], B[1:], TURNS[1:], strict=True)])


def rectified(x):
    return tf.maximum(x, 0.0)


@pytest.mark.parametrize("jit", [True, False])
def test_a_function_with_a_rule_of_its_own_is_vectorised_by_that(jit: bool) -> None:
    """And what the rule makes is put right, too."""
    in_a_batch = pcbatch.primitive(rectified, batched=lambda x: tf.maximum(x, 0.0) + 100.0)
    looped = pcbatch.fallback(rectified)

    @pcbatch.autobatch(jit=jit, form="lockstep")
    def program(x):
        return in_a_batch(x), looped(x), looped(LIMITS[1])

    found = np.stack(program(A))
    wanted = tf.maximum(A, 0.0)
    np.testing.assert_array_equal(found, [wanted + 100.0, wanted, np.full(5, np.nan)])
