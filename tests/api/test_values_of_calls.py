"""Arrays that batched functions are given are values in `f.single`, too: no call changes its caller's."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch


@pcbatch.autobatch
def in_place(a):
    a += 1
    return a


@pcbatch.autobatch
def by_slice(a):
    a[0:2] = 9
    return a


@pcbatch.autobatch
def of_a_name(a):
    b = a
    b *= 2
    return b[0]


def callee_adds(a):
    return in_place(a), a


def callee_stores_a_slice(a):
    return by_slice(a), a


def callee_names_it(a):
    return of_a_name(a), a


@pytest.mark.parametrize(
    "function",
    [
        callee_adds,
        callee_stores_a_slice,
        callee_names_it,
    ],
)
def test_single_is_as_a_batch(function):
    batched, a = pcbatch.autobatch(function), np.array([1, 2, 3, 4], np.int32)
    found, wanted = batched.single(a), batched(a[None])
    for one, lanes in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(lanes)[0])
    np.testing.assert_array_equal(a, [1, 2, 3, 4])
