"""Functions of `operator` that change what they are given: as NumPy's arrays and Python's lists are by them."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

import pcbatch


def changed(a, n):
    b, c, xs, d = a * 1, a * 2, [n, n + 1, n + 2], {"n": n}
    view = b[1:]
    operator.iadd(view, n)
    b = operator.imul(b, 2)
    operator.isub(c, a)
    operator.itruediv(c, 4.0)
    for each in range(n):
        operator.setitem(c, each, 7.0)
    operator.iadd(xs, [n * 10])
    operator.setitem(xs, 0, -1)
    operator.delitem(xs, 1)
    operator.setitem(d, "m", n * 2)
    m = operator.iadd(n, 5)
    operator.ipow(m, 2)
    masks = a > 2.0
    operator.ior(masks, a < n)
    return b, view, c, xs, d, m, n, masks, operator.ifloordiv(n, 2), operator.imod(m, 3)


def test_operators_that_change_are_python_s():
    a, n = np.array([[3.0, 1.0, 2.0], [4.0, 9.0, 0.5]], np.float32), np.array([1, 3], np.int32)
    lanes = pcbatch.autobatch(changed)(a, n)
    for lane in range(2):
        wanted = _leaves(changed(a[lane], n[lane]))
        for found, single, right in zip(
            _leaves(lanes), _leaves(pcbatch.autobatch(changed).single(a[lane], n[lane])), wanted, strict=True
        ):
            np.testing.assert_array_equal(np.asarray(found)[lane], right)
            np.testing.assert_array_equal(np.asarray(single), right)


def _leaves(found):
    b, view, c, xs, d, *rest = found
    return [b, view, c, *xs, d["n"], d["m"], *rest]


def computed(a, n):
    rows = a * 1
    np.multiply.at(rows, np.array([0, 1, 0]), n)
    total = functools.reduce(operator.add, [n, a[0], 2])
    return (
        operator.mul(a, n),
        operator.lt(n, 2),
        operator.and_(n, 1),
        total,
        rows,
        np.add.outer(a, a),
        np.lcm.reduce(M * n),
    )


M = np.array([2, 3])


def test_operators_are_those_of_the_language():
    a, n = np.array([[3.0, 1.0, 2.0], [4.0, 9.0, 0.5]], np.float32), np.array([1, 3], np.int32)
    lanes = pcbatch.autobatch(computed)(a, n)
    for lane in range(2):
        for found, right in zip(lanes, computed(a[lane], n[lane]), strict=True):
            np.testing.assert_array_equal(np.asarray(found)[lane], right)


ROWS = [1, 2]


def grown(x):
    operator.iadd(ROWS, [x])
    return x


def test_a_captured_list_is_not_changed():
    with pytest.raises(pcbatch.CompileError, match="PCB204"):
        pcbatch.autobatch(grown)(np.float32([1.0]))
