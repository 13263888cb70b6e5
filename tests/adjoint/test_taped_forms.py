"""Taped runs share programs by rooms, have native code between what is taped, and tapes that grow if too short."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.adjoint import tape as tapes
from pcbatch.runtime.adjoint.reverse import FEW, Reverse
from tests.adjoint.truth import TINY, assert_alike, batched, one_by_one

WIDTH = 160
RNG = np.random.default_rng(0)
W = tf.Variable(RNG.normal(size=(WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5)
SCALE = tf.Variable(np.float32(0.9))
XS = tf.constant(RNG.normal(size=(6, WIDTH)).astype(np.float32))


@pcbatch.autobatch
def folded(x, n):
    """A recursion with an expensive block between cheap ones."""
    if n <= 1:
        return tf.tanh(tf.linalg.matvec(W, x))
    half = n // 2
    left = folded(x, half)
    right = folded(left, n - half)
    return tf.tanh(tf.linalg.matvec(W, left) + SCALE * right)


@pcbatch.autobatch
def leaning(x, n):
    """One that goes as deep as `n`; a lane with none has no end."""
    if n == 1:
        return tf.tanh(tf.linalg.matvec(W, x))
    left = leaning(x, n - 1)
    right = leaning(left, 1)
    return tf.tanh(0.4 * tf.linalg.matvec(W, left) + 0.3 * SCALE * right)


@pcbatch.autobatch
def cheap(x, n):
    """A loop whose turns nobody can guess from its arguments."""
    for _ in range(n):
        x = tf.sin(x) * SCALE
    return x


def the_mixed(monkeypatch):
    """The ways that have run mixed, as they come."""
    found, run = [], Reverse.run_mixed

    def seen(self, *given):
        found.append(self)
        return run(self, *given)

    monkeypatch.setattr(Reverse, "run_mixed", seen)
    return found


def test_native_code_between_taped_blocks(monkeypatch):
    found = the_mixed(monkeypatch)
    given = (XS, tf.constant([1, 2, 3, 5, 8, 13]))
    assert_alike(batched(folded, given, (W, SCALE)), one_by_one(folded, given, (W, SCALE)), 1e-5)
    (way,) = found
    native, taped = way.context.elsewhere.extent.numbers, way.tapes.blocks
    assert native
    assert not {*native} & {*taped}


@pytest.mark.slow
@pytest.mark.parametrize("tape", ["keep", "replay"])
@pytest.mark.parametrize("sizes", [None, TINY])
def test_longer_stacks_and_lanes_without_end(monkeypatch, tape, sizes):
    found = the_mixed(monkeypatch)
    if sizes is not None:
        monkeypatch.setattr(tapes, "Sizes", lambda: sizes)
    function = leaning.options(tape=tape, max_depth=100, name=f"leaning_{tape}_{sizes is None}")
    for turns in ([3, 1, 1, 7, 2, 4], [3, 1, 70, 7, 2, 40], [3, 0, 1, 7, 2, 40]):
        given = (XS, tf.constant(turns))
        expected = one_by_one(leaning.options(max_depth=100), given, (W, SCALE))
        assert_alike(batched(function, given, (W, SCALE)), expected, 1e-5)
    assert found


def test_rooms_are_shared():
    function = cheap.options(jit=False, name="cheap_in_rooms")
    every = (tf.constant(RNG.normal(size=9).astype(np.float32)), tf.constant([3, 0, 5, 1, 7, 2, 4, 6, 1]))
    compiled = []
    for examples in (9, 8, 7, 5, 8, 9):
        given = tuple(each[:examples] for each in every)
        assert_alike(batched(function, given, (SCALE,)), one_by_one(cheap, given, (SCALE,)), 1e-5)
        compiled.append(function.stats().compilations)
    assert compiled == [compiled[0]] * 6
    assert function.stats().rooms == ((9,),)
    apart = pcbatch.per_example_gradients(function, [SCALE])(*(each[:7] for each in every))
    assert_alike([tf.reduce_sum(apart[0])], [batched_of_ones(function, every, 7)], 1e-5)


def batched_of_ones(function, every, examples):
    """The gradient of the sum of all results."""
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(function(*(each[:examples] for each in every)))
    return tape.gradient(value, SCALE)


def test_tapes_that_are_short_grow():
    sizes = tapes.Sizes()
    assert sizes.guesses
    function = steps.options(jit=False, name="steps_that_grow")
    given = (tf.constant([[0.5, -0.5]]), tf.constant([tapes.CPU.tape_least * (FEW + 2)]))
    expected = one_by_one(steps, given, (SCALE,))
    compiled = []
    for _ in range(3):
        assert_alike(batched(function, given, (SCALE,)), expected, 1e-5)
        compiled.append(function.stats().compilations)
    assert compiled[0] < compiled[1] == compiled[2]


def test_longer_tapes_go_with_the_stacks_that_were_learnt(monkeypatch):
    segments, run = [], Reverse.run

    def seen(self, *given):
        taped = run(self, *given)
        segments.append(int(taped.segments))
        return taped

    monkeypatch.setattr(Reverse, "run", seen)
    function = calls.options(jit=False, name="calls_that_grow")
    given = (tf.constant([[0.5, -0.5]]), tf.constant([tapes.CPU.tape_least * (FEW + 2)]))
    for _ in range(2):
        batched(function, given, (SCALE,))
    assert segments[0] > FEW
    assert {*segments[1:]} == {1}


@pcbatch.autobatch
def calls(x, n):
    """A recursion over short vectors."""
    if n == 0:
        return x
    return tf.sin(calls(x, n - 1)) * SCALE


@pcbatch.autobatch
def steps(x, n):
    """A loop over short vectors."""
    for _ in range(n):
        x = tf.sin(x) * SCALE
    return x
