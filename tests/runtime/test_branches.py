"""Loops as TensorFlow's operations: which constants they are given, and what XLA knows inside of them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import branches, private, raw_ops


def compiled(function, *arrays):
    """The result of `function` as a program that XLA compiles, and its operations."""

    def program(*arrays):
        with raw_ops.reusing():
            return function(*arrays)

    traced = tf.function(program, jit_compile=True, autograph=False).get_concrete_function(*arrays)
    return traced(*arrays).numpy(), traced.graph.get_operations()


def turns(count, body, value):
    """`value` after so many turns of a loop."""
    found = branches.loop(lambda s: s[0] < count, lambda s: [s[0] + 1, body(s[1])], [tf.constant(0), value])
    return found[1]


def loops(operations):
    return [operation for operation in operations if operation.type.endswith("While")]


def test_small_constants_are_made_inside():
    """A loop takes none of those around it, and has one however often it is read; a large one is handed in."""

    def function(x):
        small, large = tf.constant([2.0, 3.0]), tf.constant(np.arange(200, dtype=np.float32))
        return turns(3, lambda y: y * small + small + tf.reduce_max(large), x)

    found, operations = compiled(function, tf.ones(2))
    expected = np.ones(2, np.float32)
    for _ in range(3):
        expected = expected * [2, 3] + [2, 3] + 199
    np.testing.assert_allclose(found, expected)
    (loop,) = loops(operations)
    assert [each.shape for each in loop.inputs[2:]] == [(200,)]


def test_a_loop_is_told_what_is_known_around_it():
    """A number computed of constants is a shape inside, two loops deep; so is one computed of a shape."""

    def function(x):
        rows, columns = tf.constant(1) + tf.constant(1), tf.size(x) // 2

        def inner(y):
            return turns(2, lambda z: tf.reshape(tf.transpose(tf.reshape(z, [rows, columns])), [rows * columns]), y)

        return turns(3, inner, x)

    found, operations = compiled(function, tf.range(6.0))
    expected = np.arange(6.0)
    for _ in range(6):
        expected = expected.reshape(2, 3).T.reshape(6)
    assert found.tolist() == expected.tolist()
    assert all("_xla_propagate_compile_time_consts" in each.node_def.attr for each in loops(operations))


def test_a_loop_that_is_given_nothing_known_is_not_looked_through():
    found, operations = compiled(lambda x, y: turns(3, lambda z: z + y + 1.0, x), tf.ones(2), tf.ones(2))
    assert found.tolist() == [7.0, 7.0]
    (loop,) = loops(operations)
    assert "_xla_propagate_compile_time_consts" not in loop.node_def.attr


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, c: c + 1, True),
        (lambda x, c: x + c, False),
        (lambda x, c: tf.shape(x)[0] * c, True),
        (lambda x, c: tf.stack([c, x[0]]), False),
        (lambda x, c: turns(2, lambda y: y + 1, c), True),
    ],
    ids=["constants", "an argument", "a shape", "one of both", "a loop"],
)
def test_may_be_known(make, expected):
    found = []

    def function(x):
        found.append(branches.may_be_known(make(x, tf.constant(2))))
        return x

    compiled(function, tf.range(3))
    assert found == [expected]


def test_may_be_known_inside_of_a_loop():
    """What stands for a tensor around the loop is that; what the loop carries is not known."""
    found = []

    def function(x):
        large = tf.zeros(100, tf.int32) + 1

        def body(y):
            found.extend(branches.may_be_known(private.capture(y.graph, each)) for each in (large, x))
            found.append(branches.may_be_known(y))
            return y + tf.reduce_sum(large) + x

        return turns(2, body, x + 1)

    assert compiled(function, tf.constant(1))[0] == 204
    assert found == [True, False, False]


def test_variables_are_not_known():
    variable = tf.Variable([1.0, 2.0])
    found, operations = compiled(lambda x: turns(2, lambda y: y + variable, x), tf.zeros(2))
    assert found.tolist() == [2.0, 4.0]
    assert "_xla_propagate_compile_time_consts" not in loops(operations)[0].node_def.attr


def test_may_be_known_of_a_long_chain():
    found = []

    def function(x):
        for _ in range(1500):
            x = x + 1
        found.append(branches.may_be_known(x))
        return x

    compiled(function, tf.constant(1))
    assert found == [False]


def known_beyond(table):
    return branches.element(table, [tf.constant(-1)])


def computed_beyond(table):
    return branches.element(table, [tf.constant(4) * tf.constant(5)])


def known_in_a_loop(table):
    beyond = tf.constant(4) * tf.constant(5)
    return turns(2, lambda y: y + branches.element(table, [beyond]), tf.zeros(3, tf.int32))


def carried_in_a_loop(table):
    return branches.loop(
        lambda s: s[0] < 2, lambda s: [s[0] + 1, branches.element(table, [s[0] - 9])], [tf.constant(0), table[1]]
    )[1]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (known_beyond, [0, 1, 2]),
        (computed_beyond, [9, 10, 11]),
        (known_in_a_loop, [18, 20, 22]),
        (carried_in_a_loop, [0, 1, 2]),
    ],
)
def test_elements_beyond_an_end_are_the_nearest(function, expected):
    """Whether TensorFlow knows the index or not: both ways of reading an element are one."""
    table = tf.reshape(tf.range(12), [4, 3])
    assert compiled(lambda table: function(table), table)[0].tolist() == expected


@pytest.mark.parametrize("kept", [lambda each: each, tf.identity, lambda each: turns(1, tf.identity, each)])
def test_loops_hand_on_a_constant_that_no_turn_changes(kept):
    """Known around the loop that they are in: TensorFlow would look through the last one twice."""

    def function(x):
        known = tf.constant(np.arange(200.0))

        def one(same, y):
            def body(s):
                return [s[0] + 1, kept(s[1]), s[2] + tf.reduce_sum(s[1])]

            return branches.loop(lambda s: s[0] < 2, body, [tf.constant(0), same, y])[1:]

        return turns(2, lambda y: one(*one(*one(known, y)))[1], x)

    found, _ = compiled(function, tf.constant(0.5, tf.float64))
    assert found == 0.5 + 12 * np.sum(np.arange(200.0))
