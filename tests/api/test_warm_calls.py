"""Warm calls: where they run, what they keep, and what they call."""

from __future__ import annotations

import gc
import os
import sys
import weakref

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow import xla_cpu
from pcbatch.runtime.backends.tensorflow.private import lookup
from tests.api.warm import X, settled, value, warm
from tests.runtime.probes import ways
from tests.threads import in_threads

# -- where they run ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["native", "graph"])
def root(request):
    @pcbatch.autobatch(jit=request.param == "native")
    def root(x):
        assert x >= 0.0, "negative"
        if x > 1.0:
            return tf.sqrt(x) + root(x / 4.0)
        return x

    return root


GOOD, BAD = tf.constant([4.0, 0.25, 16.0]), tf.constant([4.0, -1.0, 16.0])


def test_a_tape_is_heeded(root):
    wanted = settled(root, GOOD)
    with tf.GradientTape() as tape:
        tape.watch(GOOD)
        assert not warm(root, GOOD)
        found = root(GOOD)
    assert value(found) == wanted
    with tf.GradientTape() as truth:
        truth.watch(GOOD)
        expected = [root.single(each) for each in GOOD]
    np.testing.assert_allclose(tape.gradient(found, GOOD), truth.gradient(expected, GOOD))
    assert settled(root, GOOD) == wanted


def test_a_callers_graph_is_heeded(root):
    """Arrays of ordinary code may come into a function that is being traced."""
    wanted = settled(root, GOOD)
    traced = tf.function(lambda: root(GOOD), autograph=False)
    assert value(traced()) == wanted
    assert settled(root, GOOD) == wanted


def test_a_lane_that_fails(root):
    settled(root, GOOD)
    with pytest.raises(pcbatch.LaneError, match="negative") as caught:
        root(BAD)
    run = root.run(BAD)
    for each in (run, caught.value.run):
        assert each.status.tolist() == [0, 1, 0]
        np.testing.assert_array_equal(each.value, [3.0, np.nan, 7.0])
        (error,) = each.errors
        assert (error.lane, "negative" in error.message) == (1, True)
        assert each.lane_steps.tolist() == root.options(resume=None).run(BAD).lane_steps.tolist()
    assert warm(root, BAD)
    good = root.run(GOOD)
    assert (good.status.tolist(), good.errors) == ([0, 0, 0], ())
    assert sum(good.executions.values()) > 0


def test_threads_and_signatures_in_turn(root):
    batches = [tf.constant(np.linspace(0.5, 60.0, size), tf.float32) for size in (3, 5)]
    wanted = [settled(root, batch) for batch in batches]
    found = in_threads(4, lambda: [[value(root(batch)) for batch in batches] for _ in range(20)])
    assert found == [[wanted] * 20] * 4


def test_what_is_tuned_and_what_runs_eagerly(root):
    wanted = settled(root, GOOD)
    with xla_cpu.switched(not xla_cpu.is_on()):
        np.testing.assert_allclose(root(GOOD), wanted, rtol=1e-6)
    tf.config.run_functions_eagerly(True)
    try:
        assert value(root(GOOD)) == wanted
    finally:
        tf.config.run_functions_eagerly(False)


def test_without_the_way_into_tensorflow(monkeypatch):
    monkeypatch.setattr(lookup, "find", lambda path, find=lookup.find: find(path) if "context" not in path else None)

    @pcbatch.autobatch(jit=False)
    def doubled(x):
        return x * 2.0

    assert settled(doubled, X) == [2.0, 4.0, 6.0]


def test_an_operation_that_fails_while_it_runs():
    @pcbatch.autobatch(jit=False)
    def inverted(m):
        return tf.linalg.inv(m)

    good, bad = tf.eye(2, batch_shape=[3]), tf.zeros([3, 2, 2])
    settled(inverted, good)
    with pytest.raises(pcbatch.errors.PrimitiveError, match="PCB441") as caught:
        inverted(bad)
    assert "an operation failed while it ran: Input is not invertible.\n" in str(caught.value)
    assert "tf.linalg.inv(m)" in str(caught.value)
    settled(inverted, good)


