"""Forked calls: whoever runs a call, and however many lanes there are, each example gives what it gives in sequence."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from pcbatch import LaneStatus
from pcbatch.ir.analysis.parallel_call_groups import groups, without_forks
from pcbatch.ir.machine import (
    Block,
    Branch,
    Fault,
    FaultSite,
    Fork,
    ForkedCall,
    Jump,
    Piece,
    Program,
    Push,
    PushJump,
    Return,
)
from pcbatch.ir.machine_verifier import verify_machine
from pcbatch.runtime.machine.forked import ForkedMachine
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.pool_sizing import MOST_GROWTH, Size
from pcbatch.runtime.strategies.reference import run_reference
from tests.runtime import tables
from tests.runtime.libraries import SCHEDULES, ints, library_named, on_both
from tests.runtime.tables import BOOL, DEPTH, INT, STEPS, at, piece

NUMPY = library_named("numpy")
FAULT = FaultSite(LaneStatus.RAISED, "ValueError: {} is a trap", ("n",), at(5))


def early(function, reads: str, writes: str, *sites: int) -> Piece:
    """A piece that computes early what a later call is given."""
    return Piece(function, tuple(reads.split()), tuple(writes.split()), (), sites, (at(10),), speculative=True)


def trapped(*, calls: int = 2) -> Program:
    """The sum of f(n - 1), f(n - 2), .., each below 2 giving 1; `n` of a trap fails, `n` of a spin never ends.

    The trap and the spin are the example's: no lane has them.
    """
    join = 7 + calls
    given = ((("n", "n" if k == 1 else f"n{k}"),) for k in range(1, calls + 1))
    forked = tuple(ForkedCall(each, ((f"r{k}", "r"),)) for k, each in enumerate(given, 1))
    first = Block(
        "b6",
        (
            piece(lambda n: (n,), "n", "old"),
            piece(lambda n: (n - 1,), "n", "n"),
            *(early(lambda old, k=k: (old - k,), "old", f"n{k}") for k in range(2, calls + 1)),
        ),
        PushJump(0, 7, 0, fork=Fork(forked, join)),
        pushes=(Push("n"),),
    )
    later = [
        Block(
            f"b{5 + k}",
            (piece(lambda n, r, k=k: (n - k, r), "n r", f"n s{k}"),),
            PushJump(0, 6 + k, 0),
            pops=("n", *(f"s{each}" for each in range(2, k))),
            pushes=(Push("n"), *(Push(f"s{each}", f"s{each}") for each in range(2, k + 1))),
        )
        for k in range(2, calls + 1)
    ]
    sums = tuple(f"s{each}" for each in range(2, calls + 1))
    last = Block(
        f"b{6 + calls}",
        (piece(lambda r, *s: (sum(s, r),), " ".join(["r", *sums]), "r"),),
        Return(),
        pops=("n", *sums),
    )
    slots = " ".join(f"r{k}" for k in range(1, calls + 1))
    joined = Block(f"b{join}", (piece(lambda r, *s: (sum(s, r),), slots, "r"),), Return())
    blocks = (
        Block("b0", (piece(lambda n, trap: (n == trap,), "n trap", "t"),), Branch("t", 1, 2)),
        Block("b1", (), Fault(2)),
        Block("b2", (piece(lambda n, spin: (n == spin,), "n spin", "t"),), Branch("t", 3, 4)),
        Block("b3", (), Jump(3, turn=True)),
        Block("b4", (piece(lambda n: (n < 2,), "n", "t"),), Branch("t", 5, 6)),
        Block("b5", (piece(lambda: (1,), "", "r"),), Return()),
        first,
        *later,
        last,
        joined,
    )
    types = {"n": INT, "trap": INT, "spin": INT, "r": INT, "t": BOOL, "old": INT}
    types |= dict.fromkeys([*(f"n{k}" for k in range(2, calls + 1)), *sums, *slots.split()], INT)
    storage = {"n": "cached stack", "trap": "example", "spin": "example", "r": "register"}
    storage |= dict.fromkeys(sums, "cached stack") | dict.fromkeys(slots.split(), "slot")
    return Program(
        "trapped", ("n", "trap", "spin"), ("r",), types, storage, tables.stepping(blocks, 1), (DEPTH, STEPS, FAULT)
    )


def forked(program, library=NUMPY, *, spread=4, limit=2**22, **options):
    """A machine that forks."""
    plain = without_forks(program)
    machines = (Machine(plain, library.backend, max_lanes=lanes, **options) for lanes in (None, 2))
    return ForkedMachine(program, *machines, spread=spread, limit=limit)


def expected(program, arguments, **limits):
    plain = without_forks(program)
    return run_reference(plain, NUMPY.backend, arguments, [], len(arguments[0]), **limits)


def assert_equal(outcome, wanted):
    for name in ("status", "site", "place", "steps"):
        np.testing.assert_array_equal(getattr(outcome, name), getattr(wanted, name), err_msg=name)
    np.testing.assert_array_equal(outcome.values[0], wanted.values[0])
    failed = np.asarray(wanted.site) >= 0
    shown = (np.asarray(each.fault_values["n"][0])[failed] for each in (outcome, wanted))
    np.testing.assert_array_equal(*shown)


N = ints(0, 1, 5, 7, 3, 2, 6)
NONE = N * 0 - 9


@pytest.mark.parametrize("calls", [2, 3])
def test_the_programs_are_well_formed(calls):
    program = trapped(calls=calls)
    verify_machine(program)
    (group,) = groups(program)
    assert [member.block for member in group.members] == list(range(6, 6 + calls))
    assert groups(without_forks(program)) == []


@pytest.mark.parametrize(("calls", "spread", "schedule"), [
    *((2, spread, "auto") for spread in (1, 16)),
    *(pytest.param(2, spread, "auto", marks=pytest.mark.slow) for spread in (2, 3)),
    *(pytest.param(3, 4, schedule, marks=[] if schedule == "sweep" else pytest.mark.slow) for schedule in SCHEDULES),
])  # fmt: skip
def test_each_example_gives_what_it_gives_in_sequence(calls, spread, schedule):
    """With enough lanes, with a few (the pool grows), and where it cannot grow: calls are made one after the other."""
    program = trapped(calls=calls)
    wanted = expected(program, [N, NONE, NONE])
    for limit in (0, 3_000, 2**22):
        machine = forked(program, spread=spread, limit=limit, schedule=schedule, jit=False)
        outcome = machine.run([N, NONE, NONE], [], len(N))
        assert_equal(outcome, wanted)


def test_launches_are_as_few_as_the_trees_allow():
    """Of f(7) and smaller ones: the leaves all at once, every other block once for each level."""
    machine = forked(trapped(), spread=64, jit=False)
    outcome = machine.run([N, NONE, NONE], [], len(N))
    runs = dict(zip((b.label for b in machine.program.blocks), outcome.executions.tolist(), strict=True))
    assert runs["b6"] == 6, "f(7) makes calls on 6 levels"
    assert runs["b3"] == runs["b1"] == 0
    # The calls that are made one after the other are forked, and what is between them is in the join block.
    machine = Machine(without_forks(trapped()), NUMPY.backend, jit=False)
    sequential = machine.run([N, NONE, NONE], [], len(N)).active
    np.testing.assert_array_equal(outcome.active[:7], sequential[:7])
    assert outcome.active.tolist()[7:] == [0, 0, sequential[8]]


@pytest.mark.parametrize("spread", [1, 2, 3])
def test_a_pool_that_grows_in_mid_run_computes_nothing_twice(spread):
    """The run stops where no lane can go on and goes on with more: each block runs for as many lanes as ever."""
    plenty = forked(trapped(), spread=64, jit=False).run([N, NONE, NONE], [], 7)
    machine = forked(trapped(), spread=spread, jit=False)
    outcome = machine.run([N, NONE, NONE], [], 7)
    assert_equal(outcome, plenty)
    np.testing.assert_array_equal(outcome.active, plenty.active)
    assert outcome.trips > plenty.trips
    ((_, told),) = outcome.notes
    assert f"of {7 * spread}, then {7 * spread * MOST_GROWTH} lanes at most" in told
    assert "ran again" not in told
    ((_, told),) = machine.run([N, NONE, NONE], [], 7).notes
    assert "then" not in told, "the next run begins with what this one has needed"


def test_a_pool_grows_again_and_again():
    """At first there is one lane for each example."""
    program = trapped(calls=3)
    for n in (ints(9, 2), ints(3, 8, 8)):
        machine = forked(program, spread=1, jit=False)
        outcome = machine.run([n, n * 0 - 9, n * 0 - 9], [], len(n))
        assert_equal(outcome, expected(program, [n, n * 0 - 9, n * 0 - 9]))
        ((_, told),) = outcome.notes
        assert told.count("then") == 2
        assert "ran again" not in told


def test_lanes_of_examples_that_are_given_up_want_no_more():
    """An example fails while others of its lanes find no free ones: nothing grows for it."""
    n, trap = ints(7), ints(6)
    machine = forked(trapped(), spread=3, jit=False)
    outcome = machine.run([n, trap, trap * 0 - 9], [], 1)
    assert_equal(outcome, expected(trapped(), [n, trap, trap * 0 - 9]))
    assert "then" not in outcome.notes[0][1]


@pytest.mark.parametrize(("first", "rooms"), [(4, (4, 8)), (7, (7,))])
def test_few_rooms_serve_many_numbers_of_examples(first, rooms):
    machine = forked(trapped(), spread=16, jit=False)
    for count in (first, 2, 7, 5, first):
        n = N[:count]
        outcome = machine.run([n, NONE[:count], NONE[:count]], [], count)
        assert_equal(outcome, expected(trapped(), [n, NONE[:count], NONE[:count]]))
    assert machine.pools.rooms.made == rooms


FAULTS = {
    "left": ([5], [4], [-9]),
    "right": ([5], [-9], [3]),
    "deep": ([7], [0], [-9]),
    "none and both": ([6, 6, 6], [9, 1, 0], [-9, -9, -9]),
    "beside one that never ends": ([6, 5], [3, 9], [2, -9]),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("limit", [0, 2**22])
def test_faults_are_those_of_calls_in_sequence(name, limit):
    """Also where a sibling would run for ever that is never called, as the call before it fails."""
    arguments = [ints(*each) for each in FAULTS[name]]
    limits = {"max_steps": 200} if name == "right" else {}
    machine = forked(trapped(), limit=limit, jit=False, **limits)
    assert_equal(machine.run(arguments, [], len(arguments[0])), expected(trapped(), arguments, **limits))


@pytest.mark.parametrize("option", ["max_steps", "max_depth"])
def test_limits_hold_to_the_unit(option):
    n, need = ints(6, 4), {"max_steps": 24, "max_depth": 5}[option]
    for limit, most in itertools.product((need - 1, need, need + 1, 1), (0, 2**22)):
        machine = forked(trapped(), limit=most, jit=False, **{option: limit})
        outcome = machine.run([n, n * 0 - 9, n * 0 - 9], [], 2)
        assert_equal(outcome, expected(trapped(), [n, n * 0 - 9, n * 0 - 9], **{option: limit}))
        assert (outcome.status[0] == LaneStatus.OK) == (limit >= need)


def test_all_lanes_are_free_in_the_end():
    machine, trap = forked(trapped(), spread=32, jit=False), NONE.copy()
    trap[3] = 3
    trips = machine.legs.trips(Size(Pool(7 * 32, 7), 2))
    inputs = dict(zip(trips.layout.inputs, (N, trap, NONE), strict=True))
    counters = machine.legs.legs.loop.start()
    state, _, _ = trips.run(trips.start(inputs, 2, 7), inputs, {}, counters)
    assert trips.lists.length(state, trips.lists.free) == 7 * 31
    assert state["lengths"].sum() == 7 * 31, "nobody waits"
    np.testing.assert_array_equal(state["given up"], [0, 0, 0, 1, 0, 0, 0])


def test_recursion_without_end_stays_within_the_bytes():
    """Exponentially many calls: no more lanes than fit, and stacks that grow behind them."""
    machine = forked(trapped(), spread=4, limit=20_000, jit=False)
    n = ints(12, 3)
    outcome = machine.run([n, NONE[:2], NONE[:2]], [], 2)
    assert_equal(outcome, expected(trapped(), [n, NONE[:2], NONE[:2]]))
    size = machine.pools.of(2)
    assert size.pool.lanes * machine.pools.bytes(size.capacity) <= 20_000


def test_a_speculative_check_that_fails_fails_nobody():
    """The argument of a call that is never reached, or that fails in its own time."""
    program = trapped()
    (first,) = (block for block in program.blocks if block.label == "b6")
    ops = NUMPY.ops
    division = FaultSite(LaneStatus.ARITHMETIC, "ZeroDivisionError: ..", (), at(7))
    checked = early(lambda old: (old - 2 + ops.floordiv(0, old - 4, 3),), "old", "n2", 3)
    body = (*first.body[:2], checked)
    blocks = tuple(replace(block, body=body) if block is first else block for block in program.blocks)
    program = replace(program, blocks=blocks, faults=(*program.faults, division))
    assert_equal(forked(program, jit=False).run([N, NONE, NONE], [], 7), expected(trapped(), [N, NONE, NONE]))


@pytest.mark.slow
@on_both("schedule", [], ["adaptive"])
def test_under_xla(library, schedule):
    trap = NONE.copy()
    trap[4] = 1
    machine = forked(trapped(), library, schedule=schedule, spread=2)
    for count in (7, 5):  # lanes become more in mid-run, and the same program serves fewer examples
        arguments = [N[:count], trap[:count], NONE[:count]]
        assert_equal(machine.run(arguments, [], count), expected(trapped(), arguments))
