"""Hints: `pcbatch.cost` in its places, `pcbatch.sync` under every schedule; neither changes a result."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch
from pcbatch.commands.cli import main
from pcbatch.errors import UsageError
from tests.schedules import GATHERING, RANDOM

EVERY = ("earliest", "busiest", "sweep", "adaptive", GATHERING, RANDOM)


@pcbatch.autobatch
def meeting(turns, ways):
    """Lanes come to the statement behind `sync` by ways of unequal length."""
    total = 0
    for i in range(turns):
        for j in range(ways * (i + 1)):
            total = total + j
        pcbatch.sync()
        total = total % 1009
    return total


@pytest.mark.parametrize("schedule", EVERY)
def test_lanes_meet_at_sync(schedule):
    """Each time, all lanes that still come there pass together: as often as the lane that comes most often."""
    turns, ways = np.array([3, 1, 4, 0, 4], np.int32), np.array([2, 9, 0, 5, 1], np.int32)
    function = meeting.options(schedule=schedule, jit=False)
    run = function.run(turns, ways)
    (sync,) = [block.label for block in function.pipeline(turns, ways).table.blocks if block.sync]
    assert run.executions[sync] == 4
    assert run.utilization.active[sync] == turns.sum()
    np.testing.assert_array_equal(run.value, [int(meeting.single(*one)) for one in zip(turns, ways, strict=True)])


@pcbatch.autobatch
def two_places(endless):
    """One lane comes to its place for ever, the others once to theirs."""
    n = 0
    if endless:
        while n >= 0:
            pcbatch.sync()
            n = n + 1
    pcbatch.sync()
    return n + 7


@pytest.mark.parametrize("schedule", EVERY)
def test_no_place_holds_up_another(schedule):
    run = two_places.options(schedule=schedule, jit=False, max_steps=20).run([True, False, False])
    assert [status.name for status in map(pcbatch.LaneStatus, run.status)] == ["MAX_STEPS", "OK", "OK"]
    np.testing.assert_array_equal(run.value, [0, 7, 7])
    assert run.trips < 150


def test_sync_blocks_survive_every_stage():
    arguments = ([3], [2])
    for stage in ("cfg", "stack", "optimized"):
        assert sum(block.sync for block in meeting.program(stage, *arguments).blocks()) == 1
    assert meeting.source(*arguments).count("sync=True") == 1


def test_a_helper_waits_as_what_calls_it():
    def helper(x):
        pcbatch.sync()
        return x + 1

    @pcbatch.autobatch
    def outer(x):
        return helper(x)

    x = np.array([1, 2], np.int32)
    assert ", sync:" in outer.ir("machine", x)
    np.testing.assert_array_equal(outer(x), [2, 3])


def test_a_cost_is_of_a_helper_that_is_not_batched():
    @pcbatch.cost(3e6)
    def helper(x):
        return x * 2.0

    @pcbatch.autobatch
    def outer(x):
        return helper(x) + helper(x + 1.0)

    x = np.array([1.0, 2.0], np.float32)
    assert {(block.function, block.cost) for block in outer.pipeline(x).table.blocks} == {
        ("outer", None),
        ("helper", 3e6),
    }
    np.testing.assert_array_equal(outer(x), [6.0, 10.0])


# -- cost --------------------------------------------------------------------------------------------------------------


@pcbatch.autobatch
@pcbatch.cost(1e7)
def under(x):
    return x + 1


@pcbatch.cost(2e7)
@pcbatch.autobatch(name="over")
def over(x):
    return x * 2


@pcbatch.autobatch
def hinted(n):
    return over(under(n))


def test_a_cost_is_of_each_block_of_its_function():
    blocks = hinted.pipeline([3]).table.blocks
    assert {(block.function, block.cost) for block in blocks} == {("hinted", None), ("under", 1e7), ("over", 2e7)}
    assert over.__name__ == "over"
    assert "cost=10000000.0" in hinted.source([3])
    assert "function under(x) -> result, cost 10000000.0" in hinted.ir()


@pcbatch.autobatch
def straying(n):
    """Lanes come to an expensive function at different times."""
    x = 0
    for i in range(n):
        for _ in range(n):
            x = x + i
        x = under(x)
    return x


def test_adaptive_gathers_where_it_is_dear():
    n = np.arange(12, dtype=np.int32)
    expensive = next(b.label for b in straying.pipeline(n).table.blocks if b.function == "under")
    counts = [straying.options(schedule=name, jit=False).run(n).executions[expensive] for name in ("adaptive", "sweep")]
    assert counts[0] == 11, "no more often than the lane that needs it most"
    assert counts[1] > 20


@pytest.mark.parametrize("row", [0, -1.0, float("inf"), float("nan"), True, "1", None])
def test_a_cost_is_a_positive_number(row):
    with pytest.raises(UsageError, match="PCB550: a row cannot cost"):
        pcbatch.cost(row)


def test_a_cost_is_of_a_function():
    with pytest.raises(UsageError, match=r"PCB553: .* is no function"):
        pcbatch.cost(2.0)(staticmethod(len))


def test_hints_reach_written_modules(tmp_path, monkeypatch):
    """What `pcbatch compile -o` writes keeps both hints, and its text says so."""
    path = tmp_path / "hinted.py"
    path.write_text(
        "import pcbatch\n\n\n@pcbatch.cost(300)\n@pcbatch.autobatch\ndef hinted(n):\n"
        "    while n > 5:\n        n = n - 2\n        pcbatch.sync()\n    return n\n"
    )
    output = tmp_path / "written.py"
    assert main(["compile", str(path), "--args", "[[9, 2, 6]]", "-o", str(output)]) == 0
    text = output.read_text()
    assert text.count("cost=300.0") == text.count("_pcb.Block(")
    assert text.count("sync=True") == 1
    monkeypatch.syspath_prepend(tmp_path)
    import written

    np.testing.assert_array_equal(written.hinted([9, 2, 6]), [5, 2, 4])
