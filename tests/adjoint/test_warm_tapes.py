"""Warm calls that a tape watches take the short way, and see all that changes between them."""

from __future__ import annotations

import functools
import types

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneError

X = np.array([1.0, 2.0, 3.0, 4.0], np.float32)


@functools.cache
def program_and_world():
    """A function and what it reads, the same for all tests: see `made`."""
    world = types.SimpleNamespace(w=tf.Variable(2.0), number=1.0)

    @pcbatch.autobatch(jit=False)
    def program(x):
        y = x * world.w
        while y < 10.0:
            y = y * 2.0 + world.number
        assert y < 1e6
        return y + world.v[0] * x, y * world.v

    return program, world


V = tf.Variable([1.0, 3.0])


def made():
    """The function, and what it reads as it was at first."""
    program, world = program_and_world()
    world.w.assign(2.0)
    world.v, world.number = V, 1.0
    return program, world


def warm(function, *args):
    with tf.GradientTape():
        return function.session.run_warm(args) is not None


def alone(function, world, x):
    """The gradients of one example after the other, and of all."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = sum(tf.reduce_sum(a) + tf.reduce_sum(b * b) for a, b in map(function.single, tf.unstack(x)))
    return tape.gradient(loss, [x, world.w, world.v])


def step(function, world, x, *, watched=True, persistent=False):
    with tf.GradientTape(persistent=persistent) as tape:
        if watched:
            tape.watch(x)
        a, b = function(x)
        loss = tf.reduce_sum(a) + tf.reduce_sum(b * b)
    return tape.gradient(loss, [x, world.w, world.v])


def check(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_equal_to_the_first_and_to_single():
    function, world = made()
    x = tf.constant(X)
    found = [step(function, world, x, persistent=turn == 3) for turn in range(5)]
    assert warm(function, x)
    check(found[0], alone(function, world, x))
    for each in found[1:]:
        for one, other in zip(each, found[0], strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_is_watched_may_change():
    function, world = made()
    x = tf.constant(X)
    expected = alone(function, world, x)
    for _ in range(3):
        step(function, world, x)
    assert warm(function, x)
    _, *some = step(function, world, x, watched=False)
    check(some, expected[1:])
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(world.v)
        a, b = function(x)
        loss = tf.reduce_sum(a) + tf.reduce_sum(b * b)
    of_w, of_v = tape.gradient(loss, [world.w, world.v])
    assert of_w is None
    check([of_v], expected[2:])
    with tf.GradientTape(watch_accessed_variables=False):  # nobody watches: the long way
        assert function.session.run_warm((x,)) is None
        check(function(x), function(x))
    check(step(function, world, x), expected)


def test_arguments_of_numpy_have_no_gradient_and_plain_calls_between_are_right():
    function, world = made()
    values = [function(X) for _ in range(3)]
    for _ in range(3):
        with tf.GradientTape() as tape:
            a, b = function(X)
            loss = tf.reduce_sum(a) + tf.reduce_sum(b * b)
        check(tape.gradient(loss, [world.w, world.v]), alone(function, world, tf.constant(X))[1:])
        check([a, b], values[0])
        check(function(X), values[0])
    assert warm(function, X)


def test_changes_of_the_world_are_seen():
    function, world = made()
    x = tf.constant(X)
    for _ in range(3):
        step(function, world, x)
    for change in (
        lambda: world.w.assign(3.0),
        lambda: setattr(world, "number", 5.0),
        lambda: setattr(world, "v", tf.Variable([2.0, 2.0])),
        lambda: setattr(world, "v", tf.Variable([2.0, 2.0, 4.0])),
    ):
        change()
        for _ in range(2):
            check(step(function, world, x), alone(function, world, x))


def test_failed_lanes():
    function, world = made()
    x = tf.constant(X)
    for _ in range(3):
        step(function, world, x)
    beyond = tf.constant([1.0, 2.0, 3.0, 1e9])
    with tf.GradientTape() as tape:
        tape.watch(beyond)
        with pytest.raises(LaneError):
            function(beyond)
    with tf.GradientTape() as tape:
        tape.watch(beyond)
        run = function.run(beyond)
        loss = tf.reduce_sum(run.value[0][:3]) + tf.reduce_sum(run.value[1][:3] ** 2)
    assert run.status.tolist()[3] != 0
    assert np.isnan(run.value[0][3])
    assert run.profile() is not None
    expected = alone(function, world, x[:3])
    found = tape.gradient(loss, [beyond, world.w, world.v])
    check([found[0][:3], *found[1:]], expected)
    assert float(found[0][3]) == 0.0
