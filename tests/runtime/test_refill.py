"""Refill: a run on at most so many lanes, of however many examples, gives each what it gives in one big batch."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from pcbatch import LaneStatus, UsageError
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.pool import Pool
from tests.runtime import tables
from tests.runtime.libraries import SCHEDULES, ints, library_named, on_both
from tests.runtime.test_legs import away, chain
from tests.runtime.test_pools import EXAMPLES, NUMPY, PROGRAMS, alone, assert_equal, machine_of, remembering, saved

LANES = (1, 2, 5, 6, 9)
CASES = [*itertools.product(PROGRAMS, LANES)]


@pytest.mark.parametrize(("most", "examples", "lanes", "room"), [
    (64, 64, 64, 64), (64, 17, 64, 64), (64, 16, 16, 16), (64, 5, 16, 16), (64, 4, 4, 4), (64, 1, 1, 1),
    (64, 65, 64, 128), (64, 128, 64, 128), (64, 129, 64, 256), (3, 1, 1, 1), (3, 2, 3, 3), (3, 7, 3, 12), (1, 5, 1, 8),
])  # fmt: skip
def test_one_of_a_few_pools(most, examples, lanes, room):
    assert Pool.at_most(most, examples) == Pool(lanes, room)


def test_few_pools_for_many_numbers():
    assert len({Pool.at_most(64, n) for n in range(1, 10_000)}) == 4 + 8
    assert Pool.at_most(64, 0) == Pool.of(0)


@on_both("name, most", CASES, [("faults", 2), ("chain", 5), ("reverse", 1)])
def test_each_example_gives_what_it_gives_in_one_batch(library, name, most):
    machine, arguments = machine_of(name, library, jit=False, max_lanes=most)
    whole = alone(machine_of(name, library, jit=False)[0], arguments)
    outcome = alone(machine, arguments)
    assert outcome.status.shape == (EXAMPLES,)
    assert_equal(outcome, whole, range(EXAMPLES))
    np.testing.assert_array_equal(outcome.active, whole.active)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule(schedule):
    machine, arguments = machine_of("stacks", jit=False, max_lanes=2, schedule=schedule)
    assert_equal(alone(machine, arguments), alone(machine_of("stacks", jit=False)[0], arguments), range(EXAMPLES))


@pytest.mark.parametrize(("name", "trace"), [("gcd", 40), ("fibonacci", 0)])
def test_under_xla(name, trace):
    machine, arguments = machine_of(name, library_named("tensorflow"), max_lanes=4, trace=trace)
    whole = alone(machine_of(name, jit=False)[0], arguments)
    assert_equal(alone(machine, arguments), whole, range(EXAMPLES))
    compiled = machine.statistics.compilations
    for count in (5, 8):
        some = [np.resize(argument, (count, *argument.shape[1:])) for argument in arguments]
        outcome = machine.run(some, [], count)
        assert_equal(outcome, alone(Machine(machine.program, NUMPY.backend, jit=False), arguments), range(5))
        assert outcome.status.shape == (count,)
    assert machine.statistics.compilations == compiled, "one program for 5, 6, 7 and 8 examples"


def test_slices_cut_anywhere_and_saved_in_between(tmp_path):
    machine, arguments = machine_of("fibonacci", jit=False, max_lanes=2)
    whole, snapshot = alone(machine, arguments), machine.begin(arguments, EXAMPLES)
    assert snapshot.pool == Pool(2, 8)
    for _ in range(1000):
        arrived, outcome = machine.leg(away(snapshot), [], trips=3)
        assert outcome.status.shape == (EXAMPLES,)
        if not arrived.can_run:
            break
        snapshot = saved(machine, arrived.snapshot, tmp_path / "run.npz")
    assert_equal(outcome, whole, range(EXAMPLES))
    for name in ("executions", "active", "trips"):
        np.testing.assert_array_equal(getattr(outcome, name), getattr(whole, name))


def test_lanes_that_want_room_hold_up_no_example():
    """Lanes pause one after the other, and as long as one is left examples go through that; then the stacks grow."""
    depths = ints(70, 0, 300, 1, 2, 90, 3, 200)
    machine = Machine(chain(), NUMPY.backend, jit=False, max_lanes=3)
    arrived, outcome = machine.leg(machine.begin([depths], 8), [])
    assert arrived.paused
    assert sorted(depths[outcome.status == LaneStatus.UNFINISHED]) == [3, 70, 90, 200, 300]
    assert (machine.run([depths], [], 8).values[0] == depths * (depths + 1) // 2).all()


def test_a_lane_remembers_nothing_of_the_example_before():
    machine = Machine(remembering(), NUMPY.backend, jit=False, max_lanes=2)
    n = ints(5, 0, 7, 0, 0, 1, 0, 3, 0)
    np.testing.assert_array_equal(machine.run([n], [], 9).values[0], 2 * n)


def test_lanes_that_end_at_different_times_are_used_again_at_once():
    """One lane takes 64 turns while the other runs all short examples."""
    long, short = ints(46368), ints(*[2] * 16)
    machine = Machine(tables.gcd(NUMPY.ops), NUMPY.backend, jit=False, max_lanes=2)
    arguments = [np.concatenate([long, short]), np.concatenate([ints(28657), short])]
    alone_it_takes = int(machine.run([long, ints(28657)], [], 1).trips)
    assert int(machine.run(arguments, [], 17).trips) <= 2 + max(alone_it_takes, 2 * 16)


@pytest.mark.parametrize(("changes", "message"), [
    ({"queue/begun": ((), 7)}, "its array 'queue/begun' has numbers beyond 0 to 6"),
    ({"queue/examples": ((), -1)}, "its array 'queue/examples' has numbers beyond 0 to 6"),
    ({"queue/examples": ((), 3)}, "more examples have begun than there are"),
    ({"queue/begun": ((), 1)}, "lanes hold examples that are still to begin"),
    ({"example/status": (5, 0)}, "examples have ended that are still to begin"),
], ids=str)  # fmt: skip
def test_queues_that_are_none(changes, message, tmp_path):
    machine, arguments = machine_of("gcd", jit=False)
    snapshot = machine.leg(machine.begin(arguments, EXAMPLES, 4), [], trips=2)[0].snapshot
    with pytest.raises(UsageError, match=f"PCB592: .*{message}"):
        saved(machine, snapshot, tmp_path / "run.npz", **changes)


def test_an_empty_queue():
    machine, arguments = machine_of("gcd", jit=False)
    snapshot = machine.begin(arguments, EXAMPLES, 2)
    none = replace(snapshot, queue={"examples": np.int32(0), "begun": np.int32(0)})
    arrived, outcome = machine.leg(none, [])
    assert not arrived.can_run
    assert int(outcome.trips) == 0
