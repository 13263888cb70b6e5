"""Warm calls: what was found out about earlier arguments serves for arrays of the same form, and for no others."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError
from pcbatch.runtime.backends.tensorflow import private, xla_cpu

X, N = tf.constant([1.0, -2.0, 3.0]), tf.constant([2, 0, 1])


def scaled(x, n):
    """`x` doubled `n` times."""
    while n > 0:
        x = x * 2
        n -= 1
    return x


@pytest.fixture(scope="module", params=[True, False], ids=["xla", "graph"])
def function(request):
    return pcbatch.autobatch(scaled, jit=request.param)


def test_the_same_values_in_every_form(function):
    """In turn, several times: as tensors, by name, as NumPy has them, as lists, as a variable, with other dtypes."""
    forms = [
        ((X, N), {}),
        ((X,), {"n": N}),
        ((), {"n": N, "x": X}),
        ((X.numpy(), N), {}),
        ((X.numpy().tolist(), N.numpy().tolist()), {}),
        ((tf.Variable(X), N), {}),
        ((tf.cast(X, tf.float64), N), {}),
        ((X, tf.cast(N, tf.int64)), {}),
        ((X[:2], N[:2]), {}),
        ((X[:, None] * tf.ones([1, 2]), N), {}),
    ]
    wanted = [4.0, -2.0, 6.0]
    for _ in range(3):
        for args, kwargs in forms:
            found = function(*args, **kwargs)
            given = {**dict(zip(("x", "n"), args, strict=False)), **kwargs}["x"]
            lanes, rank = np.shape(given)[0], np.ndim(given)
            assert found.dtype == tf.convert_to_tensor(given).dtype
            np.testing.assert_array_equal(found if rank == 1 else found[:, 0], wanted[:lanes])


def test_values_are_those_of_the_call(function):
    """No argument of an earlier call is kept."""
    for value in (1.0, 5.0, -3.0):
        np.testing.assert_array_equal(function(tf.fill([3], value), N), value * np.array([4, 1, 2]))


def test_wrong_calls_stay_wrong(function):
    for _ in range(2):
        function(X, N)
        with pytest.raises(UsageError, match="PCB513: the arguments disagree"):
            function(X[:2], N)
        with pytest.raises(UsageError, match="PCB510"):
            function(X)
        with pytest.raises(UsageError, match="PCB510"):
            function(X, N, N)
        with pytest.raises(UsageError, match="PCB511: argument 'x': a scalar has no batch axis"):
            function(X[0], N)
        with pytest.raises(UsageError, match="PCB511: argument 'x'"):
            function(tf.constant(["a", "b", "c"]), N)


def test_what_all_lanes_share():
    shared = pcbatch.autobatch(scaled, in_axes={"n": None}, jit=False)
    for n, factor in ((3, 8), (tf.constant(1), 2), (np.int32(2), 4), (tf.constant(0), 1), (tf.Variable(2), 4)):
        for _ in range(2):
            np.testing.assert_array_equal(shared(X, n), X * factor)


def test_lanes_by_name():
    @pcbatch.autobatch(in_axes=None, jit=False)
    def doubled(x):
        return x * 2

    x = tf.constant(3.0)
    for lanes in (2, 4, 2):
        np.testing.assert_array_equal(doubled(x, lanes=lanes), [6.0] * lanes)
    with pytest.raises(UsageError, match="PCB514"):
        doubled(x)


def test_static_arguments_and_defaults():
    @pcbatch.autobatch(static_argnames="power", jit=False)
    def raised(x, power=2):
        return x**power

    for _ in range(2):
        np.testing.assert_array_equal(raised(X), X**2)
        np.testing.assert_array_equal(raised(X, 3), X**3)
        np.testing.assert_array_equal(raised(X, power=1), X)


def test_structures_of_one_array():
    """The very array that is an argument once is a part of one at other times."""

    @pcbatch.autobatch(jit=False)
    def same(value):
        return value

    for _ in range(2):
        np.testing.assert_array_equal(same(X), X)
        ((inner,),) = (same((X,)),)
        np.testing.assert_array_equal(inner, X)
        np.testing.assert_array_equal(same({"x": X})["x"], X)


def test_inside_graphs_and_under_tapes(function):
    """A program that has run at once is traced into a caller's; a tape beside it goes on."""
    inside = tf.function(lambda x, n: function.options(max_depth=8)(x, n), autograph=False)
    for _ in range(2):
        np.testing.assert_array_equal(function(X, N), inside(X, N))
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = X * tf.stop_gradient(function(X, N))
        np.testing.assert_array_equal(tape.gradient(y, X), [4.0, -2.0, 6.0])


def test_what_is_tuned_is_asked_at_each_call():
    function = pcbatch.autobatch(scaled)
    for on in (True, False, True):
        with xla_cpu.switched(on):
            np.testing.assert_array_equal(function(X, N), [4.0, -2.0, 6.0])


def test_run_functions_eagerly(function):
    function(X, N)
    tf.config.run_functions_eagerly(True)
    try:
        np.testing.assert_array_equal(function(X, N), [4.0, -2.0, 6.0])
    finally:
        tf.config.run_functions_eagerly(False)


def test_without_the_way_into_tensorflow(monkeypatch):
    """The public call does as well."""

    class Public:
        def __init__(self, concrete):
            self.concrete = concrete

        def __call__(self, *arrays):
            return self.concrete(*arrays)

    call = private.call
    monkeypatch.setattr(private, "call", lambda concrete, arrays: call(Public(concrete), arrays))
    for _ in range(2):
        np.testing.assert_array_equal(pcbatch.autobatch(scaled)(X, N), [4.0, -2.0, 6.0])


def test_failed_lanes_after_good_ones():
    @pcbatch.autobatch
    def root(x):
        assert x >= 0.0, "negative"
        return tf.sqrt(x)

    for _ in range(2):
        np.testing.assert_array_equal(root(tf.constant([4.0, 9.0])), [2.0, 3.0])
        run = root.run(tf.constant([4.0, -1.0]))
        assert run.status.tolist() == [0, 1]
        np.testing.assert_array_equal(run.value, [2.0, np.nan])
        with pytest.raises(pcbatch.LaneError, match="negative"):
            root(tf.constant([4.0, -1.0]))
