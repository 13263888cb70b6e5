"""Programs for many numbers of examples: idle lanes are never seen, and few programs are compiled."""

import dataclasses

import numpy as np
import pytest

from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.pool import BatchBuckets, Pool, bucket, spare_lanes
from tests.runtime.libraries import SCHEDULES, library_named
from tests.runtime.test_pools import EXAMPLES, PROGRAMS, alone, assert_equal, machine_of

LARGER = 2 * EXAMPLES


def test_buckets():
    assert [bucket(n) for n in range(1, 18)] == [1, 2, 3, 4, 6, 6, 8, 8, 12, 12, 12, 12, 16, 16, 16, 16, 24]
    assert len({bucket(n) for n in range(1, 4097)}) == 24


def test_the_first_number_has_a_room_of_its_own():
    rooms = BatchBuckets(lambda: 8)
    assert [rooms.of(n) for n in (50, 37, 50, 51, 2, 3, 5, 24, 1, 0)] == [50, 50, 50, 64, 8, 8, 8, 24, 8, 0]
    assert rooms.made == (0, 8, 24, 50, 64)
    assert BatchBuckets(lambda: 1).of(0) == 0


def test_to_look_makes_no_room():
    rooms = BatchBuckets(lambda: 8)
    assert [rooms.to_be(n) for n in (50, 3, 0)] == [50, 3, 0]
    assert rooms.made == ()
    assert rooms.of(50) == 50
    assert [rooms.to_be(n) for n in (50, 37, 3)] == [50, 50, 8]
    assert rooms.made == (50,)


def test_a_room_stays_what_it_was():
    rooms = BatchBuckets(lambda: 1)
    assert [rooms.of(n) for n in (7, 20, 9, 10, 9)] == [7, 24, 12, 12, 12]
    assert rooms.of(20) == 24


def test_how_many_may_be_idle():
    """Where rows cost next to nothing many; where they, or what is kept of a lane, cost more, few."""
    assert spare_lanes([3.0] * 5, 10) == CPU.idle_most
    assert CPU.idle_least < spare_lanes([200.0] * 5, 10) < CPU.idle_most
    assert spare_lanes([1e6], 10) == CPU.idle_least
    assert spare_lanes([3.0], 10**6) == 1
    assert spare_lanes([3.0] * 5, 10, dataclasses.replace(CPU, idle_most=16)) == 16


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("schedule", [None, "busiest"])
def test_fewer_examples_than_lanes(name, schedule):
    """Each gives what it gives alone, and only they are counted."""
    options = {} if schedule is None else {"schedule": schedule}
    machine, arguments = machine_of(name, jit=False, **options)
    other = machine_of(name, jit=False, **options)[0]
    whole = [alone(other, arguments) for _ in "ab"][1]  # on stacks that have grown
    more = [np.concatenate([argument, argument[::-1]]) for argument in arguments]
    machine.run(more, [], LARGER)
    outcome = alone(machine, arguments)
    assert machine.pool_for(EXAMPLES) == Pool.of(LARGER)
    assert outcome.status.shape == (EXAMPLES,)
    assert_equal(outcome, whole, range(EXAMPLES))
    for what in ("executions", "active", "rows", "trips"):
        np.testing.assert_array_equal(getattr(outcome, what), getattr(whole, what), err_msg=what)


@pytest.mark.parametrize(("name", "form"), [("gcd", "sweep"), ("fibonacci", "adaptive"), ("chain", "earliest")])
def test_under_xla(name, form):
    """One program for 12, 6 and 7 examples, those that grow stacks included."""
    machine, arguments = machine_of(name, library_named("tensorflow"), schedule=form)
    whole = alone(machine_of(name, jit=False)[0], arguments)
    machine.run([np.tile(a, (2, *[1] * (a.ndim - 1))) for a in arguments], [], LARGER)
    compiled = machine.statistics.compilations
    assert_equal(alone(machine, arguments), whole, range(EXAMPLES))
    assert_equal(machine.run([np.concatenate([a, a[:1]]) for a in arguments], [], 7), whole, range(EXAMPLES))
    assert machine.statistics.compilations == compiled


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule(schedule):
    machine, arguments = machine_of("stacks", jit=False, schedule=schedule)
    whole = alone(machine_of("stacks", jit=False)[0], arguments)
    machine.run([np.concatenate([a, a]) for a in arguments], [], LARGER)
    assert_equal(alone(machine, arguments), whole, range(EXAMPLES))
