"""Pools of lanes: whichever lanes hold the examples, however many there are, each example gives what it gives alone."""

from dataclasses import replace

import numpy as np
import pytest

from pcbatch import LaneStatus, UsageError
from pcbatch.ir.machine import Block, Piece, Program, Return
from pcbatch.runtime.machine import admission
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.resume import checkpoint, savefile
from pcbatch.runtime.resume.checkpoint import Checkpoint
from tests.runtime import tables
from tests.runtime.libraries import library_named, on_both
from tests.runtime.test_legs import away, chain

NUMPY = library_named("numpy")
EXAMPLES = 6


def numbers(*values):
    return np.array(values, np.int32)


VECTORS = np.arange(EXAMPLES * 128, dtype=np.float32).reshape(EXAMPLES, 128) / 7
ARRAYS = np.arange(EXAMPLES * 5, dtype=np.float32).reshape(EXAMPLES, 5)
PROGRAMS = {
    "fibonacci": (lambda _: tables.fibonacci(with_state=True), [numbers(2, 7, 0, 5, 1, 4), VECTORS], {}),
    "stacks": (
        lambda _: tables.stored(tables.fibonacci(with_state=True), "stack"),
        [numbers(2, 7, 0, 5, 1, 4), VECTORS],
        {"max_steps": 20},
    ),
    "even": (lambda _: tables.stored(tables.even(), "stack"), [numbers(3, 0, 7, 10, 1, 4)], {"max_depth": 8}),
    "gcd": (tables.gcd, [numbers(21, 8, 9, 5, 0, 12), numbers(34, 2, 6, 5, 3, 18)], {}),
    "reverse": (
        lambda _: tables.stored(tables.reverse("stack"), "stack"),
        [ARRAYS, numbers(3, 9, 1, 5, 0, 2), numbers(4, 2, 0, 4, 9, -7)],
        {},
    ),
    "faults": (tables.faults, [numbers(3, 0, 1, -4, 10, 2)], {}),
    "chain": (lambda _: chain(), [numbers(3, 70, 0, 40, 1, 2)], {}),
}
"""Examples that return, and examples that fail in all ways; the stacks of one program grow.

Programs are given a library's checked operations."""

ASSIGNMENTS = {
    "backwards": [5, 4, 3, 2, 1, 0],
    "some free": [None, 3, 1, None, 0, 5, 2, 4, None],
    "one waits": [0, 1, 2, 3, None, 4],
    "few": [4, None, 1],
    "one": [0],
}
"""The example that each lane holds at first."""


def held(machine, arguments, assignment):
    """A run that begins with this assignment."""
    layout, pool = machine.legs.layout, Pool(len(assignment), EXAMPLES)
    flat = [
        machine.backend.array(array, held.type.dtype)
        for array, held in zip(arguments, layout.inputs.values(), strict=True)
    ]
    snapshot = away(machine.legs.begin(flat, pool, machine.sizes.capacity))
    places = [layout.free if example is None else layout.start for example in assignment]
    state = {**snapshot.state, "pc": numbers(*places), "example": numbers(*(example or 0 for example in assignment))}
    return replace(snapshot, state=state, queue={"examples": np.int32(EXAMPLES), "begun": np.int32(EXAMPLES)})


def refilled(machine, snapshot, waiting):
    """The snapshot with examples of `waiting` in lanes that are free: taken from its beginning."""
    layout, state = machine.legs.layout, dict(snapshot.state)
    for lane in np.flatnonzero(state["pc"] == layout.free)[: len(waiting)]:
        state["pc"][lane], state["example"][lane] = layout.start, waiting.pop(0)
    return replace(snapshot, state=state)


def run(machine, snapshot, trips, waiting=()):
    """The outcome of slices of so many trips, lanes that become free in between given the examples that wait."""
    waiting = list(waiting)
    for _ in range(1000):
        arrived, outcome = machine.leg(snapshot, [], trips)
        snapshot = away(arrived.snapshot)
        if arrived.paused:
            snapshot = away(machine.grown(snapshot))
        elif not (arrived.can_run or waiting):
            return snapshot, outcome
        snapshot = refilled(machine, snapshot, waiting)
    raise AssertionError("no end")


