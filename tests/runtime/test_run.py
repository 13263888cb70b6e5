"""What users see of a run: statuses, messages, the use of rows, errors; `test_run_in_graphs` has what graphs see."""

import dataclasses
import json
from typing import Any, NamedTuple

import numpy as np
import pytest

from pcbatch.errors import PcbatchError
from pcbatch.ir.machine import LaneStatus
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.report.formatting import listed, written
from pcbatch.runtime.report.run import LEGEND, LaneError, Run
from tests.runtime import tables
from tests.runtime.libraries import ON_BOTH, ints, library_named

pytestmark = pytest.mark.usefixtures("source")


@pytest.fixture(scope="module", params=["numpy", "tensorflow"])
def machine(request):
    """A machine for the program whose lanes fail in several ways, on each library."""
    library = library_named(request.param)
    return Machine(tables.faults(library.ops), library.backend, jit=False)


def outcome_of(machine, *x):
    """Run `machine`."""
    return machine.run([ints(*x)], [], len(x))


def test_a_run_says_what_became_of_each_lane(machine):
    """Statuses, filled-in messages and source lines; the results of the other lanes are there."""
    run = Run.of(machine.program, outcome_of(machine, 3, 0, -2, 1))
    assert [LaneStatus(status).name for status in run.status] == ["OK", "ARITHMETIC", "ASSERTION", "RAISED"]
    assert [(error.lane, error.status.name, error.message) for error in run.errors] == [
        (1, "ARITHMETIC", "ZeroDivisionError: integer division by zero"),
        (2, "ASSERTION", "AssertionError: -5 is not positive"),
        (3, "RAISED", "ValueError: 10 of 1 is too large"),
    ]
    assert [error.span.line for error in run.errors] == [20, 21, 22]
    np.testing.assert_array_equal(run.value[1], [3, 0, 0, 0])
    np.testing.assert_array_equal(run.lane_steps, [0, 0, 0, 0])


def test_how_the_rows_were_used(machine):
    """Four lanes: b0 ran for all; b2 for one of them; a line counts the blocks that come from it."""
    run = Run.of(machine.program, outcome_of(machine, 3, 0, -2, 1))
    assert run.executions == {"b0": 1, "b1": 1, "b2": 1, "b3": 1, "b4": 1, "b5": 1}
    assert run.block_runs == 6
    with pytest.warns(DeprecationWarning, match="is now Run.block_runs"):
        assert run.steps == 6
    assert run.trips == 1
    used = run.utilization
    assert used.by_block == {"b0": 1.0, "b1": 0.75, "b2": 0.25, "b3": 0.5, "b4": 0.25, "b5": 0.25}
    assert used.overall == 3 / 6
    # Pieces of these tables all say line 10; blocks without pieces, line 21 and 22.
    assert used.by_line == {10: (4 + 3 + 2 + 1) / 16, 21: 0.25, 22: 0.25}
    assert used.rows_by_line == {10: 16, 21: 4, 22: 4}
    assert repr(used) == "<pcbatch.Utilization: 50% of 24 rows>"
    assert repr(run) == "<pcbatch.Run of faults: 3 of 4 lanes failed, 1 trips, 6 block runs, 50% of the rows of use>"


@ON_BOTH
def test_no_lanes(library):
    """An empty batch runs nothing and fails nowhere."""
    machine = Machine(tables.faults(library.ops), library.backend)
    run = Run.of(machine.program, outcome_of(machine))
    assert (run.errors, run.trips, run.utilization.overall) == ((), 0, 1.0)
    assert run.check()[0].shape == (0,)


def test_lane_error(machine):
    """From Python: the first failed lanes with their source, and the whole run on the error."""
    outcome = outcome_of(machine, 3, 0, -2, 5)
    with pytest.raises(LaneError) as caught:
        Run.checked_value(machine.program, outcome)
    assert str(caught.value) == "\n".join(
        [
            "2 of 4 lanes of faults failed",
            "",
            "lane 1 (ARITHMETIC): ZeroDivisionError: integer division by zero",
            "  --> user.py:20:5",
            "      |",
            "   20 |     q = 10 // x",
            "      |     ^^^^^",
            "",
            "lane 2 (ASSERTION): AssertionError: -5 is not positive",
            "  --> user.py:21:5",
            "      |",
            "   21 |     assert q > 0",
            "      |     ^^^^^",
        ]
    )
    assert isinstance(caught.value, PcbatchError)
    assert isinstance(caught.value, RuntimeError)
    np.testing.assert_array_equal(caught.value.run.value[1], [3, 0, 0, 2])


