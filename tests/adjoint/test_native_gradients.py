"""Gradients by native code: each lane runs once more, recorded, and is undone right away."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.llvm import gradients as native_gradients
from pcbatch.runtime.llvm import memory, multithreading
from tests.adjoint.truth import assert_alike, assert_like_differences, batched, one_by_one, singly

RNG = np.random.default_rng(3)
LANES = 6
RATE = tf.Variable(0.7, dtype=tf.float64)
WEIGHTS = tf.Variable(RNG.normal(size=4))
XS = tf.constant(RNG.uniform(0.5, 1.5, LANES))
COUNTS = tf.constant([3, 0, 5, 1, 7, 2])


@pcbatch.autobatch
def root(a):
    """Newton's steps, as many as each lane needs."""
    x = 1.0 + 0.0 * a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


@pcbatch.autobatch
def tree(x, n):
    """Two calls in each, whose variables lie on stacks."""
    if n <= 1:
        return tf.sin(x) * RATE
    return tree(x * 0.9, n - 1) * tree(x + 0.1, n - 2) + x


@pcbatch.autobatch
def even(x, n):
    """Two functions that call each other."""
    if n == 0:
        return x
    return odd(tf.sin(x), n - 1) * x


@pcbatch.autobatch
def odd(x, n):
    """See `even`."""
    if n == 0:
        return x * 2.0
    return even(tf.cos(x) + x * RATE, n - 1) + x


@pcbatch.autobatch
def stores(a, x, n):
    """Elements and rows that are stored and read, in arrays that calls do not share."""
    i = 0
    while i < n:
        a[i % 3] = x * a[(i + 1) % 3] + a[-1]
        x = tf.sin(x)
        a[1:3] = a[0:2] * x
        i = i + 1
    return a, x


@pcbatch.autobatch
def nested(m, n):
    """A recursion over a matrix, with rows and elements of it stored."""
    if n == 0:
        return tf.reduce_sum(m * m)
    m[n % 2] = m[(n + 1) % 2] * 0.5
    below = nested(m, n - 1)
    m[0, n % 3] = below * 0.1
    return below + m[1, 2] * m[0, n % 3]


@pcbatch.autobatch
def weighted(x, n):
    """Elements of a variable that all lanes share, and all of it."""
    for i in range(n):
        x = tf.tanh(x * WEIGHTS[1] + RATE) + tf.reduce_sum(WEIGHTS) * 0.01 * i
    return x


@tf.custom_gradient
def doubled(x):
    """The gradient is its author's."""
    return x * 2.0, lambda dy: dy * 7.0


@pcbatch.autobatch
def own(x, n):
    """A gradient of one's own, one that is stopped, and ints beside."""
    total = 0
    while n > 0:
        x = tf.sin(doubled(x)) + tf.stop_gradient(x) * x
        total = total + n
        n = n - 1
    return x, total


@pcbatch.autobatch
def chosen(x, n):
    """Arms that compute what another lane may not: 1 / 0, and logarithms of negative numbers."""
    y = x - x
    for i in range(n):
        y = y + (1.0 / y if y != 0.0 else x)
        x = tf.math.log(x) if x > 1.0 else x * 1.5 + 0.1 * i
    return x + y


@pcbatch.autobatch
def drawn(key, x, n):
    """Numbers at random: as many as a lane has turns, the same when it runs again."""
    for _ in range(n):
        key, now = pcbatch.random.split(key)
        x = x * pcbatch.random.uniform(now, dtype=tf.float64) + tf.sin(x)
    return x


@pcbatch.autobatch
def failing(x, n):
    """Lanes of which some fail, in the middle of what is recorded."""
    while n > 0:
        assert x < 4.0
        x = x * x * RATE
        n = n - 1
    return x


@pcbatch.autobatch
def single_precision(x, n):
    """Float32 throughout."""
    for _ in range(n):
        x = tf.sin(x) * 1.5
    return x


@pcbatch.autobatch
def nothing(x, n):
    """Nothing flows: what comes out is a number of turns."""
    while n > 0:
        n = n - 1
    return x * 0.0 + 1.0, n


