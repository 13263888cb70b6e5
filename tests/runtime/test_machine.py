"""The machine on tables written by hand: every schedule, with every kind of stack, on NumPy and on TensorFlow."""

import dataclasses

import numpy as np
import pytest

from pcbatch.errors import UsageError
from pcbatch.ir.machine import Block, Branch, Jump, LaneStatus, Program, Push, PushJump, Return
from pcbatch.ir.types import StructType, TensorType
from pcbatch.runtime.machine.machine import Machine
from tests.runtime import tables
from tests.runtime.libraries import (
    COVERING,
    COVERING_MODES,
    FEW,
    MATRIX,
    MODES,
    ON_BOTH,
    SCHEDULES,
    STORAGES,
    ints,
    on_both,
)
from tests.runtime.tables import BOOL, FLOAT, INT, piece

STATUS = LaneStatus


@on_both("schedule, jit, storage", MATRIX, COVERING)
def test_fibonacci_in_batches(library, schedule, jit, storage):
    """Recursion in every mode, at several batch sizes, with one machine for all."""
    program = tables.stored(tables.fibonacci(), storage)
    machine = Machine(program, library.backend, schedule=schedule, jit=jit)
    others = {("earliest", True): 0, ("earliest", False): 3, ("sweep", True): 1, ("sweep", False): 0}
    for lanes in (11, 3, 1, 0) if library.name == "numpy" else (17, others[schedule, jit]):
        n = (np.arange(lanes) % 9).astype(np.int32)
        outcome = machine.run([n], [], lanes)
        np.testing.assert_array_equal(outcome.values[0], [tables.fibonacci_of(i) for i in n])
        np.testing.assert_array_equal(outcome.status, np.zeros(lanes))
        np.testing.assert_array_equal(outcome.site, -np.ones(lanes))
        np.testing.assert_array_equal(outcome.steps, [2 * (tables.fibonacci_of(i) - 1) for i in n])


@on_both("schedule, jit, storage", MATRIX, FEW)
def test_saved_vectors(library, schedule, jit, storage):
    """A vector that is saved across both calls comes back as it was."""
    v = np.random.default_rng(0).normal(size=(4, 128)).astype(np.float32)
    program = tables.stored(tables.fibonacci(with_state=True), storage)
    outcome = library.run(program, ints(3, 7, 4, 5), v, schedule=schedule, jit=jit)
    np.testing.assert_array_equal(outcome.values[0], [3, 21, 5, 8])
    np.testing.assert_array_equal(outcome.values[1], v)


def test_earliest_runs_the_addition_as_often_as_the_paper_says(library):
    """Batched fibonacci([3, 7, 4, 5]): lane 7 adds 20 times, and all other lanes' additions ride along."""
    n = ints(3, 7, 4, 5)
    outcome = library.run(tables.fibonacci(), n, schedule="earliest")
    assert outcome.executions[4] == 20
    additions = [tables.fibonacci_of(n) - 1 for n in (3, 7, 4, 5)]
    assert outcome.active[4] == sum(additions)
    assert int(outcome.trips) == np.sum(outcome.executions)
    # What lanes do is theirs whatever the schedule: only how they are packed into trips differs.
    other = library.run(tables.fibonacci(), n, schedule="sweep")
    np.testing.assert_array_equal(other.active, outcome.active)
    np.testing.assert_array_equal(other.steps, outcome.steps)
    assert other.trips < outcome.trips


@on_both("schedule, jit", MODES, COVERING_MODES)
def test_loops_with_checked_operations(library, schedule, jit):
    """Lanes that wait elsewhere may hold a zero divisor: no fault of theirs, and nothing raises."""
    a, b = ints(12, 7, 0, 100, 9), ints(18, 0, 0, 75, 3)
    outcome = library.run(tables.gcd(library.ops), a, b, schedule=schedule, jit=jit)
    np.testing.assert_array_equal(outcome.values[0], np.gcd(a, b))
    assert not np.any(outcome.status)


STORING = [(schedule, jit, storage) for schedule, jit in MODES for storage in (*STORAGES, "register")]


@on_both("schedule, jit, storage", STORING, [*FEW, ("sweep", True, "register")])
def test_stores(library, schedule, jit, storage):
    """Element stores: per-lane indices, negative ones, and a fault that leaves the other lanes alone."""
    arrays = np.full((4, 5), 9, np.float32)
    count, first = ints(0, 3, 5, 9), ints(0, 4, 2, 1)
    outcome = library.run(tables.reverse(storage), arrays, count, first, schedule=schedule, jit=jit)
    expected = np.array([[9, 9, 9, 9, 9], [9, 9, 2, 1, 0], [2, 1, 0, 4, 3], [np.nan] * 5], np.float32)
    np.testing.assert_array_equal(outcome.values[0], expected)
    np.testing.assert_array_equal(outcome.status, [0, 0, 0, STATUS.INDEX])
    assert outcome.site[3] == 1
    assert outcome.fault_values["k"][0][3] == -6
    np.testing.assert_array_equal(outcome.steps, [0, 3, 5, 7])