def machine_of(name, library=NUMPY, **options):
    program, arguments, limits = PROGRAMS[name]
    return Machine(program(library.ops), library.backend, **{**limits, **options}), arguments


def alone(machine, arguments):
    """The outcome of the run with a lane for each example."""
    return machine.run(arguments, [], EXAMPLES)


def assert_equal(outcome, whole, examples):
    """These examples gave what they should, to the bit."""
    for name in ("status", "site", "place", "steps"):
        found, expected = np.asarray(getattr(outcome, name)), np.asarray(getattr(whole, name))
        np.testing.assert_array_equal(found[examples], expected[examples], err_msg=name)
    for value, expected in zip(outcome.values, whole.values, strict=True):
        assert np.asarray(value)[examples].tobytes() == np.asarray(expected)[examples].tobytes()
    failed = [example for example in examples if whole.site[example] >= 0]
    for name, leaves in outcome.fault_values.items():
        for found, expected in zip(leaves, whole.fault_values[name], strict=True):
            np.testing.assert_array_equal(np.asarray(found)[failed], np.asarray(expected)[failed], err_msg=name)


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_example_gives_its_own_whatever_lane_holds_it(name, assignment):
    machine, arguments = machine_of(name, jit=False)
    whole, lanes = alone(machine, arguments), ASSIGNMENTS[assignment]
    snapshot, outcome = run(machine, held(machine, arguments, lanes), trips=3)
    examples = [example for example in lanes if example is not None]
    assert_equal(outcome, whole, examples)
    others = np.setdiff1d(np.arange(EXAMPLES), examples)
    assert (np.asarray(outcome.status)[others] == LaneStatus.UNFINISHED).all()
    assert (snapshot.state["pc"] == machine.legs.layout.free).all()


FREED_AFTER = [(name, trips) for name in PROGRAMS for trips in (1, 7)]


@on_both("name, trips", FREED_AFTER, [("faults", 1), ("chain", 7)])
def test_lanes_that_become_free_take_the_examples_that_wait(library, name, trips):
    """A lane that has run another example, however it ended, beside lanes in mid-run, is as good as a new one."""
    machine, arguments = machine_of(name, library, jit=False)
    whole = alone(machine, arguments)
    _, outcome = run(machine, held(machine, arguments, [1, 0]), trips, waiting=[3, 2, 4, 5])
    assert_equal(outcome, whole, range(EXAMPLES))
    np.testing.assert_array_equal(outcome.active, whole.active)


@pytest.mark.parametrize(
    ("name", "schedule"),
    [pytest.param("stacks", "auto", marks=pytest.mark.slow), ("chain", "earliest"), ("reverse", "sweep")],
)
def test_pools_under_xla(name, schedule):
    machine, arguments = machine_of(name, library_named("tensorflow"), schedule=schedule)
    whole = alone(machine, arguments)
    _, outcome = run(machine, held(machine, arguments, [4, None, 2]), 7, waiting=[1, 0, 5, 3])
    assert_equal(outcome, whole, range(EXAMPLES))
    np.testing.assert_array_equal(outcome.active, whole.active)


@pytest.mark.parametrize("lanes", [2, 6, 9])
def test_the_first_examples_come_first(lanes):
    """A pool of fewer lanes than examples, as many, or more."""
    machine, arguments = machine_of("gcd", jit=False)
    snapshot = machine.begin(arguments, EXAMPLES, lanes)
    assert snapshot.pool == Pool(lanes, EXAMPLES, whole=lanes == EXAMPLES)
    arrived, outcome = machine.leg(snapshot, [], trips=1)
    state = arrived.snapshot.state
    held = state["example"][state["pc"] != machine.legs.layout.free]
    assert set(held) <= set(range(lanes))
    assert (np.asarray(outcome.status)[lanes:] == LaneStatus.UNFINISHED).all()
    _, outcome = machine.leg(arrived.snapshot, [])
    assert_equal(outcome, alone(machine, arguments), range(EXAMPLES))


