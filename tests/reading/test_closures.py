"""Functions inside functions that change what is around them, call after call: Python's own answer is right."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch


def counter():
    total = 0.0
    last = None

    def add(e):
        nonlocal total, last
        step = 0.0 if last is None else e - last
        last = e
        if e > 0.0:
            total += e
        return total + step

    return add


def two_calls(xs, n):
    add = counter()
    return add(xs[0]), add(xs[1])


def calls_in_a_loop(xs, n):
    add, x = counter(), 0.0
    for k in range(4):
        x += add(xs[k] - x) * 0.5
    return x


def another_type(xs, n):
    first = 1

    def put():
        nonlocal first
        if n > 2:
            first *= xs[0]

    put()
    put()
    return first * 1.0


def arrays_that_recursion_changes(xs, n):
    best, take, found = np.zeros(4), np.zeros(4), 0.0

    def search(i, value):
        nonlocal found
        if value > found:
            found = value
            best[:] = take
        if i == 4:
            return
        if xs[i] > 1.0:
            take[i] = xs[i]
            search(i + 1, value + xs[i] / (i + n))
            take[i] = 0.0
        search(i + 1, value)

    search(0, 0.0)
    return best, take, found


PROGRAMS = [two_calls, calls_in_a_loop, another_type, arrays_that_recursion_changes]
XS = np.array([[0.5, 1.5, -2.0, 3.0], [2.0, -0.25, 1.25, 1.5], [7.0, 0.0, 4.0, -1.0]])
N = np.array([1, 2, 3])


@pytest.mark.parametrize("options", [{}, {"form": "lockstep"}], ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_as_python_has_it(program, options):
    found = tf.nest.flatten(pcbatch.autobatch(program, **options)(XS, N))
    for lane in range(len(N)):
        wanted = tf.nest.flatten(program(XS[lane], int(N[lane])))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one[lane], other, rtol=1e-6)


class Scale:
    def __init__(self):
        self.__factor = 2.0

    def ways(self, k):
        return lambda x: x * self.__factor, lambda x: x + self.__factor, lambda x: sum(v * k for v in (x,)) - 1.0


@pytest.mark.parametrize("way", Scale().ways(3.0), ids=["times", "plus", "inside"])
def test_lambdas_that_begin_on_one_line_are_told_by_their_code(way):
    def called(x):
        return way(x)

    given = np.array([1.0, 2.0])
    np.testing.assert_allclose(pcbatch.autobatch(called)(given), way(given))


def views_of_a_default(a, y, k):
    def behind(whole=a):
        return whole[2:]

    first = behind()
    first[1] = y
    second = behind()
    a[k] = -2.5
    return a, first, second


@pytest.mark.parametrize("options", [{}, {"form": "lockstep"}], ids=str)
def test_a_default_of_a_function_inside_is_the_array_that_changes(options):
    a, y, k = np.array([[1.0, 2.0, 3.0, 4.0]] * 2), np.array([9.0, 8.0]), np.array([2, 3])
    found = pcbatch.autobatch(views_of_a_default, **options)(a, y, k)
    for lane in range(2):
        for own, theirs in zip(found, views_of_a_default(a[lane].copy(), y[lane], k[lane]), strict=True):
            np.testing.assert_array_equal(np.asarray(own)[lane], theirs)
