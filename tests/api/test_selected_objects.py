"""Objects that stand for one of several, and objects that code of the user's changes where nobody calls it."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import pcbatch
from pcbatch.errors import CompileError

X = np.array([1.0, 2.0, 3.0], np.float32)


class Deck:
    def __init__(self, total=0.0):
        self.total = total
        self.rows = [0.0, 5.0]

    def put_get(self, x):
        self.rows[0] += x
        return self.rows[0]

    def __add__(self, x):
        self.total += x
        return self.total

    @property
    def counted(self):
        self.total += 1.0
        return self.total

    def __enter__(self):
        self.total += 1.0
        return self

    def __exit__(self, *args):
        self.total += 1.0


def changed(d, x):
    d.rows[0] += x
    return d.total


def at_a_lanes_number(x):
    ds = [Deck(), Deck()]
    i = int(x) % 2
    y = ds[i].put_get(x) + 10.0 * ds[i].put_get(1.0)
    return y + ds[0].rows[0]


def in_a_loop(x):
    ds = [Deck() for _ in range(3)]
    y = 0.0
    for k in range(int(x) + 2):
        y += ds[(k + int(x)) % 3].put_get(x + k)
    return y + ds[1].rows[0]


def a_part_of_one(x):
    ds = [[Deck()], [Deck()]]
    i = int(x) % 2
    y = ds[i][0].put_get(x)
    return y + ds[0][0].rows[0]


def in_a_condition(x):
    ds = [Deck(), Deck()]
    i = int(x) % 2
    if ds[i].put_get(x) > 1.5:
        return ds[0].rows[0]
    return 10.0 + ds[0].rows[0]


def one_that_nobody_else_has(x):
    return [Deck(), Deck(x)][int(x) % 2].put_get(x)


def kept_besides(x):
    ds = [Deck(), Deck()]
    rows = ds[0].rows
    y = ds[int(x) % 2].put_get(x)
    return y + rows[0]


def handed_to_a_helper(x):
    ds = [Deck(), Deck()]
    y = changed(ds[int(x) % 2], x)
    return y + ds[0].rows[0]


def chosen(x):
    d, e = Deck(), Deck()
    y = (d if x > 1.5 else e).put_get(x)
    return y + d.rows[0]


def the_first_in_an_order(x):
    ds = [Deck(x), Deck(2.0)]
    y = sorted(ds, key=lambda d: d.total)[0].put_get(x)
    return y + ds[0].rows[0]


def a_method_that_is_kept(x):
    ds = [Deck(), Deck()]
    put_get = ds[int(x) % 2].put_get
    y = put_get(x)
    return y + ds[0].rows[0]


def a_partial(x):
    ds = [Deck(), Deck()]
    put_get = functools.partial(ds[int(x) % 2].put_get, x)
    y = put_get()
    return y + ds[0].rows[0]


def a_method_that_is_kept_in_a_loop(x):
    d = Deck()
    y = 0.0
    while y < 5.0:
        put_get = d.put_get
        y += put_get(x)
    return y + d.rows[0]


def an_operator_in_a_loop(x):
    d = Deck()
    y = 0.0
    while y < 5.0:
        y += d + x
    return y + d.total


def a_property_in_a_loop(x):
    d = Deck()
    y = 0.0
    while y < 5.0:
        y += d.counted * x
    return y + d.total


def a_partial_of_a_partial(x):
    def given(a, b, *, c=1.0):
        return a + 10.0 * b + 100.0 * c

    one = functools.partial(given, x, c=x)
    other = functools.partial(one, c=2.0)
    return one(3.0) + other(b=1.0)


@pytest.mark.parametrize(
    "function",
    [
        at_a_lanes_number,
        in_a_loop,
        a_part_of_one,
        in_a_condition,
        one_that_nobody_else_has,
        kept_besides,
        handed_to_a_helper,
        chosen,
        the_first_in_an_order,
        a_method_that_is_kept,
        a_partial,
        a_partial_of_a_partial,
        a_method_that_is_kept_in_a_loop,
        an_operator_in_a_loop,
        a_property_in_a_loop,
    ],
    ids=lambda function: function.__name__,
)
def test_what_a_method_changes_in_one_of_several_is_seen(function):
    np.testing.assert_array_equal(pcbatch.autobatch(function)(X), [function(float(x)) for x in X])


DECKS = [Deck(), Deck()]


def a_global_one(x):
    return DECKS[int(x) % 2].put_get(x)


def a_with_in_a_loop(x):
    d = Deck()
    y = 0.0
    while y < 5.0:
        with d as e:
            y += e.total
    return y + d.total


REFUSED = {
    a_global_one: ("PCB204", "stands outside of the function, for everybody", "self.rows[0] += x"),
    a_with_in_a_loop: ("PCB107", "no context manager of a library's", "with d"),
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_what_is_refused_is_refused_where_it_stands(function):
    code, message, line = REFUSED[function]
    with pytest.raises(CompileError) as caught:
        pcbatch.autobatch(function)(X)
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.code == code
    assert message in diagnostic.message
    assert line in diagnostic.span.text


class Square:
    def __init__(self, x):
        self.x = x

    @functools.cached_property
    def area(self):
        return self.x * self.x


def computed_in_a_loop(x):
    square = Square(x)
    y = 0.0
    while y < 5.0:
        y += square.area
    return y + square.area


def computed_on_a_path(x):
    square = Square(x)
    y = square.area if x > 1.5 else 2.0
    return y + square.area


def changed_behind_it(x):
    square = Square(x)
    y = square.area
    square.x = 10.0
    return y + square.area


@pytest.mark.parametrize("function", [computed_in_a_loop, computed_on_a_path, changed_behind_it])
def test_a_property_may_keep_what_it_has_computed(function):
    np.testing.assert_array_equal(pcbatch.autobatch(function)(X), [function(float(x)) for x in X])


def changed_on_the_way(x):
    square = Square(x)
    y = 0.0
    while y < 5.0:
        y += square.area
        square.x += 1.0
    return y


def test_a_property_that_may_have_kept_something_else_is_refused():
    with pytest.raises(CompileError, match=r"PCB201: `square\.area` may be read before it is assigned"):
        pcbatch.autobatch(changed_on_the_way).check(X)