def test_no_examples():
    machine = Machine(tables.gcd(NUMPY.ops), NUMPY.backend, jit=False)
    snapshot = machine.begin([numbers(), numbers()], 0, 3)
    _, outcome = machine.leg(snapshot, [])
    assert outcome.status.shape == (0,)


def test_steps_of_an_example_that_still_runs():
    machine, arguments = machine_of("gcd", jit=False)
    whole = machine.begin(arguments, EXAMPLES)
    expected = machine.leg(whole, [], trips=3)[1].steps
    _, outcome = machine.leg(held(machine, arguments, [5, 4, None, 3, 2, 1, 0]), [], trips=3)
    np.testing.assert_array_equal(outcome.steps, expected)
    assert expected.max() > 0


def remembering() -> Program:
    """Gives `kept` back, which it sets only where `n` is not 0: else it reads what a new lane holds."""
    write = Piece(lambda n: (n * 2,), ("n",), ("kept",), (), (), (tables.at(1),), predicate="t")
    test = tables.piece(lambda n: (n != 0,), "n", "t")
    blocks = (Block("b0", (test, write), Return()),)
    types = {"n": tables.INT, "kept": tables.INT, "t": tables.BOOL}
    return Program("remembering", ("n",), ("kept",), types, {"n": "register", "kept": "register"}, blocks)


def test_a_lane_remembers_nothing_of_the_example_before():
    machine = Machine(remembering(), NUMPY.backend, jit=False)
    arguments = [numbers(5, 0, 7, 0, 0, 1)]
    _, outcome = run(machine, held(machine, arguments, [0]), 2, waiting=[1, 2, 3, 4, 5])
    np.testing.assert_array_equal(outcome.values[0], 2 * arguments[0])


def test_start_acts_on_no_other_lane():
    machine, arguments = machine_of("fibonacci", jit=False)
    snapshot = away(machine.leg(held(machine, arguments, [1, 3, 5]), [], trips=9)[0].snapshot)
    layout, before = machine.legs.layout, snapshot.state
    assert (before["depth"] > 1).all()
    state = {**before, "pc": before["pc"].copy()}
    state["pc"][1] = layout.start
    state = {key: NUMPY.backend.array(array, array.dtype) for key, array in state.items()}
    inputs = {key: NUMPY.backend.array(array, array.dtype) for key, array in snapshot.inputs.items()}
    after = admission.start(NUMPY.backend, layout, snapshot.pool, state, inputs)
    for key, array in after.items():
        np.testing.assert_array_equal(array[[0, 2]], before[key][[0, 2]], err_msg=key)
    assert (int(after["pc"][1]), int(after["depth"][1]), int(after["top n 0"][1])) == (0, 1, 5)


# -- saved -------------------------------------------------------------------------------------------------------------


