"""Objects with a part in common, `[Pair(x, 2.0), Pair(1.0, x)]`: a method changes the one at a lane's number."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch

X = np.array([-1.0, 2.0, 3.0], np.float32)


class Pair:
    def __init__(self, a, b):
        self.a = a
        self.b = b

    def total(self):
        return self.a * self.b

    def settle(self):
        if self.a > 0.0:
            self.b = self.a

    def both(self, v):
        if v > 0.0:
            self.a.settle()
            self.b = v
        return self.b

    def deep(self, v):
        if v > 0.0:
            self.a[0] += v
        return v


def numbers(x):
    pair = [Pair(x, 2.0), Pair(1.0, x)]
    i = 1 if x > 2.5 else 0
    pair[i].settle()
    return pair[0].total() * 10.0 + pair[1].total()


def names(x):
    p, q = Pair(x, 2.0), Pair(1.0, x)
    pair = [p, q]
    pair[1 if x > 2.5 else 0].settle()
    return pair[0].total() + pair[1].total() * 10.0


def parts_of_their_own(x):
    pair = [Pair(Pair(x, 1.0), 2.0), Pair(Pair(x, 3.0), x)]
    y = pair[1 if x > 2.5 else 0].both(x)
    return pair[0].a.b * 10.0 + pair[1].a.b + y + pair[1].b


def lists_of_their_own(x):
    pair = [Pair([x, 1.0], 2.0), Pair([x, 1.0], x)]
    y = pair[1 if x > 2.5 else 0].deep(x)
    return pair[0].a[0] * 10.0 + pair[1].a[0] + y


def in_turns(x):
    many, total = [Pair(x, float(k)) for k in range(3)], 0.0
    for i in range(3):
        many[(i + 1) % 3].settle()
        many[i].b = many[(i + 2) % 3].a
        total += many[i].total()
    return total


def in_lists(x):
    grid = [[Pair(x, 1.0), Pair(x, 2.0)], [Pair(x, 3.0), Pair(1.0, x)]]
    i = 1 if x > 2.5 else 0
    grid[i][1 - i].settle()
    return grid[0][0].b + grid[0][1].b * 10.0 + grid[1][0].b * 100.0 + grid[1][1].b * 1000.0


def one_of_both(x):
    one = Pair(x, 1.0)
    pair = [Pair(one, 2.0), Pair(one, x)]
    y = pair[1 if x > 2.5 else 0].both(x)
    return pair[0].a.b + y


def a_list_of_both(x):
    xs = [x, 1.0]
    pair = [Pair(xs, 2.0), Pair(xs, x)]
    y = pair[1 if x > 2.5 else 0].deep(x)
    return pair[0].a[0] + y


def twice(x):
    many = [Pair(x, float(k)) for k in range(3)]
    many[1] = many[0]
    many[1 if x > 2.5 else 0].settle()
    return many[0].b + many[1].b


def by_another_name(x):
    p, q = Pair(x, 2.0), Pair(1.0, x)
    pair = [p, q]
    pair[1 if x > 2.5 else 0].settle()
    return pair[1].total() + p.b


def in_any_order(x):
    a, b, c = Pair(x, 1.0), Pair(x, 2.0), Pair(x, 3.0)
    p = a if x > 1.0 else b
    q = c if x > 0.0 else a
    for one in (p if x > 2.5 else q, q if x > 1.5 else p):
        one.b += 1.0
    return a.b + 10.0 * b.b + 100.0 * c.b


EVERY = [
    numbers,
    names,
    parts_of_their_own,
    lists_of_their_own,
    in_turns,
    in_lists,
    one_of_both,
    a_list_of_both,
    twice,
    by_another_name,
    in_any_order,
]


@pytest.mark.parametrize("function", EVERY)
def test_the_one_that_is_meant_changes(function):
    batched = pcbatch.autobatch(function)
    wanted = [function(float(x)) for x in X]
    for size in (0, 1, 3):
        np.testing.assert_allclose(batched(X[:size]), wanted[:size], rtol=1e-6)
    np.testing.assert_allclose([batched.single(x) for x in X], wanted, rtol=1e-6)