@on_both("schedule, jit, storage", MATRIX, FEW)
def test_mutual_recursion(library, schedule, jit, storage):
    """Two functions that call each other; a bool on a stack."""
    n = ints(*range(9))
    outcome = library.run(tables.stored(tables.even(), storage), n, schedule=schedule, jit=jit)
    reference = [_even(i) for i in range(9)]
    np.testing.assert_array_equal(outcome.values[0], reference)


def _even(n):
    return True if n == 0 else (not _odd(n - 1)) != (n % 3 == 0)


def _odd(n):
    return True if n == 0 else not _even(n - 1)


@on_both("schedule, jit", MODES, COVERING_MODES)
def test_faults_are_the_lanes_own(library, schedule, jit):
    """Each kind of fault is its lane's status and site, its outputs read NaN or 0, and the others finish."""
    x = ints(3, 0, -2, 1, 5, 0)
    outcome = library.run(tables.faults(library.ops), x, schedule=schedule, jit=jit)
    expected = [0, STATUS.ARITHMETIC, STATUS.ASSERTION, STATUS.RAISED, 0, STATUS.ARITHMETIC]
    np.testing.assert_array_equal(outcome.status, expected)
    np.testing.assert_array_equal(outcome.site, [-1, 0, 1, 2, -1, 0])
    np.testing.assert_allclose(outcome.values[0], np.sqrt([3, np.nan, np.nan, np.nan, 2, np.nan]), rtol=1e-6)
    np.testing.assert_array_equal(outcome.values[1], [3, 0, 0, 0, 2, 0])
    assert outcome.fault_values["q"][0][2] == -5
    assert (outcome.fault_values["q"][0][3], outcome.fault_values["x"][0][3]) == (10, 1)


@on_both("schedule, jit", MODES, COVERING_MODES)
def test_what_a_predicate_leaves_out_has_no_effect(library, schedule, jit):
    """It writes nothing, stores nothing and fails nowhere; a value that was never given reads 0."""
    x, arrays = ints(3, 0, -2, 1, 7, 0), np.full((6, 4), 9, np.int32)
    outcome = library.run(tables.predicated(library.ops), x, arrays, schedule=schedule, jit=jit)
    np.testing.assert_array_equal(outcome.status, [0, 0, 0, 0, STATUS.INDEX, 0])
    stored, q, total = (np.asarray(value) for value in outcome.values)
    np.testing.assert_array_equal(stored[:4], [[9, 9, 9, 4], [9] * 4, [9, 9, -6, 9], [9, 12, 9, 9]])
    np.testing.assert_array_equal(q, [4, 0, -6, 12, 0, 0])
    np.testing.assert_array_equal(total, [7, 0, 0, 0, 0, 0])


@on_both("schedule, jit, storage", MATRIX, FEW)
def test_max_depth(library, schedule, jit, storage):
    """A lane fails with its first call beyond `max_depth`; exactly as many are allowed."""
    # fibonacci(n) has n - 1 live calls at most; on the way down from 8 each of them saves `n`, so its stack is full
    program = tables.stored(tables.fibonacci(), storage)
    outcome = library.run(program, ints(2, 3, 4, 5, 8, 1), schedule=schedule, jit=jit, max_depth=3)
    np.testing.assert_array_equal(outcome.status, [0, 0, 0, STATUS.MAX_DEPTH, STATUS.MAX_DEPTH, 0])
    np.testing.assert_array_equal(outcome.values[0], [2, 3, 5, 0, 0, 1])
    np.testing.assert_array_equal(outcome.site, [-1, -1, -1, 0, 0, -1])


@on_both("schedule, jit", MODES, [("sweep", True)])
def test_max_steps(library, schedule, jit):
    """A lane may use exactly `max_steps` calls and turns; the step that fails is not counted."""
    n = ints(4, 5, 6)  # 8, 14 and 24 calls
    outcome = library.run(tables.fibonacci(), n, schedule=schedule, jit=jit, max_steps=14)
    np.testing.assert_array_equal(outcome.status, [0, 0, STATUS.MAX_STEPS])
    np.testing.assert_array_equal(outcome.steps, [8, 14, 14])
    np.testing.assert_array_equal(outcome.values[0], [5, 8, 0])
    turns = library.run(tables.gcd(library.ops), ints(8, 5), ints(4, 3), schedule=schedule, jit=jit, max_steps=1)
    np.testing.assert_array_equal(turns.status, [0, STATUS.MAX_STEPS])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("max_depth", "max_steps"), [(1, None), (3, 20), (5, 1000), (7, 60), (None, 8), (40, None)])