def saved(machine, snapshot, path, **changes):
    """What is read of a saved run, elements of its arrays changed: `{name: (place, value)}`."""
    origin = {"program": "", "options": {}, "types": {}, "shared": [], "records": [], "defaults": {}}
    Checkpoint(snapshot, {}, {}, origin, "1", True).save(path)
    header, arrays = savefile.read(path)
    for name, (place, value) in changes.items():
        arrays[name][place] = value
    savefile.write(path, header, arrays)
    return checkpoint.read(str(path), "1").snapshot(machine.legs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_any_pool_can_be_saved(name, tmp_path):
    machine, arguments = machine_of(name, jit=False)
    snapshot = machine.leg(held(machine, arguments, [1, None, 4, 0]), [], trips=2)[0].snapshot
    resumed = saved(machine, snapshot, tmp_path / "run.npz")
    assert resumed.pool == Pool(4, EXAMPLES)
    waiting = [2, 3, 5]
    _, outcome = run(machine, refilled(machine, resumed, waiting), 5, waiting)
    assert_equal(outcome, alone(machine, arguments), range(EXAMPLES))


def test_a_file_says_whether_its_pool_is_whole(tmp_path):
    machine, arguments = machine_of("gcd", jit=False)
    layout, path = machine.legs.layout, tmp_path / "run.npz"
    whole = machine.leg(machine.begin(arguments, EXAMPLES), [], trips=1)[0].snapshot
    assert saved(machine, whole, path).pool == Pool.of(EXAMPLES)
    own = held(machine, arguments, range(EXAMPLES))
    assert not saved(machine, own, path).pool.whole  # they are to start
    for place in (layout.start, layout.free):
        changed = saved(machine, whole, path, **{"state/pc": (5, place)})
        assert not changed.pool.whole
        outcome = machine.leg(changed, [])[1]
        assert_equal(outcome, alone(machine, arguments), range(5 if place == layout.free else 6))


FREED = {"state/pc": (1, 5)}  # of gcd, three blocks: START, FINISH, FREE are 3, 4, 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state/example": (0, 4)}, "two lanes hold the same example"),
        ({"state/example": (0, 6)}, "its array 'state/example' has numbers beyond 0 to 5"),
        ({"state/example": (0, -1)}, "its array 'state/example' has numbers beyond 0 to 5"),
        ({**FREED, "state/example": (1, 6)}, "its array 'state/example' has numbers beyond 0 to 5"),
        ({"state/pc": (0, 9)}, "its array 'state/pc' has numbers beyond 0 to 8"),
        ({"state/pc": (0, 6)}, "lanes have failed in it for no reason"),
        ({"state/fault": (0, 1)}, "lanes have failed in it for no reason"),
        ({"example/status": (1, 7)}, None),
        ({"example/status": (1, 0)}, "lanes run examples that have ended"),
        ({"example/status": (0, 6)}, "the status of an example is not that of its fault"),
        ({"example/site": (0, 0), "example/place": (0, 0)}, "the status of an example is not that of its fault"),
        ({"example/site": (0, 0), "example/status": (0, 6)}, "the status of an example is not that of its fault"),
        ({"example/site": (0, 0), "example/status": (0, 6), "example/place": (0, 2)}, None),
        ({"example/site": (0, 2)}, "its array 'example/site' has numbers beyond -1 to 1"),
        ({"example/place": (0, 3)}, "its array 'example/place' has numbers beyond -1 to 2"),
        ({"example/steps": (0, -1)}, "its array 'example/steps' has numbers beyond 0 to 2147483647"),
        ({**FREED, "state/example": (1, 4)}, None),
    ],
    ids=str,
)
def test_pools_that_are_none(changes, message, tmp_path):
    machine, arguments = machine_of("gcd", jit=False)
    snapshot = machine.leg(held(machine, arguments, [1, 5, 4]), [], trips=1)[0].snapshot
    np.testing.assert_array_equal(snapshot.outputs["status"], np.full(EXAMPLES, LaneStatus.UNFINISHED))
    if message is None:
        machine.leg(saved(machine, snapshot, tmp_path / "run.npz", **changes), [])
        return
    with pytest.raises(UsageError, match=f"PCB592: .*{message}"):
        saved(machine, snapshot, tmp_path / "run.npz", **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"state/calls": ((0, 0), 1)},
        {"state/calls": ((0, 0), 5)},
        {"state/calls": ((0, 1), 6)},
        {"state/calls": ((0, 1), 5)},
        {"state/depth": (0, 0)},
        {"state/depth": (0, 34)},
    ],
    ids=str,
)
def test_stacks_of_program_counters_that_lead_elsewhere(changes, tmp_path):
    """Of fibonacci, five blocks: START, FINISH, FREE are 5, 6, 7."""
    machine, arguments = machine_of("fibonacci", jit=False)
    snapshot = machine.leg(machine.begin(arguments, EXAMPLES), [], trips=2)[0].snapshot
    assert int(snapshot.state["depth"][0]) == 2
    with pytest.raises(UsageError, match="PCB592"):
        saved(machine, snapshot, tmp_path / "run.npz", **changes)
