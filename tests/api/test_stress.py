"""Lanes are apart: thousands of them, a few percent failing in every way at once, next to NaN and infinities."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch
from pcbatch import LaneStatus
from tests.pairwise import every_second
from tests.schedules import SCHEDULES

LANES, MAX_DEPTH, MAX_STEPS = 4096, 60, 90
KINDS = {
    1: LaneStatus.ASSERTION,
    2: LaneStatus.RAISED,
    3: LaneStatus.ARITHMETIC,  # //
    4: LaneStatus.ARITHMETIC,  # %
    5: LaneStatus.INDEX,  # read
    6: LaneStatus.INDEX,  # store
    7: LaneStatus.MAX_DEPTH,
    8: LaneStatus.MAX_STEPS,
}


@pcbatch.autobatch(max_depth=MAX_DEPTH, max_steps=MAX_STEPS)
def ordeal(kind, n, x, values):
    """Goes `n` calls deep, further than stacks have room for at first, and there fails as `kind` says, or does not."""
    if n > 0 or kind == 7:
        inner, count = ordeal(kind, n - 1, x, values)
        return inner, count + 1
    assert kind != 1, f"kind {kind}"
    if kind == 2:
        raise ValueError(f"{x} is not welcome")
    count = 100 // (kind - 3) + 100 % (kind - 4)
    place = kind % 4
    if kind == 5:
        place = 4
    elif kind == 6:
        values[place - 7] = x
    else:
        values[place - 4] = x
    turns = 0
    while kind == 8 or turns < kind % 5:
        turns += 1
    return values[place] + values[(place + 1) % 4], count + turns


def batch(lanes):
    """Mostly lanes that end well; every 40th or so fails in each of the ways. Some read NaN or infinities."""
    rng = np.random.default_rng(7)
    kind = np.where(rng.random(lanes) < 0.2, rng.integers(1, 9, lanes), rng.integers(9, 40, lanes)).astype(np.int32)
    n = rng.integers(0, 50, lanes).astype(np.int32)
    x = rng.choice(np.array([1.5, -0.0, np.nan, np.inf, -np.inf, 3e38], np.float32), lanes)
    values = rng.normal(size=(lanes, 4)).astype(np.float32)
    values[rng.random((lanes, 4)) < 0.1] = np.inf
    return kind, n, x, values


def truth(kind, n, x, values):
    """What `ordeal` gives, by NumPy: floats, ints and statuses `[lanes]`."""
    status = np.array([KINDS.get(int(k), LaneStatus.OK) for k in kind])
    fine = status == LaneStatus.OK
    stored = values.copy()
    place = kind % 4
    stored[np.arange(len(kind)), place] = x  # values[place - 4] is values[place]
    lanes = np.arange(len(kind))
    with np.errstate(all="ignore"):
        total = stored[lanes, place] + stored[lanes, (place + 1) % 4]
        count = 100 // (kind - 3) + 100 % (kind - 4) + kind % 5 + n
    return np.where(fine, total, np.nan).astype(np.float32), np.where(fine, count, 0), status


@pytest.mark.parametrize(
    ("schedule", "jit"),
    [
        ("adaptive", True),
        pytest.param("gathering", False, marks=pytest.mark.slow),
        *(
            pytest.param(name, jit, marks=pytest.mark.slow)
            for name in ("earliest", "sweep", "busiest", "random")
            for jit in (True, False)
        ),
    ],
)
def test_every_lane_ends_as_it_would_alone(schedule, jit):
    arguments = batch(LANES)
    run = ordeal.options(schedule=schedule, jit=jit).run(*arguments)
    total, count, status = truth(*arguments)
    np.testing.assert_array_equal(run.status, status)
    np.testing.assert_array_equal(run.value[0], total)
    np.testing.assert_array_equal(run.value[1], count)
    assert {fault.status for fault in run.errors} == set(KINDS.values())
    assert len(run.errors) == np.count_nonzero(status)
    for fault in run.errors[:50]:
        assert fault.span.file == __file__
    kind, n, _, _ = arguments
    np.testing.assert_array_equal(run.lane_steps[status == 0], (n + kind % 5)[status == 0])
    np.testing.assert_array_equal(run.lane_steps[kind == 7], MAX_DEPTH)
    np.testing.assert_array_equal(run.lane_steps[kind == 8], MAX_STEPS)


def test_the_truth_is_what_single_says():
    """The NumPy twin against the user's function as plain Python, on lanes of every kind that Python can end."""
    arguments = batch(400)
    total, count, status = truth(*arguments)
    kind, n, _, _ = arguments
    lanes = [int(np.flatnonzero((kind == k) & (n < 20))[0]) for k in (1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 20, 33)]
    raised = {
        LaneStatus.ASSERTION: AssertionError,
        LaneStatus.RAISED: ValueError,
        LaneStatus.ARITHMETIC: Exception,
        LaneStatus.INDEX: Exception,
    }
    for lane in lanes:
        example = [a[lane] for a in arguments]
        if status[lane] in raised:
            with pytest.raises(raised[status[lane]]):
                ordeal.single(*example)
        else:
            one, two = ordeal.single(*example)
            np.testing.assert_array_equal(one, total[lane])
            assert int(two) == count[lane]


@pytest.mark.parametrize(("schedule", "jit"), every_second(sorted(SCHEDULES), [False, True]))
def test_a_lane_in_an_endless_loop_holds_up_nobody(schedule, jit):
    @pcbatch.autobatch(max_steps=500, schedule=schedule, jit=jit)
    def collatz(n):
        turns = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            turns += 1
        return turns

    run = collatz.run(np.array([0, 6, 27, 1, -1], np.int32))
    assert run.value.numpy().tolist() == [0, 8, 111, 0, 0]
    stuck, fine = LaneStatus.MAX_STEPS, LaneStatus.OK
    assert run.status.tolist() == [stuck, fine, fine, fine, stuck]
    assert run.lane_steps.tolist() == [500, 8, 111, 0, 500]
