"""The reference machine: what the machine must equal, and what it says of lanes by itself."""

import numpy as np

from pcbatch.runtime.report.run import Run
from pcbatch.runtime.schedules.schedule_step import BlockGraph
from pcbatch.runtime.strategies.reference import Lane, ReferenceMachine, run_reference
from tests.runtime import tables
from tests.runtime.libraries import MODES, ON_BOTH, on_both

EVERYWHERE = [(case, *mode) for case in tables.CASES for mode in MODES]
AS_A_GRAPH = [(case, "auto", False) for case in ("fibonacci with little depth", "saved vectors", "stores", "faults")]


@on_both("case, schedule, jit", EVERYWHERE, AS_A_GRAPH)
def test_the_machine_equals_the_reference(library, case, schedule, jit):
    """Values, status, sites, steps, what messages show, and how often each lane ran each block."""
    program, arguments, limits = tables.case(case, library.ops)
    wanted = run_reference(program, library.backend, arguments, [], len(arguments[0]), **limits)
    actual = library.run(program, *arguments, schedule=schedule, jit=jit, **limits)
    for got, expected in zip(actual.values, wanted.values, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    for name in ("status", "site", "place", "steps", "active"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(wanted, name), err_msg=name)
    one, other = Run.of(program, actual), Run.of(program, wanted)
    assert [fault.render() for fault in one.errors] == [fault.render() for fault in other.errors]


@ON_BOTH
def test_shared_operands_and_no_lanes(library):
    """Shared operands are given to every lane; without lanes the results are empty."""
    machine = ReferenceMachine(tables.scaled(), library.backend)
    x, weights = np.array([[1, 2, 3], [0, 0, 1]], np.float32), 2 * np.eye(3, dtype=np.float32)
    machine.check(2)
    np.testing.assert_array_equal(machine.run([x], [weights], 2).values[0], 2 * x)
    assert machine.run([x[:0]], [weights], 0).values[0].shape == (0, 3)
    assert machine.statistics.compilations == 0


def simulate(traces, program, schedule):
    """How often each block runs, and in how many trips, when a schedule packs lanes that visit these blocks."""
    waiting, executions, trips = [list(trace) for trace in traces], np.zeros(len(program.blocks), int), 0
    while any(waiting):
        trips += 1
        order = BlockGraph.of(program).order if schedule == "sweep" else [min(trace[0] for trace in waiting if trace)]
        for block in order:
            here = [trace for trace in waiting if trace and trace[0] == block]
            executions[block] += bool(here)
            for trace in here:
                trace.pop(0)
    return executions, trips


PACKED = [(case, schedule) for case in tables.CASES for schedule in ("earliest", "sweep")]


@on_both("case, schedule", PACKED, [("faults", "sweep")])
def test_schedules_pack_the_lanes_as_they_say(library, case, schedule, monkeypatch):
    """From the blocks that each lane visits one can tell what each schedule runs: that often, and for nobody never."""
    program, arguments, limits = tables.case(case, library.ops)
    traces = []
    visit = Lane.block

    def recorded(lane, block):
        if not traces or traces[-1][0] is not lane:
            traces.append((lane, []))
        traces[-1][1].append(program.blocks.index(block))
        return visit(lane, block)

    monkeypatch.setattr(Lane, "block", recorded)
    run_reference(program, library.backend, arguments, [], len(arguments[0]), **limits)
    outcome = library.run(program, *arguments, schedule=schedule, jit=False, **limits)
    executions, trips = simulate([trace for _, trace in traces], program, schedule)
    np.testing.assert_array_equal(outcome.executions, executions)
    assert outcome.trips == trips
