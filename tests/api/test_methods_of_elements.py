"""Methods that branch, of what a comprehension or a key goes over: they are part of the program there, too."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch

X = np.array([0, 1, 2], np.int32)


class Stack:
    def __init__(self, n):
        self.n = n

    def peek(self, least=0):
        return self.n - 1 if self.n > least else -1

    def take(self):
        if self.n > 0:
            self.n -= 1
            return 1
        return 0

    def row(self):
        return [self.n] if self.n > 1 else [0]

    @property
    def size(self):
        return self.n if self.n > 1 else 7


def listed(x):
    stacks = [Stack(x), Stack(x + 1), Stack(0)]
    return [s.peek() for s in stacks]


def with_arguments(x):
    stacks = [Stack(x), Stack(x + 1)]
    return [s.peek(least=k) * x for k, s in enumerate(stacks)]


def added(x):
    stacks = [Stack(x), Stack(x + 1)]
    return sum(s.peek() + s.size for s in stacks if s.n > 0), any(s.peek() == 1 for s in stacks)


def chosen(x):
    stacks = [Stack(x + 1), Stack(3 - x)]
    return max(stacks, key=lambda s: s.peek()).n, min(range(2), key=lambda k: stacks[k].size)


def beside_a_variable_of_that_name(x):
    s = Stack(x)
    peeked = [s.peek() for s in [Stack(x + 2), Stack(1)]]
    return peeked, s.take(), s.n


def lost(x):
    stacks = [Stack(x), Stack(x + 1)]
    return sum(s.take() for s in stacks) + stacks[0].n


def seen_by_another_name(x):
    stacks = [Stack(x), Stack(x + 1)]
    rows = [s.row() for s in stacks]
    stacks[0].n = 5
    rows[0][0] = 9
    return rows[0][0]


class Counter:
    def __init__(self, n):
        self.n = n

    def bumped(self):
        self.n += 1
        return self.n


def bumped(x):
    counters = [Counter(x), Counter(2)]
    return [each.bumped() for each in counters], counters[0].n


def summed(x):
    counters = [Counter(x), Counter(2)]
    return sum(each.bumped() for each in counters) + counters[0].n


@pytest.mark.parametrize(
    "function",
    [
        listed,
        with_arguments,
        added,
        chosen,
        beside_a_variable_of_that_name,
        lost,
        seen_by_another_name,
        bumped,
        summed,
    ],
    ids=lambda each: each.__name__,
)
def test_elements_have_methods_that_branch(function):
    batched = pcbatch.autobatch(function)
    for backend in ("tensorflow", "reference"):
        given = batched.options(backend=backend)(X)
        for lane, x in enumerate(X.tolist()):
            assert [each[lane] for each in _leaves(given)] == _leaves(function(x))
            assert _leaves(batched.single(X[lane])) == _leaves(function(x))


def _leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in _leaves(each)]
    return [np.asarray(value).tolist()]
