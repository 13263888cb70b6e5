"""What warm calls are given, in every form, or left to defaults: what differs from what was compiled is noticed."""

from __future__ import annotations

import collections

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.function.argument_specs import specs_of
from pcbatch.runtime.backends import backend_named
from tests.api.warm import X, settled, value, warm

Pair = collections.namedtuple("Pair", "a b")


def test_arguments_of_every_form():
    @pcbatch.autobatch(in_axes=(0, 0, None, None, 0, None), static_argnames="power", jit=False)
    def program(x, pair, scale, table, n, power):
        total = x * scale + pair.a**power + tf.reduce_sum(pair.b) + table["t"]
        return {"total": total * tf.cast(n, tf.float32), "same": pair}

    def args(seed, scale, power, n=np.int32):
        random = np.random.default_rng(seed)
        pair = Pair(tf.constant(random.normal(size=3), tf.float32), random.normal(size=(3, 2)).astype(np.float32))
        table = {"t": np.asarray(random.normal(), np.float32)}
        return random.normal(size=3).astype(np.float32), pair, scale, table, np.array([1, 2, 3], n), power

    given = [args(0, 2.0, 2), args(1, 3.0, 2), args(2, 4, 2), args(3, 2.0, 3), args(4, 2.0, 2, np.int64)]
    for _ in range(3):
        for each in given:
            found = program(*each)
            x, pair, scale, table, n, power = each
            a, b = np.asarray(pair.a), np.asarray(pair.b)
            wanted = (x * scale + a**power + b.sum(-1) + table["t"]) * n
            np.testing.assert_allclose(found["total"], wanted, rtol=1e-5)
            np.testing.assert_array_equal(found["same"].b, pair.b)
    assert all(warm(program, *each) for each in given[-2:])


def test_an_argument_that_is_changed_in_place():
    @pcbatch.autobatch(in_axes=(0, None), jit=False)
    def program(x, w):
        return x * tf.reduce_sum(w)

    x, w = np.ones(3, np.float32), np.ones(2, np.float32)
    assert settled(program, x, w) == [2.0] * 3
    x[0], w[0] = 5.0, 3.0
    assert settled(program, x, w) == [20.0, 4.0, 4.0]


def test_numbers_that_are_refused_stay_refused():
    @pcbatch.autobatch(in_axes=(0, None), jit=False)
    def program(x, n):
        return x + n

    x = tf.constant([1, 2])
    assert settled(program, x, 3) == [4, 5]
    assert settled(program, x, 4) == [5, 6]
    with pytest.raises(pcbatch.UsageError, match="PCB511"):
        program(x, 2**31)


def test_specs_tell_apart_what_is_not_alike():
    backend = backend_named("tensorflow")
    arrays = [
        X, X[:2], X[None], tf.cast(X, tf.float64), X.numpy(), X.numpy().astype(np.float64), np.float32(1), np.float64(1)
    ]  # fmt: skip
    others = [1, 1.0, True, None, (X,), (X, X), Pair(X, X), {"a": X}, {"b": X}, (X, (X,)), ((X, X),), {"a": (X,)}]
    known = [specs_of((each,), (), backend.spec_of) for each in (*arrays, *others)]
    assert len({hash(key) for key, _ in known}) == len({key for key, _ in known}) == len(known)
    assert specs_of((1,), {0}, backend.spec_of)[0] != specs_of((True,), {0}, backend.spec_of)[0]
    for each in (tf.Variable(1.0), [1.0], "text", 2**31, {1: X}, np.ma.masked_array([1.0])):
        assert specs_of((each,), (), backend.spec_of) is None
    assert specs_of(([],), {0}, backend.spec_of) is None


def test_no_lanes_and_no_results():
    @pcbatch.autobatch
    def program(x, n):
        while n > 0:
            n -= 1
        return {"x": x * 2.0, "none": None}

    for _ in range(4):
        for size in (0, 2):
            found = program(X[:size], tf.constant([1, 2], tf.int32)[:size])
            assert (value(found["x"]), found["none"]) == ([2.0, 4.0][:size], None)


FACTORS = np.array([1.0, 2.0, 3.0], np.float32)


def test_arguments_that_are_left_to_their_defaults():
    @pcbatch.autobatch
    def program(x, n=2, scale=(0.5, 2.0), factors=FACTORS, *, shift=None, more=1.0):
        while n > 0:
            x = x * scale[0] + scale[1] * factors[1] + more
            n -= 1
        return x if shift is None else x + shift

    twos = tf.constant([2, 2, 2])
    once, twice = settled(program, X, twos - 1), settled(program, X)
    assert once == [4.0 + 1.0 + x / 2 for x in (1.0, 2.0, 3.0)]
    assert twice == [y / 2 + 5.0 for y in once] == [float(program.single(x)) for x in (1.0, 2.0, 3.0)]
    assert settled(program, X, tf.constant([0, 1, 2])) == [1.0, once[1], twice[2]]
    assert value(program(X, more=tf.constant([2.0, 2.0, 2.0]))) != twice  # by the long way
    FACTORS[1] += 1.0
    try:
        assert value(program(X)) == value(program(X, twos)) != twice
        assert warm(program, X)
    finally:
        FACTORS[1] -= 1.0
    assert value(program(X)) == twice


def test_a_default_is_one_for_all_lanes_and_what_is_passed_is_not():
    @pcbatch.autobatch
    def program(x, factors=FACTORS):
        return tf.reduce_sum(x * factors)

    assert settled(program, X) == [6.0, 12.0, 18.0]
    assert settled(program, X, FACTORS) == [1.0, 4.0, 9.0]
    assert settled(program, X) == [6.0, 12.0, 18.0]


def test_what_has_no_default_has_to_be_passed():
    @pcbatch.autobatch
    def program(x, y, z=1.0):
        return x + y + z

    settled(program, X, X)
    with pytest.raises(TypeError, match="PCB510"):
        program(X)
    assert not warm(program, X)


def test_a_static_default():
    @pcbatch.autobatch(static_argnames=("name",))
    def program(x, name="twice"):
        return x * 2.0 if name == "twice" else x

    assert settled(program, X) == [2.0, 4.0, 6.0]
    assert settled(program, X, "once") == [1.0, 2.0, 3.0]
    assert settled(program, X, "twice") == [2.0, 4.0, 6.0]
