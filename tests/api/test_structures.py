"""Structured arguments and results: dicts, lists, named tuples, dataclasses and None, and `in_axes` inside them."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError

X = np.array([1.0, 2.0, 3.0], np.float32)
N = np.array([0, 1, 3], np.int32)


class Point(NamedTuple):
    """A named tuple."""

    x: Any
    n: Any


@dataclasses.dataclass
class Pair:
    """A dataclass."""

    first: Any
    second: Any = None


def everything(state):
    """Every kind of structure goes in and comes out."""
    while state["point"].n > 0:
        point = state["point"]._replace(x=state["point"].x * 2.0, n=state["point"].n - 1)
        state = {**state, "point": point, "pair": dataclasses.replace(state["pair"], first=state["list"][1])}
    return state


def argument(lane=None):
    """A batch, or one example of it."""
    x, n = (X, N) if lane is None else (X[lane], N[lane])
    return {"point": Point(x, n), "list": [x, x + 1], "pair": Pair(x), "empty": ({}, [], None) if lane is None else ()}


@pytest.mark.parametrize("options", [{"jit": False}, {"backend": "reference"}], ids=str)
def test_structures_come_back_as_they_went_in(options):
    batched = pcbatch.autobatch(everything, **options)
    given = {**argument(), "empty": ((), None)}
    result = batched(given)
    assert list(result) == list(given)
    assert type(result["point"]) is Point
    assert type(result["list"]) is list
    assert type(result["pair"]) is Pair
    assert result["pair"].second is None
    assert result["empty"] == ((), None)
    for lane in range(3):
        single = batched.single({**argument(lane), "empty": ((), None)})
        np.testing.assert_array_equal(single["point"].x, result["point"].x[lane])
        np.testing.assert_array_equal(single["pair"].first, result["pair"].first[lane])
        np.testing.assert_array_equal(single["list"][1], result["list"][1][lane])


def test_lists_of_numbers_are_arrays_and_lists_of_arrays_structures():
    @pcbatch.autobatch(jit=False)
    def second(items):
        return items[1]

    np.testing.assert_array_equal(second([[1, 2], [3, 4]]), [2, 4])
    np.testing.assert_array_equal(second([np.array([1, 2]), np.array([3.5, 4.5])]), [3.5, 4.5])
    assert second.single([np.int32(1), np.float32(3.5)]).numpy() == 3.5


# -- in_axes -----------------------------------------------------------------------------------------------------------


def scaled(p, n):
    while n > 0:
        p = {**p, "x": p["x"] * p["w"][0] + p["w"][1]}
        n -= 1
    return p["x"]


@pytest.mark.parametrize(
    "axes",
    [
        {"p": {"x": 0, "w": None}},
        {"p": {"x": 0, "w": (None, None)}},
        ({"x": 0, "w": [None, None]}, 0),
    ],
    ids=str,
)
def test_leaves_without_a_lane_axis(axes):
    batched = pcbatch.autobatch(scaled, in_axes=axes, jit=False)
    result = batched({"x": X, "w": (2.0, np.float32(1.0))}, N)
    np.testing.assert_array_equal(result, [1.0, 5.0, 31.0])
    assert batched.single({"x": X[1], "w": (2.0, np.float32(1.0))}, N[1]).numpy() == 5.0


def test_records_take_axes_of_their_own_class_or_by_field():
    def moved(point, pair):
        return point.x + pair.first * pair.second

    for point_axes in (Point(0, None), {"x": 0, "n": None}):
        batched = pcbatch.autobatch(moved, in_axes=(point_axes, Pair(None, 0)), jit=False)
        np.testing.assert_array_equal(batched(Point(X, 7), Pair(2.0, X)), 3 * X)


def test_an_argument_whose_leaves_are_all_shared_stays_shared():
    def total(x, weights):
        return tf.reduce_sum(weights["w"]) * x + weights["b"]

    batched = pcbatch.autobatch(total, in_axes={"weights": {"w": None, "b": None}}, jit=False)
    weights = {"w": np.ones(5, np.float32), "b": 1.0}
    np.testing.assert_array_equal(batched(X, weights), 5 * X + 1)
    assert "shared=('weights', 'weights_1')" in batched.source()


def test_all_none_needs_the_number_of_lanes():
    batched = pcbatch.autobatch(scaled, in_axes=({"x": None, "w": None}, None), jit=False)
    with pytest.raises(UsageError, match="PCB514"):
        batched({"x": 1.0, "w": (2.0, 1.0)}, 2)
    np.testing.assert_array_equal(batched({"x": 1.0, "w": (2.0, 1.0)}, 2, lanes=2), [7.0, 7.0])


@pytest.mark.parametrize(
    ("axes", "p", "message"),
    [
        ({"x": 0, "w": None}, {"x": X}, "PCB516: in_axes of 'p' is .*, which does not fit the argument: {x: float32"),
        ({"x": 0, "w": None}, X, "PCB516: in_axes of 'p' is .*, but the argument is one array there"),
        ({"x": (0,), "w": 0}, {"x": X, "w": X}, r'PCB516: in_axes of "p\[\'x\'\]" is \(0,\), but the argument is one'),
        (Point(0, 0), Pair(X, X), "PCB516: in_axes of 'p' is Point.*, which does not fit the argument: Pair"),
        (0, {"x": X, "w": (X[:2], X)}, r"PCB513: .*: p\['x'\] has 3, p\['w'\]\[0\] has 2, p\['w'\]\[1\] has 3"),
    ],
    ids=str,
)
def test_axes_that_do_not_fit(axes, p, message):
    with pytest.raises(UsageError, match=message):
        pcbatch.autobatch(scaled, in_axes=(axes, 0), jit=False)(p, N)


def test_a_wrong_axis_is_refused_at_decoration_with_its_path():
    with pytest.raises(UsageError, match=r'PCB502: in_axes of "p\[\'x\'\]\.first" must be 0 or None, not 1'):
        pcbatch.autobatch(scaled, in_axes=({"x": Pair(1, 0)}, 0))


def test_a_number_beside_arrays_in_a_structure_is_one_for_all_lanes():
    @pcbatch.autobatch(jit=False)
    def climbed(pair, n):
        for _ in range(n):
            pair.first = pair.first * pair.second
        return pair

    for factor in (2, 3):
        found = climbed(Pair(X, factor), N)
        np.testing.assert_array_equal(found.first, X * np.float32(factor) ** N)
        np.testing.assert_array_equal(found.second, [factor] * 3)
    assert climbed.stats().compilations == 1
    with pytest.raises(UsageError, match="PCB511: argument 'pair'"):
        climbed(Pair(1.0, 2), N)


def test_keys_of_dicts_may_be_numbers_and_tuples():
    @pcbatch.autobatch(jit=False)
    def keyed(x):
        found = {1: x, (1, "a"): [2.0 * x]}
        found[0] = 3.0
        return found

    given = keyed(X)
    assert list(given) == [1, (1, "a"), 0]
    np.testing.assert_array_equal(given[1, "a"][0], 2 * X)
    assert keyed.single(X[0]).keys() == given.keys()


def test_keys_that_cannot_be_written_down_are_refused():
    with pytest.raises(pcbatch.CompileError, match=r"PCB404: a dict with the key <Way\.UP: 1> is returned"):
        pcbatch.autobatch(of_ways).check(X)


class Way(enum.Enum):
    UP = 1


def of_ways(x):
    return {Way.UP: x}
