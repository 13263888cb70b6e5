"""`sorted` by a key, and of tuples: what Python gives, in every lane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch


class Point(NamedTuple):
    x: float
    n: int


def by_keys(x, n):
    points = [Point(x[0], n), Point(x[1], n + 1), Point(x[2], n + 2)]
    return (
        sorted(points, key=lambda p: -p.x),
        sorted(points, key=lambda p: (p.n % 2, p.x), reverse=True),
        sorted([(x[0], 1), (x[1], 2), (x[2], 3)]),
        sorted(range(3), key=lambda i: x[i]),
        sorted([0, 2, 1, 3], key=lambda k: k % 2, reverse=True),
        sorted(x, key=lambda v: abs(v - 2.0)),
        sorted((x, x * 2.0), key=lambda row: row[0] * row[2]),
    )


def test_sorted_is_pythons():
    xs = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0], [-1.0, 5.0, -1.0]], np.float32)
    function = pcbatch.autobatch(by_keys)
    found = function(xs, np.array([0, 1, 2], np.int32))
    for lane, x in enumerate(xs):
        wanted = by_keys(x, lane)
        single = function.single(x, np.int32(lane))
        tf.nest.map_structure(np.testing.assert_array_equal, tf.nest.flatten(single), tf.nest.flatten(wanted))
        got = tf.nest.map_structure(lambda each, lane=lane: each.numpy()[lane], found)
        tf.nest.map_structure(np.testing.assert_array_equal, tf.nest.flatten(got), tf.nest.flatten(wanted))


def of_arrays(x):
    return sorted([x, x])


def of_two_lengths(x):
    return sorted([(x[0],), (x[1], x[0])])


@pytest.mark.parametrize(("wrong", "code"), [(of_arrays, "PCB401"), (of_two_lengths, "PCB301")])
def test_what_has_no_order_of_one_structure_is_refused(wrong, code):
    with pytest.raises(pcbatch.CompileError, match=code):
        pcbatch.autobatch(wrong).check(np.zeros((2, 3), np.float32))
