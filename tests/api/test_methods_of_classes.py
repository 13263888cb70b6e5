"""Static methods and methods of classes that branch or recurse, by an object, by the class and in helpers."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch
from pcbatch import LaneStatus

X = np.array([1.0, 2.0, 3.0], np.float32)


class Account:
    rate = 0.25

    def __init__(self, money):
        self.money = money

    def taken(self, x):
        if x < self.money:
            self.money -= x
            return x
        return 0.0

    def left(self, x):
        if x < self.money:
            return self.money - x
        return 0.0

    @staticmethod
    def fee(x, /, rate=2.0, *more, least=1.0):
        if x > 1.5:
            return rate * x + least
        return x + sum(more)

    @staticmethod
    def halved(x):
        if x < 1.0:
            return x
        return Account.halved(0.5 * x) + 1.0

    @staticmethod
    def checked(x):
        if x > 2.5:
            raise ValueError("too much")

    @staticmethod
    def first(xs, x):
        if x > 2.0:
            xs[0] = x
        return xs[0]

    @staticmethod
    def row(xs, x):
        if x > 2.0:
            return xs
        return [x, x]

    @classmethod
    def taxed(cls, x):
        if x > 1.5:
            return x * cls.rate
        return x

    @classmethod
    def fourth(cls, x):
        if x < 1.0:
            return x
        return cls.fourth(0.25 * x) + cls.taxed(x)

    @classmethod
    def opened(cls, x):
        if x > 1.5:
            return cls(x)
        return cls(1.0)


class Savings(Account):
    rate = 0.5

    @staticmethod
    def halved(x):
        if x < 2.0:
            return 7.0
        return x


KEPT = Account(2.0)


def helped(a, x):
    return a.fee(x) + Account.taxed(x)


@pcbatch.autobatch
def counted_down(x, n=3):
    a = Account(x)
    if n <= 0:
        return a.taxed(x)
    return counted_down(a.taxed(0.5 * x), n - 1) + a.fee(x)


def by_object(x):
    a = Account(x)
    return a.fee(x) + a.fee(x, 3.0, 4.0, 5.0, least=x) + a.fee(1.0, rate=x) + a.taxed(a.fee(x)) + a.opened(x).money


def by_class(x):
    return Account.fee(x) + Account.taxed(x) + Account.opened(x).money + Account.halved(4.0 * x)


def by_both(x):
    a = Account(x)
    return a.fee(x) + Account.fee(x + 1.0) + a.taxed(x) + Account.taxed(x + 1.0)


def recursion(x):
    a = Account(x)
    return a.halved(4.0 * x) + a.fourth(4.0 * x)


def of_a_captured_object(x):
    return KEPT.fee(x) + KEPT.taxed(x) + KEPT.halved(4.0 * x) + KEPT.fourth(4.0 * x)


def in_helpers(x):
    return helped(Account(x), x) + helped(KEPT, x)


def in_a_function(x):
    a = Account(x)

    def own(v):
        return a.taxed(v) + 1.0

    return own(x) + own(2.0 * x)


def of_what_is_no_variable(x):
    p = [Account(x), (Account(x), 1.0)]
    y = Account(x).fee(x) + (Account(x) if x > 1.0 else Account(1.0)).taxed(x)
    return y + p[1][0].fee(x) + p[0].opened(x).opened(x).money


def inherited(x):
    a = Savings(x)
    return a.fee(x) + a.taxed(x) + 10.0 * a.halved(x) + a.fourth(x)


def of_elements(x):
    accounts = [Account(x), Account(2.0 * x)]
    y = sum(a.fee(a.money) for a in accounts) + max([x, 2.0, -x], key=lambda v: accounts[1].taxed(v))
    return y + accounts[int(x) % 2].taxed(x)


def by_its_class(x):
    """A method that changes its object is part of the program; the same by its class is another function."""
    a = Account(x)
    y = a.left(0.5) + a.taken(0.5)
    return y + Account.left(a, 0.25)


def of_two_classes(x):
    y = 0.0
    for each in [Account(x), Savings(x)]:
        y += each.taxed(x)
    return y


def changes_an_argument(x):
    a, xs = Account(x), [1.0, x]
    return a.first(xs, x) + xs[0]


def gives_an_argument(x):
    a, xs = Account(x), [1.0, x]
    ys = a.row(xs, x)
    xs[0] = 9.0
    return ys[0]


@pytest.mark.parametrize(
    "function",
    [
        by_object,
        by_class,
        by_both,
        recursion,
        of_a_captured_object,
        in_helpers,
        in_a_function,
        of_what_is_no_variable,
        inherited,
        of_elements,
        by_its_class,
        of_two_classes,
        changes_an_argument,
        gives_an_argument,
    ],
    ids=lambda function: function.__name__,
)
def test_methods_of_classes_branch(function):
    batched = pcbatch.autobatch(function)
    for backend in ("tensorflow", "reference"):
        given = batched.options(backend=backend)(X)
        np.testing.assert_allclose(given, [function(float(x)) for x in X], rtol=1e-6)
    np.testing.assert_allclose([batched.single(x) for x in X], given, rtol=1e-6)


def test_a_batched_function_calls_itself_with_what_they_give():
    np.testing.assert_allclose(counted_down(X), [counted_down.single(x) for x in X])


def test_a_class_in_a_function_is_found_by_its_objects():
    class Own:
        def __init__(self, x):
            self.x = x

        @staticmethod
        def fee(x):
            if x > 1.5:
                return 2.0 * x
            return x

    def charged(x):
        own = [Own(x)]
        return own[0].fee(x)

    np.testing.assert_allclose(pcbatch.autobatch(charged)(X), [1.0, 4.0, 6.0])


def test_what_gives_nothing_may_fail_lanes():
    @pcbatch.autobatch
    def asked(x):
        a = Account(x)
        a.checked(x)
        return a.money

    run = asked.run(X)
    np.testing.assert_array_equal(run.status, [LaneStatus.OK, LaneStatus.OK, LaneStatus.RAISED])
    assert "too much" in str(run.errors)


def test_a_class_that_gets_another_static_method_is_compiled_anew(monkeypatch):
    batched = pcbatch.autobatch(by_object)
    before = np.asarray(batched(X))

    def fee(x, rate=2.0, *more, least=1.0):
        if x > 2.0:
            return 100.0
        return 0.0

    monkeypatch.setattr(Account, "fee", staticmethod(fee))
    after = np.asarray(batched(X))
    np.testing.assert_allclose(after, [by_object(float(x)) for x in X])
    assert not np.allclose(before, after)
