"""Two names of one object that a loop makes names of two: the old object stays as it is under the other name."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError

X = np.array([-1.0, 0.5, 1.5, 2.5], np.float32)


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


def one_goes_on(x):
    start = p = Point(x)
    n = 0
    while n < x:
        p = Point(p.x + 1.0, p.y + start.x)
        n += 1
    return p.x + 10 * p.y + 100 * start.x


def the_first_one_goes_on(x):
    start = p = Point(x)
    n = 0
    while n < x:
        start = Point(p.x * 2, 1.0)
        n += 1
    return p.x + 10 * start.x


def changed_behind(x):
    start = p = Point(x)
    n = 0
    while n < x:
        p = Point(p.x + 1.0)
        n += 1
    p.x += 5.0
    return p.x + 10 * start.x


def changed_where_nobody_reads_the_other(x):
    start = p = Point(x)
    s = start.x
    n = 0
    while n < x:
        p = Point(p.x + 1.0)
        n += 1
    p.x += 5.0
    return p.x + s


def with_parts(x):
    start = p = {"a": [x, 1.0], "b": x}
    n = 0
    while n < x:
        p = {"a": [p["a"][0] + 1.0, p["b"]], "b": 2.0}
        n += 1
    return p["a"][0] + 10 * p["a"][1] + 100 * start["a"][0]


def with_a_part_in_common(x):
    start = p = {"a": [x, 1.0], "b": x}
    n = 0
    while n < x:
        p = {**p, "b": 2.0}
        p["a"][0] += 1.0
        n += 1
    return p["a"][0] + 10 * start["a"][0] + p["b"]


def both_go_on(x):
    a = b = Point(x)
    n = 0
    while n < x:
        a = Point(a.x + 1.0)
        b = Point(b.x * 2.0)
        n += 1
    return a.x + 10 * b.x


def changed_in_a_turn(x):
    a = b = Point(x)
    n = 0
    while n < x:
        a.x += 1.0
        b = Point(a.x)
        n += 1
    return a.x + 10 * b.x


def in_a_loop_in_a_loop(x):
    start = p = Point(x)
    n = 0
    while n < x:
        m = 0
        while m < 2:
            p = Point(p.x + 1.0)
            m += 1
        n += 1
    return p.x + start.x


def on_some_paths(x):
    start = p = Point(x)
    n = 0
    while n < x:
        if x > 2.0:
            p = Point(p.x + 1.0)
        n += 1
    return p.x + start.x


def in_a_helper(x):
    def run(p, n):
        while n > 0:
            p = Point(p.x + 1.0, p.y)
            n -= 1
        return p

    q = Point(x)
    r = run(q, int(x) + 1)
    r2 = run(r, 2)
    return q.x + 10 * r.x + 100 * r2.x


def compared_with_the_other(x):
    start = p = Point(x)
    n = 0
    while n < x:
        p = Point(p.x + 1.0)
        n += 1
    return 1.0 if p is start else 2.0


@pytest.mark.parametrize(
    "function",
    [
        one_goes_on,
        the_first_one_goes_on,
        changed_where_nobody_reads_the_other,
        with_parts,
        with_a_part_in_common,
        both_go_on,
        in_a_loop_in_a_loop,
        on_some_paths,
        in_a_helper,
    ],
    ids=lambda function: function.__name__,
)
def test_each_name_is_that_of_its_own_object(function):
    np.testing.assert_allclose(pcbatch.autobatch(function)(X), [function(float(x)) for x in X])


@pytest.mark.parametrize(
    ("function", "code", "line"),
    [
        (changed_behind, "PCB205", "p.x += 5.0"),
        (changed_in_a_turn, "PCB205", "a.x += 1.0"),
        (compared_with_the_other, "PCB113", "p is start"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_differs_where_the_loop_makes_no_turn_is_refused(function, code, line):
    with pytest.raises(CompileError) as caught:
        pcbatch.autobatch(function).check(X)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert line in diagnostic.span.text
