"""Pieces as steps: ops that are alike share a function, and lanes get what the whole pieces give them."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.ir.machine import Piece
from pcbatch.runtime.backends.tensorflow import traces


def steps_of(function, *batch):
    """The steps of a program."""
    table = function.pipeline(*batch).table
    pieces = [item for block in table.blocks for item in block.body if isinstance(item, Piece)]
    return [*chain(*(piece.steps for piece in pieces))]


def checked(function, *batch):
    """A native run and the same in lockstep, which must agree."""
    native, lockstep = (function.options(form=form).run(*batch) for form in ("native", "lockstep"))
    assert list(native.status) == list(lockstep.status)
    assert [(e.lane, e.message, e.span) for e in native.errors] == [
        (e.lane, e.message, e.span) for e in lockstep.errors
    ]
    for ours, theirs in zip(tf.nest.flatten(native.value), tf.nest.flatten(lockstep.value), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    return native


X, Y = np.array([1.5, -2.0, 0.0, 7.25], np.float32), np.array([3, 0, -2, 5], np.int32)


@pcbatch.autobatch
def polynomial(x):
    return ((x * 2.0 + 1.0) * x + 3.0) * x - 4.0 + x / 5.0 - x / 7.0


def test_ops_that_are_alike_share_a_function():
    steps = steps_of(polynomial, X)
    assert len(steps) == 10
    assert len({step.piece for step in steps}) == 4  # constants are operands
    assert {value for step in steps for value in step.reads if not isinstance(value, str)} == {2.0, 1.0, 3.0, 4.0, 5, 7}
    checked(polynomial, X)


def test_each_kind_of_op_is_traced_once(monkeypatch):
    traced = []
    anew = traces.anew
    monkeypatch.setattr(traces, "anew", lambda piece, *types: (traced.append(piece), anew(piece, *types))[1])
    pcbatch.autobatch(polynomial.function)(X)
    assert len(traced) == 4


@pcbatch.autobatch
def constants(x, n):
    """Constants that must stay what they are: of another dtype, of weak numbers, in operators that look at them."""
    wide = n * 3 - 2147483647
    flag = x > 0
    power = x**2 + abs(x) ** 0.5
    quotient = n // 3 + n % -4
    tiny = x * 1e-46 + x * -0.0
    return wide, flag, power, quotient, tiny, n / 4, 2.5 * n, True + n, x == 0.1, 7 - n, 1.0 / (x - 20.0)


def test_constants_are_what_they_are_in_whole_pieces():
    run = checked(constants, X, Y)
    for lane in range(4):
        for ours, single in zip(run.value, constants.single(X[lane], Y[lane]), strict=True):
            np.testing.assert_allclose(ours[lane], single, rtol=1e-6)
    zeros = run.value[4].numpy()
    assert np.signbit(zeros).tolist() == np.signbit(X * np.float32(1e-46) + X * np.float32(-0.0)).tolist()


@pcbatch.autobatch
def fails_twice(n, m):
    first = 12 // n
    second = 7 % m
    return first + second << n


def test_a_lane_fails_at_the_first_check_that_fails():
    n, m = np.array([3, 0, 2, 0, -1], np.int32), np.array([2, 1, 0, 0, 3], np.int32)
    run = checked(fails_twice, n, m)
    lines = {error.lane: error.span.line for error in run.errors}
    assert sorted(lines) == [1, 2, 3, 4]
    assert lines[1] == lines[3] == lines[2] - 1 == lines[4] - 2


@pcbatch.autobatch
def looped(x, n):
    """The same in groups of lanes: checks are of vectors."""
    while n != 0:
        x = x + 100 // (n - 3)
        n = n - 1
    return x


def test_checks_of_lanes_in_groups():
    n = np.arange(64, dtype=np.int32) % 4
    run = checked(looped, n, n)
    assert {error.lane for error in run.errors} == {*range(3, 64, 4)}


@pcbatch.autobatch
def swapped(x, y, n):
    """Assignments to names that are read later in the piece."""
    while n > 0:
        x, y = y, x + y
        z = x
        x = z * 0.5
        n = n - 1
    return x, y


def test_names_that_are_written_several_times():
    n = np.arange(4, dtype=np.int32)
    run = checked(swapped, X, X + 1, n)
    for lane in range(4):
        expected = swapped.single(X[lane], X[lane] + 1, n[lane])
        np.testing.assert_allclose([each[lane] for each in run.value], expected, rtol=1e-6)


_x0, _y0, _x1 = 2.0, 3.0, 4.0


@pcbatch.autobatch
def named(x):
    return x * _x0 + _y0 * tf.abs(x) - x / _x1


def test_names_of_the_user_that_steps_have_too():
    np.testing.assert_allclose(checked(named, X).value, X * 2 + 3 * abs(X) - X / 4, rtol=1e-6)


@pcbatch.autobatch
def of_arrays(a, i):
    total = 0.0
    while i >= 0:
        total = total + a[i] * tf.reduce_sum(a * 2.0)
        i = i - 1
    return total


def test_ops_on_arrays_stay_together():
    a, i = np.ones((2, 3), np.float32), np.array([1, 2], np.int32)
    pieces = [item for block in of_arrays.pipeline(a, i).table.blocks for item in block.body]
    assert any(isinstance(item, Piece) and not item.steps for item in pieces)
    assert any(isinstance(item, Piece) and item.steps for item in pieces)
    checked(of_arrays, a, i)


SCALE = tf.Variable(2.0)


@pcbatch.autobatch
def with_a_variable(x):
    return x * SCALE + 1.0


def test_captured_numbers_are_read_at_each_call():
    for value in (2.0, 5.0):
        SCALE.assign(value)
        np.testing.assert_allclose(with_a_variable(X), X * value + 1)


@pcbatch.autobatch
def branches(x):
    if x > 1.0:
        return x * 2.0
    if x < -1.0:
        return -x
    return 0.0


@pytest.mark.parametrize("function", [polynomial, branches, fails_twice])
def test_what_is_of_numbers_alone_is_native(function):
    batch = (Y, Y) if function is fails_twice else (X,)
    function = function.options(name="native")
    function.run(*batch)
    assert function.stats().forms == ("native",)


@pcbatch.autobatch
def doubled_sum(a):
    return tf.reduce_sum(a) * 2.0


def test_what_is_not_of_numbers_runs_straight():
    doubled_sum(np.ones((2, 3), np.float32))
    assert doubled_sum.stats().forms == ("straight, by XLA",)


def test_gradients_of_straight_lines_of_numbers():
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = polynomial(x)
    slope = ((x * 2.0 + 1.0) * x + 3.0) + x * (4.0 * x + 1.0) + 1 / 5 - 1 / 7
    np.testing.assert_allclose(tape.gradient(y, x), slope, rtol=1e-5)
