"""Constructors that change what others see, and ways of their own to make objects."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import pcbatch
from pcbatch.errors import CompileError
from tests.api.test_constructors import Data, Holder, Logged, Marked, Pair, Scaled, Telling, X


def keeps_and_changes_itself(x):
    xs = [1.0, 2.0]
    marked = Marked(xs, x)
    return xs[0] + marked.xs[0]


def changes_what_is_kept(x):
    xs = [1.0, 2.0]
    holder = Holder(xs, x)
    xs[0] = x
    return holder.xs[0] + holder.v


def changes_by_a_method(x):
    xs = [1.0, 2.0]
    holder = Holder(xs, x)
    holder.put(x)
    return xs[0]


def changes_one_of_two_parts(x):
    one = Scaled(1.0)
    pair = Pair(one, x)
    pair.a.v = 9.0
    return pair.b.v


def changes_the_default(x):
    logged = Logged(x)
    logged.log[0] = x
    return Logged(x).log[0]


def changes_an_argument(x):
    one = Scaled(x)
    return Telling(x, one).v + one.v


def changes_what_a_dataclass_keeps(x):
    xs = [x, 1.0]
    one = Data(x, xs)
    xs[1] = 5.0
    return one.xs[1]


def changes_what_a_dataclass_is_given(x):
    xs = [x, 1.0]
    return Data(x, xs).v + xs[0]


SEEN = [
    keeps_and_changes_itself,
    changes_what_is_kept,
    changes_by_a_method,
    changes_one_of_two_parts,
    changes_an_argument,
    changes_what_a_dataclass_keeps,
    changes_what_a_dataclass_is_given,
]


@pytest.mark.parametrize("function", SEEN, ids=lambda each: each.__name__)
def test_a_change_is_seen_under_another_name(function):
    np.testing.assert_allclose(pcbatch.autobatch(function)(X), [function(float(x)) for x in X], rtol=1e-6)


def test_a_change_of_what_stands_outside_is_refused():
    with pytest.raises(CompileError, match="PCB204"):
        pcbatch.autobatch(changes_the_default).check(X)


class Made:
    def __new__(cls, v):
        return super().__new__(cls)

    def __init__(self, v):
        self.v = v
        if v < 0.0:
            self.v = 0.0


@dataclasses.dataclass
class Given:
    v: float
    least: dataclasses.InitVar[float] = -1.0

    def __post_init__(self, least):
        if self.v < least:
            self.v = least


def by_another_name(x):
    kind = Scaled
    return kind(x).v


def by_a_new_of_its_own(x):
    return Made(x).v


def with_what_is_no_field(x):
    return Given(x, least=0.5).v + Given(x, 2 * x).v + Given(x).v


@pytest.mark.parametrize("function", [by_another_name, with_what_is_no_field], ids=lambda each: each.__name__)
def test_other_ways_to_make_an_object(function):
    np.testing.assert_allclose(pcbatch.autobatch(function)(X), [function(float(x)) for x in X], rtol=1e-6)


def test_a_constructor_that_is_not_read_says_what_to_write():
    with pytest.raises(CompileError, match="PCB401") as caught:
        pcbatch.autobatch(by_a_new_of_its_own).check(X)
    (diagnostic,) = caught.value.diagnostics
    assert "compute before what the object is given" in diagnostic.help
