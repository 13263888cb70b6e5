"""Schedules: their names, and what a trip of each runs."""

import itertools

import numpy as np
import pytest

from pcbatch.errors import UsageError
from pcbatch.ir.machine import Block, Branch, FaultSite, Jump, LaneStatus, Program, Return
from pcbatch.ir.types import TensorType
from pcbatch.runtime.costs.estimate import Prices
from pcbatch.runtime.schedules import SCHEDULES, schedule_named
from pcbatch.runtime.schedules.adaptive import PATIENCE, SHARE
from pcbatch.runtime.schedules.schedule_step import BlockCounts, BlockGraph, Trip
from pcbatch.runtime.schedules.simple import AGEING
from tests.runtime import libraries
from tests.runtime.libraries import MODES, ON_BOTH, ints, on_both
from tests.runtime.tables import BOOL, INT, piece


def test_names():
    """Each schedule by its name; "auto" is the adaptive one."""
    assert [schedule_named(name).name for name in SCHEDULES][:5] == [
        "earliest",
        "busiest",
        "sweep",
        "adaptive",
        "switch",
    ]
    assert schedule_named("auto").name == "adaptive"
    with pytest.raises(UsageError, match=r"PCB530.*'latest'.*'auto', 'earliest', 'busiest', 'sweep', 'adaptive'"):
        schedule_named("latest")


def diamond():
    """b0 branches to b1 or b2, which meet in b3."""
    blocks = (
        Block("b0", (piece(lambda x: (x > 0,), "x", "t"),), Branch("t", 1, 2)),
        Block("b1", (piece(lambda x: (x * 10,), "x", "x"),), Jump(3)),
        Block("b2", (piece(lambda x: (x - 10,), "x", "x"),), Jump(3)),
        Block("b3", (piece(lambda x: (x + 1,), "x", "x"),), Return()),
    )
    return Program("diamond", ("x",), ("x",), {"x": INT, "t": BOOL}, {"x": "register"}, blocks)


DIAMONDS = [
    ("earliest", (1, -1, 2), (1, 1, 1, 1), 4),
    ("sweep", (1, -1, 2), (1, 1, 1, 1), 1),  # every lane gets through in one trip
    ("sweep", (1, 1, 2), (1, 1, 0, 1), 1),  # and nothing runs for nobody
    ("earliest", (-1, -1, -2), (1, 0, 1, 1), 3),
]


@on_both("schedule, x, executions, trips", DIAMONDS, DIAMONDS[1:3])
def test_a_diamond(library, schedule, x, executions, trips):
    """Lanes that part at a branch meet again behind it."""
    outcome = library.run(diamond(), ints(*x), schedule=schedule)
    np.testing.assert_array_equal(outcome.executions, executions)
    assert outcome.trips == trips
    np.testing.assert_array_equal(outcome.values[0], [10 * v + 1 if v > 0 else v - 9 for v in x])


# -- how long lanes wait -----------------------------------------------------------------------------------------------


class Waiting:
    """Trips by hand: lanes that come back to their block at once, so that no number of waiting lanes ever changes."""

    def __init__(self, library, schedule, waiting, row_costs, successors=None):
        self.backend, self.schedule = library.backend, schedule_named(schedule)
        self.waiting = self.backend.array(waiting, "int32")
        self.prices = Prices(row_costs, sum(waiting))
        self.memory = self.backend.zeros(len(waiting), TensorType("int64"))
        self.flow = BlockGraph(successors or [tuple(range(len(waiting)))] * len(waiting))

    def trip(self):
        """One trip; the blocks that ran."""

        def guarded(number, predicate, lanes, state, followed, again):
            ran.extend([number] if predicate else [])
            nobody = self.backend.constant(0)
            return state, [nobody for _ in followed], BlockCounts(lanes), nobody

        ran = []
        trip = Trip(self.backend, {}, self.waiting, lambda state: self.waiting, guarded, self.flow, lambda: self.prices)
        self.memory = self.schedule.trip(trip, self.memory)
        return ran

    def longest(self, block, trips):
        """The most trips in a row in which `block` did not run."""
        ran = [block in self.trip() for _ in range(trips)]
        return max(len(gap) for gap in "".join("x" if each else "." for each in ran).split("x"))


