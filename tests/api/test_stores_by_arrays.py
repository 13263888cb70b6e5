"""Stores by masks and by arrays of positions: what NumPy does, in `f.single`, and in a batch or refused there."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus

MATRIX = np.arange(9, dtype=np.float32).reshape(3, 3)
FIXED = np.array([True, False, True])


def by_masks(m):
    a, b, c, d = m * 1.0, m * 1.0, m * 1.0, m * 1.0
    a[m > 4.0] = 0.0
    b[m[:, 0] > 2.0] = np.array([1.0, 2.0, 3.0], np.float32)
    c[FIXED] = -1.0
    d[m < -1.0] = 5.0
    rows = [m[0] * 1.0, m[1] * 1.0]
    rows[1][rows[1] > 3.5] = 7.0
    return a, b, c, d, rows[1]


def test_a_mask_stores_where_it_is_true():
    function = pcbatch.autobatch(by_masks)
    batch = np.stack([MATRIX, -MATRIX])
    found = function(batch)
    for lane, m in enumerate(batch):
        wanted = by_masks(m.copy())
        for array, one, many in zip(wanted, function.single(m), found, strict=True):
            np.testing.assert_array_equal(one, array)
            np.testing.assert_array_equal(many[lane], array)


def wholes(m, x):
    one, a, b, c = np.zeros(()), m * 1.0, m * 1.0, np.zeros(3, np.float32)
    one[()] = x
    one[...] += 1.0
    a[()] = x
    a[()] += m
    b[...] = b[::-1]
    for i in range(2):
        c[()] = c + float(i)
        c[1] = x
    if x > 0.0:
        b[()] = [1.0, 2.0, x]
    return one, a, b, c, m


@pytest.mark.parametrize("options", [{}, {"form": "lockstep"}, {"backend": "reference"}], ids=str)
def test_the_whole_array_is_stored_to(options):
    """`a[()]` and `a[...]`, of an array without axes, too."""
    function = pcbatch.autobatch(wholes, **options)
    batch, x = np.stack([MATRIX, -MATRIX]), np.array([2.0, -1.0], np.float32)
    found = function(batch, x)
    for lane in range(2):
        for array, one, many in zip(
            wholes(batch[lane].copy(), x[lane]), function.single(batch[lane], x[lane]), found, strict=True
        ):
            np.testing.assert_array_equal(one, array)
            np.testing.assert_array_equal(many[lane], array)


def pairs(m):
    m[np.array([0, 1, 0]), [1, 2, 1]] = np.array([5.0, 6.0, 7.0], np.float32)
    return m


def rows_and_mask(m):
    m[m[0] > 0.5, 1] = -1.0
    return m


def slice_and_list(m):
    m[0:2, [0, 2]] = 9.0
    return m


def whole(m):
    m[...] = 3.0
    return m


def added(m):
    m[m > 4.0] += 1.0
    return m


def one_for_each(m):
    m[m > 4.0] = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    return m


@pytest.mark.parametrize("function", [pairs, rows_and_mask, slice_and_list, whole, added, one_for_each])
def test_one_example_is_numpys_and_a_batch_too_or_refused(function):
    batched = pcbatch.autobatch(function, jit=False)
    np.testing.assert_array_equal(batched.single(MATRIX), function(MATRIX.copy()))
    try:
        found = batched(MATRIX[None])
    except pcbatch.CompileError:
        return
    np.testing.assert_array_equal(found[0], function(MATRIX.copy()))


ROWS = np.arange(8, dtype=np.float32).reshape(2, 4)


def twice_at_one_place(a):
    a[np.array([0, 1, 0])] = np.array([5.0, 6.0, 7.0], np.float32)
    return a


def pairs_in_a_view(a):
    b = a.reshape(2, 2)
    b[[0, 1, 0], [1, 0, 1]] = np.array([5.0, 6.0, 7.0], np.float32)
    return a


def pairs_of_a_lanes(a):
    i = int(a[0]) % 3
    b = a.reshape(2, 2)
    b[[0, i - 1], [1, i - 1]] = np.array([5.0, 6.0], np.float32)
    return a


def pairs_apart(a):
    c = np.zeros((2, 3, 2), np.float32)
    c[[0, 1], :, [1, 0]] = a[:3]
    return c


def from_the_end(a):
    a[[-1, 0]] = np.array([8.0, 9.0], np.float32)
    b = a.reshape(2, 2)
    b[[-1, 0], :1] = 5.0
    return a


def columns_of_a_view(a):
    b = a.reshape(2, 2)
    b[:, [0, 1, 0]] = np.array([5.0, 6.0, 7.0], np.float32)
    c = b.T
    c[[1, -2]] = b[0] + 1.0
    return a


def by_a_matrix(a):
    a[np.array([[0, 1], [2, 3]])] = np.array([8.0, 9.0], np.float32)
    return a


@pytest.mark.parametrize(
    "function",
    [
        twice_at_one_place,
        pairs_in_a_view,
        pairs_of_a_lanes,
        pairs_apart,
        from_the_end,
        columns_of_a_view,
        by_a_matrix,
    ],
    ids=lambda function: function.__name__,
)
def test_a_batch_stores_what_numpy_does(function):
    for jit in (False, True):
        found = pcbatch.autobatch(function, jit=jit)(ROWS)
        np.testing.assert_array_equal(found, [function(row.copy()) for row in ROWS])


def test_a_place_out_of_range_fails_the_lane():
    @pcbatch.autobatch(jit=False)
    def outside(a):
        b = a.reshape(2, 2)
        b[[0, int(a[0])]] = 5.0
        return a

    assert outside.run(ROWS).status.tolist() == [LaneStatus.OK, LaneStatus.INDEX]


def test_one_example_fails_where_numpy_does():
    def outside(m):
        m[np.array([0, 3])] = 1.0
        return m

    def unfit(m):
        m[FIXED[:2]] = 1.0
        return m

    for function in outside, unfit:
        with pytest.raises(IndexError):
            pcbatch.autobatch(function).single(MATRIX)
    with pytest.raises(pcbatch.CompileError, match="a mask of shape"):
        pcbatch.autobatch(unfit).check(MATRIX[None])


def test_a_tape_sees_the_store():
    @pcbatch.autobatch
    def kept(x):
        x[x > 1.0] = 0.0
        return tf.reduce_sum(x * x)

    x = tf.constant([0.5, 2.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = kept.single(x)
    np.testing.assert_allclose(tape.gradient(y, x), [1.0, 0.0, 2.0])
