"""What is refused of constructors that branch: what Python would show elsewhere, and ways of their own."""

from __future__ import annotations

import dataclasses

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


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (keeps_and_changes_itself, "PCB205"),
        (changes_what_is_kept, "PCB205"),
        (changes_by_a_method, "PCB205"),
        (changes_one_of_two_parts, "PCB205"),
        (changes_the_default, "PCB204"),
        (changes_an_argument, "PCB204"),
        (changes_what_a_dataclass_keeps, "PCB205"),
        (changes_what_a_dataclass_is_given, "PCB205"),
    ],
)
def test_what_python_would_show_under_another_name_is_refused(function, code):
    with pytest.raises(CompileError, match=code):
        pcbatch.autobatch(function).check(X)


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
    least: dataclasses.InitVar[float]

    def __post_init__(self, least):
        if self.v < least:
            self.v = least


def by_another_name(x):
    kind = Scaled
    return kind(x).v


def by_a_new_of_its_own(x):
    return Made(x).v


def with_what_is_no_field(x):
    return Given(x, 0.0).v


@pytest.mark.parametrize("function", [by_another_name, by_a_new_of_its_own, with_what_is_no_field])
def test_other_constructors_are_refused_with_what_to_write(function):
    with pytest.raises(CompileError, match="PCB401") as caught:
        pcbatch.autobatch(function).check(X)
    (diagnostic,) = caught.value.diagnostics
    assert "compute before what the object is given" in diagnostic.help
