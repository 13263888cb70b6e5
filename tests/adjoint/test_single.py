"""Tapes over `f.single`, by which users compare: functions of Python's and NumPy's numbers have gradients, too."""

from __future__ import annotations

import copy
import logging
import math
import pickle
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.adjoint.truth import assert_alike


@dataclass
class Pair:
    a: object
    b: object

    def length(self):
        return math.hypot(self.a, self.b)


def bell(x):
    return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def repeated(g, x, n):
    for _ in range(n):
        x = g(x)
    return x


@pcbatch.autobatch
def numbers(x, n):
    total = 0.0
    while x < 3.0:
        total += bell(x)
        x += 1.0
    return total, repeated(lambda v: math.cos(v) * total, x, 3), repeated(bell, total, 2)


@pcbatch.autobatch
def parts(x, n):
    y, z = math.sin(x) * 2.0 + 1, float(x) ** 2
    a = tf.stack([x, y, z])
    a[n % 3] = y * 3
    if y > 1.0 and math.isfinite(z):
        y = y / (z + 1.0)
    pair = Pair(z, y)
    return a, max(y, z) + min(y, 2.0), {"k": [sum([y, z]), -y]}, pair.length(), y // 0.3 + y % 0.3, math.floor(y)


@pcbatch.autobatch
def arrays(x, n):
    v = tf.stack([x, x * 2.0])
    y = v[0].item()
    w = np.sqrt(math.exp(y)) + np.take(v, [1, -1]) + np.float32(v[1])
    return w, math.log(y + 5.0, 2.0), tf.reduce_sum([y, 2.0 * y]), tf.maximum(y, x), math.atan2(y, x)


@pcbatch.autobatch
def called(x, n):
    y = math.sin(x)
    return halved(y, n) * x, halved(y, n)


@pcbatch.autobatch
def halved(y, n):
    if n <= 0:
        return y
    return math.tanh(y) + halved(y * 0.5, n - 1)


X, N = tf.constant([0.3, -1.2, 1.7]), tf.constant([0, 1, 2])


def floats(value):
    return [leaf for leaf in tf.nest.flatten(value) if tf.is_tensor(leaf) and leaf.dtype.is_floating]


def total(results):
    return tf.add_n([tf.reduce_sum(each) * (place + 1.0) for place, each in enumerate(results)])


@pytest.mark.parametrize("function", [numbers, parts, arrays, called], ids=lambda function: function.__name__)
def test_like_the_reference(function):
    with tf.GradientTape() as tape:
        tape.watch(X)
        batch = floats(function.options(backend="reference")(X, N))
        loss = total(batch)
    expected, found = tape.gradient(loss, X), []
    for lane, (x, n) in enumerate(zip(X, N, strict=True)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            single = floats(function.single(x, n))
            loss = total(single)
        found.append(tape.gradient(loss, x))
        assert [each.dtype for each in single] == [each.dtype for each in batch]
        for ours, theirs in zip(single, batch, strict=True):
            np.testing.assert_allclose(ours, theirs[lane], rtol=1e-5)
    assert_alike([tf.stack(found)], [expected], 1e-5)


def test_what_they_raise_and_decide_is_pythons():
    @pcbatch.autobatch
    def root(x):
        y = math.sqrt(x)
        assert y < 3.0, f"{y:.2f} is too much"
        return y

    with tf.GradientTape(persistent=True) as tape:
        x = tf.constant(4.0)
        tape.watch(x)
        y = root.single(x)
        with pytest.raises(ValueError, match=r"math domain|nonnegative"):
            root.single(-x)
        with pytest.raises(AssertionError, match=r"4\.00 is too much"):
            root.single(x * x)
    assert float(tape.gradient(y, x)) == 0.25
    assert isinstance(root.single(x), float)  # no tape looks on


def test_autograph_says_nothing_of_lambdas(caplog):
    @pcbatch.autobatch
    def mapped(x, n):
        scale = x * 2.0
        return tf.map_fn(lambda v: v**2 + scale, tf.stack([x, scale]))

    logger = logging.getLogger("tensorflow")
    before, logger.propagate = logger.propagate, True
    try:
        with caplog.at_level(logging.WARNING, "tensorflow"):
            batch = mapped.options(jit=False)(X, N)
            np.testing.assert_allclose(batch[0], mapped.single(X[0], N[0]), rtol=1e-6)
    finally:
        logger.propagate = before
    assert not [record.getMessage() for record in caplog.records if "AutoGraph" in record.getMessage()]


def described(y):
    """Asks a number all that a float knows."""
    match y:
        case float():
            kind = 1.0
        case _:
            kind = 2.0
    loaded = pickle.loads(pickle.dumps(y))
    ratio = Fraction(y)
    told = isinstance(y, float), isinstance(y, int), isinstance(y, Real), copy.deepcopy(y) is y, complex(y) == y
    assert told == (True, False, True, True, True), told
    assert (loaded, y.real, y.imag, y.conjugate(), ratio) == (y, y, 0.0, y, y)
    assert y.hex() == loaded.hex()
    return y * kind


def test_a_number_below_a_tape_is_a_float_to_helpers():
    """What helpers ask of it decides as without a tape; a copy of it is followed, too."""

    @pcbatch.autobatch(jit=False)
    def function(x):
        return described(math.exp(x)) * x

    x = tf.constant(1.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function.single(x)
    np.testing.assert_array_equal(y, function.single(x))
    np.testing.assert_allclose(tape.gradient(y, x), 2.5 * math.exp(1.5), rtol=1e-6)
