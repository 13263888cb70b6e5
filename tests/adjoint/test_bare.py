"""Variables that lanes keep, hand on and give back as they are, and arrays without elements."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.adjoint.truth import assert_alike, batched, one_by_one, singly

START = tf.Variable([0.3, -0.5], dtype=tf.float64)
SCALE = tf.Variable(1.3, dtype=tf.float64)
KNOWN = tf.constant([2.0, 0.5], tf.float64)
HIDDEN = tf.Variable([0.2, 0.9], dtype=tf.float64)
OF_KERAS = tf.keras.Variable([0.7, -0.1], dtype="float64")
NOTHING = tf.Variable(np.zeros((0, 2)))
COUNTS = tf.constant([0, 1, 3])
VECTORS = tf.constant(np.random.default_rng(0).normal(size=(3, 2)))


def chosen():
    """A helper that gives a variable that nobody else reads."""
    return {"hidden": HIDDEN}


@pcbatch.autobatch
def from_a_start(n, x):
    """`h = START` is where nets begin: of its trace the variable is read last, where it becomes a result."""
    h, k, pair, m = START, chosen(), (KNOWN, [SCALE]), OF_KERAS
    while n > 0:
        h, k = tf.sin(h * x), {"hidden": h + k["hidden"] * m}
        n = n - 1
    return h, k["hidden"], m, pair[1][0]


@pcbatch.autobatch
def given_back(n, x):
    if n <= 0:
        return x, START, SCALE
    y, start, scale = given_back(n - 1, tf.sin(x))
    return y * scale, start * y, scale


@pcbatch.autobatch
def by_arm(n, x):
    return START if n > 0 else SCALE * x


@pcbatch.autobatch
def of_nothing(n, x, none):
    """Arrays without elements, one of each lane: kept, changed, saved across calls and given back."""
    if n <= 0:
        return tf.reduce_sum(none) + x, none
    y, less = of_nothing(n - 1, x * SCALE, none + 1.0)
    z, _ = of_nothing(n - 2, x, less * 2.0)
    return y * z + tf.reduce_sum(NOTHING) + tf.reduce_sum(less), none


CASES = {
    "from_a_start": (from_a_start, (COUNTS, VECTORS), (START, SCALE, HIDDEN, OF_KERAS.value)),
    "given_back": (given_back, (COUNTS, VECTORS), (START, SCALE)),
    "by_arm": (by_arm, (COUNTS, VECTORS), (START, SCALE)),
    "of_nothing": (of_nothing, (COUNTS, VECTORS[:, 0], tf.zeros([3, 0, 2], tf.float64)), (SCALE, NOTHING)),
}
WAYS = {"": {}, "forked": {"fork": True}, "again": {"tape": "replay"}, "compiled": {"jit": True}}
QUICK = {(name, "") for name in CASES if name != "of_nothing"} | {("of_nothing", "forked")}


@pytest.mark.parametrize(
    ("name", "way"),
    [pytest.param(name, way, marks=() if (name, way) in QUICK else pytest.mark.slow) for name in CASES for way in WAYS],
)
def test_like_one_example_after_another(name, way):
    function, arguments, variables = CASES[name]
    found = batched(function.options(**{"jit": False, **WAYS[way]}), arguments, variables)
    expected = singly(function, arguments, variables)
    assert all(np.any(each) for each in expected if np.size(each))
    assert_alike(found, expected)
    assert_alike(one_by_one(function, arguments, variables), expected)


def test_of_each_example():
    function, arguments, _ = CASES["from_a_start"]

    def summed(n, x):
        return tf.reduce_sum(tf.concat(function.single(n, x)[:2], 0))

    @pcbatch.autobatch(jit=False)
    def loss(n, x):
        h, k, *_ = from_a_start(n, x)
        return tf.reduce_sum(tf.concat([h, k], 0))

    found = pcbatch.per_example_gradients(loss, [START, HIDDEN, OF_KERAS])(*arguments)
    for lane, (n, x) in enumerate(zip(*arguments, strict=True)):
        with tf.GradientTape() as tape:
            value = summed(n, x)
        expected = tape.gradient(value, [START, HIDDEN, OF_KERAS.value], unconnected_gradients="zero")
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one[lane], other, rtol=1e-9)
