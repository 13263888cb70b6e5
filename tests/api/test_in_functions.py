"""Batched functions as arguments of a caller's `tf.function`: they stay batched, each of them known by itself."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

X = tf.constant([[1.0, 2.0], [3.0, 4.0]])
OPTIONS = {"jit": False}


@pcbatch.autobatch(**OPTIONS)
def doubled(x):
    return tf.reduce_sum(x) * 2.0


@pcbatch.autobatch(**OPTIONS)
def tripled(x):
    return tf.reduce_sum(x) * 3.0


def default(x, f=doubled):
    return f(x)


def named(x, *, f=tripled):
    return f(x)


def two(x, pair):
    return pair["one"](x) + pair["others"][0](x)


@pytest.mark.parametrize(
    ("function", "kwargs", "factor"),
    [
        (default, {}, 2),
        (default, {"f": tripled}, 3),
        (default, {"f": doubled.options(max_steps=5)}, 2),
        (named, {}, 3),
        (named, {"f": doubled}, 2),
        (two, {"pair": {"one": doubled, "others": [tripled]}}, 5),
    ],
)
def test_what_is_given_is_batched(function, kwargs, factor):
    """Each lane has a sum of its own; TensorFlow took the plain function, which sums all."""
    found = tf.function(function)(X, **kwargs)
    np.testing.assert_array_equal(found, factor * tf.reduce_sum(X, 1))


def test_one_trace_for_each():
    function = tf.function(default, autograph=False)
    for each in (doubled, tripled, doubled, tripled, doubled):
        function(X, each)
    assert function.experimental_get_tracing_count() == 2
    assert function.get_concrete_function(tf.TensorSpec([None, 2]), tripled)(X).shape == (2,)


def test_it_is_not_kept_alive():
    @pcbatch.autobatch
    def other(x):
        return x

    seen, function = weakref.ref(other), tf.function(lambda x, f: x, autograph=False)
    function(X, other)
    del other
    gc.collect()
    assert seen() is None
    function(X, doubled)


def made_inside(x, c):
    @pcbatch.autobatch
    def risen(x):
        while x < 10.0:
            x = x + c
        return x

    return risen(x)


def test_one_that_is_made_inside_is_refused_where_autograph_rewrites_it():
    x = X[0]
    np.testing.assert_array_equal(tf.function(made_inside, autograph=False)(x, tf.constant(4.0)), [13.0, 10.0])
    with pytest.raises(pcbatch.CompileError, match=r"PCB151: `risen` is defined inside of a tf.function(.|\n)* help: "):
        tf.function(made_inside)(x, tf.constant(4.0))
