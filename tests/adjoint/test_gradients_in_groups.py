"""Gradients of lanes that run in groups: what many have done is on one tape, lanes that come and go included."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.llvm import backward, gradients, memory, multithreading
from tests.adjoint.truth import assert_alike, assert_like_differences, batched, one_by_one

RNG = np.random.default_rng(8)
LANES = 45
RATE = tf.Variable(0.7, dtype=tf.float64)
WEIGHTS = tf.Variable(RNG.normal(size=4))
XS = tf.constant(RNG.uniform(0.5, 1.5, LANES))
COUNTS = tf.constant(RNG.integers(0, 9, LANES), tf.int32)
VECTORS = tf.constant(RNG.normal(size=(LANES, 3)))
FLAGS = tf.constant(RNG.random(LANES) < 0.5)


@pcbatch.autobatch
def swung(x, n):
    """A loop whose lanes end at different times; some at once."""
    total = x
    for _ in range(n):
        total = total + 0.1 * tf.sin(x * total) * RATE
    return total


@pcbatch.autobatch
def within(x, n, flag):
    """A loop in a loop, arms that compute what others may not, a bool and an int beside."""
    y, turns = x - x, 0
    for i in range(n):
        j = i
        while j > 0:
            y = y + tf.sin(x * j)
            j = j - 2
            turns = turns + 1
        if flag:
            x = tf.math.log(x) if x > 1.0 else x * 1.5 + 0.1
        y = y + (1.0 / y if y != 0.0 else x)
    return y, turns, flag


@pcbatch.autobatch
def matrices(v, n):
    """Arrays, sums and products of them, and a variable of which all lanes read all."""
    m = tf.reshape(v, [3, 1]) * v
    for _ in range(n):
        v = tf.tanh(tf.linalg.matvec(m, v)) + WEIGHTS[1:] * RATE
        m = m * 0.5 + tf.reduce_sum(v * v)
    return v, tf.reduce_max(m)


@pcbatch.autobatch
def failing(x, n):
    """Lanes of which some fail: in the middle of what is recorded, or by what they compute before."""
    assert x > 0.6
    while n > 0:
        x = x * x * RATE
        assert x < 4.0
        n = n - 1
    return 1.0 / x


@pcbatch.autobatch
def single_precision(x, n):
    """Float32, weak numbers and a float64 that is made of it."""
    wide = tf.cast(x, tf.float64)
    for _ in range(n):
        x = tf.sin(x) * 1.5
        wide = wide * 0.9 + tf.cast(x, tf.float64)
    return x, wide


@pcbatch.autobatch
def unused(x, n):
    """One result is an argument, another does not depend on any; nothing is recorded of a lane without turns."""
    other = 1.0
    for _ in range(n):
        other = other * 0.5
    return x, other, n


@pcbatch.autobatch
def half(x, n):
    """A dtype that has no vectors: lanes run one after another."""
    for _ in range(n):
        x = x * x
    return x


PROGRAMS = {
    "swung": (swung, (XS, COUNTS), (RATE,)),
    "within": (within, (XS, COUNTS, FLAGS), ()),
    "matrices": (matrices, (VECTORS, COUNTS % 4), (WEIGHTS, RATE)),
    "failing": (failing, (XS * 1.5, COUNTS), (RATE,)),
    "single_precision": (single_precision, (tf.cast(XS, tf.float32), COUNTS), ()),
    "unused": (unused, (XS, COUNTS), ()),
    "half": (half, (tf.cast(XS, tf.float16), COUNTS % 3), ()),
}
ROUGH = {"single_precision": 1e-5, "half": 1e-2}


@pytest.fixture
def grouped(monkeypatch):
    """For each native gradient function that is made, whether its lanes run in groups."""
    found, build = [], backward._GroupsBothWays.build

    def seen(self):
        found.append(self.interface.program.name)
        return build(self)

    monkeypatch.setattr(backward._GroupsBothWays, "build", seen)
    return found


def native(function, name, **options):
    """The function, native and compiled anew."""
    return function.options(form="native", name=name, **options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name, grouped):
    function, arguments, variables = PROGRAMS[name]
    ours = batched(native(function, f"in_groups_{name}"), arguments, variables)
    assert bool(grouped) == (name != "half")
    assert_alike(ours, one_by_one(function, arguments, variables), ROUGH.get(name, 1e-9))


@pytest.mark.parametrize("name", ["swung", "matrices"])
def test_differences(name):
    function, arguments, _ = PROGRAMS[name]
    assert_like_differences(native(function, f"in_groups_{name}"), [each[:5] for each in arguments])


@pytest.mark.parametrize("name", ["swung", "within", "matrices", "failing"])
def test_stretches(name, monkeypatch, grouped):
    """Many short stretches, on a tape that has to grow again in each call: the same gradients, to the bit."""
    function, arguments, variables = PROGRAMS[name]
    whole = batched(native(function, f"in_groups_{name}"), arguments, variables)
    monkeypatch.setattr(backward, "STRETCH", 1)
    monkeypatch.setattr(memory, "FIRST_TAPE", 512)
    monkeypatch.setattr(memory, "LARGE", 1024)
    function = native(function, f"in_stretches_{name}")
    for _ in range(2):
        for ours, theirs in zip(batched(function, arguments, variables), whole, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert grouped


def test_a_tape_that_grows_in_a_later_call():
    """A thread's next call begins at its own first lane, wherever the last one ended."""
    function = native(swung, "growing_later")
    batched(function, (XS, tf.zeros_like(COUNTS)), (RATE,))
    for turns in (10, 40_000):
        counts = tf.constant([3, turns, *[2] * 30])
        ours = batched(function, (XS[:32], counts), (RATE,))
        assert_alike(ours, batched(native(swung, "growing", deterministic=True), (XS[:32], counts), (RATE,)), 1e-7)


