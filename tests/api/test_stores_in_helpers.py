"""Helpers and methods that make an array with NumPy and store numbers of a lane in it: they are part of the program."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import BatchTypeError, NameResolutionError, PrimitiveError

X = np.array([-1.0, 0.5, 2.0], np.float32)
TABLE = np.zeros(3, np.float32)


def powers(v):
    found = np.zeros(3, np.float32)
    found[0] = v
    for i in range(1, 3):
        found[i] = found[i - 1] * v
    return found


def rows(v):
    found = np.zeros((2, 2), np.float32)
    found[0] = [v, 1.0]
    found[1, 0] = 2.0 * v
    return found


def inside(v):
    def stored(w):
        found = np.ones(2, np.float32)
        found[-1] = w
        return found

    return stored(v) + 1.0


class Stack:
    def __init__(self):
        self.items = np.zeros(4, np.float32)
        self.count = 0

    def push(self, v):
        self.items[self.count] = v
        self.count += 1

    def pop(self):
        self.count -= 1
        return self.items[self.count]


class Filled:
    def __init__(self, v):
        self.items = np.zeros(2, np.float32)
        self.items[0] = v


@pcbatch.autobatch(jit=False)
def by_helpers(x):
    return powers(x), rows(x), inside(x), tf.stack([powers(y) for y in (x, 2.0 * x)])


@pcbatch.autobatch(jit=False)
def by_methods(x):
    stack = Stack()
    stack.push(x)
    stack.push(x * x)
    if x > 0.0:
        stack.push(stack.pop() + 1.0)
    return stack.items, stack.count, stack.pop() * stack.pop()


@pytest.mark.parametrize("function", [by_helpers, by_methods])
def test_as_one_by_one(function):
    batch = function(X)
    for lane, x in enumerate(X):
        python = function.__wrapped__(x)
        for found, single, wanted in zip(*map(tf.nest.flatten, (batch, function.single(x), python)), strict=True):
            np.testing.assert_allclose(found[lane], wanted, rtol=1e-6)
            np.testing.assert_allclose(single, wanted, rtol=1e-6)


def test_the_gradient_goes_through_a_store_in_a_helper():
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(by_helpers(x)[0])
    np.testing.assert_allclose(tape.gradient(total, x), 1 + 2 * X + 3 * X**2, rtol=1e-6)


def test_a_constructor_may_store_too():
    @pcbatch.autobatch
    def made(x):
        return Filled(x).items

    found = made(X)
    for lane, x in enumerate(X):
        np.testing.assert_allclose(found[lane], made.__wrapped__(x))
        np.testing.assert_allclose(made.single(x), made.__wrapped__(x))


def test_a_table_of_others_is_not_stored_into():
    def stored(v):
        TABLE[0] = v
        return TABLE[0]

    @pcbatch.autobatch
    def changing(x):
        return stored(x)

    with pytest.raises(NameResolutionError, match="PCB204: `TABLE` is captured, and this changes it"):
        changing(X)
    assert not TABLE.any()


def test_a_sequence_in_an_element_is_what_numpy_says():
    def stored(v):
        found = np.zeros(2, np.float32)
        found[0] = [1.0, 2.0]
        return found + v

    @pcbatch.autobatch
    def wrong(x):
        return stored(x)

    with pytest.raises(PrimitiveError, match="setting an array element with a sequence"):
        wrong(X)


def counted(xs, size):
    """Made of a size that the caller hands over."""
    found, places = np.zeros(size, np.int32), np.arange(size)
    for x in xs:
        if x >= 0:
            found[x % size] += 1
    return found + places * 2, np.eye(size, k=1)[0], np.ones((2, size), bool)


@pcbatch.autobatch
def by_sizes(xs):
    return counted(xs, 3), counted(xs, size=2)[0]


def test_a_helper_makes_arrays_of_the_size_that_it_is_given():
    xs = np.array([[0, 1, 5, -1], [3, 3, 2, 2]], np.int32)
    for backend in ("tensorflow", "reference"):
        given = tf.nest.flatten(by_sizes.options(backend=backend)(xs))
        for lane, row in enumerate(xs):
            expected = tf.nest.flatten((counted(row, 3), counted(row, 2)[0]))
            for one, two, three in zip(given, expected, tf.nest.flatten(by_sizes.single(row)), strict=True):
                np.testing.assert_array_equal(one[lane], two)
                np.testing.assert_array_equal(three, two)
                assert one.dtype == np.asarray(three).dtype


def test_a_size_that_lanes_have_is_refused_by_its_name():
    @pcbatch.autobatch
    def made(n):
        return np.zeros((n, 2), np.float32) + 1.0

    with pytest.raises(BatchTypeError, match="PCB313: `n` is used as a size"):
        made(np.array([2]))


def test_a_traced_helper_with_a_size_that_lanes_have_is_told_so():
    def ones(n):
        return np.ones(n)

    @pcbatch.autobatch
    def made(n):
        return ones(n)

    with pytest.raises(BatchTypeError, match=r"(?s)used as a size, and differs from lane to lane.*same shape in all"):
        made(np.array([2]))
