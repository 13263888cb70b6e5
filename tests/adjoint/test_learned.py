"""Lanes that runs with forks have learned hold for all later runs of the program, plain and taped."""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.adjoint import forked_reverse
from pcbatch.runtime.adjoint import tape as tapes
from pcbatch.runtime.adjoint.forked_reverse import ForkedWay
from pcbatch.runtime.machine.forking import Report
from tests.adjoint.truth import assert_alike
from tests.threads import in_threads

SCALE = tf.Variable(0.9, dtype=tf.float64)
LANES = 1024
"""On so many the runs below begin where nothing is known."""
NEEDED = 48
"""So many for each example are enough for large trees, as few numbers as there are."""


def program(**options):
    """A function that nothing has been learned of."""

    @pcbatch.autobatch(fork=True, jit=False, **options)
    def halved(x, n):
        if n <= 0:
            return tf.sin(x) * SCALE
        return halved(x * 0.5, n - 1) + halved(x, n - 2) * SCALE

    return halved


X = tf.constant(np.linspace(-1.0, 1.0, 64))
SMALL, LARGE = tf.ones([64], tf.int32), tf.fill([64], 6)
"""3 and 41 calls for each example."""


def slopes(function, n):
    with tf.GradientTape() as tape:
        tape.watch(X)
        value = tf.reduce_sum(function(X, n))
    return tape.gradient(value, [X, SCALE])


def lanes_of_plain(function, n):
    """On how many lanes a plain run begins."""
    return function.pipeline(X, n).machine.pools.to_be(64).pool.lanes


@pytest.fixture
def begun(monkeypatch):
    """On how many lanes for each example taped runs have begun."""
    found, run = [], ForkedWay.run_taped

    def seen(self, arrays, lanes, room, *others):
        found.append(self.pools.exactly(room).pool.lanes // 64)
        return run(self, arrays, lanes, room, *others)

    monkeypatch.setattr(ForkedWay, "run_taped", seen)
    return found


def test_taped_runs_learn_from_plain_ones_behind_the_first_of_both(begun):
    """Also those by other variables."""
    function = program()
    slopes(function, SMALL)
    assert begun == [LANES // 64]
    function(X, LARGE)
    found = slopes(function, LARGE)
    assert begun[1:] == [NEEDED]
    with tf.GradientTape() as tape:  # by the variable alone
        value = tf.reduce_sum(function(X, LARGE))
    assert_alike([tape.gradient(value, SCALE)], found[1:])
    assert begun[1:] == [NEEDED] * 2


def test_plain_runs_learn_from_taped_ones():
    function = program()
    function(X, SMALL)
    assert lanes_of_plain(function, LARGE) == LANES
    slopes(function, LARGE)
    assert lanes_of_plain(function, LARGE) == NEEDED * 64


@pytest.mark.parametrize(
    "options", [pytest.param({"tape": "replay"}, marks=pytest.mark.slow), {"jit": True}, {"max_steps": 1000}]
)
def test_under_other_options(options, begun):
    function = program()
    other = function.options(**options)
    assert lanes_of_plain(other, LARGE) == LANES
    function(X, LARGE)
    assert lanes_of_plain(other, LARGE) == NEEDED * 64
    if "jit" not in options:
        slopes(other, LARGE)
        assert begun == [NEEDED]


def test_other_programs_learn_by_themselves():
    function = program()
    function(X, LARGE)
    assert function.pipeline(X, tf.cast(LARGE, tf.int64)).machine.pools.to_be(64).pool.lanes == LANES
    assert lanes_of_plain(program(), LARGE) == LANES


def test_several_threads(begun):
    function = program()
    expected = slopes(function.options(backend="reference", jit=True), LARGE)
    for found in in_threads(2, lambda: slopes(function, LARGE)):
        assert_alike(found, expected)
    begun.clear()
    assert lanes_of_plain(function, LARGE) == NEEDED * 64
    slopes(function, LARGE)
    assert begun == [NEEDED]


@pytest.mark.parametrize("tries", [forked_reverse.TRIES, pytest.param(1, marks=pytest.mark.slow)])
def test_the_same_call_gives_the_same_bits(tries, monkeypatch, begun):
    """The first run has not enough lanes, and so adds up in another order; it begins once more, unless sabotaged.

    By then it has let go of its tapes.
    """
    runs, alive, run = [], [], ForkedWay.run_taped

    def seen(*given):
        alive.append([taped() is not None for taped in runs])
        taped = run(*given)
        runs.append(weakref.ref(taped))
        return taped

    monkeypatch.setattr(ForkedWay, "run_taped", seen)
    monkeypatch.setattr(forked_reverse, "TRIES", tries)
    function = program()
    first, *others = (slopes(each, LARGE) for each in (function, function.options(tape="replay"), function))
    assert begun == [LANES // 64, *[NEEDED] * (tries + 1)]
    assert tries == 1 or alive[1] == [False]
    equal = [np.array_equal(one, other) for found in others for one, other in zip(first, found, strict=True)]
    assert all(equal) == (tries > 1)
    np.testing.assert_array_equal(others[0][1], others[1][1])


def test_tapes_that_are_as_large_as_they_get_are_compiled_once(monkeypatch):
    """However long the runs are: each is of more segments than the one before it."""
    sizes, made, make = tapes.Sizes(bytes=1), [], ForkedWay.__init__

    def seen(self, *given, rows, **others):
        made.append(rows)
        make(self, *given, rows=rows, **others)

    monkeypatch.setattr(tapes, "Sizes", lambda: sizes)
    monkeypatch.setattr(ForkedWay, "__init__", seen)
    function = program()
    for n in (3, 5, 6):
        slopes(function, tf.fill([64], n))
    assert len(made) == 1


def test_hardly_too_few_lanes_are_enough():
    """Another number of lanes is compiled anew: not for a few calls that wait a little."""
    pools = program().pipeline(X, SMALL).machine.pools
    now, size = pools.learned.now, pools.exactly(64)
    larger = replace(size, pool=replace(size.pool, lanes=2 * LANES))

    def spread(lanes, last=size):
        """What the next run begins with, if a lane for each call would have been so many."""
        return pools.after(now, size, last, Report(lanes - 64, LANES, 3, 0, 0, 0), 64).spread

    assert spread(LANES + LANES // 8) == now.spread
    assert spread(LANES + LANES // 2) > now.spread
    assert spread(LANES + LANES // 8, larger) > now.spread, "a run that had to go on with more"


def test_a_tape_whose_last_chunk_has_no_room_is_longer_in_the_next_run(monkeypatch):
    """A chunk begins only where a whole one fits, however few rows it has."""
    found, run = [], ForkedWay.run_taped

    def seen(self, *given):
        taped = run(self, *given)
        found.append((self.rows, int(taped.segments)))
        return taped

    monkeypatch.setattr(ForkedWay, "run_taped", seen)
    function, n = program(), tf.constant([7] * 19 + [6] * 45)
    function(X, LARGE)  # so that there are lanes enough
    expected = slopes(function.options(backend="reference", jit=True), n)
    for _ in range(2):
        assert_alike(slopes(function, n), expected)
    rows = found[0][0]
    assert rows - forked_reverse.CHUNK < 19 * 34 + 45 * 21 <= rows, "calls that make no others"
    assert found[0] == (rows, 2)
    assert found[-1][0] > rows
    assert found[-1][1] == 1
