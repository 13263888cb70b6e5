"""Schedules: their names, and what a trip of each runs."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.diagnostics import UsageError
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend
from pcbatch.runtime.machine import Machine
from pcbatch.runtime.schedules import SCHEDULES, schedule_named
from pcbatch.runtime.table import Block, Branch, Jump, Program, Return
from tests.runtime.tables import BOOL, INT, piece

BACKEND = TensorFlowBackend()


def test_names():
    """Each schedule by its name; "auto" is the guarded sweep."""
    assert [schedule_named(name).name for name in SCHEDULES] == ["earliest", "sweep"]
    assert schedule_named("auto").name == "sweep"
    with pytest.raises(UsageError, match=r"PCB530.*'latest'.*'auto', 'earliest', 'sweep'"):
        schedule_named("latest")


def diamond():
    """b0 branches to b1 or b2, which meet in b3."""
    blocks = (
        Block("b0", (piece(lambda x: (x > 0,), "x", "t"),), Branch("t", 1, 2)),
        Block("b1", (piece(lambda x: (x * 10,), "x", "x"),), Jump(3)),
        Block("b2", (piece(lambda x: (x - 10,), "x", "x"),), Jump(3)),
        Block("b3", (piece(lambda x: (x + 1,), "x", "x"),), Return()),
    )
    return Program("diamond", ("x",), ("x",), {"x": INT, "t": BOOL}, {"x": "register"}, blocks)


@pytest.mark.parametrize(
    ("schedule", "x", "executions", "trips"),
    [
        ("earliest", [1, -1, 2], [1, 1, 1, 1], 4),
        ("sweep", [1, -1, 2], [1, 1, 1, 1], 1),  # every lane gets through in one trip
        ("sweep", [1, 1, 2], [1, 1, 0, 1], 1),  # and nothing runs for nobody
        ("earliest", [-1, -1, -2], [1, 0, 1, 1], 3),
    ],
)
def test_a_diamond(schedule, x, executions, trips):
    """Lanes that part at a branch meet again behind it."""
    outcome = Machine(diamond(), BACKEND, schedule=schedule).run([tf.constant(x)], [], 3)
    np.testing.assert_array_equal(outcome.executions, executions)
    assert outcome.trips == trips
    np.testing.assert_array_equal(outcome.values[0], [10 * v + 1 if v > 0 else v - 9 for v in x])
