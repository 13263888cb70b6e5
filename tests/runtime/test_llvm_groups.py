"""Lanes that native code runs in groups: ways that part, places that are taken anew, failures, and limits."""

import math

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus
from pcbatch.runtime.llvm import compiler

LANES = (1, 3, 4, 15, 16, 17, 33, 500)
"""Fewer than a group has, as many, one more; and so many that places are taken anew often."""


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    return steps


def nested(n, x):
    """Loops in loops, a branch with a loop in one arm only, and a way out in the middle."""
    total = 0.0
    i = 0
    while i < n:
        j = i % 3
        while j > 0:
            total = total + x * float(j)
            j = j - 1
        if i % 4 == 3:
            k = n
            while k > i:
                total = total - 0.25
                k = k - 2
        elif total > 50.0:
            break
        i = i + 1
    return total, i


def functions(x):
    """Those of the C library, where they are harmless and where they are not."""
    turns = 0
    while turns < 3:
        y = tf.sin(x) + tf.cos(x * 2.0) * tf.exp(-tf.abs(x)) + tf.math.log1p(tf.abs(x)) + tf.tanh(x)
        x = y + tf.math.expm1(x * 0.1) + tf.math.erf(x) + tf.pow(tf.abs(x) + 0.5, 1.7) + tf.atan2(x, y)
        turns = turns + 1
    return x, tf.math.log(x), tf.exp(x * 3.0), tf.sqrt(-x * x)


def numbers(a, b, c, d):
    """Types of every width, casts among them, and divisions that Python and NumPy define."""
    n = tf.cast(a, tf.int32) & 7
    flag = b > a
    while n > 0:
        a = tf.cast(tf.cast(a, tf.int32) * 3 - 7, tf.int8)
        b = tf.cast(tf.bitwise.bitwise_xor(tf.cast(b, tf.int64), tf.cast(a, tf.int64)), tf.int8)
        c = tf.bitwise.right_shift(c, tf.cast(n, tf.uint64)) * tf.cast(5, tf.uint64) + tf.cast(n, tf.uint64)
        d = d * 1.5 if flag else d / 3.0
        flag = tf.math.logical_xor(flag, d > 2.0)
        n = n - 1
    return a, b, c, d, flag, tf.cast(tf.clip_by_value(d, -9.0, 9.0) * 1e7, tf.int32)


def vectors(n, v, m):
    """Small arrays of each lane, one that all share, and a sum over it."""
    while n > 0:
        v = tf.linalg.matvec(m, v) * 0.5 + tf.reverse(v, [0])
        if v[0] > 1.0:
            v = v / tf.reduce_max(tf.abs(v))
        n = n - 1
    return v, tf.reduce_sum(v), tf.stack([v[1], v[0]])


def steps_of_a_solver(x, end):
    """A step of a solver, with more intermediate numbers than places that a group has."""
    t = 0.0 * end
    h = 0.25 * end
    while t < end:
        h = min(h, end - t)
        k1 = -x + math.cos(t)
        k2 = -(x + h * k1 / 5.0) + math.cos(t + h / 5.0)
        k3 = -(x + h * (k1 * 3.0 / 40.0 + k2 * 9.0 / 40.0)) + math.cos(t + h * 3.0 / 10.0)
        k4 = -(x + h * (k1 * 44.0 / 45.0 - k2 * 56.0 / 15.0 + k3 * 32.0 / 9.0)) + math.cos(t + h * 4.0 / 5.0)
        k5 = k1 * 19372.0 / 6561.0 - k2 * 25360.0 / 2187.0 + k3 * 64448.0 / 6561.0 - k4 * 212.0 / 729.0
        k5 = -(x + h * k5) + math.cos(t + h * 8.0 / 9.0)
        k6 = k1 * 9017.0 / 3168.0 - k2 * 355.0 / 33.0 + k3 * 46732.0 / 5247.0 + k4 * 49.0 / 176.0
        k6 = -(x + h * (k6 - k5 * 5103.0 / 18656.0)) + math.cos(t + h)
        k7 = k1 * 35.0 / 384.0 + k3 * 500.0 / 1113.0 + k4 * 125.0 / 192.0 - k5 * 2187.0 / 6784.0
        x = x + h * (k7 + k6 * 11.0 / 84.0)
        t = t + h
    return x


def drawn(key, n):
    total, accepted = 0.0, 0
    while accepted < n:
        key, here = pcbatch.random.split(key)
        u = pcbatch.random.uniform(here, (2,))
        if u[0] * u[0] + u[1] * u[1] < 1.0:
            accepted = accepted + 1
            total = total + u[0]
    return total


def failing(n):
    i = 0
    while i < n:
        assert i != 37, f"lane at {i} of {n}"
        i = i + 1
        if i > 10:
            assert n % 5 != 0, f"{n} is bad"
    return i


