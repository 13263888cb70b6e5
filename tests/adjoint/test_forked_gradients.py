"""Gradients through runs whose calls are forked: those of a tape over one example after another."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.function import executing
from pcbatch.runtime.adjoint import forked_reverse
from pcbatch.runtime.adjoint import tape as tapes
from pcbatch.runtime.adjoint.block_vjp import BlockVjp
from pcbatch.runtime.adjoint.reverse import Forks
from pcbatch.runtime.machine.pool_sizing import ForkFeedback
from tests.adjoint import forked_programs as programs
from tests.adjoint.forked_programs import CASES, LEFT, WORD
from tests.adjoint.truth import assert_alike, batched, one_by_one

slow = pytest.mark.slow
TINY = tapes.Sizes(bytes=1, log=7)
"""Many segments: a tape has room for two chunks of rows, the log for few entries."""
QUICK = ("valued",)
SMALL, CROWDED = 2**28, 1
"""Bytes of lanes of runs that begin with one lane for each example and must grow, and of those that may not: examples
whose calls find no lanes run again, in sequence."""


@pytest.fixture
def sizes(monkeypatch):
    """Have tapes of other sizes, and runs begin with few lanes of which nothing has been learned, of so many bytes."""

    def become(tape=None, limit=None):
        if tape is not None:
            monkeypatch.setattr(tapes, "Sizes", lambda: tape)
        if limit is not None:
            monkeypatch.setattr(executing, "Forks", lambda *_: Forks(ForkFeedback(1), limit))
            monkeypatch.setattr(forked_reverse, "TRIES", 1)  # gradients go through runs that have grown

    return become


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else slow) for n in CASES])
def test_equal_to_one_by_one(name):
    function, arguments, variables = CASES[name]
    found = batched(function.options(jit=False), arguments, variables)
    assert_alike(found, one_by_one(function, arguments, variables))


def test_on_from_the_first_segment(sizes):
    """On more lanes than it began with, though all shapes were known when that had been run."""
    sizes(TINY, SMALL)
    function, arguments, variables = CASES["valued"]
    found = batched(function.options(jit=False, name="valued_on"), arguments, variables)
    assert_alike(found, one_by_one(function, arguments, variables))


@pytest.mark.parametrize("name", [pytest.param(n, marks=slow) for n in ("twice", "fragile")])
def test_compiled_in_many_segments(name, sizes):
    """The second run begins with the lanes that the first could have used."""
    sizes(TINY, SMALL)
    function, arguments, variables = CASES[name]
    function = function.options(name=f"{name}_in_segments")
    expected = one_by_one(function, arguments, variables)
    for _ in range(2):
        assert_alike(batched(function, arguments, variables), expected)


@pytest.mark.parametrize("name", [pytest.param(n, marks=slow) for n in ("worded", "twice", "fragile")])
def test_keep_and_replay_are_equal_to_the_bit(name, sizes):
    sizes(TINY, SMALL)
    function, arguments, variables = CASES[name]
    kept, again = (
        batched(function.options(jit=False, tape=tape, name=f"{name}_{tape}"), arguments, variables)
        for tape in ("keep", "replay")
    )
    for ours, theirs in zip(again, kept, strict=True):
        np.testing.assert_array_equal(tf.convert_to_tensor(ours), tf.convert_to_tensor(theirs))


@slow
@pytest.mark.parametrize("name", ["worded", "valued"])
def test_examples_that_find_no_lanes_run_in_sequence(name, sizes):
    sizes(limit=CROWDED)
    function, arguments, variables = CASES[name]
    function = function.options(jit=False, name=f"{name}_crowded")
    found = batched(function, arguments, variables)
    assert_alike(found, one_by_one(function, arguments, variables))
    if name == "worded":
        assert isinstance(found[2], tf.IndexedSlices)
        assert len(set(found[2].indices.numpy())) == len(found[2].indices)


@slow
def test_one_leaf_and_no_example():
    function, (left, right, *rest), variables = CASES["worded"]
    function = function.options(jit=False)
    leaves = tf.zeros_like(left) - 1
    found = batched(function, (leaves, leaves, *rest), variables)
    assert_alike(found, one_by_one(function, (leaves, leaves, *rest), variables))
    none = [each[:0] for each in (left, right, *rest)]
    for each in batched(function, none, variables):
        assert each is None or not np.any(tf.convert_to_tensor(each))


@slow
def test_by_example():
    function, arguments, variables = CASES["worded"]
    function = function.options(jit=False)
    found = pcbatch.per_example_gradients(function, list(variables))(*arguments)
    for lane in range(len(LEFT)):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(function.single(*(each[lane] for each in arguments)))
        expected = tape.gradient(value, variables)
        assert_alike([each[lane] for each in found], expected)


@slow
def test_too_many_steps_and_too_deep():
    function, arguments, variables = CASES["worded"]
    for limit in ({"max_steps": 9}, {"max_depth": 3}):
        limited = function.options(jit=False, **limit)
        found = batched(limited, arguments, variables)
        assert {*limited.run(*arguments).status} > {pcbatch.LaneStatus.OK}
        assert_alike(found, one_by_one(limited, arguments, variables))


@slow
def test_a_map():
    weight = tf.Variable([0.5, -1.0, 2.0], dtype=tf.float64)

    @pcbatch.autobatch
    def each(x, n):
        while n > 0:
            x = tf.sin(x * weight)
            n = n - 1
        return x

    @pcbatch.autobatch(fork=True)
    def mapped(xs, ns):
        return tf.reduce_sum(pcbatch.map(lambda x, n: each(x, n), xs, ns), 0)

    arguments = (programs.VALUE, WORD)
    found = batched(mapped.options(jit=False), arguments, (weight,))
    assert_alike(found, one_by_one(mapped, arguments, (weight,)))


def test_the_text_says_what_is_handed_over():
    text = programs.valued.options(jit=False).ir("adjoint", *CASES["valued"][1])
    assert "~ += child 0.x~; child 0.x~ = 0" in text
    assert "child 1.x~ = 0" in text
    assert "joined 0: int32[]" in text
    assert "forked 1: int32[]" in text


@pytest.mark.parametrize("step", [pytest.param(s, marks=slow) for s in ("empty", "hand", "add_to_example")])
def test_each_step_counts(step, monkeypatch):
    """Sabotage: a step of undoing a fork or a join is left out."""
    monkeypatch.setattr(BlockVjp, step, lambda *_: None)
    function, arguments, variables = CASES["valued"]
    found = batched(function.options(jit=False, name=f"without_{step}"), arguments, variables)
    with pytest.raises(AssertionError):
        assert_alike(found, one_by_one(function, arguments, variables))


@slow
def test_what_no_lane_does_has_no_gradient(monkeypatch):
    """Sabotage: all lanes are taken to have done what some have."""
    monkeypatch.setattr(BlockVjp, "taking_part", lambda undoing, _: undoing.rows.mask)
    function, arguments, variables = CASES["passed"]
    found = batched(function.options(jit=False, name="passed_by_all"), arguments, variables)
    with pytest.raises(AssertionError):
        assert_alike(found, one_by_one(function, arguments, variables))


@slow
def test_calls_that_a_lane_has_not_made_count_for_nobody(monkeypatch):
    """Sabotage: all lanes are taken to have made all calls of their groups, those of others by themselves."""
    function, arguments, variables = CASES["carrying"]
    expected = one_by_one(function, arguments, variables)
    assert_alike(batched(function.options(jit=False, name="carrying"), arguments, variables), expected)
    monkeypatch.setattr(BlockVjp, "made", lambda *_: None)
    found = batched(function.options(jit=False, name="carrying_made_by_all"), arguments, variables)
    with pytest.raises(AssertionError):
        assert_alike(found, expected)