def test_many_failed_lanes(machine):
    """A message stays short: one fault of many lanes is drawn once."""
    with pytest.raises(LaneError) as caught:
        Run.checked_value(machine.program, outcome_of(machine, *[0] * 8))
    assert str(caught.value).startswith("8 of 8 lanes of faults failed\n\nlanes 0, 1, 2, 3, 4, .. (ARITHMETIC): Zero")
    assert str(caught.value).count("q = 10 // x") == 1
    with pytest.raises(LaneError, match=r"7 of 7(.|\n)*-10 is not(.|\n)*-3 is not(.|\n)*and 2 more, see .run.errors"):
        Run.checked_value(machine.program, outcome_of(machine, *range(0, -7, -1)))


def test_checked_value(machine):
    """The value itself where no lane failed."""
    y, i = Run.checked_value(machine.program, outcome_of(machine, 3, 5))
    np.testing.assert_allclose(y, np.sqrt([3, 2]), rtol=1e-6)
    np.testing.assert_array_equal(i, [3, 2])


def test_report(machine):
    """What the command line prints: each lane's end, the failed lanes' source, the counts."""
    run = Run.of(machine.program, outcome_of(machine, 5, 0))
    lines = run.report().splitlines()
    assert lines[:3] == [
        "lane 0: (1.4142135, 2)",
        "lane 1: ARITHMETIC",
        "lane 1 (ARITHMETIC): ZeroDivisionError: integer division by zero",
    ]
    assert lines[-3:] == [
        "1 of 2 lanes failed, 1 trips, 4 block runs, 62% of the rows of use",
        *LEGEND.splitlines(),
    ]
    assert run.report(lanes=1).splitlines()[1] == "and 1 more lanes"


def test_a_run_as_json(machine):
    """Every lane's value or fault, in what `json` can write; a float32 in its own digits."""
    run = Run.of(machine.program, outcome_of(machine, 5, 0))
    good, bad = json.loads(json.dumps(run.as_json()))["lanes"]
    assert good == {"status": "OK", "value": [1.4142135, 2]}
    fault = {"message": "ZeroDivisionError: integer division by zero", "file": tables.FILE, "line": 20}
    assert bad == {"status": "ARITHMETIC", "value": None, **fault}


class Pair(NamedTuple):
    """A named tuple of results."""

    left: Any
    right: Any


@dataclasses.dataclass
class Point:
    """A dataclass of results."""

    x: Any


SHOWN = [
    (np.float32(0.1), "0.1", 0.1),
    (np.bool_(True), "True", True),
    (np.array([1, 2], np.int32), "[1 2]", [1, 2]),
    ((np.int32(1), [np.float32("nan")]), "(1, [nan])", [1, ["nan"]]),
    ((np.int32(1),), "(1,)", [1]),
    ({"a": np.float64(-np.inf)}, "{'a': -inf}", {"a": "-inf"}),
    (Pair(np.int32(1), np.int32(2)), "Pair(left=1, right=2)", {"left": 1, "right": 2}),
    (Point(np.array([[True]])), "Point(x=[[ True]])", {"x": [[True]]}),
    (np.complex64(1 + 2j), "(1+2j)", "(1+2j)"),
]


@pytest.mark.parametrize(("value", "text", "data"), SHOWN, ids=[text for _, text, _ in SHOWN])
def test_how_values_are_shown(value, text, data):
    assert written(value) == text
    assert listed(value) == data


@ON_BOTH
def test_a_fault_without_a_place_of_its_own_is_shown_at_its_block(library):
    """A lane that takes too many steps fails wherever it is: at the block that it was in."""
    program = tables.without_place(tables.gcd(library.ops))
    outcome = library.run(program, ints(5, 4), ints(3, 2), jit=False, max_steps=1)
    (error,) = Run.of(program, outcome).errors
    assert (error.lane, error.status, error.span) == (0, LaneStatus.MAX_STEPS, tables.at(7))
