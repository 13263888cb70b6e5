"""The reference machine: what the machine must equal, and what it says of lanes by itself."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import TensorFlowBackend
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.report.run import Run
from pcbatch.runtime.schedules.flow import Flow
from pcbatch.runtime.strategies import reference
from pcbatch.runtime.strategies.reference import ReferenceMachine, run_reference
from tests.runtime import tables

BACKEND = TensorFlowBackend()
VECTORS = np.random.default_rng(1).normal(size=(6, 128)).astype(np.float32)
CASES = {
    "fibonacci": (tables.fibonacci(), ([0, 1, 5, 6, 3, 4],), {}),
    "fibonacci with little depth": (tables.fibonacci(), ([0, 1, 5, 6, 3, 4],), {"max_depth": 3}),
    "fibonacci with few steps": (tables.fibonacci(), ([0, 1, 5, 6, 3, 4],), {"max_steps": 8}),
    "saved vectors": (tables.fibonacci(with_state=True), ([0, 1, 5, 2, 3, 4], VECTORS), {}),
    "gcd": (tables.gcd(), ([12, 5, 0, 100], [18, 0, 0, 75]), {"max_steps": 2}),
    "stores": (tables.reverse(), (np.ones([4, 5], np.float32), [0, 3, 5, 9], [0, 4, 2, 1]), {}),
    "bools": (tables.even(), (list(range(7)),), {}),
    "faults": (tables.faults(), ([3, 0, -2, 1, 5, 2],), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_machine_equals_the_reference(case):
    """Values, status, sites, steps, what messages show, and how often each lane ran each block."""
    program, arguments, limits = CASES[case]
    arguments = [np.asarray(a, np.int32) if isinstance(a, list) else a for a in arguments]
    lanes = len(arguments[0])
    wanted = run_reference(program, BACKEND, arguments, [], lanes, **limits)
    actual = Machine(program, BACKEND, jit=False, **limits).run(arguments, [], lanes)
    for got, expected in zip(actual.values, wanted.values, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    for name in ("status", "site", "place", "steps", "active"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(wanted, name), err_msg=name)
    one, other = Run.of(program, actual), Run.of(program, wanted)
    assert [fault.render() for fault in one.errors] == [fault.render() for fault in other.errors]


def test_shared_operands_and_no_lanes():
    """Shared operands are given to every lane; without lanes the results are empty."""
    machine = ReferenceMachine(tables.scaled(), BACKEND)
    x, weights = tf.constant([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]]), tf.Variable(2 * tf.eye(3))
    machine.check(2)
    np.testing.assert_array_equal(machine.run([x], [weights], 2).values[0], 2 * x)
    assert machine.run([x[:0]], [weights], 0).values[0].shape == (0, 3)
    assert machine.statistics.compilations == 0


def simulate(traces, program, schedule):
    """How often each block runs, and in how many trips, when a schedule packs lanes that visit these blocks."""
    waiting, executions, trips = [list(trace) for trace in traces], np.zeros(len(program.blocks), int), 0
    while any(waiting):
        trips += 1
        order = Flow.of(program).order if schedule == "sweep" else [min(trace[0] for trace in waiting if trace)]
        for block in order:
            here = [trace for trace in waiting if trace and trace[0] == block]
            executions[block] += bool(here)
            for trace in here:
                trace.pop(0)
    return executions, trips


@pytest.mark.parametrize("schedule", ["earliest", "sweep"])
@pytest.mark.parametrize("case", ["fibonacci with little depth", "gcd", "bools", "faults"])
def test_schedules_pack_the_lanes_as_they_say(case, schedule, monkeypatch):
    """From the blocks that each lane visits one can tell what each schedule runs: that often, and for nobody never."""
    program, arguments, limits = CASES[case]
    traces = []
    visit = reference._Lane.block

    def recorded(lane, block):
        if not traces or traces[-1][0] is not lane:
            traces.append((lane, []))
        traces[-1][1].append(program.blocks.index(block))
        return visit(lane, block)

    monkeypatch.setattr(reference._Lane, "block", recorded)
    arguments = [np.asarray(a, np.int32) for a in arguments]
    run_reference(program, BACKEND, arguments, [], len(arguments[0]), **limits)
    machine = Machine(program, BACKEND, schedule=schedule, jit=False, **limits)
    outcome = machine.run(arguments, [], len(arguments[0]))
    executions, trips = simulate([trace for _, trace in traces], program, schedule)
    np.testing.assert_array_equal(outcome.executions, executions)
    assert outcome.trips == trips
