"""Gradients through batched calls: equal to those of one example after another, however the run went."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint import tape as tapes
from pcbatch.runtime.adjoint.shared_operand_vjp import BatchedPullback
from tests.adjoint import programs
from tests.adjoint.programs import CASES, COUNTS, NUMBERS, VECTORS, B, W
from tests.adjoint.truth import TINY, assert_alike, assert_like_differences, batched, floats, one_by_one, singly
from tests.harness import load

slow = pytest.mark.slow
QUICK = {
    ("loop", "graph", "whole"),
    ("tree", "xla", "many"),
    ("stores", "graph", "many"),
    ("elements", "graph", "many"),
}


def _marked(name, mode, segments):
    return pytest.param(name, mode, segments, marks=() if (name, mode, segments) in QUICK else slow)


@pytest.fixture(params=[("whole", None), ("many", TINY)], ids=lambda each: each[0])
def sizes(request, monkeypatch):
    """One segment, or one for nearly every run of a block."""
    if request.param[1] is not None:
        monkeypatch.setattr(tapes, "Sizes", lambda: request.param[1])
    return request.param[0]


@pytest.mark.parametrize(
    ("name", "mode", "segments"),
    [_marked(n, m, s) for n in CASES for m in ("xla", "graph") for s in ("whole", "many")],
)
def test_like_one_example_after_another(name, mode, segments, monkeypatch):
    if segments == "many":
        monkeypatch.setattr(tapes, "Sizes", lambda: TINY)
    function, arguments, variables = CASES[name]
    # Under another name, so that nothing is compiled already for tapes of another size.
    run = function.options(jit=mode == "xla", name=f"{name}_{segments}")
    found = batched(run, arguments, variables)
    assert all(each is not None for each in found)
    assert_alike(found, singly(function, arguments, variables))
    assert_alike(found, one_by_one(function, arguments, variables))


@pytest.mark.parametrize(("bytes_of_row", "sizes"), [(8, [512]), (5000, [1024, 256])])
def test_wide_rows_are_pulled_back_by_many_and_by_few(bytes_of_row, sizes):
    each = SimpleNamespace(deltas={"delta": TensorType("uint8", (bytes_of_row,))})
    every = BatchedPullback._at_once(SimpleNamespace(by_lane=False), 5000, 64, each)
    assert [size for size, _ in every] == sizes
    assert every[-1][1] == 1


def test_custom_gradients_are_kept():
    found = batched(programs.own_gradient.options(jit=False), (NUMBERS, tf.ones(6, tf.int32)))
    weight = np.random.default_rng(0).normal(size=6)
    np.testing.assert_allclose(found[0], weight * 7.0 * np.cos(2.0 * NUMBERS))


@slow
@pytest.mark.parametrize("name", ["loop", "tree", "even", "stores", "elements", "saved", "deep"])
def test_like_differences(name):
    function, arguments, _ = CASES[name]
    assert_like_differences(function, arguments)


@slow
@pytest.mark.parametrize("schedule", ["earliest", "busiest", "sweep", "adaptive", "switch"])
def test_under_every_schedule(schedule):
    function, arguments, variables = CASES["tree"]
    found = batched(function.options(schedule=schedule), arguments, variables)
    assert_alike(found, one_by_one(function, arguments, variables))


@slow
@pytest.mark.parametrize("options", [{"strategy": "local"}, {"strategy": "hybrid"}, {"trace": 5}, {"form": "native"}])
def test_however_the_values_are_computed(options):
    function, arguments, _ = CASES["even"]
    assert_alike(batched(function.options(**options), arguments), one_by_one(function, arguments))


@slow
@pytest.mark.parametrize("lanes", [0, 1, 3, 17, 64])
def test_batches_of_every_size(lanes):
    rng = np.random.default_rng(lanes)
    arguments = tf.constant(rng.normal(size=(lanes, 3))), tf.constant(rng.integers(0, 6, lanes, dtype=np.int32))
    found = batched(programs.loop, arguments, (W, B))
    assert found[0].shape == (lanes, 3)
    if lanes:
        assert_alike(found, one_by_one(programs.loop, arguments, (W, B)))
    else:
        assert not np.any(found[1])
        assert not np.any(found[2])


# -- lanes that fail ---------------------------------------------------------------------------------------------------

WITH_ZERO = tf.constant([1.0, 0.0, 2.0, -3.0, 0.0, 0.5], tf.float64)


def test_failed_lanes_leave_no_trace():
    run = programs.fails.options(jit=False)
    found = batched(run, (WITH_ZERO, COUNTS), (W,))
    sound = np.flatnonzero(WITH_ZERO)
    assert not np.any(found[0].numpy()[WITH_ZERO.numpy() == 0.0])
    assert np.all(np.isfinite(found[1]))
    with tf.GradientTape() as tape:
        y = run(tf.gather(WITH_ZERO, sound), tf.gather(COUNTS, sound))
        weight = np.random.default_rng(0).normal(size=(6, 3))[sound]
        value = tf.reduce_sum(y * weight)
    assert_alike([found[1]], [tape.gradient(value, W)])


def test_what_failed_lanes_are_given_does_not_matter():
    """Their values are NaN, and so is what a loss makes of them."""
    with tf.GradientTape() as tape:
        tape.watch(WITH_ZERO)
        value = tf.reduce_sum(programs.fails.options(jit=False).run(WITH_ZERO, COUNTS).value)
    by_argument, by_variable = tape.gradient(value, [WITH_ZERO, W])
    assert np.all(np.isfinite(by_argument))
    assert np.all(np.isfinite(by_variable))


# -- ways to ask -------------------------------------------------------------------------------------------------------


def squares(function, x, n):
    return tf.reduce_sum(function(x, n) ** 2)


def eager(function, x, n):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = squares(function, x, n)
    return tape.gradient(value, [x, W, B])


def persistent(function, x, n):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        value = tf.reduce_sum(function.run(x, n).value ** 2)
    return [*tape.gradient(value, [x, W]), tape.gradient(value, B)]


def traced_around(function, x, n):
    return tf.function(lambda x, n: eager(function, x, n))(x, n)


def of_any_length(function, x, n):
    spec = [tf.TensorSpec([None, 3], tf.float64), tf.TensorSpec([None], tf.int32)]
    traced = tf.function(lambda x, n: eager(function, x, n), input_signature=spec)
    assert not np.any(traced(x[:0], n[:0])[1])
    return traced(x, n)


def traced_inside(function, x, n):
    traced = tf.function(lambda x, n: squares(function, x, n))
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = traced(x, n)
    return tape.gradient(value, [x, W, B])


def in_graph(function, x, n):
    return tf.function(lambda x, n: tf.gradients(squares(function, x, n), [x]))(x, n)


@pytest.fixture(scope="module")
def expected():
    with tf.GradientTape() as tape:
        tape.watch(VECTORS)
        value = tf.add_n(
            [tf.reduce_sum(programs.loop.single(*each) ** 2) for each in zip(VECTORS, COUNTS, strict=True)]
        )
    return tape.gradient(value, [VECTORS, W, B])


@pytest.mark.parametrize("way", [eager, persistent, traced_around, of_any_length, traced_inside, in_graph])
def test_every_way_to_ask(way, expected):
    found = way(programs.loop.options(jit=False), VECTORS, COUNTS)
    assert_alike(found, expected[: len(found)])


def test_same_call_same_bits():
    function, arguments, variables = CASES["loop"]
    first, second = (batched(function.options(jit=False), arguments, variables) for _ in range(2))
    for ours, theirs in zip(first, second, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_run_counts_and_not_what_is_assigned_later():
    function = programs.layered.options(jit=False)
    _, arguments, variables = CASES["layered"]
    expected = batched(function, arguments, variables)
    before = variables[0].numpy()
    try:
        with tf.GradientTape() as tape:
            weight = np.random.default_rng(0).normal(size=(6, 3))
            value = tf.reduce_sum(function(*arguments) * weight)
            variables[0].assign(before * 3.0)
        assert_alike(tape.gradient(value, variables), expected[1:])
    finally:
        variables[0].assign(before)


@slow
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", ["weak_joins", "widened_tail_call"])
def test_results_that_are_plain_numbers_of_one_example(name, jit, sizes):
    """Where `single` gives an int, a batch gives a float that nothing flows from."""
    program, lanes = load(name), 17
    arguments = program.arguments(lanes)
    with tf.GradientTape() as tape:
        sources = floats(arguments)
        tape.watch(sources)
        given = iter(sources)
        watched = [next(given) if each.dtype.kind == "f" else each for each in map(np.asarray, arguments)]
        results = floats(program.function.options(jit=jit, name=f"{name}_{sizes}")(*watched))
        value = tf.add_n([tf.reduce_sum(tf.cast(each, tf.float64) * np.arange(1, lanes + 1)) for each in results])
    found = tape.gradient(value, sources)
    for lane in range(lanes):
        example = [tf.constant(np.asarray(each)[lane]) for each in arguments]
        with tf.GradientTape() as tape:
            tape.watch(floats(example))
            outputs = tf.nest.flatten(program.function.single(*example))
            parts = [tf.cast(each, tf.float64) for each in outputs if tf.is_tensor(each) and each.dtype.is_floating]
            value = tf.add_n([*parts, tf.zeros([], tf.float64)]) * (lane + 1.0)
        for ours, theirs in zip(found, tape.gradient(value, floats(example)), strict=True):
            np.testing.assert_allclose(ours[lane], 0.0 if theirs is None else theirs, rtol=1e-6)