VECTORS, MATRICES = tf.constant(RNG.normal(size=(LANES, 3))), tf.constant(RNG.normal(size=(LANES, 2, 3)))
PROGRAMS = {
    "root": (root, (XS,), ()),
    "tree": (tree, (XS, COUNTS), (RATE,)),
    "even": (even, (XS, COUNTS), (RATE,)),
    "stores": (stores, (VECTORS, XS, COUNTS), ()),
    "nested": (nested, (MATRICES, COUNTS), ()),
    "weighted": (weighted, (XS, COUNTS), (WEIGHTS, RATE)),
    "own": (own, (XS, COUNTS), ()),
    "chosen": (chosen, (XS, COUNTS), ()),
    "failing": (failing, (XS * 1.5, COUNTS), (RATE,)),
    "single_precision": (single_precision, (tf.cast(XS, tf.float32), COUNTS), ()),
    "nothing": (nothing, (XS, COUNTS), ()),
}


@pytest.fixture
def asked(monkeypatch):
    """What native code has given when it was asked for gradients: None where its tape was too long."""
    found, gradients = [], native_gradients.LlvmGradients.gradients

    def seen(self, *given):
        found.append(gradients(self, *given))
        return found[-1]

    monkeypatch.setattr(native_gradients.LlvmGradients, "gradients", seen)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name, asked):
    function, arguments, variables = PROGRAMS[name]
    ours = batched(function.options(form="native"), arguments, variables)
    assert len(asked) == 1
    assert asked[0] is not None
    theirs = one_by_one(function, arguments, variables)
    assert_alike(ours, theirs, 1e-5 if name == "single_precision" else 1e-9)


@pytest.mark.parametrize("name", ["root", "tree", "stores", "nested"])
def test_differences(name, asked):
    function, arguments, _ = PROGRAMS[name]
    assert_like_differences(function.options(form="native"), arguments)
    assert asked


def test_draws(asked):
    keys = pcbatch.random.split(pcbatch.random.key(1), LANES)
    function = drawn.options(form="native")
    with tf.GradientTape() as tape:
        tape.watch(XS)
        value = tf.reduce_sum(function(keys, XS, COUNTS))
    found = tape.gradient(value, XS)
    assert asked
    with tf.GradientTape() as tape:
        tape.watch(XS)
        value = tf.reduce_sum(drawn.options(backend="reference")(keys, XS, COUNTS))
    np.testing.assert_allclose(found, tape.gradient(value, XS), rtol=1e-9)


def test_a_persistent_tape_and_one_result(asked):
    """Of each result alone, and by one of the arguments: the others have no seeds."""
    function = stores.options(form="native")
    given = (VECTORS, XS, COUNTS)
    found, expected = [], []
    for way, results in ((function, found), (stores.options(backend="reference"), expected)):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(XS)
            a, x = way(*given)
        results += [tape.gradient(each, XS) for each in (a, x)]
    assert len(asked) == 2
    assert_alike(found, expected)


def test_each_example(asked):
    given = (XS, COUNTS)
    ours = pcbatch.per_example_gradients(weighted.options(form="native"), [WEIGHTS, RATE])(*given)
    assert asked
    assert_alike(ours, pcbatch.per_example_gradients(weighted.options(form="lockstep"), [WEIGHTS, RATE])(*given))


def test_sums_of_many_lanes(asked, monkeypatch):
    """Lanes run some after the others, where their sums would take too much memory."""
    monkeypatch.setattr(native_gradients, "SUMS", 100)
    function, given = weighted.options(form="native", name="weighted_in_turn"), (XS, COUNTS)
    assert_alike(batched(function, given, (WEIGHTS, RATE)), singly(weighted, given, (WEIGHTS, RATE)))
    assert asked


