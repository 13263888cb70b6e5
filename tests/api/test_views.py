"""Views that methods of arrays make: a store into one shows in its array in Python, and the other way round."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch

X = np.array([-1.5, 2.5], np.float32)


def stored_into_a_view(x):
    a = np.zeros(4, np.float32)
    m = a.reshape(2, 2)
    m[0, 1] = x
    return a


def stored_into_its_array(x):
    a = np.zeros((2, 2), np.float32)
    r = a.ravel()
    a[0, 1] = x
    return r


def of_an_object(x):
    g = [np.zeros((2, 2), np.float32), x]
    t = g[0].transpose()
    g[0][0, 1] = x
    return t


def in_a_helper(x):
    def stored(v):
        a = np.zeros((2, 1), np.float32)
        b = a.swapaxes(0, 1)
        b[0, 1] = v
        return a

    return stored(x)


def into_a_transposed_one(x):
    m = np.zeros((2, 2), np.float32)
    m.T[0, 1] = x
    return m


class Matrix:
    def __init__(self, rows):
        self.rows = rows

    def transpose(self):
        return Matrix([[self.rows[j][i] for j in range(2)] for i in range(2)])


def renamed(x):
    a = np.zeros(4, np.float32)
    a[1] = x
    a = a.reshape(2, 2)
    a[0, 0] = x + 1.0
    return a


def not_read_again(x):
    a = np.zeros(4, np.float32)
    for i in range(3):
        a[i] = x + i
        x = x + a.reshape(2, 2)[0, 1]
    m = a.reshape(2, 2)
    m[1, 1] = x
    return m


def copied(x):
    a = np.zeros((2, 2), np.float32)
    b, c = a.ravel().copy(), a.flatten()
    b[0], c[1], a[1, 1] = x, x + 1.0, x + 2.0
    return a, b, c


def of_ones_own(x):
    m = Matrix([[x, x + 1.0], [1.0, 2.0]])
    t = m.transpose()
    t.rows[0][1] = 9.0
    return m.rows[1], m.rows[0], t.rows[0]


@pytest.mark.parametrize(
    "function",
    [
        stored_into_a_view,
        stored_into_its_array,
        of_an_object,
        in_a_helper,
        into_a_transposed_one,
        renamed,
        not_read_again,
        copied,
        of_ones_own,
    ],
)
def test_views_share_their_elements(function):
    batched = pcbatch.autobatch(function)
    given = _leaves(batched(X))
    for lane, x in enumerate(X):
        for one, two, three in zip(given, _leaves(function(x)), _leaves(batched.single(x)), strict=True):
            np.testing.assert_array_equal(one[lane], two)
            np.testing.assert_array_equal(three, two)


def _leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in _leaves(each)]
    return [np.asarray(value)]
