"""Blocks with much to do that lanes come to seldom: native among others in lockstep, if they do it to few numbers."""

import re

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus, random, threads
from pcbatch.ir import machine
from tests.api.interrupting import stopping
from tests.runtime.test_mixed_compiled import assert_singles

LANES = 5
WEIGHTS = tf.constant(np.random.default_rng(1).normal(size=(180, 180)) / 14, tf.float32)
LARGE = tf.constant(np.random.default_rng(2).normal(size=(16_000,)), tf.float32)
VECTORS = np.random.default_rng(3).normal(size=(LANES, 180)).astype(np.float32)
TURNS = np.array([[3, 1, 2], [0, 0, 0], [5, 0, 1], [1, 4, 7], [2, 2, 2]], np.int32)
KEYS = random.keys(1, LANES)


def kick(x, key, turn):
    return 0.3 * x + random.normal(random.fold_in(key, turn), (180,))


@pcbatch.autobatch
@pcbatch.cost(30_000.0)
def told(x, key, turn):
    return kick(x, key, turn)


def product(x, key, turn):
    return tf.tanh(tf.linalg.matvec(WEIGHTS, x))


def many(x, key, turn):
    return x + 1e-3 * tf.reduce_sum(tf.tanh(LARGE * x[0]))


def program(first, then=product):
    """`first` in each turn of a loop, `then` in each turn of the loop inside; a fault in the first's block."""

    def chain(x, key, turns):
        turn = 0
        while turn < 3:
            assert turns[turn] != 9, "nine"
            x = first(x, key, turn)
            left = turns[turn]
            while left > 0:
                x = then(x, key, left)
                left -= 1
            turn += 1
        return x

    return pcbatch.autobatch(chain)


def recursive(first):
    @pcbatch.autobatch
    def inner(x, key, depth):
        if depth > 1:
            x = inner(x, key, depth - 1)
            return inner(x, key, depth - 2)
        return product(x, key, depth)

    @pcbatch.autobatch
    def outer(x, key, turns):
        turn = 0
        while turn < 3:
            x = first(x, key, turn)
            x = inner(x, key, turns[turn])
            turn += 1
        return x

    return outer


@pcbatch.autobatch
def in_the_same_loop(x, key, turns):
    turn = 0
    while turn < 3:
        x = product(x, key, turn)
        if turns[turn] > 1:
            x = kick(x, key, turn)
        turn += 1
    return x


PARTS = {
    "first": "left = turns[turn]",  # stands behind it in its block
    "then": "left -= 1",
    "product": "tf.linalg.matvec(WEIGHTS",
    "kick": "random.normal(",
}


def in_lockstep(function):
    """What stands in the blocks of the program that are in lockstep; made ready, and not compiled."""
    pipeline = function.pipeline(VECTORS, KEYS, TURNS)
    ran = pipeline.machine.program_for(LANES)
    (named,) = re.findall(r"^mixed: .* native: a row of (b\d+) is expensive$", pipeline.machine.form)
    assert named in {block.label for number, block in enumerate(ran.blocks) if number not in ran.native}
    texts = [" ".join(span.text for span in machine.spans(ran, block)) for block in ran.blocks]
    found = "".join(text for number, text in enumerate(texts) if number not in ran.native)
    return {name for name, text in PARTS.items() if text in found}


@pytest.mark.parametrize(
    ("function", "lockstep"),
    [
        (program(kick), {"then", "product"}),
        (recursive(kick), {"product"}),
        (program(product), {"first", "then", "product"}),
        (program(many), {"first", "then", "product"}),
        (program(told), {"kick", "then", "product"}),
        (program(kick, then=kick), {"then", "kick"}),
        (in_the_same_loop, {"product", "kick"}),
    ],
    ids=["draws", "recursion", "shares", "many numbers", "by hint", "nothing shared", "in the same loop"],
)
def test_which_blocks_are_native(function, lockstep):
    assert in_lockstep(function) == lockstep


@pytest.mark.parametrize("make", [pytest.param(program, marks=pytest.mark.slow), recursive])
def test_results_counts_and_draws(make):
    function = make(kick)
    run = function.run(VECTORS, KEYS, TURNS)
    assert_singles(function, run.value, (VECTORS, KEYS, TURNS))
    wanted = function.options(form="lockstep").run(VECTORS, KEYS, TURNS)
    np.testing.assert_array_equal(run.outcome.active, wanted.outcome.active)
    np.testing.assert_array_equal(run.lane_steps, wanted.lane_steps)


@pytest.mark.slow
def test_a_fault_there_is_its_lanes_alone():
    turns = TURNS.copy()
    turns[2, 1] = 9
    function = program(kick)
    runs = [function.options(**options).run(VECTORS, KEYS, turns) for options in ({}, {"backend": "reference"})]
    found, wanted = ([fault.render() for fault in run.errors] for run in runs)
    assert found == wanted
    assert len(runs[0].errors) == 1
    np.testing.assert_array_equal(runs[0].status, runs[1].status)
    np.testing.assert_allclose(runs[0].value, runs[1].value, rtol=2e-5, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 2])
def test_a_run_that_is_stopped_and_goes_on_ends_as_one_that_is_not(after, tmp_path, monkeypatch):
    """The slices of both are in lockstep; statuses, faults, steps and draws are those of the mixed form."""
    monkeypatch.setattr(threads, "PATIENCE", 10**6)  # what takes long, as while it is compiled, is waited for
    turns = TURNS.copy()
    turns[2, 1], path = 9, tmp_path / "run.npz"
    function = program(kick)
    whole = function.run(VECTORS, KEYS, turns)
    assert function.stats().forms[-1].startswith("mixed")
    with stopping(after, trips=1):
        run = function.options(progress=True).run(VECTORS, KEYS, turns)
    assert run.interrupted
    assert (run.status == LaneStatus.UNFINISHED).any()
    run.save(path)
    rest = function.options(resume=path).run()
    assert [fault.render() for fault in rest.errors] == [fault.render() for fault in whole.errors]
    for name in ("status", "lane_steps"):
        np.testing.assert_array_equal(getattr(rest, name), getattr(whole, name))
    np.testing.assert_allclose(rest.value, whole.value, rtol=2e-5, atol=2e-6)
