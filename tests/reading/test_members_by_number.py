"""Members of an enum by a number of the lane: `Light(n)`."""

from __future__ import annotations

import enum

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

N = np.array([0, 1, 3, 5])


class Light(enum.Enum):
    RED = 1
    GREEN = 2
    OFF = 5


class Level(enum.IntEnum):
    LOW = 0
    MID = 1
    HIGH = 2


def is_green(n):
    return Light([1, 2, 5][n % 3]) is Light.GREEN


def level(n):
    found = Level(n % 3)
    return found + 1, found is Level.HIGH, [5, 6, 7][found], found.value


def matched(n):
    light = Light.RED
    for k in range(n):
        light = Light(2) if light is Light.RED else Light(1 + (k % 2) * 4)
    match light:
        case Light.RED:
            return 1
        case Light.GREEN:
            return 2
        case Light.OFF:
            return 3


def key(n):
    found = Level.LOW
    if n > 1:
        found = Level(n % 2 + 1)
    return {Level.LOW: 10, Level.MID: 20, Level.HIGH: 30}[found]


@pytest.mark.parametrize("form", ["auto", pytest.param("lockstep", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", [is_green, level, matched, key], ids=lambda program: program.__name__)
def test_as_python_has_it(program, form):
    found = pcbatch.autobatch(program, form=form)(N)
    for lane, n in enumerate(N):
        assert tf.nest.map_structure(lambda each, lane=lane: each[lane].numpy(), found) == program(int(n))


def test_a_number_of_no_member_fails_its_lane():
    @pcbatch.autobatch
    def is_off(n):
        return Light(n) is Light.OFF

    run = is_off.run(N)
    assert [error.lane for error in run.errors] == [0, 2]
    assert run.errors[0].message == "ValueError: 0 is not a valid Light"
    assert run.value.numpy().tolist()[1::2] == [False, True]