# -- what is kept ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [tf.constant, np.asarray])
def test_arrays_are_let_go(kind):
    names = {"W": kind(np.ones(1000, np.float32)), "V": [kind(np.ones(10, np.float32))]}

    @pcbatch.autobatch(jit=False)
    def weighed(x):
        return x * tf.reduce_sum(names["W"]) + tf.reduce_sum(names["V"][0])

    x = np.ones(3, np.float32)
    settled(weighed, x)
    kept = [weakref.ref(each) for each in (names["W"], names["V"][0], x)]
    names.update(W=kind(np.zeros(1000, np.float32)), V=[kind(np.ones(10, np.float32))])
    del x
    gc.collect()
    assert [ref() for ref in kept] == [None] * 3
    assert settled(weighed, X) == [10.0] * 3
    assert weighed.stats().compilations == 1


def test_the_cache_stays_bounded_and_in_order():
    @pcbatch.autobatch(static_argnames="n", jit=False)
    def doubled(x, n):
        return x * n

    settled(doubled, X, 1)
    settled(doubled, X, 2)
    assert doubled.session.compiled.last.arguments.statics == {"n": 2}
    assert warm(doubled, X, 1)
    assert doubled.session.compiled.last.arguments.statics == {"n": 1}
    doubled.session.compiled.limit = 3
    for n in range(3, 7):
        doubled(X, n)
    assert not warm(doubled, X, 1)  # this program is not kept any more
    assert settled(doubled, X, 1) == [1.0, 2.0, 3.0]
    assert doubled.stats().cache_entries == 3


# -- what the compiler itself calls ------------------------------------------------------------------------------------


def counting(n):
    total = 0
    for i in range(n):
        total += i
    return total


def elements(xs):
    total = xs[0]
    for x in xs:
        total = total * 0.5 + x
    return total


def pairs(xs):
    total = 0.0
    for i, (x, y) in enumerate(zip(xs, xs[::-1], strict=True)):
        total += x * y * i
    return total


def written(xs, n):
    for i in range(n):
        xs[i] = xs[i] + 1.0
    xs[1:] = 0.0
    return xs


def unpacked(pair):
    match pair:
        case (a, b):
            return a + b


def told(x):
    match x > 1.0:
        case True:
            return x
        case _:
            return -x


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (counting, (tf.constant([3, 4]),)),
        (elements, (tf.constant([[1.0, 2.0], [3.0, 4.0]]),)),
        (pairs, (tf.constant([[1.0, 2.0], [3.0, 4.0]]),)),
        (written, (tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([1, 2]))),
        (unpacked, ((X, X),)),
        (told, (X,)),
    ],
)
def test_what_a_program_calls_by_names_of_ours_is_nothing_that_it_has_captured(function, args):
    batched = pcbatch.autobatch(function)
    batched(*args)
    expected = value(batched(*args))
    assert value(batched(*args)) == expected
    assert warm(batched, *args)


# -- how far they go ---------------------------------------------------------------------------------------------------


def walked(run):
    """The files of pcbatch that a call goes through, and the number of its functions."""
    folder = os.path.dirname(pcbatch.__file__)
    seen = set()

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(folder):
            seen.add(frame.f_code)

    before = sys.getprofile()
    with ways.without_collections():
        sys.setprofile(note)
        try:
            run()
        finally:
            sys.setprofile(before)
    return {code.co_filename for code in seen}, len(seen)


@pytest.mark.slow  # a program is compiled under a profiler
def test_a_call_goes_through_few_files():
    """Bounds that may only be lowered: a first call wants 120 files and 1,000 functions, a warm one 15 files."""

    @pcbatch.autobatch
    def fibonacci(n):
        if n <= 1:
            return 1
        return fibonacci(n - 2) + fibonacci(n - 1)

    n = np.array([3, 7, 4, 5], np.int32)
    files, functions = walked(lambda: fibonacci(n))
    assert len(files) <= 230
    assert functions <= 1950
    fibonacci(n)
    files, functions = walked(lambda: fibonacci(n))
    assert len(files) <= 19, sorted(files)
    assert functions <= 45
