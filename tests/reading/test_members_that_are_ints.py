"""Members of an IntEnum as values of a lane: members where identity is asked for, ints everywhere else."""

from __future__ import annotations

import enum
from collections import Counter

import numpy as np
import pytest

import pcbatch


class Way(enum.IntEnum):
    DOWN = -1
    STILL = 0
    UP = 1

    def turned(self):
        return Way.UP if self is Way.DOWN else Way.DOWN if self is Way.UP else self


class Rate(float, enum.Enum):
    LOW = 0.5
    HIGH = 2.0


class Right(enum.IntFlag):
    READ = 1
    WRITE = 2


def used_as_a_number(x):
    way = Way.UP if x > 0 else Way.DOWN
    return way is Way.UP, way + 3, way * x, way == 1, way > 0, [5, 6, 7][way], way in (Way.UP, Way.STILL), way < x


def carried_by_a_loop(x):
    way, total = Way.STILL, 0
    for i in range(5):
        if x > i:
            way = Way.UP
        elif x < -i:
            way = Way.DOWN
        else:
            way = Way.STILL
        total += way
    return total, way is Way.STILL, way is not Way.UP, way


def beside_an_int(x):
    way = Way.UP if x > 0 else 0
    return way + 1


def next_way(way, x):
    while x > 10:
        x -= 3
    if x > 0:
        return Way.UP
    if x < -3:
        return Way.DOWN
    return way


def from_a_helper(x):
    one = next_way(Way.STILL, x)
    other = next_way(one, x - 2)
    return one is other, one, other, other is Way.UP


def way_or_number(x):
    while x > 10:
        x -= 3
    if x > 0:
        return Way.UP
    return 7


def from_a_helper_of_both(x):
    return way_or_number(x) + 1, way_or_number(x - 1)


def or_none(x):
    last = None
    for i in range(3):
        if x > i:
            last = Way.UP
    return -5 if last is None else last * 2


def matched(x):
    way = Way.UP if x > 0 else Way.DOWN
    match way:
        case Way.UP:
            return 1
        case Way.DOWN:
            return 2
    return 3


def as_a_key(x):
    way = Way.UP if x > 0 else Way.DOWN
    array, counts, costs = np.zeros(3), [0, 0, 0], {Way.UP: 3, Way.DOWN: 4}
    array[way] = x
    counts[way] += 2
    costs[way] += 1
    return array, counts, costs[way], way.value, way.turned() is Way.UP, way in {Way.UP}


def handed_to_functions(x):
    way = Way.UP if x > 0 else Way.DOWN
    numbers = -way, abs(way), max(way, 0), int(way), float(way), way / 2, way | 2, sum([Way.STILL, way])
    flags = bool(way), isinstance(way, int), isinstance(way, Way), isinstance(way, str), Way(1) is way
    return numbers, flags, np.array([way, 2.5]), 1 if way else 0


def in_recursion(x):
    def after(turns, way):
        return way if turns == 0 else after(turns - 1, Way.DOWN if way is Way.UP else Way.UP)

    return after(abs(x), Way.UP if x > 0 else Way.DOWN) is Way.UP


def of_floats(x):
    rate = Rate.LOW if x > 0 else Rate.HIGH
    return rate * 2, rate is Rate.LOW, rate > 1


def that_becomes_an_int(x):
    way = Way.UP if x > 0 else Way.DOWN
    way += 1
    while way < 4:
        way += x * x + 1
    return way


def flags_that_are_joined(x):
    rights = Right.READ
    if x > 0:
        rights |= Right.WRITE
    return rights & Right.WRITE == Right.WRITE, rights


def counted(x):
    way, ways = Way.STILL, Counter()
    for i in range(4):
        ways[way] += 1
        if way is Way.STILL and x > i:
            way = Way.UP
        elif way is Way.UP:
            way = Way.DOWN
    return way, ways[Way.STILL], ways[Way.UP], way is not Way.DOWN


class Car:
    def __init__(self):
        self.way, self.floor = Way.STILL, 0

    def step(self, target):
        self.way = Way.UP if target > self.floor else Way.DOWN
        self.floor += self.way


def in_an_object(x):
    car = Car()
    for _ in range(abs(x)):
        car.step(x)
    return car.floor, car.way is Way.UP, car.way


def in_tuples_and_lists(x):
    pair = (Way.UP, 1) if x > 0 else (Way.DOWN, 2)
    ways = []
    for _ in range(abs(x)):
        ways.append(pair[0])
    return len(ways), sum(ways), ways.count(Way.UP), pair[0] is Way.UP, pair == (Way.UP, 1)


PROGRAMS = [
    pytest.param(counted, marks=pytest.mark.slow),
    used_as_a_number,
    carried_by_a_loop,
    beside_an_int,
    from_a_helper,
    from_a_helper_of_both,
    or_none,
    matched,
    as_a_key,
    handed_to_functions,
    in_recursion,
    of_floats,
    that_becomes_an_int,
    flags_that_are_joined,
    in_an_object,
    in_tuples_and_lists,
]
X = [-5, -1, 0, 1, 2, 7]


def numbers_of(result):
    if isinstance(result, tuple | list):
        return [number for each in result for number in numbers_of(each)]
    return [np.asarray(result)]


@pytest.mark.parametrize("form", ["auto", pytest.param("lockstep", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_each_lane_is_what_python_gives(program, form):
    found = numbers_of(pcbatch.autobatch(program, form=form)(X))
    for lane, x in enumerate(X):
        wanted = numbers_of(program(x))
        assert len(wanted) == len(found)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one[lane].astype(float), other.astype(float))
