"""What a helper changes around it is refused; of one that cannot be read, where it decides what anybody gives."""

from __future__ import annotations

import collections
import functools
import itertools
import re

import numpy as np
import pytest

import pcbatch

X = np.array([1, 2, 3], np.int32)


def default(x, log=[]):  # noqa: B006 -- that is what is tested
    log.append(1)
    return x * len(log)


def keyword_default(x, *, log={}):  # noqa: B006
    log[len(log)] = 1
    return x * len(log)


COUNT = [0]
NUMBERS = {"n": 0}
SEEN = set()
QUEUE = collections.deque()
TABLE = np.zeros(3, np.int32)
IDENTIFIERS = itertools.count(1)
turns = 0
latest = None


def element(x):
    COUNT[0] += 1
    return x * COUNT[0]


def entry(x):
    NUMBERS["n"] += 1
    return x * NUMBERS["n"]


def member(x):
    SEEN.add(len(SEEN))
    return x * len(SEEN)


def queued(x):
    QUEUE.append(1)
    return x * len(QUEUE)


def stored(x):
    TABLE[0] += 1
    return x * int(TABLE[0])


def numbered(x):
    return x * next(IDENTIFIERS)


def rebound(x):
    global turns
    turns += 1
    return x * turns


def first_only(x):
    """Another answer for the first time that it runs alone."""
    global latest
    y = x if latest is None else x * 2
    latest = 1
    return y


def attribute(x):
    attribute.count = getattr(attribute, "count", 0) + 1
    return x * attribute.count


def inner(x):
    return element(x) + 1


class Meter:
    total = 0

    def __init__(self):
        self.count = 0

    def counted(self, x):
        self.count += 1
        return x * self.count

    def summed(self, x):
        type(self).total += 1
        return x * type(self).total

    def __call__(self, x):
        return self.counted(x)


class Narrow:
    __slots__ = ("count",)

    def __init__(self):
        self.count = 0

    def counted(self, x):
        self.count += 1
        return x * self.count


def closed_over():
    number, numbers = 0, [0]

    def cell(x):
        nonlocal number
        number += 1
        return x * number

    def listed(x):
        numbers[0] += 1
        return x * numbers[0]

    return cell, listed


def yielding():
    number = 0
    while True:
        number += 1
        yield number


numbers = yielding()


def generated(x):
    return x * next(numbers)


cell, listed = closed_over()
METER, NARROW = Meter(), Narrow()


@functools.wraps(element)
def wrapped(x):
    return element(x)


def element_tried(x):
    """What has a `try` in it is called, and not read."""
    try:
        COUNT[0] += 1
    finally:
        pass
    return x * COUNT[0]


def stored_tried(x):
    try:
        TABLE[0] += 1
    finally:
        pass
    return x * int(TABLE[0])


def counted_tried(x):
    try:
        METER.count += 1
    finally:
        pass
    return x * METER.count


def inner_tried(x):
    return element_tried(x) + 1


CHANGING = {
    "log": default,
    "log, by keyword": keyword_default,
    "COUNT": element,
    "NUMBERS": entry,
    "SEEN": member,
    "QUEUE": queued,
    "TABLE": stored,
    "attribute": attribute,
    "COUNT, further in": inner,
    "numbers, of a cell": listed,
    "METER": lambda x: METER.counted(x),
    "Meter": lambda x: METER.summed(x),
    "METER, called": lambda x: METER(x),
    "NARROW": lambda x: NARROW.counted(x),
}


@pytest.mark.parametrize("name", CHANGING)
def test_what_a_helper_changes_around_it_is_refused(name):
    helper = CHANGING[name]

    @pcbatch.autobatch
    def called(x):
        return helper(x) + 1

    with pytest.raises(pcbatch.CompileError, match="PCB204: ") as caught:
        called.check(X)
    assert "changes" in str(caught.value)
    assert caught.value.diagnostics[0].span.file == __file__
    assert caught.value.diagnostics[0].help


@pytest.mark.parametrize("helper", [numbered, generated])
def test_what_keeps_its_place_is_refused(helper):
    @pcbatch.autobatch
    def called(x):
        return helper(x) + 1

    with pytest.raises(pcbatch.CompileError, match="PCB119"):
        called.check(X)


UNREADABLE = {
    "turns": rebound,
    "latest": first_only,
    "COUNT": element_tried,
    "COUNT, further in": inner_tried,
    "COUNT, wrapped": wrapped,
    "TABLE": stored_tried,
    "number": cell,
    "METER": counted_tried,
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_a_helper_changes_may_not_decide_what_it_gives(name):
    helper = UNREADABLE[name]

    @pcbatch.autobatch
    def called(x):
        return helper(x) + 1

    shown = re.escape(name.partition(",")[0])
    with pytest.raises(pcbatch.CompileError, match=rf"PCB424: what is called here changes .*`{shown}(.|\n)*\^ this"):
        called.check(X)


MODE = [0]
LEVELS = [1]


def set_mode(x):
    try:
        MODE[0] = 5
    finally:
        pass
    return x


def by_mode(x):
    return x * MODE[0]


@pytest.mark.parametrize("sets_first", [True, False])
def test_what_one_helper_changes_no_other_may_read(sets_first):
    """Python would tell lanes that have called the first from those that have not."""

    @pcbatch.autobatch
    def called(x):
        if sets_first:
            if x > 1:
                x = set_mode(x)
            return by_mode(x)
        y = 0
        for _ in range(2):
            y += by_mode(x)
            if x > 1:
                x = set_mode(x)
        return y

    MODE[0] = 0
    with pytest.raises(pcbatch.CompileError, match="PCB424: what is called here changes `MODE"):
        called.check(X)


SQUARES, POWERS = {}, None
RUNS = []
runs = 0


def remembered(x, n=3):
    try:
        return x * SQUARES[n]
    except KeyError:
        SQUARES[n] = n * n
        return x * SQUARES[n]


@functools.cache
def cube(n):
    return n**3


def cached(x):
    return x * cube(3)


def made_once(x):
    global POWERS
    if POWERS is None:
        POWERS = np.array([1, 2, 4], np.int32)
    return x * POWERS[2]


def logged(x):
    try:
        return x
    finally:
        RUNS.append("run")


def counted(x):
    global runs
    runs += 1
    return x


def test_caches_and_logs_of_what_cannot_be_read_are_let_be():
    @pcbatch.autobatch
    def called(x):
        if x > 1:
            x = counted(logged(x))
        return remembered(x) + cached(x) + made_once(counted(logged(x)))

    assert called(X).numpy().tolist() == [40, 80, 120] == [called.single(x) for x in X]
    assert RUNS
    assert runs


def sliced(x):
    """A slice of a list of numbers."""
    numbers, i = [x, x, x], 1
    numbers[i : i + 1] = [5, 6]
    return numbers[0] + numbers[1] * numbers[2]


def test_stores_as_a_helper_writes_them():
    @pcbatch.autobatch
    def called(x):
        return sliced(x) + 1

    expected = [sliced(int(x)) + 1 for x in X]
    assert [int(called.single(x)) for x in X] == expected == called(X).numpy().tolist()
