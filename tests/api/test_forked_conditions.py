"""Calls under conditions, forked: each example gives what it gives in sequence, with as many lanes as there are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.machine.pool_sizing import ForkFeedback

OPTIONS = {"jit": False, "form": "lockstep"}


@pcbatch.autobatch(**OPTIONS)
def guarded(children, word, node):
    """Trees with up to three children: an index that fails without the condition on it, and words that fail."""
    assert word[node] < 9, f"word {word[node]} of {node}"
    total = word[node]
    for k in range(3):
        if children[node, k] < 0:
            continue
        total += guarded(children, word, children[node, k]) * (k + 1)
    return total


@pcbatch.autobatch(**OPTIONS)
def late(n, k):
    """A call under a condition, one in any case, and one that needs both, for which stacks may be too short."""
    if n <= 0:
        return k
    a = late(n - 2, k) if n % 2 == 0 else 1
    b = late(n - 3, k + 1)
    c = late(n - 1, (a + b) % 5)
    return (a + b * c) % 1001


@pcbatch.autobatch(**OPTIONS)
def stored(n):
    if n <= 0:
        return 1
    found = tf.zeros([4], tf.int32)
    for k in range(4):
        if k != n % 3:
            found[k] = stored(n - 1 - k) // (n - 6 + k)
    return tf.reduce_sum(found)


@pcbatch.autobatch(**OPTIONS)
def mapped(children, count, node):
    if count[node] == 0:
        return node
    return node + sum(pcbatch.map(lambda child: mapped(children, count, child), children[node], count=count[node]))


def trees(blank):
    """Children, how many there are, words."""
    rng = np.random.default_rng(2)
    children, count = np.full((4, 12, 3), blank, np.int32), np.zeros((4, 12), np.int32)
    for tree in range(4):
        for node in range(1, 12):
            parent = rng.choice(np.flatnonzero(count[tree, :node] < 3))
            children[tree, parent, count[tree, parent]] = node
            count[tree, parent] += 1
    return children, count, rng.integers(0, 9, (4, 12), dtype=np.int32)


ROOTS = np.array([0, 0, 2, 0], np.int32)
N = np.arange(9, dtype=np.int32)
BAD = trees(-1)[2]
BAD[1, 5] = BAD[3, 11] = 9
PROGRAMS = {
    "guarded": (guarded, (trees(-1)[0], trees(-1)[2], ROOTS)),
    "guarded, with faults": (guarded, (trees(-1)[0], BAD, ROOTS)),
    "late": (late, (N, N)),
    "stored": (stored, (N[:7],)),
    "mapped": (mapped, (*trees(77)[:2], ROOTS)),
}


def same(run, wanted):
    np.testing.assert_array_equal(run.status, wanted.status)
    np.testing.assert_array_equal(run.lane_steps, wanted.lane_steps)
    assert [(e.lane, e.message, e.span) for e in run.errors] == [(e.lane, e.message, e.span) for e in wanted.errors]
    done = np.asarray(wanted.status) == pcbatch.LaneStatus.OK
    np.testing.assert_array_equal(np.asarray(run.value)[done], np.asarray(wanted.value)[done])


SIZES = {"enough": (16, 2**24), "some more": (1, 2**24), "too few": (3, 12_000), "none": (1, 0)}
"""How many lanes there are at first for each example, and for how many bytes of lanes there is room."""


@pytest.mark.parametrize(("name", "sizes"), [
    ("late", ["too few"]),
    *(pytest.param(name, [*SIZES], marks=pytest.mark.slow) for name in PROGRAMS),
])  # fmt: skip
def test_each_example_gives_what_it_gives_in_sequence(name, sizes, monkeypatch):
    function, arguments = PROGRAMS[name]
    wanted, forked = function.run(*arguments), function.options(fork=True)
    pools = forked.pipeline(*arguments).machine.pools
    for spread, limit in map(SIZES.__getitem__, sizes):
        learned = ForkFeedback(spread)
        learned.learn(lambda lesson: replace(lesson, capacity=1))
        monkeypatch.setattr(pools, "learned", learned)  # the program is kept, for other tests, too
        monkeypatch.setattr(pools, "limit", limit)
        same(forked.run(*arguments), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["guarded", "late", "stored", "mapped"])
@pytest.mark.parametrize("option", ["max_steps", "max_depth"])
def test_limits_hold_to_the_unit(name, option):
    function, arguments = PROGRAMS[name]
    need = int(np.max(function.run(*arguments).lane_steps)) if option == "max_steps" else 4
    for limit in (need, need - 1, 2):
        options = {option: limit}
        same(function.options(fork=True, **options).run(*arguments), function.options(**options).run(*arguments))


def test_a_lane_forks_those_that_it_makes():
    arguments = PROGRAMS["guarded"][1]
    run = guarded.options(fork=True).run(*arguments)
    children = arguments[0]

    def calls(tree, node):
        return sum(1 + calls(tree, child) for child in children[tree, node] if child >= 0)

    made = sum(calls(tree, root) for tree, root in enumerate(ROOTS))
    assert run.profile().notes[0].startswith(f"{made} calls were forked, on ")


@pytest.mark.slow
def test_in_slices_and_under_xla(tmp_path):
    function, arguments = PROGRAMS["guarded"]
    wanted = function.run(*arguments)
    run = function.options(fork=True, progress=True).run(*arguments)
    same(run, wanted)
    run.save(tmp_path / "run.npz")
    np.testing.assert_array_equal(function.options(fork=True, resume=tmp_path / "run.npz")(), wanted.value)
    same(function.options(fork=True, jit=True).run(*arguments), wanted)


@pytest.mark.slow
def test_under_a_tape():
    """Calls in turns, some of which no lane makes."""

    @pcbatch.autobatch(fork=True, **OPTIONS)
    def grown(x, n):
        if n <= 0:
            return x * x
        total = x
        for k in range(2):
            if n > k:
                total += grown(x * (k + 1.0), n - 1 - k)
        return total

    x, n = tf.constant([1.0, 2.0, 0.5]), np.array([3, 1, 0], np.int32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(grown(x, n))
    for lane, gradient in enumerate(tape.gradient(total, x)):
        one = tf.constant(x[lane])
        with tf.GradientTape() as tape:
            tape.watch(one)
            value = grown.single(one, n[lane])
        np.testing.assert_allclose(gradient, tape.gradient(value, one), rtol=1e-6)
