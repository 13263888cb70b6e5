"""What a run is inside a caller's `tf.function`: arrays without values, assertions, and what is refused there."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.ir.machine import Block, LaneStatus, Program, Return
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend, ops
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.report.run import Run
from tests.runtime import tables
from tests.runtime.tables import INT, piece

BACKEND = TensorFlowBackend()
pytestmark = pytest.mark.usefixtures("source")


@pytest.fixture(scope="module")
def machine():
    """A machine for the program whose lanes fail in several ways."""
    return Machine(tables.faults(ops), BACKEND, jit=False)


def outcome_of(machine, x):
    """Run `machine` on a tensor."""
    return machine.run([x], [], x.shape[0])


@pytest.mark.parametrize("jit", [True, False])
def test_inside_a_graph_an_assertion_raises(jit):
    """In a plain `tf.function` the failed lane is named when the graph runs, before its values are used."""
    machine = Machine(tables.faults(ops), BACKEND, jit=jit)

    @tf.function(autograph=False)
    def inside(x):
        y, _ = Run.checked_value(machine.program, outcome_of(machine, x))
        return 2.0 * y

    np.testing.assert_allclose(inside(tf.constant([3, 5])), 2 * np.sqrt([3, 2]), rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        inside(tf.constant([5, -2]))
    message = caught.value.message
    for part in ("lanes of faults failed", "AssertionError: -5 is not positive", "user.py:21", "assert q > 0"):
        assert part in message
    with pytest.raises(tf.errors.InvalidArgumentError, match="ValueError: 10 of 1 is too large"):
        inside(tf.constant([1, -2]))


def test_a_fault_without_a_place_of_its_own_is_shown_at_its_block():
    """As from Python: a lane that takes too many steps fails at the block that it was in."""
    machine = Machine(tables.without_place(tables.gcd(ops)), BACKEND, jit=False, max_steps=1)
    a, b = tf.constant([5, 4]), tf.constant([3, 2])

    @tf.function(autograph=False)
    def inside(a, b):
        return Run.checked_value(machine.program, machine.run([a, b], [], 2))

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"too many steps(.|\n)*user.py:7"):
        inside(a, b)


def test_inside_a_graph_a_run_knows_its_arrays(machine):
    """Value and status can be used; what only the end of the run knows is refused."""

    @tf.function(autograph=False)
    def inside(x):
        run = Run.of(machine.program, outcome_of(machine, x))
        with pytest.raises(UsageError, match="PCB533"):
            _ = run.errors
        assert repr(run) == "<pcbatch.Run of faults: inside a tf.function>"
        return run.value[1], run.status

    i, status = inside(tf.constant([5, 0]))
    np.testing.assert_array_equal(i, [2, 0])
    np.testing.assert_array_equal(status, [0, LaneStatus.ARITHMETIC])


def test_inside_an_outer_xla_program_only_what_cannot_fail_is_called():
    """Nothing can raise there: a program that can fail must be run with `run`, one that cannot may be called."""
    failing = Machine(tables.faults(ops), BACKEND)

    def called(x):
        return Run.checked_value(failing.program, outcome_of(failing, x))

    with pytest.raises(UsageError, match=r"PCB532(.|\n)*faults.run"):
        tf.function(called, jit_compile=True, autograph=False)(tf.constant([5, 0]))

    def run(x):
        result = Run.of(failing.program, outcome_of(failing, x))
        return result.value[1], result.status

    i, status = tf.function(run, jit_compile=True, autograph=False)(tf.constant([5, 0]))
    np.testing.assert_array_equal(i, [2, 0])
    np.testing.assert_array_equal(status, [0, LaneStatus.ARITHMETIC])

    block = Block("b0", (piece(lambda x: (x * 2,), "x", "x"),), Return())
    safe = Machine(Program("twice", ("x",), ("x",), {"x": INT}, {"x": "register"}, (block,)), BACKEND)

    def twice(x):
        return Run.checked_value(safe.program, outcome_of(safe, x))

    np.testing.assert_array_equal(tf.function(twice, jit_compile=True, autograph=False)(tf.constant([5, 0])), [10, 0])
