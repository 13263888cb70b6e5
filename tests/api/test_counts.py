"""What a run counts, on the paper's own example."""

from __future__ import annotations

import numpy as np

from tests.optimize.programs import fibonacci


def test_batched_fibonacci_adds_exactly_as_often_as_its_longest_lane():
    """fibonacci(7) alone takes 20 additions; the three smaller lanes ride along in the same 20."""
    run = fibonacci.options(schedule="earliest", jit=False).run(np.array([3, 7, 4, 5], np.int32))
    assert run.value.numpy().tolist() == [3, 21, 5, 8]
    addition = list(run.executions)[-1]
    assert run.executions[addition] == 20
    assert run.utilization.by_block[addition] == (2 + 20 + 4 + 7) / (20 * 4)


def test_additions_of_one_lane_alone():
    run = fibonacci.options(schedule="earliest", jit=False).run(np.array([7], np.int32))
    assert list(run.executions.values())[-1] == 20
    assert run.utilization.overall == 1.0
