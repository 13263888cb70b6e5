"""Faults and refusals of programs that newcomers wrote: Python's own answer is right."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import CompileError

X = np.array([[1, 0, 2, 2], [0, 1, 0, 1], [2, 2, 2, 0], [0, 0, 0, 0]])
SCORES = {"a": 1.0, "b": 2.0, "c": 4.0}
ONE = 1
NOTHING: set[int] = set()
LETTERS = {(1,): "a", (1, 2): "b", (): "c"}


def empty_keys(xs):
    pairs, places = set(), {}
    found = 0
    for place, x in enumerate(xs):
        found += (x, x + 1) in pairs
        pairs.add((x, x + 1))
        if (x,) in places:
            found += 10 * places[(x,)]
        places[x,] = place
    return found, len(pairs), {}.get(xs[0], 7), xs[0] in NOTHING


def sequences_as_keys(xs):
    letter = []
    for x in xs[:3]:
        if x > 0:
            letter.append(x)
    name = LETTERS.get(tuple(letter))
    if name is None:
        return -1.0, tuple(letter) in LETTERS
    return SCORES[name], tuple(letter) in LETTERS


def words_that_are_left(xs):
    n = xs[0] + xs[1]
    word = None
    if n == 1:
        word = "a"
    elif n == 2:
        word = "b"
    elif n == 4:
        word = "c"
    total = -1.0 if word is None else SCORES[word]
    if word is not None and word != "b":
        total += 10 * SCORES[word]
    if word == "a" or word == "c":
        total += 100 * {"a": 1.0, "c": 2.0}[word]
    first = word
    while word is not None:
        total += SCORES[word]
        word = None if word == "a" else "a" if word == "b" else "b"
    return total, SCORES[first] if first is not None else 0.5


def sums_of_what_is_left(xs):
    waiting, total = [], 0
    for day, x in enumerate(xs):
        arrived = [amount for due, amount in waiting if due <= day]
        waiting = [(due, amount) for due, amount in waiting if due > day]
        total += sum(arrived)
        if x < 2:
            waiting.append((day + 2, x + 3))
    return total, sum(amount for _, amount in waiting)


def handed_to_a_queue(xs):
    counts = xs.copy()
    ready = deque(k for k in range(len(xs)) if counts[k] == 0)
    code = 0
    while ready:
        code = 10 * code + ready.popleft() + 1
    return code


def lists_in_order(xs):
    low, high = [], []
    for x in xs:
        if x % 2 == 0:
            low.append(x)
        else:
            high.append(x - 1)
    rows = [(3, [1]), (5, [2, 3])]
    _, row = rows[xs[3] % 2]
    row = row + [9]  # noqa: RUF005
    return low < high, low > high, low <= [0, 0], low >= high, low > [2], low < [], low > [], sum(row), len(row)


def dtypes_of_lanes(xs):
    ys = xs * 0.5
    whole = np.empty(3, dtype=ys.dtype)
    whole[:] = np.full(3, 2.0, dtype=ys.dtype) + np.arange(3, dtype=xs.dtype)
    return whole * ys[0], np.zeros((2, 2), ys.dtype) + ys[1], np.array([1, 2], dtype=xs.dtype)


def stacked(xs):
    rows = [np.array([xs[0], 1])]
    for x in xs:
        if x > 0:
            rows.append(np.array([x, 2 * x]))
    whole = np.stack(rows)
    return whole.sum(axis=0), whole.max(axis=0), len(whole), np.stack([x for x in xs if x >= 0]).sum()


PROGRAMS = [
    stacked,
    empty_keys,
    sequences_as_keys,
    words_that_are_left,
    sums_of_what_is_left,
    handed_to_a_queue,
    lists_in_order,
    dtypes_of_lanes,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_as_python_has_it(program):
    found = tf.nest.flatten(pcbatch.autobatch(program)(X))
    for lane, row in enumerate(X):
        wanted = tf.nest.flatten(program(row.copy()))
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one[lane], other, rtol=1e-6)


def test_a_key_that_is_a_sequence_and_missing():
    def scored(xs):
        letter = []
        for x in xs:
            if x > 0:
                letter.append(x)
        return LETTERS[tuple(letter)] == "c"

    run = pcbatch.autobatch(scored).run(X)
    assert [(each.lane, each.message) for each in run.errors] == [(lane, "KeyError") for lane in (0, 1, 2)]
    assert bool(run.value[3])


def test_nothing_to_stack_fails_the_lane():
    def stacked(xs):
        return np.stack([x for x in xs if x > 1]).sum()

    run = pcbatch.autobatch(stacked).run(X)
    assert [(each.lane, each.message) for each in run.errors] == [
        (lane, "ValueError: need at least one array to stack") for lane in (1, 3)
    ]


def test_generators_side_by_side_are_put_into_lists_as_the_help_says():
    def large(xs):
        for x in xs:
            if x > 0:
                yield x

    def refused(xs):
        return sum(x * y for x, y in zip(large(xs), large(xs), strict=False))

    def mended(xs):
        one, other = [], []
        for x in large(xs):
            one.append(x)
        for x in large(xs):
            other.append(x)
        return sum(x * y for x, y in zip(one, other, strict=False))

    with pytest.raises(CompileError, match="PCB105") as caught:
        pcbatch.autobatch(refused)(X)
    assert "for x in g(): xs.append(x)" in caught.value.diagnostics[0].help
    assert pcbatch.autobatch(mended)(X).numpy().tolist() == [int((x * x).sum()) for x in X]


def is_the_number(n):
    return n is ONE


def test_identities_of_numbers_are_refused():
    with pytest.raises(CompileError, match="PCB113") as caught:
        pcbatch.autobatch(is_the_number)([0, 1, 2])
    assert caught.value.diagnostics[0].help == "write `==`"
