"""What Python raises for in a plain helper is the fault of that lane alone, under XLA and without."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow import ops

ROWS = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def element(a, i):
    return a[i]


class Table:
    def at(self, a, i, j):
        return a[..., None, i, :][0, j]


TABLE = Table()


def quotient(n, k):
    return n // k + n % k


def inner(a, i):
    return element(a, i) * 2.0


def handed(function, a, i):
    return function(a, i)


def with_cells(i):
    def read(a):
        return a[i]

    return read(tf.range(3))


def looped(a, i):
    return tf.while_loop(lambda k, s: k < 2, lambda k, s: (k + 1, s + a[i]), (0, 0.0))[1]


@pcbatch.autobatch(in_axes=(None, None, 0))
def all_of_them(a, rows, i):
    return (
        element(a, i),
        TABLE.at(rows, i - 1, i),
        quotient(7, i + 1),
        inner(a, -i),
        handed(element, a, i - 3),
        with_cells(i),
        2 ** tf.abs(i),
    )


VECTOR = np.array([1.0, 2.0, 4.0], np.float32)


@pytest.mark.parametrize("jit", [True, False])
def test_each_lane_fails_where_python_raises(jit):
    places = np.arange(-5, 5, dtype=np.int32)
    run = all_of_them.options(jit=jit).run(VECTOR, ROWS, places)
    for lane, place in enumerate(places):
        try:
            wanted = all_of_them.single(VECTOR, ROWS, place)
        except (IndexError, ZeroDivisionError, tf.errors.InvalidArgumentError):
            wanted = None
        assert (run.status[lane] == pcbatch.LaneStatus.OK) == (wanted is not None), place
        for one, many in zip(wanted or (), run.value, strict=wanted is not None):
            np.testing.assert_array_equal(one, many[lane])
    assert {0, pcbatch.LaneStatus.INDEX} <= {*run.status.tolist()}


@pcbatch.autobatch
def divided(n, k):
    return quotient(n, k)


def of_numbers(k, y, which):
    """Of numbers of Python's own, which are no tensors in `single`."""
    return (
        (1 / k if which == 0 else 0)
        + (y // y if which == 1 else 0)
        + (1.5 % y if which == 2 else 0)
        + (y**-1.0 + y**2.0 + 2.0**-y if which == 3 else 0)
    )


def of_ints(k, which):
    return (2**-k if which == 0 else 0) + (1 << (k - 1) if which == 1 else 0) + (4 >> (k - 1) if which == 2 else 0)


@pcbatch.autobatch(jit=False, static_argnames="which")
def counted(n, which):
    k, y = 0, 0.0
    for turn in range(n):
        k, y = turn, turn * 0.5
    return of_numbers(k, y, which), of_ints(1 - k if which == 0 else k, which)


@pytest.mark.parametrize("which", range(4))
def test_numbers_of_pythons_own(which):
    run = counted.run(np.array([0, 1, 2, 3], np.int32), which)
    for lane, n in enumerate((0, 1, 2, 3)):
        try:
            wanted = counted.single(n, which)
        except (ZeroDivisionError, ValueError):
            wanted = None
        is_fine = wanted is not None and not isinstance(wanted[1], float)  # a power that is no int
        assert (run.status[lane] == pcbatch.LaneStatus.OK) == is_fine
        if is_fine:
            np.testing.assert_allclose([each[lane] for each in run.value], wanted)
    assert 0 < np.count_nonzero(run.status) < 4


def test_a_division_by_zero_is_told_at_the_line_of_the_helper():
    run = divided.run(np.array([7, 7], np.int32), np.array([0, 2], np.int32))
    assert run.status.tolist() == [pcbatch.LaneStatus.ARITHMETIC, pcbatch.LaneStatus.OK]
    assert run.value.numpy().tolist() == [0, 4]
    ((lane, message, span),) = [(each.lane, each.message, each.span) for each in run.errors]
    assert (lane, message) == (0, "ZeroDivisionError: integer division or modulo by zero")
    assert span.line == quotient.__code__.co_firstlineno + 1


@pcbatch.autobatch
def constant(a, n):
    return handed(lambda a, i: a[1] * 2.0, a, n) + first(a) + looped(a, n)


def first(a):
    return a[0] + a[-1] % 2.0


def test_what_cannot_fail_is_not_checked():
    given = np.stack([VECTOR, VECTOR]), np.array([0, 1], np.int32)
    assert "checking" not in constant.source(*given).replace("checking(looped", "")
    np.testing.assert_allclose(constant(*given), [constant.single(VECTOR, n) for n in (0, 1)])


def test_without_a_piece_nothing_is_checked():
    assert ops.checking(quotient, 0, 1)(tf.constant(7), tf.constant(2)) == 4
