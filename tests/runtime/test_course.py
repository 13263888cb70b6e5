"""Loops in which calls come back."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def walks(n, at):
    """Ways of `n` steps; a step may be forbidden where it begins, or fail when it has come back."""
    if n == 0:
        return 1
    total = 0
    for step in range(3):
        if (at >> step) % 2 == 0:
            total = total * 2 + walks(n - 1, at * 3 + step) // (at % 11)
    return total


@pcbatch.autobatch
def leaving(n, at):
    """The same, in a loop that is left behind a call, or gone on with at once."""
    found = 0
    while at > 0:
        at = at // 2
        if at % 3 == 0:
            continue
        if n > 0:
            found += leaving(n - 1, at)
            if found > 20:
                break
        found += 1
    return found


N, AT = tf.constant([0, 1, 2, 3, 4, 3, 4, 2]), tf.constant([5, 2, 4, 1, 10, 22, 36, 3])
CASES = {
    "walks": (walks, (N, AT), {}),
    "walks, few steps": (walks, (N, AT), {"max_steps": 9}),
    "walks, not deep": (walks, (N, AT), {"max_depth": 3}),
    "leaving": (leaving, (N, AT * 7), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_native_code_equals_the_reference(case):
    """Values, statuses, faults, steps and counts."""
    function, arguments, limits = CASES[case]
    wanted = function.options(backend="reference", **limits).run(*arguments)
    assert_same(function.options(form="native", **limits).run(*arguments), wanted)


def assert_same(run, wanted):
    np.testing.assert_array_equal(run.value, wanted.value)
    np.testing.assert_array_equal(run.status, wanted.status)
    np.testing.assert_array_equal(run.lane_steps, wanted.lane_steps)
    assert [fault.render() for fault in run.errors] == [fault.render() for fault in wanted.errors]
    assert run.executions == wanted.executions


def test_the_cases_fail_as_they_are_to():
    status = {name: function.options(**limits).run(*given).status for name, (function, given, limits) in CASES.items()}
    found = {name: {pcbatch.LaneStatus(int(each)).name for each in lanes} for name, lanes in status.items()}
    assert found["walks"] == {"OK", "ARITHMETIC"}
    assert found["walks, few steps"] == {"OK", "ARITHMETIC", "MAX_STEPS"}
    assert found["walks, not deep"] == {"OK", "ARITHMETIC", "MAX_DEPTH"}
    assert found["leaving"] == {"OK"}
