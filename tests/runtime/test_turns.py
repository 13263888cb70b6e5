"""Blocks that send lanes to themselves run several times in one trip, and are counted as if they ran once in each."""

import numpy as np

import pcbatch
from pcbatch.ir.machine import Block, Branch, Jump, Program, Return
from pcbatch.runtime.machine.guarded import MOST_TURNS
from tests.runtime.libraries import EVERY_BLOCK, ON_BOTH, ints, on_both
from tests.runtime.tables import BOOL, INT, piece

COUNT = ints(3, 0, 150, 7, 7, 1, 40, 2)


def countdown() -> Program:
    """b1 counts down to 0, asking at the end of each turn whether there is another."""
    blocks = (
        Block("b0", (piece(lambda x: (x > 0,), "x", "t"),), Branch("t", 1, 2)),
        Block("b1", (piece(lambda x: (x - 1, x > 1), "x", "x t"),), Jump(Branch("t", 1, 2), turn=True)),
        Block("b2", (piece(lambda x: (x + 100,), "x", "x"),), Return()),
    )
    return Program("countdown", ("x",), ("x",), {"x": INT, "t": BOOL}, {"x": "register"}, blocks)


GATHERED = [(jit, gathers) for jit in (True, False) for gathers in (True, False)]


@on_both("jit, gathers", GATHERED, [(True, True), (False, False)])
def test_turns_are_counted(library, jit, gathers):
    compaction = EVERY_BLOCK if gathers else None
    outcome = library.run(countdown(), COUNT, jit=jit, compaction=compaction, trace=10)
    np.testing.assert_array_equal(outcome.values[0], np.full(8, 100))
    np.testing.assert_array_equal(outcome.steps, COUNT)
    executions, active, rows = (np.asarray(each) for each in (outcome.executions, outcome.active, outcome.rows))
    assert executions[1] == COUNT.max()
    assert active.tolist() == [8, COUNT.sum(), 8]
    waiting = [(turn < COUNT).sum() for turn in range(COUNT.max())]
    assert rows[1] == sum(8 if compaction is None or lanes >= 7 else -(-lanes // 3) * 3 for lanes in waiting)
    all_times, all_lanes, ran, live = np.asarray(outcome.trace)[: int(outcome.trips)].transpose(1, 0, 2)
    np.testing.assert_array_equal(all_times[-1], executions)
    np.testing.assert_array_equal(all_lanes[-1], active)
    assert ran[0].tolist()[:2] == [8, 7]
    assert live.sum(axis=1)[0] == 8


@ON_BOTH
def test_a_trip_ends(library):
    """However long a lane turns: a run can be cut off between trips."""
    outcome = library.run(countdown(), ints(1000))
    assert int(outcome.trips) == -(-1000 // MOST_TURNS)


def test_a_lane_that_turns_on_does_not_hold_up_the_others():
    """One lane has 64 times as many turns as the others, which go through a second loop after them and end."""

    @pcbatch.autobatch(form="lockstep")
    def both(n, m):
        while n > 0:
            n = n - 1
        while m > 0:
            m = m - 1
        return n + m

    n = np.array([6400] + [1] * 63, np.int32)
    m = np.array([1] + [100] * 63, np.int32)
    run = both.run(n, m)
    alone = both.run(n[:1], m[:1])
    assert run.trips < 1.2 * alone.trips
    one, other = (sum(run.utilization.active.values()), sum(run.executions.values()))
    assert one / other > 1.5  # lanes run together more than one after the other