@pytest.mark.parametrize("name", ["swung", "failing"])
def test_parts_of_threads(name, monkeypatch):
    function, arguments, variables = PROGRAMS[name]
    function = native(function, f"in_groups_{name}")
    one = batched(function, arguments, variables)
    cuts = [0, 1, 3, 20, 21, LANES]
    monkeypatch.setattr(multithreading, "available", lambda: 2)
    monkeypatch.setattr(multithreading, "parts", lambda *_: [*itertools.pairwise(cuts)])
    monkeypatch.setattr(multithreading.LaneCost, "of", lambda self, lanes: 1.0)
    for ours, theirs in zip(batched(function, arguments, variables), one, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("options", [{"max_steps": 4}, {"tape": "replay"}, {"deterministic": True}, {"fork": False}])
def test_options(options, grouped):
    ours = batched(native(swung, "with_options", **options), (XS, COUNTS), (RATE,))
    assert bool(grouped) == ("deterministic" not in options)
    limits = {name: each for name, each in options.items() if name == "max_steps"}
    assert_alike(ours, one_by_one(swung.options(**limits), (XS, COUNTS), (RATE,)))


def test_bits_do_not_depend_on_the_batch():
    function = native(swung, "in_groups_swung")
    (whole, _) = batched(function, (XS, COUNTS), (RATE,))
    with tf.GradientTape() as tape:
        tape.watch(XS)
        rows = XS[7:9]
        value = tf.reduce_sum(function(rows, COUNTS[7:9]))
    alone = tape.gradient(value, XS)
    with tf.GradientTape() as tape:
        tape.watch(XS)
        value = tf.reduce_sum(function(XS, COUNTS))
    np.testing.assert_array_equal(alone[7:9], tape.gradient(value, XS)[7:9])
    assert whole.shape == XS.shape


def test_no_lanes_and_one():
    function = native(swung, "in_groups_swung")
    for lanes in (0, 1):
        ours = batched(function, (XS[:lanes], COUNTS[:lanes]), (RATE,))
        assert ours[0].shape == (lanes,)
        assert_alike(ours, one_by_one(swung, (XS[:lanes], COUNTS[:lanes]), (RATE,)))


def test_infinite_gradients_stay_in_their_lanes():
    """Gradients of a lane are its own, whatever another one computes of garbage or of infinity."""

    @pcbatch.autobatch(form="native")
    def roots(x, n):
        while n > 0:
            x = tf.sqrt(x)
            n = n - 1
        return x

    xs = tf.constant([0.0, 1.0, -1.0, 4.0] * 5, tf.float64)
    counts = tf.constant([1, 2, 1, 0] * 5)
    with tf.GradientTape() as tape:
        tape.watch(xs)
        value = tf.reduce_sum(roots(xs, counts))
    np.testing.assert_allclose(tape.gradient(value, xs), [np.inf, 0.25, np.nan, 1.0] * 5)


def test_seeds_of_some_lanes():
    """A lane whose result nobody asks for has gradient 0, to the bit."""
    function, found = native(swung, "in_groups_swung"), []
    for rows in (np.s_[:], np.s_[::3]):
        with tf.GradientTape() as tape:
            tape.watch(XS)
            value = tf.reduce_sum(function(XS, COUNTS)[rows])
        found.append(tape.gradient(value, XS).numpy())
    whole, some = found
    np.testing.assert_array_equal(some[::3], whole[::3])
    assert not np.delete(some, np.s_[::3]).any()


@pytest.mark.parametrize("lanes", [4, 8])
def test_narrow_groups(lanes, monkeypatch, grouped):
    """Other processors have shorter vectors."""
    monkeypatch.setattr(gradients, "width", lambda: lanes)
    function, arguments, variables = PROGRAMS["failing"]
    ours = batched(native(function, f"in_groups_of_{lanes}"), arguments, variables)
    assert grouped
    assert_alike(ours, one_by_one(function, arguments, variables))


@pytest.mark.parametrize("is_looked_up", [False, True])
def test_failures_are_told_in_every_call(is_looked_up):
    """Plain runs are native; gradients are, or the run is recorded in lockstep. From the second call on by a plan."""

    @pcbatch.autobatch(form="native")
    def checked(x, n):
        for i in range(n):
            assert x < 4.0
            x = x * x + (tf.gather(WEIGHTS, i % 4) if is_looked_up else WEIGHTS[0])
        return x

    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(XS)
            assert checked(XS, tf.ones_like(COUNTS)).shape == XS.shape
        with tf.GradientTape() as tape:
            tape.watch(XS)
            with pytest.raises(pcbatch.LaneError, match="x < 4"):
                checked(XS * 3.0, COUNTS + 3)
