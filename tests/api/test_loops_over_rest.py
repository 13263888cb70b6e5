"""Loops over the rest of the arguments, of which one call may leave none."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch

X = np.array([1.0, 2.0, 3.0], np.float32)


def numbered(v, *rest):
    total = v if v > 1.5 else 2.0 * v
    k = 0
    for k, r in enumerate(rest):
        total += r * (k + 1.0)
    return total + k


def backwards(v, *rest):
    total = v if v > 1.5 else 2.0 * v
    for r in reversed(rest):
        total = 2.0 * total + r
    else:
        total += 100.0
    return total


def from_both_ends(v, *rest):
    total = v if v > 1.5 else 2.0 * v
    for i, (a, b) in enumerate(zip(rest, reversed(rest), strict=False)):
        total += a * b + i
    return total


def behind_the_first(v, *rest):
    total = v if v > 1.5 else 2.0 * v
    for r in rest[1:]:
        total += r
    return total


def some_of_them(v, *rest):
    total = v if v > 1.5 else 2.0 * v
    for k, r in zip(range(int(v)), rest, strict=False):
        total = 2.0 * total + r + k
    return total


@pytest.mark.parametrize(
    "helper",
    [numbered, backwards, from_both_ends, behind_the_first, some_of_them],
    ids=lambda helper: helper.__name__,
)
def test_a_call_may_leave_nothing_to_loop_over(helper):
    def every(x):
        return helper(x) + 10.0 * helper(x, 3.0) + 100.0 * helper(x, x, 2.0, 1.0)

    np.testing.assert_array_equal(pcbatch.autobatch(every)(X), [every(float(x)) for x in X])