def test_an_expensive_block_waits_for_as_long_as_it_takes(library):
    """A lane that loops for ever through a cheap block holds up those at an expensive one no longer than that costs."""
    waiting = Waiting(library, "adaptive", [1, 3], [1.0, 1e6])
    trip = waiting.prices.trip + waiting.prices.executions[0]
    assert waiting.longest(0, 300) == 0
    assert 100 < waiting.longest(1, 700) <= waiting.prices.executions[1] / trip + 1


def test_expensive_blocks_take_turns(library):
    """Lanes that loop for ever through an expensive block hold up those at another only so long."""
    waiting = Waiting(library, "adaptive", [60, 1], [1e6, 1e6])
    assert waiting.longest(0, 30) <= 1
    assert waiting.longest(1, 30) <= 1 / SHARE + 1


LOOPS = [(0, 1), (1, 2), (2, 3)]
"""A loop behind a loop behind a loop, whose entry is the first."""


def test_a_loop_behind_a_loop_waits_only_so_long(library):
    """Lanes that never leave the first loop hold up those at the second, but not for ever."""
    waiting = Waiting(library, "adaptive", [1, 60, 3], [1e6, 1e6, 1e6], LOOPS)
    assert waiting.longest(0, 300) <= 1 / SHARE + 1
    assert PATIENCE < waiting.longest(1, 300) <= PATIENCE / SHARE + 1
    assert PATIENCE < waiting.longest(2, 300) <= PATIENCE / SHARE + 1


@ON_BOTH
def test_what_lies_behind_waits_its_turn(library):
    """Of expensive blocks that lie one behind the other the first runs, whatever waits at the others."""
    assert Waiting(library, "adaptive", [1, 60, 60], [1e6] * 3, LOOPS).trip() == [0]
    assert Waiting(library, "adaptive", [0, 1, 60], [1e6] * 3, LOOPS).trip() == [1]
    assert Waiting(library, "adaptive", [0, 0, 60], [1e6] * 3, LOOPS).trip() == [2]


def test_which_blocks_wait_for_which():
    """For lanes that come to another expensive block first, from which there is no way back."""
    loops = BlockGraph([(1,), (2, 3), (1,), (4, 5), (3,), (6,)])  # two loops, b1 b2 and b3 b4, and what is behind
    assert loops.gathering([2, 4]) == {frozenset({0, 1, 2}): [4]}
    assert loops.gathering([1, 2]) == {}, "in one loop"
    assert loops.gathering([0, 2]) == {}, "all lanes leave the entry at once"
    assert loops.gathering([2, 4, 5]) == {frozenset({0, 1, 2}): [4], frozenset({0, 1, 2, 3, 4}): [5]}
    arms = BlockGraph([(1, 2), (3,), (3,), (4,)])
    assert arms.gathering([1, 2]) == {}
    assert arms.gathering([1, 3]) == {frozenset({0, 1}): [3]}
    assert arms.before == [[], [0], [0], [0, 1, 2], [0, 1, 2, 3]][: len(arms.successors)]
    assert loops.before == [[], [0], [0], [0, 1, 2], [0, 1, 2], [0, 1, 2, 3, 4]]


def loops():
    """`n` turns of one expensive loop, then `m` of another."""
    blocks = (
        Block("b0", (piece(lambda n: (n > 0,), "n", "t"),), Branch("t", 1, 2)),
        Block("b1", (piece(lambda n: (n - 1, n > 1), "n", "n t"),), Branch("t", 1, 2), cost=1e7),
        Block("b2", (piece(lambda m: (m - 1, m > 1), "m", "m t"),), Branch("t", 2, 3), cost=1e7),
        Block("b3", (piece(lambda n, m: (n * 10 + m,), "n m", "n"),), Return()),
    )
    types, storage = {"n": INT, "m": INT, "t": BOOL}, {"n": "register", "m": "register"}
    return Program("loops", ("n", "m"), ("n",), types, storage, blocks)


