"""Views of arrays that are known when the function is read, `np.zeros(3)`, and stores into these, judged by Python."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch

N = np.array([0, 1, 4, 9])


def without_a_loop(n):
    base = np.zeros(6).reshape(3, 2)
    row = base[1]
    row[1] += 5
    return base.sum(), row[1]


def a_row_before_the_loop(n):
    base = np.zeros((3, 2))
    row = base[1]
    while n > 0:
        base[n % 3, 0] += 1
        n -= 1
    row[1] += 5
    return base.sum(), base[1, 0], row[0]


def a_row_of_a_reshaped_one(n):
    base = np.zeros(6).reshape(3, 2)
    row = base[1]
    while n > 0:
        base[n % 3, 0] += 1
        n -= 1
    return base.sum(), base[1, 0], row[0]


def reshaped(n):
    base = np.zeros(6)
    b = base.reshape(3, 2)
    while n > 0:
        b[n % 3, 0] += 1
        n -= 1
    return base.sum(), b[1, 0]


def on_one_path(n):
    base = np.zeros(6)
    b = base.reshape(3, 2)
    if n > 3:
        b[1, 0] = 7
    base[5] += 1
    return base.sum(), b[1, 0], b[2, 1]


def one_of_two(n):
    base = np.zeros(6)
    b = base[2:4]
    c = base if n > 3 else np.ones(6)
    c[2] += 5
    return base.sum(), b[0], c.sum()


def moved_in_the_loop(n):
    base = np.zeros(6)
    b = base[2:4]
    for k in range(3):
        if n > k:
            b = base[k : k + 2]
            b[0] += 1
    return base.sum(), b[0], base[2]


def one_of_a_list(n):
    rows = [np.zeros(2), np.ones(2)]
    first = rows[0]
    while n > 0:
        rows[n % 2][0] += 1
        n -= 1
    first[1] = 9
    return rows[0][0], rows[0][1], first[0], rows[1][0]


class Holder:
    def __init__(self):
        self.a = np.zeros(3)


def of_an_object(n):
    c = Holder()
    v = c.a
    w = c.a[1:]
    while n > 0:
        c.a[n % 3] += 1
        n -= 1
    v[0] += 10
    w[0] += 100
    return c.a[0], c.a[1], v[2], w[1]


def of_a_dict(n):
    d = {"x": np.zeros(3)}
    v = d["x"]
    for k in range(n):
        v[k % 3] += 1
    return d["x"][0], d["x"][1], v[2]


def in_a_tuple(n):
    a = np.arange(4)
    t = (a, a[::2])
    while n > 0:
        a[n % 4] += n
        n -= 1
    return t[0].sum(), t[1].sum()


def by_a_function(n):
    a = np.zeros(4)

    def add(k):
        a[k % 4] += 1

    v = a[1:3]
    while n > 0:
        add(n)
        n -= 1
    return a.sum(), v.sum()


def results(found):
    return np.array([np.asarray(each, float) for each in found])


@pytest.mark.parametrize(
    "program",
    [
        without_a_loop,
        a_row_before_the_loop,
        a_row_of_a_reshaped_one,
        reshaped,
        on_one_path,
        moved_in_the_loop,
        of_an_object,
        of_a_dict,
        in_a_tuple,
        by_a_function,
    ],
    ids=lambda program: program.__name__,
)
def test_all_names_see_a_store(program):
    wanted = np.stack([results(program(int(n))) for n in N], axis=1)
    np.testing.assert_allclose(results(pcbatch.autobatch(program)(N)), wanted)


@pytest.mark.parametrize("program", [one_of_two, one_of_a_list], ids=lambda program: program.__name__)
def test_a_store_into_one_of_several_is_refused(program):
    with pytest.raises(pcbatch.CompileError, match="PCB205"):
        pcbatch.autobatch(program).check(N)