def test_limits(library, schedule, max_depth, max_steps):
    """Whatever the limits, a lane ends with its result or fails at the one that it meets first, as in Python."""
    n = ints(*range(9))
    program = tables.stored(tables.fibonacci(), "stack" if max_steps else "cached stack")
    outcome = library.run(program, n, schedule=schedule, max_depth=max_depth, max_steps=max_steps)
    expected = [_limited(i, max_depth or 2**30, max_steps or 2**30) for i in n]
    np.testing.assert_array_equal(outcome.status, [status for status, _, _ in expected])
    np.testing.assert_array_equal(outcome.values[0], [value for _, value, _ in expected])
    np.testing.assert_array_equal(outcome.steps, [steps for _, _, steps in expected])


def _limited(n, max_depth, max_steps):
    """What becomes of `fibonacci` in Python: its status, its value and its calls."""
    calls = 0

    def fibonacci(n, depth):
        nonlocal calls
        if n <= 1:
            return 1
        total = 0
        for m in (n - 2, n - 1):
            if depth == max_depth:
                raise RecursionError
            if calls == max_steps:
                raise TimeoutError
            calls += 1
            total += fibonacci(m, depth + 1)
        return total

    try:
        return 0, fibonacci(int(n), 0), calls
    except RecursionError:
        return STATUS.MAX_DEPTH, 0, calls
    except TimeoutError:
        return STATUS.MAX_STEPS, 0, calls


def test_depth_is_checked_before_steps(library):
    """A call that exceeds both limits exceeds the depth."""
    outcome = library.run(tables.fibonacci(), ints(5), max_depth=1, max_steps=1)
    np.testing.assert_array_equal(outcome.status, [STATUS.MAX_DEPTH])


@on_both("schedule, jit, storage", MATRIX, FEW)
def test_lanes_without_room_wait_and_go_on_later(library, schedule, jit, storage):
    """A lane whose pushes do not fit is paused before its block has any effect; with larger stacks it goes on."""
    program = tables.stored(tables.fibonacci(), storage)
    n = ints(2, 7, 1, 5, 3)
    machine = Machine(program, library.backend, schedule=schedule, jit=jit, max_depth=40)
    machine.sizes.capacity = 2
    arrived, outcome = machine.leg(machine.begin([n], 5), [])
    state = arrived.snapshot.state
    ended = state["pc"] == machine.legs.layout.finish
    np.testing.assert_array_equal(ended, [True, False, True, False, True])
    np.testing.assert_array_equal(state["fault"], np.zeros(5))
    assert (bool(arrived.paused), bool(arrived.can_run)) == (True, False)
    np.testing.assert_array_equal(outcome.status, [0, STATUS.UNFINISHED, 0, STATUS.UNFINISHED, 0])
    np.testing.assert_array_equal(outcome.values[0], [2, 0, 1, 0, 3])
    assert outcome.site[1] == -1
    arrived, outcome = machine.leg(machine.grown(arrived.snapshot), [])
    np.testing.assert_array_equal(outcome.values[0], [2, 21, 1, 8, 3])
    assert (bool(arrived.paused), bool(arrived.can_run)) == (False, False)
    straight = library.run(program, n, schedule=schedule, jit=jit, max_depth=10)
    np.testing.assert_array_equal(outcome.active, straight.active)
    np.testing.assert_array_equal(outcome.steps, straight.steps)


@on_both("schedule, jit", [(schedule, False) for schedule in SCHEDULES], COVERING_MODES)
def test_junk_lanes_neither_raise_nor_leak(library, schedule, jit):
    """Singular matrices and NaN in lanes that wait elsewhere; of the former NumPy raises, as graphs do."""
    good = np.array([[2, 1], [1, 3]], np.float32)
    m = np.stack([good, np.zeros((2, 2)), np.full((2, 2), np.nan), 3 * good, np.zeros((2, 2))]).astype(np.float32)
    outcome = library.run(tables.singular(library.inverse), m, schedule=schedule, jit=jit)
    expected = np.stack([np.linalg.inv(good), m[1] * 2, m[2], np.linalg.inv(3 * good), m[4]])
    np.testing.assert_allclose(outcome.values[0], expected, rtol=1e-6)


@ON_BOTH
def test_shared_operands(library):
    """Every lane is given the same ones."""
    x, weights = np.array([[1, 2, 3], [0, 0, 1]], np.float32), 2 * np.eye(3, dtype=np.float32)
    np.testing.assert_array_equal(library.run(tables.scaled(), x, shared=[weights]).values[0], 2 * x)


