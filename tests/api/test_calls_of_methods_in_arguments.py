"""Methods whose arguments call methods: the object is what it is when the method runs, as in Python."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch

X = np.array([1.0, 2.0, 3.0], np.float32)


class Tank:
    def __init__(self, level):
        self.level = level
        self.marks = [level, 2.0, 3.0]

    def above(self, x):
        return x + self.level

    def capped(self, x):
        if x < self.level:
            return x
        return self.level

    def drawn(self, x):
        if x < self.level:
            self.level -= 1.0
            return x
        return self.level

    def filled(self, x):
        self.level += x
        return x

    def marked(self, x):
        if x > 1.5:
            self.marks = [x, x, x]
            return x
        return self.level

    @staticmethod
    def doubled(x):
        return 2.0 * x


class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def swapped(self, x):
        if x > 1.5:
            self.left, self.right = Tank(9.0), Tank(8.0)
        return x


def helped(t, x):
    return t.above(t.capped(x))


def nested(x):
    t = Tank(3.0)
    return t.above(t.capped(x)) + t.capped(t.above(t.capped(x)) - 1.0) + t.doubled(t.capped(x)) + helped(t, x)


def of_several(x):
    tanks = [Tank(x), Tank(2.0)]
    i = int(x) % 2
    return tanks[i].above(tanks[0].capped(x)) + tanks[1].above(tanks[i].capped(x))


def after_changes(x):
    t, u = Tank(3.0), Tank(x)
    y = t.above(t.drawn(x)) + 10.0 * t.level + u.drawn(u.drawn(x + 1.0) - 1.0)
    return y + t.above(t.filled(x)) + u.above(u.marked(x)) + sum(u.marks)


def of_lists(x):
    xs = [x, 2.0, 5.0]
    xs.append(xs.pop() + xs.pop())
    return xs.index(xs.pop() - 7.0 + x), xs.count(xs.pop())


def replaced(x):
    """The method is the old object's, which Python has looked up before."""
    p = Pair(Tank(x), Tank(2.0))
    return p.left.above(p.swapped(x)) + p.left.level


def assigned(x):
    t, u = Tank(x), Tank(2.0)
    return t.above((t := u).drawn(x)) + t.level


@pytest.mark.parametrize(
    "function",
    [nested, of_several, after_changes, of_lists, replaced, assigned],
    ids=lambda function: function.__name__,
)
def test_arguments_call_methods(function):
    batched = pcbatch.autobatch(function)
    for backend in ("tensorflow", "reference"):
        given = _columns(batched.options(backend=backend)(X))
        for lane, x in enumerate(X):
            expected = _columns(function(float(x)))
            np.testing.assert_allclose([each[lane] for each in given], expected, rtol=1e-6)
            np.testing.assert_allclose(_columns(batched.single(x)), expected, rtol=1e-6)


def _columns(value):
    return [np.asarray(each) for each in (value if isinstance(value, tuple) else (value,))]