def test_same_bits_by_any_number_of_threads(monkeypatch):
    xs, counts = tf.constant(RNG.uniform(0.5, 1.5, 500)), tf.constant(RNG.integers(0, 9, 500))
    function = weighted.options(form="native")
    one = batched(function, (xs, counts), (WEIGHTS, RATE))
    shared = []

    def parts(first, behind, *_):
        shared.append((first, behind))
        return [(0, 7), (7, 300), (300, behind)]

    monkeypatch.setattr(multithreading, "available", lambda: 2)
    monkeypatch.setattr(multithreading, "parts", parts)
    monkeypatch.setattr(multithreading.LaneCost, "of", lambda self, lanes: 1.0)
    for ours, theirs in zip(batched(function, (xs, counts), (WEIGHTS, RATE)), one, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert set(shared) == {(0, 500)}


def test_long_tapes_and_deep_calls(asked, monkeypatch):
    """Tapes and stacks grow; under tape="replay" tapes stay short, and lockstep undoes what needs more."""
    monkeypatch.setattr(memory, "FIRST_TAPE", 256)
    monkeypatch.setattr(memory, "LARGE", 1 << 12)
    turns = tf.constant([30, 300, 0, 5, 7, 1])
    for function in (single_precision, even):
        xs = tf.cast(XS, tf.float32) if function is single_precision else XS
        native = function.options(form="native", name=f"long_{function.__name__}")
        ours = batched(native, (xs, turns))
        assert asked.pop() is not None
        assert_alike(ours, one_by_one(function, (xs, turns)), 1e-4)
    monkeypatch.setattr(native_gradients, "CPU", type("Short", (), {"tape_bytes": 1 << 10}))
    native = single_precision.options(form="native", tape="replay", name="replayed")
    xs = tf.cast(XS, tf.float32)
    expected = one_by_one(single_precision, (xs, turns))
    assert_alike(batched(native, (xs, turns)), expected, 1e-4)
    assert asked == [None]


def test_limits(asked):
    """Lanes that take too many steps, or call too deep, have no gradient and leave no trace."""
    for limits in ({"max_steps": 4}, {"max_depth": 4}):
        ours = batched(even.options(form="native", **limits), (XS, COUNTS), (RATE,))
        assert_alike(ours, one_by_one(even.options(**limits), (XS, COUNTS), (RATE,)))
    assert len(asked) == 2


def test_what_all_lanes_look_up_in_is_left_to_lockstep(asked):
    @pcbatch.autobatch(form="native")
    def looked_up(i, n):
        x = tf.zeros([], tf.float64)
        while n > 0:
            x = tf.sin(x) + tf.gather(WEIGHTS, (i + n) % 4)
            n = n - 1
        return x

    with tf.GradientTape() as tape:
        value = tf.reduce_sum(looked_up(COUNTS, COUNTS))
    assert isinstance(tape.gradient(value, WEIGHTS), tf.IndexedSlices)
    assert not asked


def test_inside_graphs_runs_are_recorded(asked):
    function = root.options(form="native")

    @tf.function
    def slope(a):
        with tf.GradientTape() as tape:
            tape.watch(a)
            value = tf.reduce_sum(function(a))
        return tape.gradient(value, a)

    np.testing.assert_allclose(slope(XS), 0.5 / np.sqrt(XS), rtol=1e-9)
    assert not asked


TABLE = np.array([0.5, 0.25, 0.125])


@pcbatch.autobatch(form="native")
def of_arrays(x, n):
    """What comes from NumPy's arrays, which may have other elements by the time of the gradient."""
    for i in range(n):
        x = tf.sin(x) * RATE + TABLE[i % 3] * x
    return x


def test_values_are_those_of_the_run(asked):
    xs, counts, table = np.linspace(0.5, 1.5, 4096), np.arange(4096) % 5, TABLE.copy()
    first = of_arrays(xs, counts)
    for _ in range(2):  # the second time by a plan
        with tf.GradientTape() as tape:
            value = of_arrays(xs, counts)
        RATE.assign_add(1.0)
        xs[:], counts[:], TABLE[:] = 0.1, 1, 0.0
        found = tape.gradient(value, RATE)
        RATE.assign_sub(1.0)
        xs[:], counts[:], TABLE[:] = np.linspace(0.5, 1.5, 4096), np.arange(4096) % 5, table
        with tf.GradientTape() as tape:
            again = of_arrays(xs, counts)
        np.testing.assert_array_equal(again, first)
        np.testing.assert_array_equal(found, tape.gradient(again, RATE))
    assert len(asked) == 4