@on_both("storage", STORAGES, STORAGES[:1])
def test_structures(library, storage):
    """Structured variables, saved leaf by leaf across a call."""
    pair = StructType("dict", (FLOAT, StructType("tuple", (INT, BOOL))), ("x", "rest"))

    def down(p, n):
        return {"x": p["x"] / 2.0, "rest": (p["rest"][0] + 1, ~p["rest"][1])}, n - 1

    blocks = (
        Block("b0", (piece(lambda n: (n == 0,), "n", "t"),), Branch("t", 1, 2)),
        Block("b1", (piece(lambda p: (p,), "p", "r"),), Return()),
        Block("b2", (piece(down, "p n", "p n"),), PushJump(0, 3, 0), pushes=(Push("p"),)),
        Block("b3", (piece(_join, "p r", "r"),), Return(), pops=("p",)),
    )
    types = {"p": pair, "r": pair, "n": INT, "t": BOOL}
    kinds = {"p": storage, "r": "register", "n": "register"}
    program = Program("halve", ("p", "n"), ("r",), types, kinds, blocks, (tables.DEPTH,))
    p = (np.array([8, 4], np.float32), ints(0, 10), np.array([True, False]))
    x, count, flag = library.run(program, *p, ints(2, 0)).values
    np.testing.assert_array_equal(x, [2 + 4 + 8, 4])
    np.testing.assert_array_equal(count, [2 + 1 + 0, 10])
    np.testing.assert_array_equal(flag, [True ^ False ^ True, False])


def _join(p, r):
    return ({"x": p["x"] + r["x"], "rest": (p["rest"][0] + r["rest"][0], p["rest"][1] ^ r["rest"][1])},)


@on_both("schedule, jit, storage", MATRIX, FEW)
def test_dtypes_on_stacks(library, schedule, jit, storage):
    """Values of every kind are saved and come back unchanged."""
    names = ("bool", "int8", "uint32", "int64", "float16", "float64", "complex64")
    names += () if library.name == "numpy" else ("bfloat16",)
    words = " ".join(names)
    back = piece(lambda n, *xs: (n - 1, *(x[::-1] for x in xs)), f"n {words}", f"n {words}")
    blocks = (
        Block("b0", (piece(lambda n: (n == 0,), "n", "t"),), Branch("t", 1, 2)),
        Block("b1", (), Return()),
        Block("b2", (back,), PushJump(0, 3, 0), pushes=tuple(map(Push, names))),
        Block("b3", (), Return(), pops=names),
    )
    types = {"n": INT, "t": BOOL, **{name: TensorType(name, (2,)) for name in names}}
    kinds = {"n": "register", **dict.fromkeys(names, storage)}
    program = Program("there_and_back", ("n", *names), names, types, kinds, blocks, (tables.DEPTH,))
    numbers = library.backend.array([[0, 1], [2, 3], [1, 0]], "int32")
    given = [library.backend.cast(numbers, name) for name in names]
    outcome = library.run(program, ints(0, 1, 3), *given, schedule=schedule, jit=jit)
    for name, value, result in zip(names, given, outcome.values, strict=True):
        assert result.dtype == name
        np.testing.assert_array_equal(*(library.backend.cast(array, "complex64") for array in (result, value)))


@ON_BOTH
def test_wrong_arguments_are_refused(library):
    """Shapes and numbers of arguments are checked before anything runs."""
    machine = Machine(tables.gcd(library.ops), library.backend)
    with pytest.raises(UsageError, match=r"PCB531.*'b'"):
        machine.run([ints(1, 2), ints(1, 2, 3)], [], 2)
    with pytest.raises(UsageError, match=r"PCB531.*2 arguments"):
        machine.run([ints(1, 2)], [], 2)


def test_a_table_with_a_mistake_is_refused(library):
    """A block that names what nobody writes, or goes nowhere, is refused by name."""
    for block, message in [
        (Block("b0", (piece(lambda x: (x,), "z", "x"),), Return()), "b0.*z"),
        (Block("b0", (), Jump(3)), "b0.*goes to"),
        (Block("b0", (), Branch("t", 0, 0)), "b0.*'t'"),
        (Block("b0", (), Return(), pops=("x",)), "b0.*'x'.*no stack"),
    ]:
        with pytest.raises(ValueError, match=message):
            Machine(Program("broken", ("x",), ("x",), {"x": INT}, {"x": "register"}, (block,)), library.backend)
    program = tables.gcd(library.ops)
    nameless = dataclasses.replace(program, blocks=tables.stepping(program.blocks, -1))
    with pytest.raises(ValueError, match=r"gcd, b1: jump b0, turn: there is no fault site for exceeding max_steps"):
        Machine(nameless, library.backend, max_steps=3)
    Machine(nameless, library.backend)