@pytest.mark.parametrize("max_lanes", [None, 4])
@ON_BOTH
def test_a_loop_behind_a_loop_gathers(library, max_lanes):
    """Each of two loops runs as often as the example needs that needs most; not where examples come in meanwhile."""
    n, m = ints(5, 9, 1, 0, 20, 3, 7), ints(20, 3, 8, 2, 6, 1, 19)
    outcome = library.run(loops(), n, m, schedule="adaptive", max_lanes=max_lanes)
    np.testing.assert_array_equal(outcome.values[0], [0] * 7)
    runs = [int(outcome.executions[number]) for number in (1, 2)]
    assert runs == [20, 20] if max_lanes is None else sum(runs) < 80


def test_busiest_ages(library):
    """A lane alone is chosen after at most 16 trips for each of the others."""
    waiting = Waiting(library, "busiest", [9, 1], [1.0, 1.0])
    assert 50 < waiting.longest(1, 400) <= AGEING * 10


@ON_BOTH
def test_trips_that_are_cheap_leave_expensive_lanes_to_gather(library):
    """What runs is what gives most lanes for its cost: cheap blocks first, then the dearer one with more lanes."""
    trips = Waiting(library, "adaptive", [2, 30, 32], [1.0, 1e6, 1e6])
    assert [trips.trip() for _ in range(3)] == [[0], [0], [0]]
    trips = Waiting(library, "adaptive", [0, 30, 32], [1.0, 1e6, 1e6])
    assert trips.trip() == [2]
    trips = Waiting(library, "adaptive", [0, 30, 32], [1.0, 1e6, 2e6])
    assert trips.trip() == [1]


@ON_BOTH
def test_cheap_programs_are_swept(library):
    waiting = Waiting(library, "adaptive", [2, 0, 32], [1.0, 100.0, 50.0])
    assert waiting.trip() == [0, 2]
    np.testing.assert_array_equal(waiting.memory, [0, 0, 0])


@on_both("cost, last, trips", [(1.0, 1.0, 1), (1e8, 1e9, 1), (1e9, 1.0, 13)], [(1e8, 1e9, 1), (1e9, 1.0, 13)])
def test_a_block_that_sends_lanes_to_itself_runs_again_in_the_trip(library, cost, last, trips):
    """As long as that moves more lanes for its price than another trip would; never if it costs more than all else."""
    blocks = (
        Block("b0", (piece(lambda x: (x < 10,), "x", "t"),), Branch("t", 1, 2)),
        Block("b1", (piece(lambda x: (x + 1, x < 10), "x", "x t"),), Branch("t", 1, 2), cost=cost),
        Block("b2", (piece(lambda x: (x + 100,), "x", "x"),), Return(), cost=last),
    )
    program = Program("turns", ("x",), ("x",), {"x": INT, "t": BOOL}, {"x": "register"}, blocks, ())
    outcome = library.run(program, ints(-1, -2, 7, 5), schedule="adaptive")
    np.testing.assert_array_equal(outcome.values[0], [111, 111, 111, 111])
    assert int(outcome.executions[1]) == 13  # the loop of the lane that starts at -2, and its end
    assert int(outcome.trips) == trips


@on_both("schedule, jit", MODES, zip(libraries.SCHEDULES, itertools.cycle((True, False)), strict=False))
def test_endless_lanes_keep_nobody_from_ending(library, schedule, jit):
    """Lanes in an endless loop fail at their limit; others, waiting at an expensive block, end with their results."""
    blocks = (
        Block("b0", (piece(lambda x: (x < 0,), "x", "t"),), Branch("t", 1, 2)),
        Block("b1", (piece(lambda x: (x - 1,), "x", "x"),), Jump(1, turn=True), steps_site=0),
        Block("b2", (piece(lambda x: (x - 1, x > 1), "x", "x t"),), Branch("t", 2, 3), cost=1e8),
        Block("b3", (piece(lambda x: (x + 100,), "x", "x"),), Return()),
    )
    faults = (FaultSite(LaneStatus.MAX_STEPS, "too many steps"),)
    program = Program("endless", ("x",), ("x",), {"x": INT, "t": BOOL}, {"x": "register"}, blocks, faults)
    outcome = library.run(program, ints(-1, 3, -9, 1, 5), schedule=schedule, jit=jit, max_steps=50)
    np.testing.assert_array_equal(outcome.values[0], [0, 100, 0, 100, 100])
    np.testing.assert_array_equal(np.asarray(outcome.status) == LaneStatus.MAX_STEPS, [True, False, True, False, False])
