"""Functions of the user's that go into operations: what they read is read anew, and what is made of them is called."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import CompileError

X = np.array([1.0, 2.0, -3.0, 0.5], np.float32)
N = np.array([5, 0, 8, 1], np.int32)
FACTOR = 2.0
TABLE = np.array([2.0, 7.0], np.float32)


class Settings:
    """Something with an attribute."""


SETTINGS = Settings()


def scaled(v):
    return v * FACTOR


def scaled_by_settings(v):
    return v * SETTINGS.factor


class Scale:
    def method(self, v):
        return v * FACTOR

    def __call__(self, v):
        return v * FACTOR


SCALE = Scale()


def pair(x):
    return tf.stack([x, x + 1.0])


def closing():
    factor = 2.0

    def put(value):
        nonlocal factor
        factor = value

    def of_a_cell(x):
        return tf.map_fn(lambda v: v * factor * x, pair(x))

    return of_a_cell, put


of_a_cell, put_in_cell = closing()


def with_a_lambda(x):
    return tf.map_fn(lambda v: v * FACTOR * x, pair(x))


def with_a_helper(x):
    return tf.map_fn(scaled, pair(x))


def with_an_attribute_in_a_lambda(x):
    return tf.map_fn(lambda v: v * SETTINGS.factor * x, pair(x))


def with_an_attribute_in_a_helper(x):
    return tf.map_fn(scaled_by_settings, pair(x))


def with_a_helper_in_a_lambda(x):
    return tf.map_fn(lambda v: scaled(v) * x, pair(x))


def with_an_array(x):
    return tf.map_fn(lambda v: v * TABLE[0] * x, pair(x))


def with_a_partial(x):
    return tf.map_fn(functools.partial(lambda k, v: v * FACTOR * k, x), pair(x))


def with_a_method(x):
    return tf.map_fn(SCALE.method, pair(x))


def with_an_object(x):
    return tf.map_fn(SCALE, pair(x))


def with_a_traced_function(x):
    return tf.function(lambda v: v * FACTOR)(x)


def with_a_traced_function_of_a_lane(x):
    return tf.function(lambda v: v * FACTOR * x)(x)


def with_a_fallback(x):
    return pcbatch.fallback(scaled)(x)


READING = [
    with_a_lambda,
    with_a_helper,
    with_an_attribute_in_a_lambda,
    with_an_attribute_in_a_helper,
    with_a_helper_in_a_lambda,
    with_an_array,
    with_a_partial,
    with_a_method,
    with_an_object,
    of_a_cell,
    with_a_traced_function,
    with_a_traced_function_of_a_lane,
    with_a_fallback,
]


def put(value):
    global FACTOR
    FACTOR = SETTINGS.factor = TABLE[0] = value
    put_in_cell(value)


def agrees(function, *arguments):
    found = function(*arguments)
    for lane, row in enumerate(zip(*arguments, strict=True)):
        np.testing.assert_allclose(found[lane], function.single(*row), rtol=1e-5)


@pytest.mark.parametrize("function", READING)
def test_what_they_read_is_read_anew(function):
    function = pcbatch.autobatch(function)
    for value in (2.0, 3.0):
        put(value)
        agrees(function, X)


def traced(x, n):
    g = tf.function(lambda m: m * x)
    return g(x) + g(2.0)


def in_a_branch(x, n):
    g = tf.function(lambda m: m * x)
    return g(2.0) if n > 2 else x


def in_a_loop(x, n):
    g = tf.function(lambda m: m * x)
    y = 1.0
    while n > 2:
        y = g(y)
        n -= 1
    return y


def made_in_a_loop(x, n):
    while n > 2:
        g = tf.function(lambda m: m * x)  # noqa: B023
        x = g(2.0) - 1.0
        n -= 1
    return x


def through_a_tape(x, n):
    g = tf.recompute_grad(lambda m: m * m * x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = g(x)
    return tape.gradient(y, x)


def made_by_a_helper(x, n):
    g = times(x)
    x = g(x)
    return g(x)


def times(factor):
    return tf.function(lambda m: m * factor)


def in_an_object(x, n):
    box, row = Settings(), [tf.function(lambda m: m + x)]
    box.call = tf.function(lambda m: m * x)
    return box.call(x) + row[0](x)


def handed_on(x, n):
    g = tf.function(lambda m: m * x)
    return tf.reduce_sum(tf.map_fn(g, tf.stack([x, 2.0])))


MADE = [traced, in_a_branch, in_a_loop, made_in_a_loop, through_a_tape, made_by_a_helper, in_an_object, handed_on]


@pytest.mark.parametrize("function", MADE)
def test_functions_that_operations_make_of_lanes_are_called(function):
    agrees(pcbatch.autobatch(function), X, N)


def changed(x, n):
    w = pcbatch.fallback(lambda v: v * x)
    x = x + 1.0
    return w(x)


def changed_constant(x, n):
    k = 2.0
    w = pcbatch.fallback(lambda v: v * k)
    k = 3.0
    return w(x)


def changed_list(x, n):
    row = [x, 2.0]
    g = tf.function(lambda v: v * row[1])
    row[1] = 3.0
    return g(x)


def changed_in_a_loop(x, n):
    g = tf.recompute_grad(lambda m: m * x)
    while n > 0:
        x = g(x)
        n -= 1
    return x


def given_back(x, n):
    return tf.function(lambda m: m * x)


def one_of_two(x, n):
    g = tf.function(lambda m: m * x) if n > 2 else tf.function(lambda m: m + x)
    return g(x)


REFUSED = {
    changed: "PCB404: what is called here reads `x`, which has changed since it was made",
    changed_constant: "PCB404: what is called here reads `k`",
    changed_list: "PCB404: what is called here reads `row`",
    changed_in_a_loop: "PCB404: what is called here reads `x`",
    given_back: "PCB404: a function that is made of a lane's values",
    one_of_two: "PCB301: .*a function that an operation has made",
}


@pytest.mark.parametrize("function", REFUSED)
def test_functions_that_mean_something_else_by_now_are_refused(function):
    with pytest.raises(CompileError, match=REFUSED[function]) as error:
        pcbatch.autobatch(function)(X, N)
    assert all(each.span.file == __file__ for each in error.value.diagnostics)


def test_what_is_refused_leaves_tensorflow_as_it_was():
    def failing(x, n):
        return tf.reduce_sum(tf.map_fn(lambda v: v + tf.zeros([2, int(v)]), tf.stack([x, 2.0])))

    with pytest.raises(CompileError):
        pcbatch.autobatch(failing)(X, N)
    assert tf.compat.v1.get_variable_scope().caching_device is None
    assert float(tf.recompute_grad(lambda m: m * m)(tf.constant(3.0))) == 9.0
