"""A run cut into legs: state and counters may leave the device at any point, and nothing changes by it."""

import numpy as np

from pcbatch.ir.analysis.effects import is_framed
from pcbatch.ir.machine import Block, Jump, Program, Push, PushJump, Return
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.segments import Snapshot
from tests.runtime import tables
from tests.runtime.libraries import ON_BOTH, SCHEDULES, ints, on_both
from tests.runtime.tables import BOOL, INT, piece

DEPTHS = ints(3, 40, 0, 130)


def chain() -> Program:
    """Adds up n, n - 1, .., 0 on the way back from a recursion n calls deep; `half` is a float that goes along."""
    blocks = (
        Block("b0", (piece(lambda n: (n == 0,), "n", "t"),), tables.Branch("t", 1, 2)),
        Block("b1", (piece(lambda: (0, 0.1), "", "r half"),), Return()),
        Block("b2", (piece(lambda n: (n - 1,), "n", "n"),), PushJump(0, 3, 0), pushes=(Push("n"),)),
        Block(
            "b3", (piece(lambda n, r, half: (n + r, half / 3.0 + 1.0), "n r half", "r half"),), Return(), pops=("n",)
        ),
    )
    types = {"n": INT, "r": INT, "half": tables.FLOAT, "t": BOOL}
    storage = {"n": "cached stack", "r": "register", "half": "register"}
    return Program(
        "chain", ("n",), ("r", "half"), types, storage, tables.stepping(blocks, 1), (tables.DEPTH, tables.STEPS)
    )


def away(snapshot: Snapshot) -> Snapshot:
    """The snapshot as NumPy arrays, as a file would hold it."""
    parts = (snapshot.state, snapshot.counters, snapshot.inputs, snapshot.outputs, snapshot.queue)
    return Snapshot(snapshot.pool, *({k: np.array(v) for k, v in part.items()} for part in parts))


@on_both("schedule, jit", [(schedule, True) for schedule in SCHEDULES], [("earliest", True)])
def test_slices_are_equal_to_the_whole_run(library, schedule, jit):
    """Slices of seven trips, each from NumPy arrays, on stacks that grow in between: bit for bit the whole run."""
    machine = Machine(chain(), library.backend, schedule=schedule, jit=jit)
    snapshot, slices = machine.begin([DEPTHS], len(DEPTHS)), 0
    while True:
        arrived, outcome = machine.leg(away(snapshot), [], trips=7)
        snapshot, slices = arrived.snapshot, slices + 1
        if arrived.paused:
            snapshot = machine.grown(away(snapshot))
        elif not arrived.can_run:
            break
    assert slices > 10
    if library.name == "tensorflow":
        assert machine.statistics.compilations == (3 if jit else 1)
    whole = library.run(chain(), DEPTHS, schedule=schedule, jit=jit)
    np.testing.assert_array_equal(outcome.values[0], [i * (i + 1) // 2 for i in DEPTHS])
    for name in ("status", "site", "place", "executions", "active", "trips", "steps"):
        np.testing.assert_array_equal(getattr(outcome, name), getattr(whole, name), err_msg=name)
    for value, other in zip(outcome.values, whole.values, strict=True):
        assert np.asarray(value).tobytes() == np.asarray(other).tobytes()
    assert (outcome.stack_entries, int(whole.stack_entries)) == (513, 513)


@ON_BOTH
def test_a_leg_stops_where_its_budget_ends(library):
    machine = Machine(tables.gcd(library.ops), library.backend, jit=False)
    snapshot = machine.begin([ints(21, 8), ints(34, 2)], 2)
    arrived, outcome = machine.leg(snapshot, [], trips=2)
    assert (int(outcome.trips), bool(arrived.can_run), bool(arrived.paused)) == (2, True, False)
    assert machine.leg(arrived.snapshot, [], trips=0)[1].trips == 2
    _, outcome = machine.leg(arrived.snapshot, [])
    np.testing.assert_array_equal(outcome.values[0], [1, 2])


def test_stacks_as_large_as_they_get_do_not_grow(library):
    machine = Machine(chain(), library.backend, jit=False, max_depth=33)
    snapshot = machine.grown(machine.begin([ints(5)], 1))
    assert snapshot.state["calls"].shape == (1, 35)
    assert machine.grown(snapshot) is None


def test_frames():
    """Of a lane's stacks that of program counters is the longest where every live call holds one entry of each."""
    assert is_framed(tables.fibonacci(with_state=True))
    assert is_framed(tables.even())
    push = Block("b0", (), Jump(1), pushes=(Push("n"), Push("n")))
    never_popped = (Block("b0", (), PushJump(0, 1, 0), pushes=(Push("n"),)), Block("b1", (), Return()))
    unbalanced = (
        Block("b0", (piece(lambda n: (n == 0,), "n", "t"),), tables.Branch("t", 1, 2)),
        Block("b1", (), Jump(2), pushes=(Push("n"),)),
        Block("b2", (), Return(), pops=("n",)),
    )
    for blocks in ((push, Block("b1", (), Return())), never_popped, unbalanced):
        types = {"n": INT, "t": BOOL}
        assert not is_framed(Program("p", ("n",), ("n",), types, {"n": "cached stack"}, blocks, (tables.DEPTH,)))