def given(name, lanes):
    random = np.random.default_rng(lanes)
    n = random.integers(0, 25, lanes).astype(np.int32)
    x = random.normal(size=lanes)
    match name:
        case "collatz":
            return (random.integers(1, 3000, lanes).astype(np.int32),)
        case "nested":
            return n, x.astype(np.float32)
        case "functions":
            return (x * 3.0,)
        case "functions of float32":
            return ((x * 3.0).astype(np.float32),)
        case "numbers":
            small = random.integers(-128, 128, (2, lanes)).astype(np.int8)
            return *small, random.integers(0, 2**64, lanes, np.uint64), x
        case "vectors":
            return n, random.normal(size=(lanes, 3))
        case "steps of a solver":
            return x, np.abs(random.normal(size=lanes)) * 3.0
        case "drawn":
            return pcbatch.random.keys(lanes, lanes), n
    return (random.integers(0, 60, lanes).astype(np.int32),)


def is_grouped(function):
    return 'define internal void @"groups"' in function


CASES = {
    "collatz": (collatz, 0.0),
    "nested": (nested, 1e-5),
    "functions": (functions, 1e-12),
    "functions of float32": (functions, 3e-5),
    "numbers": (numbers, 1e-13),
    "vectors": (vectors, 1e-12),
    "steps of a solver": (steps_of_a_solver, 1e-12),
    "drawn": (drawn, 1e-6),
}


@pytest.mark.parametrize("name", CASES)
def test_groups_do_as_python_does(name):
    body, tolerance = CASES[name]
    matrix = [np.random.default_rng(0).normal(size=(3, 3))] if name == "vectors" else []
    axes = {"in_axes": (0, 0, None)} if matrix else {}
    function = pcbatch.autobatch(form="native", **axes)(body)
    for lanes in LANES:
        arguments = given(name, lanes)
        found = tf.nest.flatten(function(*arguments, *matrix))
        some = sorted({*range(min(lanes, 20)), lanes - 1})
        for lane in some:
            wanted = tf.nest.flatten(function.single(*(each[lane] for each in arguments), *matrix))
            for one, right in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one[lane], right, rtol=tolerance, atol=tolerance, err_msg=f"{lanes}, {lane}")
    assert is_grouped(function.ir("llvm", *arguments, *matrix)), "lanes run one after another"


def test_failures_are_of_their_lanes():
    function = pcbatch.autobatch(form="native")(failing)
    (n,) = given("failing", 200)
    assert is_grouped(function.ir("llvm", n))
    run = function.run(n)
    expected = {}
    for lane, most in enumerate(n.tolist()):
        if most > 10 and most % 5 == 0:
            expected[lane] = f"{most} is bad"
        elif most > 37:
            expected[lane] = f"lane at 37 of {most}"
    assert {error.lane: error.message.removeprefix("AssertionError: ") for error in run.errors} == expected
    values = np.asarray(run.value)
    fine = np.array([lane not in expected for lane in range(len(n))])
    np.testing.assert_array_equal(values[fine], n[fine])


@pytest.mark.parametrize("most", [0, 1, 7, 40])
def test_each_lane_has_steps_of_its_own(most):
    """A lane fails at its own limit, whatever the others in its group have made of theirs."""
    function = pcbatch.autobatch(form="native", max_steps=most)(collatz)
    alone = function.options(form="lockstep")
    n = np.random.default_rng(3).integers(1, 100, 100).astype(np.int32)
    assert is_grouped(function.ir("llvm", n))
    run, other = function.run(n), alone.run(n)
    np.testing.assert_array_equal(run.status, other.status)
    assert LaneStatus.OK in run.status or most == 0
    np.testing.assert_array_equal(run.lane_steps, other.lane_steps)
    np.testing.assert_array_equal(run.value, other.value)


def test_counts_are_those_of_single_lanes():
    function = pcbatch.autobatch(form="native")(collatz)
    n = np.arange(1, 60, dtype=np.int32)
    assert function.run(n).block_runs == sum(function.run(n[at : at + 1]).block_runs for at in range(len(n)))


def test_bits_do_not_depend_on_the_batch_where_that_is_asked():
    function = pcbatch.autobatch(form="native", deterministic=True)(functions)
    x = np.random.default_rng(5).normal(size=40)
    assert not is_grouped(function.ir("llvm", x))
    whole = [np.asarray(each) for each in function(x)]
    for lane in (0, 7, 39):
        for all_, one in zip(whole, function(x[lane : lane + 1]), strict=True):
            np.testing.assert_array_equal(all_[lane], np.asarray(one)[0])


def test_numbers_that_no_other_block_reads_have_no_place():
    """There are some 100 of them, and a place of each would be cleared wherever a lane begins."""
    text = pcbatch.autobatch(steps_of_a_solver).ir("llvm", np.ones(2), np.ones(2))
    assert text.count(" = alloca ") < 60
    assert "splat (double 0x" in text


def test_without_functions_for_vectors(monkeypatch):
    """Where the C library has no vector part, its functions are called for one number after another."""
    monkeypatch.setattr(compiler.vector_library, "_has", lambda symbol: False)
    function = pcbatch.autobatch(form="native")(functions)
    x = np.random.default_rng(6).normal(size=18)
    text = function.ir("llvm", x)
    assert is_grouped(text)
    assert "_ZGV" not in text
    for lane, result in enumerate(np.asarray(function(x)[0])):
        assert math.isclose(result, float(function.single(x[lane])[0]), rel_tol=1e-12)
