"""Arrays that a recursion stores into: handed back under all their names, or refused where it has them twice."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import CompileError

N = np.array([0, 1, 3])
X = np.arange(9.0).reshape(3, 3)


def down(a, k):
    if k == 0:
        return a
    a[1] += k
    return down(a, k - 1)


def new_array(n, x):
    a = np.zeros(3)
    b = down(a, n)
    b[0] += 1
    return a[0], b[1]


def new_array_given_and_kept(n, x):
    a = np.zeros(3)
    b = down(a, n)
    a[0] += 1
    return b[0], b is a


def part_of_a_new_array(n, x):
    a = np.zeros(4)
    c = down(a[1:], n)
    c[0] += 1
    return a[1], a[2]


def argument(n, x):
    b = down(x, n)
    b[0] += 1
    return x[0], b[1]


def changed_by_the_caller_too(n, x):
    def go(a, k):
        a[1] += k
        if k <= 0:
            return a
        c = go(a, k - 1)
        c[2] += 1
        return c

    a = np.zeros(3)
    b = go(a, n)
    b[0] += 1
    return a[0], b[1], a[2]


def in_a_list(n, x):
    def go(a, k):
        if k <= 0:
            return [a]
        a[1] += k
        found = go(a, k - 1)
        found.append(a)
        return found

    a = np.zeros(3)
    b = go(a, 3)
    b[0][0] += 1
    return a[0], b[1][0]


PROGRAMS = [new_array, new_array_given_and_kept, part_of_a_new_array, argument, changed_by_the_caller_too, in_a_list]


@pytest.mark.parametrize("form", ["auto", pytest.param("lockstep", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python_has_it(program, form):
    found = pcbatch.autobatch(program, form=form)(N, X)
    for lane, n in enumerate(N):
        own = tf.nest.map_structure(lambda each, lane=lane: each[lane].numpy(), found)
        assert own == tuple(program(int(n), X[lane].copy()))


def first_and_second(a, b, k):
    if k == 0:
        return 0.0
    a[1] += k
    return b[0] + first_and_second(a, b, k - 1)


class Holder:
    def __init__(self):
        self.m = np.zeros(3)


def of_holder(o, m, k):
    if k == 0:
        return 0.0
    o.m[1] += k
    return m[1] + of_holder(o, m, k - 1)


def of_list(xs, k):
    if k == 0:
        return xs[1]
    xs[0][1] += k
    return of_list(xs, k - 1)


def the_same_twice(n, x):
    a = np.zeros(3)
    return first_and_second(a, a, n)


def an_argument_twice(n, x):
    return first_and_second(x, x, n)


def an_array_and_its_part(n, x):
    return first_and_second(x, x[1:], n)


def a_part_and_the_new_array(n, x):
    a = np.zeros(3)
    return first_and_second(a[1:], a, n)


def an_object_and_its_array(n, x):
    o = Holder()
    return of_holder(o, o.m, n)


def twice_in_a_list(n, x):
    a = np.zeros(3)
    return of_list([a, a], n)


def with_a_copy(n, x):
    """As the refusal says."""
    a = np.zeros(3)
    return first_and_second(a, a.copy(), n), a[1]


TWICE = [the_same_twice, an_argument_twice, an_array_and_its_part, a_part_and_the_new_array, an_object_and_its_array]
TWICE += [twice_in_a_list]


@pytest.mark.parametrize("program", TWICE, ids=lambda program: program.__name__)
def test_an_array_that_is_given_twice_is_refused(program):
    with pytest.raises(CompileError, match="PCB205") as caught:
        pcbatch.autobatch(program)(N, X)
    assert "a.copy()" in caught.value.diagnostics[0].help


def test_the_advice_works():
    test_as_python_has_it(with_a_copy, "auto")
