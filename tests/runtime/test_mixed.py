"""Native code between blocks in lockstep, on tables of blocks: against the reference, whichever blocks are which."""

import dataclasses
import itertools

import numpy as np
import pytest

from pcbatch.ir.machine import Block, Branch, Jump, Program, Return
from pcbatch.ir.types import TensorType
from pcbatch.runtime.costs import estimate
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.costs.estimate import left_to_lockstep, mixture
from pcbatch.runtime.llvm import native_blocks, region
from pcbatch.runtime.llvm.mixed import MixedProgram
from pcbatch.runtime.llvm.region_handler import with_tops_apart
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.report.run import Run
from pcbatch.runtime.strategies.reference import run_reference
from tests.runtime import tables
from tests.runtime.libraries import STORAGES, ints
from tests.runtime.tables import BOOL, INT, piece

ON_TENSORFLOW = pytest.mark.parametrize("library", ["tensorflow"], indirect=True)


def mixed(program, library, lockstep, **limits):
    return MixedProgram(Machine(program, library.backend, **limits), frozenset(lockstep), "a test")


def assert_as_the_reference(library, program, arguments, lockstep, shared=(), **limits):
    """Values, status, sites, steps, what messages show, and how often each lane ran each block."""
    lanes = len(arguments[0])
    wanted = run_reference(program, library.backend, arguments, shared, lanes, **limits)
    executable = mixed(program, library, lockstep, **limits)
    actual = executable.run(arguments, shared, lanes)
    for got, expected in zip(actual.values, wanted.values, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    for name in ("status", "site", "place", "steps", "active"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(wanted, name), err_msg=name)
    one, other = Run.of(program, actual), Run.of(program, wanted)
    assert [fault.render() for fault in one.errors] == [fault.render() for fault in other.errors]
    for number in {*range(len(program.blocks))} - {*lockstep}:
        counts = {int(np.asarray(getattr(actual, name))[number]) for name in ("executions", "active", "rows")}
        assert len(counts) == 1, "a row of its own for each lane, and no other"
    return executable


def choices(program):
    """Every second block in lockstep, and each alone."""
    numbers = range(len(program.blocks))
    return [{*numbers[1::2]}, {*numbers[::2]}, *({number} for number in numbers)]


CASES = [(case, STORAGES[place % 2], place % 2) for place, case in enumerate(tables.CASES)]
REST = [each for each in itertools.product(tables.CASES, STORAGES, range(7)) if each not in CASES]


@pytest.mark.parametrize(
    ("case", "storage", "choice"), [*CASES, *(pytest.param(*each, marks=pytest.mark.slow) for each in REST)]
)
@ON_TENSORFLOW
def test_every_choice_of_blocks_equals_the_reference(library, case, storage, choice):
    program, arguments, limits = tables.case(case, library.ops)
    program = tables.stored(program, storage)
    for lockstep in choices(program)[choice : choice + 1]:
        assert_as_the_reference(library, program, arguments, lockstep, **limits)


@pytest.mark.parametrize(
    "case",
    [case if case in ("bools", "stores") else pytest.param(case, marks=pytest.mark.slow) for case in tables.CASES],
)
@ON_TENSORFLOW
def test_lanes_that_are_stopped_on_their_way_go_on(library, case, monkeypatch):
    """After a step of a lane the others have their turn."""
    few = dataclasses.replace(CPU, native_visit=0, native_least=1)
    monkeypatch.setattr(native_blocks, "CPU", few)
    monkeypatch.setattr(region, "CPU", few)
    program, arguments, limits = tables.case(case, library.ops)
    for lockstep in choices(program)[:1]:
        assert_as_the_reference(library, program, arguments, lockstep, **limits)


@ON_TENSORFLOW
def test_a_visit_of_expensive_steps_is_short(library):
    """So that a run of them can be stopped; but a lane gets on in each."""
    program = tables.fibonacci()
    context = Machine(program, library.backend).context

    def steps(cost, lanes):
        layout, costs = Layout(with_tops_apart(program)), [cost] * len(program.blocks)
        return native_blocks.Extent.of(layout, context.limits, costs, frozenset({1})).steps_of_a_visit(lanes)

    assert steps(1.0, 4) > 100 * steps(50_000.0, 4)
    assert steps(50_000.0, 10**6) > 0


@pytest.mark.parametrize("lockstep", [{3}, pytest.param({2}, marks=pytest.mark.slow)])
@ON_TENSORFLOW
def test_stacks_grow(library, lockstep):
    """Lanes want more room than there is at first, one of them more than there ever is."""
    executable = assert_as_the_reference(library, descending(), [ints(3, 150, 40)], lockstep, max_depth=100)
    assert executable.stack_entries == 33, "what a lane needs that failed so, no other run pays for"
    executable = assert_as_the_reference(library, descending(), [ints(3, 40)], lockstep)
    assert executable.stack_entries == 129
    np.testing.assert_array_equal(executable.run([ints(7)], [], 1).values[0], [28])


def descending():
    """1 + 2 + .. + n, one call in the other."""
    fibonacci = tables.fibonacci()
    b0, b1, b2, b3, _ = fibonacci.blocks
    blocks = (
        dataclasses.replace(b0, body=(piece(lambda n: (n <= 1,), "n", "t"),)),
        b1,
        dataclasses.replace(b2, body=(piece(lambda n: (n - 1,), "n", "n"),)),
        dataclasses.replace(
            b3,
            body=(piece(lambda n, r: (n + r,), "n r", "r"),),
            terminator=Return(),
            pops=("n",),
            pushes=(),
            steps_site=-1,
        ),
        Block("b4", (), Return()),
    )
    return dataclasses.replace(fibonacci, name="descending", blocks=blocks)


@pytest.mark.parametrize("lanes", [17, pytest.param(1, marks=pytest.mark.slow)])
@ON_TENSORFLOW
def test_any_number_of_lanes(library, lanes):
    program = tables.fibonacci(with_state=True)
    vectors = np.random.default_rng(lanes).normal(size=(lanes, 128)).astype(np.float32)
    assert_as_the_reference(library, program, [np.arange(lanes, dtype=np.int32) % 7, vectors], {3})


@pytest.mark.parametrize("lockstep", [{1}, pytest.param({2}, marks=pytest.mark.slow)])
@ON_TENSORFLOW
def test_shared_operands_are_read_by_both(library, lockstep):
    """A product in a block of its own, and a number of the same matrix in the loop around it."""
    blocks = (
        Block("b0", (piece(lambda n: (n > 0,), "n", "t"),), Branch("t", 1, 3)),
        Block("b1", (piece(lambda x, w: ((w @ x[:, None])[:, 0],), "x", "x", shared="W"),), Jump(2)),
        Block("b2", (piece(lambda n, x, w: (n - 1, x * w[0, 1]), "n x", "n x", shared="W"),), Jump(0)),
        Block("b3", (), Return()),
    )
    vector, matrix = TensorType("float32", (9,)), TensorType("float32", (9, 9))
    program = Program(
        "products", ("n", "x"), ("x",), {"n": INT, "t": BOOL, "x": vector}, dict.fromkeys(("n", "x"), "register"),
        blocks, shared=("W",), shared_types={"W": matrix},
    )  # fmt: skip
    generator = np.random.default_rng(5)
    vectors, weights = generator.normal(size=(4, 9)), generator.normal(size=(9, 9)) / 3
    arguments = [ints(0, 1, 5, 3), vectors.astype(np.float32)]
    assert_as_the_reference(library, program, arguments, lockstep, shared=[weights.astype(np.float32)])


@ON_TENSORFLOW
def test_which_blocks_are_left_to_lockstep(library, monkeypatch):
    """Expensive ones, and those where lanes wait; if others lie between them, and rows are not beyond all measure."""
    program, backend = tables.fibonacci(), library.backend

    def chosen(*costs, of=program):
        return mixture(of, backend, costs)

    assert chosen(1, 1, 1, 1, 1) is None
    assert chosen(1, 1, 1, 1e5, 1) == {3}
    assert chosen(1, 1, 1e5, 1e5, 1) == {2, 3}
    assert chosen(1, 1, 1, 1e8, 1) is None
    monkeypatch.setattr(estimate, "CPU", dataclasses.replace(estimate.CPU, native_among=1e9))
    assert chosen(1, 1, 1, 1e8, 1) == {3}
    assert chosen(*[1e5] * 5) is None
    assert chosen(1, 1, 1, of=tables.gcd(library.ops)) is None
    waiting = dataclasses.replace(program.blocks[4], sync=True)
    synchronised = dataclasses.replace(program, blocks=(*program.blocks[:4], waiting))
    assert left_to_lockstep(synchronised, backend, [1] * 5) == {4}


@ON_TENSORFLOW
def test_what_runs_once_is_not_worth_it(library):
    """All blocks but an expensive one lie before it or behind."""
    blocks = (
        Block("b0", (piece(lambda n: (n + 1,), "n", "n"),), Jump(1)),
        Block("b1", (piece(lambda n: (n - 1, n > 0), "n", "n t"),), Branch("t", 1, 2)),
        Block("b2", (piece(lambda n: (n * 2,), "n", "n"),), Return()),
    )
    program = Program("once", ("n",), ("n",), {"n": INT, "t": BOOL}, {"n": "register"}, blocks)
    assert left_to_lockstep(program, library.backend, [1, 1e5, 1]) == {1}
    assert mixture(program, library.backend, [1, 1e5, 1]) is None
    assert_as_the_reference(library, program, [ints(4, 0, -3)], {1})
