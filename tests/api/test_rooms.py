"""One compilation for many numbers of lanes, in every form: values, errors, steps, reports by example."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

WEIGHTS = tf.constant(np.random.default_rng(0).normal(size=(32, 32)) / 6, tf.float32)


@pcbatch.autobatch
def collatz(n):
    steps = 0
    while n != 1:
        assert n > 0, f"{n} is not positive"
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps, float(n) * 0.5


@pcbatch.autobatch
def straight(n):
    return 100 // n, tf.cast(n, tf.float32) * tf.constant([2.0, 3.0])


@pcbatch.autobatch
def products(n):
    v = tf.ones(32) * tf.cast(n, tf.float32) / 100.0
    while n > 1:
        v = tf.tanh(tf.linalg.matvec(WEIGHTS, v))
        n = n // 2
    return v


@pcbatch.autobatch
def power(n):
    if n <= 0:
        return 1
    return power(n - 1) * 2 % 1000


FORMS = [
    pytest.param(collatz, {"form": "lockstep"}, id="lockstep"),
    pytest.param(collatz, {"form": "lockstep", "jit": False}, id="graph"),
    pytest.param(straight, {}, id="straight"),
    pytest.param(straight, {"jit": False}, id="kernels"),
    pytest.param(products, {"form": "lockstep"}, id="products"),
    pytest.param(power, {"form": "lockstep"}, id="growing stacks"),
]


def numbers(count: int) -> np.ndarray:
    """Some for each of which the programs do something else."""
    return np.arange(count, dtype=np.int32) * 7 % 30 + 1


@pytest.mark.parametrize("function", [collatz, products])
def test_native_code_is_the_same_for_all(function):
    function = function.options(name=f"{function.__name__}_in_no_rooms")
    for count in (2, 3, 4, 5, 3, 1, 8):
        whole = [function.single(n) for n in numbers(count)]
        for leaf, wanted in zip(
            tf.nest.flatten(function(numbers(count))), zip(*map(tf.nest.flatten, whole), strict=True), strict=True
        ):
            np.testing.assert_allclose(leaf, np.stack(wanted), rtol=1e-5, atol=1e-6)
    stats = function.stats()
    assert stats.forms == ("native",)
    assert stats.compilations == 1
    assert stats.rooms == ((),)


@pytest.mark.parametrize(("function", "options"), FORMS)
def test_many_numbers_of_lanes(function, options):
    """2, 3, 4 and 5 examples are two programs, and the last batch of an epoch is none more."""
    function = function.options(**options, name=f"{function.__name__}_in_rooms")
    for count in (2, 3, 4, 5, 3, 3, 3, 1, 8):
        whole = [function.single(n) for n in numbers(count)]
        found = tf.nest.flatten(function(numbers(count)))
        for leaf, wanted in zip(found, zip(*map(tf.nest.flatten, whole), strict=True), strict=True):
            assert leaf.shape[0] == count
            np.testing.assert_allclose(leaf, np.stack(wanted), rtol=1e-5, atol=1e-6)
    stats = function.stats()
    assert stats.compilations == 2
    assert stats.rooms[-1][0] == 2
    assert len(stats.rooms[-1]) == 2
    assert "rooms" not in repr(stats)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        pytest.param(*each.values, id=each.id, marks=pytest.mark.slow if each.id == "growing stacks" else ())
        for each in FORMS
        if each.id != "products"
    ],
)
def test_reports_are_of_the_examples(function, options):
    """Idle lanes neither fail nor are they counted: a run says what it says in a room of its own."""
    shared = function.options(**options, name="shared")
    shared(numbers(8))
    mine = function.options(**options, name="alone")
    n = numbers(5) * np.array([1, 1, 1, 1, 0], np.int32)
    for _ in range(2):
        run, own = shared.run(n), mine.run(n)
        np.testing.assert_array_equal(run.status, own.status)
        assert run.status.shape == (5,)
        assert [(e.lane, e.message) for e in run.errors] == [(e.lane, e.message) for e in own.errors]
        np.testing.assert_array_equal(run.lane_steps, own.lane_steps)
        assert run.utilization.overall == own.utilization.overall
        assert run.utilization.active == own.utilization.active
    if function is not power:
        assert len(run.errors) == 1
        with pytest.raises(pcbatch.LaneError, match="lane 4"):
            shared(n)


def test_deterministic():
    """A lane's bits are the same in every room."""
    function = products.options(deterministic=True, name="deterministic")
    bits = [np.asarray(function(numbers(count)))[:3].tobytes() for count in (16, 3, 5, 11, 40, 3)]
    assert len(set(bits)) == 1


def test_slices_and_graphs(tmp_path: Path):
    """What runs in slices, or in a caller's graph, has as many lanes as examples."""
    function = collatz.options(form="lockstep", jit=False, name="sliced")
    function(numbers(8))
    wanted = function(numbers(5))[0]
    assert function.pipeline(numbers(5)).machine.pool_for(5).lanes == 8
    path = tmp_path / "run.npz"
    sliced = function.options(progress=True).run(numbers(5))
    sliced.save(path)
    np.testing.assert_array_equal(sliced.value[0], wanted)
    np.testing.assert_array_equal(function.options(resume=path)()[0], wanted)
    np.testing.assert_array_equal(tf.function(function, autograph=False)(numbers(5))[0], wanted)
    unknown = tf.function(function, autograph=False, input_signature=[tf.TensorSpec([None], tf.int32)])
    np.testing.assert_array_equal(unknown(numbers(5))[0], wanted)


def test_arguments_that_lanes_share():
    """One for all lanes, and none that has lanes."""

    @pcbatch.autobatch(in_axes=(None, 0), form="lockstep", jit=False)
    def scaled(x, n):
        while n > 0:
            x = x * 2.0
            n -= 1
        return x

    for count in (6, 4, 5):
        np.testing.assert_array_equal(scaled(1.5, numbers(count)), 1.5 * 2.0 ** numbers(count))
    assert scaled.stats().compilations == 1
    every = scaled.options(in_axes=None)
    for lanes in (6, 4, 4):
        np.testing.assert_array_equal(every(1.5, 2, lanes=lanes), [6.0] * lanes)
    assert every.stats().compilations == 1


def test_gradients_through_fewer_examples_than_lanes():
    function = products.options(name="differentiated")
    function(numbers(8))
    with tf.GradientTape() as tape:
        tape.watch(WEIGHTS)
        loss = tf.reduce_sum(function(numbers(5)))
    with tf.GradientTape() as singly:
        singly.watch(WEIGHTS)
        wanted = sum(tf.reduce_sum(products.single(n)) for n in numbers(5))
    np.testing.assert_allclose(tape.gradient(loss, WEIGHTS), singly.gradient(wanted, WEIGHTS), rtol=1e-4, atol=1e-5)
