"""Lists of constant lengths, `[0.0] * k`, in helpers that are part of the program, and constants that arms read."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

X = np.array([-1.0, 2.0, 3.0], np.float32)
K = 4


def counted(x, k):
    found = [0] * k
    for i in range(k):
        if x > i:
            found[i] += 1
    return sum(found)


def by_default(x, k=3):
    xs = [0.0] * k
    if x > 0.0:
        xs[0] = x
    return xs


def rows(x, k):
    grid = [[0.0] * k for _ in range(k)]
    if x > 0.0:
        grid[1][0] = x
    return grid[1][0] + grid[0][1] + len(grid)


def computed(x, k):
    m = k + 1
    xs, ys = k * [1.0], [x] * m
    if x > 0.0:
        xs[0] = x
    return sum(xs) + sum(ys)


def in_both_arms(x, k, init=0.0):
    if x > 0.0:
        return (init,) * k
    return (x,) * k


def inner(x, k):
    if x > 0.0:
        return computed(x, k)
    return computed(x, k + 1)


def as_long_as(x, xs):
    ys = [0.0] * len(xs)
    for i in range(len(xs)):
        if x > 0.0:
            ys[i] = xs[i]
    return ys


def ranged(x, k):
    if x > 0.0:
        return sum(list(range(k))) + x
    return sum([float(i) for i in range(k)])


class Bag:
    def __init__(self, k, x):
        self.xs = [0.0] * k
        if x > 0.0:
            self.xs[0] = x

    def more(self, k, x):
        if x > 0.0:
            return [x] * k
        return [0.0] * k


def of_literals(x):
    return counted(x, 3) + counted(x, 2) + rows(x, 3) + computed(x, K) + computed(x, len([1, 2])) + ranged(x, 3)


def of_lists(x):
    return by_default(x), by_default(x, 4), in_both_arms(x, 3), in_both_arms(x, 2, 1.0)


def of_none(x):
    return in_both_arms(x, 0), in_both_arms(x, -1), in_both_arms(x, 1)


def of_a_helper_in_a_helper(x):
    return inner(x, 2) + sum(as_long_as(x, [1.0, x, 2.0]))


def of_methods(x):
    bag = Bag(2, x)
    return sum(bag.xs) + sum(bag.more(3, x)) + sum(bag.more(2, x))


def leaves(value):
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, (list, tuple)) else [value]


def assert_as_python(function):
    batched = pcbatch.autobatch(function)
    for size in (0, 1, 3):
        found = leaves(batched(X[:size]))
        for lane, x in enumerate(X[:size]):
            wanted = leaves(function(float(x)))
            assert len(wanted) == len(found)
            np.testing.assert_allclose([leaf[lane] for leaf in found], wanted, rtol=1e-6)
            np.testing.assert_allclose(leaves(batched.single(x)), wanted, rtol=1e-6)


def of_a_counter(x):
    total = 0.0
    for k in range(1, 4):
        total += computed(x, k)
    return total


@pytest.mark.parametrize(
    "function", [of_literals, of_lists, of_none, of_a_helper_in_a_helper, of_methods, of_a_counter]
)
def test_a_list_is_as_long_as_a_constant_says(function):
    assert_as_python(function)


def of_a_lanes_number(x):
    return computed(x, 2 if x > 0.0 else 3)


def test_a_number_of_the_lanes_own():
    assert_as_python(of_a_lanes_number)


def equal_arms(x):
    k = 2
    if x > 0.0:
        y = tf.zeros([k])
    else:
        y = tf.ones([k])
    return tf.reduce_sum(y)


def equal_lists(x):
    k = 2
    if x > 0.0:
        ys = [0] * k
    else:
        ys = [1] * k
    return sum(ys)


def other_sizes(x):
    k, m = 2, 3
    if x > 0.0:
        s = tf.reduce_sum(tf.ones([k]))
    else:
        s = tf.reduce_sum(tf.ones([m]))
    return s


def other_axes(x):
    axis = 0
    v = tf.stack([x, x + 1.0])
    if x > 0.0:
        s = tf.reduce_max(tf.cumsum(v, axis=axis))
    else:
        axis = -1
        s = tf.reduce_max(tf.cumsum(v, axis=axis))
    return s


def shapes(x):
    shape, other = (2, 1), (3, 1)
    if x > 0.0:
        y = tf.reduce_sum(tf.fill(shape, x))
    else:
        y = tf.reduce_sum(tf.fill(shape, 2.0))
    if x > 2.0:
        z = tf.reduce_sum(tf.fill(shape, x))
    else:
        z = tf.reduce_sum(tf.fill(other, x))
    return y + z


def melded(x):
    k = 2
    y, z, s = x * 2.0, x * 3.0, 0.0
    for _ in range(2):
        if x > 0.0:
            s = tf.reduce_sum(tf.fill([k], y))
        else:
            s = tf.reduce_sum(tf.fill([k], z))
        y, z = y + s, z + s
    return s + k + y + z


@pytest.mark.parametrize("function", [equal_arms, equal_lists, other_sizes, other_axes, shapes, melded])
def test_a_constant_stays_one_where_arms_are_alike(function):
    assert_as_python(function)


def test_arms_that_read_the_same_constant_are_melded():
    assert pcbatch.autobatch(melded).ir("optimized", X).count("tf.reduce_sum") == 1
