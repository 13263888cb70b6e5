"""Objects with `__call__` that are made for each lane: `o(x)` is `o.__call__(x)`."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

X = np.array([1.0, 2.0, 3.0], np.float32)


class Opt:
    def __init__(self, rate):
        self.rate = rate

    def __call__(self, x, *rest, scale=1.0):
        return x * self.rate * scale + sum(rest)


class Count:
    def __init__(self, rate):
        self.rate = rate
        self.n = 0
        self.seen = [0.0, 0.0]

    def __call__(self, x):
        self.n += 1
        self.rate = 0.5 * self.rate
        self.seen[1] = x
        return x * self.rate + self.n


class Branch:
    def __init__(self, rate):
        self.rate = rate
        self.n = 0

    def __call__(self, x):
        if x > 1.5:
            self.n += 1
            return x * self.rate
        return -x


class Recursion:
    def __init__(self, rate):
        self.rate = rate
        self.n = 0

    def __call__(self, x):
        self.n += 1
        if x > 10.0:
            return x
        y = self(x * self.rate) + 1.0
        return y + self.n


class Total:
    def __init__(self):
        self.total = 0.0

    def __call__(self, x):
        if x > 1.5:
            self.total += x


class Two:
    def __init__(self, first, second):
        self.first, self.second = first, second

    def __call__(self, x):
        return self.second(self.first(x))


class Kept:
    def __init__(self):
        self.rows = [1.0, 2.0]

    def __call__(self):
        return self.rows


def helped(o, x):
    return o(x) + 1.0


def helped_by_another(o, x):
    return o(x) + 1.0


@pcbatch.autobatch
def batched(o, x):
    if x > 5.0:
        return o(x)
    return batched(o, o(x) + 2.0)


class Weights:
    def __init__(self):
        self.w = tf.Variable(3.0)

    def __call__(self, x):
        return self.w * x


WEIGHTS, HALF = Weights(), Opt(0.5)
LAYERS = [HALF, tf.cos, Opt(4.0)]


def plain(x):
    o = Opt(0.5)
    return o(x) + o(x, 1.0, 2.0, scale=x) + Opt(x)(2.0)


def state(x):
    o = Count(2.0)
    y = o(x) * o(1.0)
    if o(y) > 3.0:
        return o(x) + o.n
    return o.n + o.seen[1]


def in_a_loop(x):
    o = Count(8.0)
    while x < 9.0 and o.n < 5:
        x += o(x)
    return x + o.n


def branches(x):
    o = Branch(3.0)
    y = 0.0
    for i in range(3):
        y += o(x + i)
    return y + o.n


def recursion(x):
    o = Recursion(2.0)
    y = o(x)
    return y + o.n


def for_nothing_but_the_change(x):
    o = Total()
    o(x)
    o(x + 1.0)
    return o.total


def an_argument(x):
    return helped(Opt(2.0), x) + helped_by_another(Branch(x), x) + batched(Opt(2.0), x)


def an_attribute(x):
    t = Two(Count(2.0), Opt(x))
    y = t.first(x) + t.second(1.0)
    t.first(y)
    return y + t.first.n + t(x)


def attributes_that_branch(x):
    t = Two(Branch(2.0), Branch(x))
    y = t.first(x) + t.second(x + 1.0)
    return y + 10.0 * t.first.n + t.second.n


def one_of_several(x):
    layers = [Count(1.0), Count(x)]
    i = int(x) % 2
    y = layers[i](x)
    y += layers[i](y)
    for each in [Opt(2.0), Opt(x)]:
        y = each(y)
    return y + 10 * layers[0].n + layers[1].n


def one_that_is_chosen(x):
    o = Branch(1.0) if x > 1.5 else Branch(4.0)
    f = HALF if x > 2.5 else Opt(x)
    return o(x + 1.0) + o.n + f(x)


def one_that_is_captured(x):
    f = tf.sin if x > 1.5 else HALF
    g = LAYERS[int(x) % 3]
    return f(x) + g(2.0)


def beside_functions(x):
    y = sum(map(HALF, [x, 1.0])) + max([x, -x], key=HALF)
    o, f, g = Count(2.0), tf.sin, lambda v: 2.0 * v
    return o(x) + f(x) + g(x) + y


def known_ones(x):
    o = Count(2.0)
    while o(1.0) < 3.5:
        x += o.n
    return x + o.n


def captured_ones(x):
    f = WEIGHTS
    for _ in range(2):
        x = f(x) + WEIGHTS(x) + HALF(x)
    return x


def part_of_it(x):
    o = Kept()
    rows = o()
    rows[0] = x
    return o.rows[0]


def through_another(x):
    t = Two(Branch(2.0), Opt(x))
    return t(x) + t.first.n


EVERY = [plain, state, in_a_loop, branches, recursion, for_nothing_but_the_change, an_argument, an_attribute]
EVERY += [
    attributes_that_branch,
    one_of_several,
    one_that_is_chosen,
    beside_functions,
    known_ones,
    captured_ones,
    part_of_it,
]
EVERY += [through_another, one_that_is_captured]


@pytest.mark.parametrize("function", EVERY, ids=lambda function: function.__name__)
def test_an_object_is_called_as_its_method_is(function):
    batched_function = pcbatch.autobatch(function, jit=False)
    found = batched_function(X)
    np.testing.assert_allclose(found, [batched_function.single(x) for x in X], rtol=1e-5)
    if function is not an_argument:  # which calls a batched function
        np.testing.assert_allclose(found, [function(tf.constant(x)) for x in X], rtol=1e-5)


def test_what_is_captured_has_gradients_as_before():
    @pcbatch.autobatch(jit=False)
    def slope(x):
        f = WEIGHTS
        with tf.GradientTape() as tape:
            y = f(x) * x
        return tape.gradient(y, f.w)

    np.testing.assert_allclose(slope(X), X * X)


def test_a_function_may_be_called_for_nothing():
    def one_of(f, g):
        return functools.partial(f, name=g.__name__)

    @pcbatch.autobatch(jit=False)
    def losing(x):
        tf.sin(x)
        one_of(tf.sin, tf.cos)(x)
        return x

    np.testing.assert_array_equal(losing(X), X)


def test_a_number_that_is_called_as_a_statement():
    @pcbatch.autobatch
    def f(number, x):
        number(x)
        return x

    with pytest.raises(pcbatch.PcbatchError, match=r"PCB423: .* is called as if it were a function") as caught:
        f(np.ones(2, np.float32), np.ones(2, np.float32))
    assert "number(x)" in str(caught.value)
