"""Long runs: wherever a run is stopped, what is saved goes on to the results of the run that nobody stopped."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import LaneStatus, RunInterruptedError, UsageError
from pcbatch.runtime.resume import checkpoint
from tests.api import long_programs
from tests.api.interrupting import (
    as_new,
    bare_interrupt,
    ctrl_c,
    everything,
    few_turns,  # noqa: F401 -- a fixture for all tests here
    made,
    stopping,
)
from tests.api.long_programs import BATCHES, STATICS, depth
from tests.schedules import SCHEDULES
from tests.threads import in_threads

MODES = [
    *(("walk", name, False) for name in SCHEDULES),
    *(("orbit", "auto", False), ("narrow", "auto", False), ("walk", "auto", True)),
    pytest.param("depth", "auto", True, marks=pytest.mark.slow),
    *(pytest.param("depth", name, False, marks=pytest.mark.slow) for name in SCHEDULES),
]


@pytest.mark.parametrize(("name", "schedule", "jit"), MODES, ids=str)
def test_a_run_stopped_anywhere_goes_on_to_the_same_end(name, schedule, jit, tmp_path):
    batch, path = BATCHES[name], tmp_path / "run.npz"
    if jit and name == "depth":
        batch = tuple(array[batch[0] < 100] for array in batch)  # a size of stacks less to compile
    function = made(name, schedule=schedule, jit=jit)
    sliced, resumed = function.options(progress=True), function.options(resume=path)
    whole = everything(function.run(*batch))
    with stopping(None, trips=5):
        assert everything(as_new(sliced).run(*batch)) == whole
    count = -(-whole["trips"] // 5)
    assert count > 5
    for after in (1, count // 2, count - 2):
        with stopping(after, trips=5):
            run = as_new(sliced).run(*batch)
        assert run.interrupted
        assert (run.status == LaneStatus.UNFINISHED).any()
        assert run.trips <= 5 * (after + 1)
        run.save(path)
        assert everything(resumed.run(**STATICS.get(name, {}))) == whole


def test_a_run_stopped_after_every_slice_and_resumed_each_time(tmp_path):
    path, batch = tmp_path / "run.npz", BATCHES["depth"]
    whole = everything(made("depth", jit=False).run(*batch))
    function = made("depth", jit=False)
    with stopping(0, trips=23):
        run = function.options(progress=True).run(*batch)
    sizes, stops = [], 0
    while run.interrupted and (run.status == LaneStatus.UNFINISHED).any():
        run.save(path)
        sizes.append(run.outcome.stack_entries)
        stops += 1
        with stopping(0, trips=23):
            run = function.options(resume=path).run()
    assert stops > 10
    assert {33, 129, 513} <= set(sizes)
    assert everything(run) == whole


def test_results_of_finished_lanes_are_there_at_once():
    n, x = BATCHES["depth"]
    whole = made("depth", jit=False).run(n, x)
    with stopping(10, trips=10):
        run = made("depth", jit=False, progress=True).run(n, x)
    ended = run.status != LaneStatus.UNFINISHED
    assert ended.tolist() == [True, True, True, True, False, True]
    np.testing.assert_array_equal(run.status[ended], whole.status[ended])
    for part, other in zip(run.value, whole.value, strict=True):
        np.testing.assert_array_equal(part.numpy()[ended], other.numpy()[ended])
    assert np.isnan(run.value[0].numpy()[4])
    assert [error.status.name for error in run.errors] == ["ASSERTION", "UNFINISHED"]
    assert "1 of 6 lanes failed, 1 not at their end" in repr(run)


def test_a_call_raises_an_interrupt_with_the_run(tmp_path):
    batch, function = BATCHES["depth"], made("depth", jit=False)
    good = tuple(np.delete(array, 2) for array in batch)
    with (
        stopping(4, trips=10),
        pytest.raises(RunInterruptedError, match=r"after [0-9]+ trips, when 3 of 5 lanes") as caught,
    ):
        function.options(progress=True)(*good)
    assert isinstance(caught.value, KeyboardInterrupt)
    assert not isinstance(caught.value, Exception)
    caught.value.run.save(tmp_path / "run.npz")
    value = function.options(resume=tmp_path / "run.npz")()
    np.testing.assert_array_equal(value[0], function(*good)[0])


def test_an_interrupt_out_of_the_blue_costs_at_most_a_slice():
    with stopping(3, trips=10, by=bare_interrupt):
        run = made("walk", jit=False, progress=True).run(*BATCHES["walk"])
    assert run.interrupted
    assert run.trips == 30
    with stopping(0, trips=10, by=bare_interrupt), pytest.raises(KeyboardInterrupt) as caught:
        made("walk", jit=False, progress=True).run(*BATCHES["walk"])
    assert not isinstance(caught.value, RunInterruptedError), "nothing had run yet"


def test_a_second_ctrl_c_does_not_wait():
    def twice():
        ctrl_c()
        ctrl_c()

    with stopping(2, trips=10, by=twice):
        run = made("walk", jit=False, progress=True).run(*BATCHES["walk"])
    assert (run.interrupted, run.trips) == (True, 20)


def test_ctrl_c_in_the_last_slice_leaves_a_finished_run():
    function = made("walk", jit=False, progress=True)
    with stopping(0, trips=10_000):
        run = function.run(*BATCHES["walk"])
    assert run.interrupted
    assert not run.status.any()
    with stopping(0, trips=10_000), pytest.raises(RunInterruptedError, match="4 of 4 lanes had ended"):
        function(*BATCHES["walk"])


def test_handlers_of_ctrl_c_are_put_back_and_those_of_others_left_alone():
    function, seen = made("walk", jit=False, progress=True), []
    function.run(*BATCHES["walk"])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    before = signal.signal(signal.SIGINT, lambda *_: seen.append("theirs"))
    try:
        with stopping(1, trips=10):
            assert not function.run(*BATCHES["walk"]).interrupted
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == ["theirs"]


def test_runs_in_other_threads():
    function = made("walk", jit=False, progress=True)
    runs = in_threads(3, lambda: function.run(*BATCHES["walk"]))
    assert [everything(run) for run in runs] == [everything(made("walk", jit=False).run(*BATCHES["walk"]))] * 3


def test_slices_compile_nothing_but_the_leg():
    function = made("depth", jit=False)
    function(*(np.delete(array, 2) for array in BATCHES["depth"]))
    before = function.stats()
    with stopping(None, trips=9):
        function.options(progress=True).run(*BATCHES["depth"])
    assert function.stats().compilations == before.compilations + 1, "another number of lanes"
    with stopping(None, trips=5):
        function.options(progress=True).run(*BATCHES["depth"])
    assert function.stats().compilations == before.compilations + 1
    assert function.options(progress=True).stats() == function.stats()
    assert function.options(progress=True).source() == function.source()


def test_budgets_follow_the_clock():
    assert checkpoint.next_budget(100, 0.25) == 100
    assert checkpoint.next_budget(100, 0.125) == 200
    assert checkpoint.next_budget(100, 0.0) == 400
    assert checkpoint.next_budget(100, 30.0) == 25
    assert checkpoint.next_budget(1, 30.0) == 1


def test_what_a_run_without_end_needs_is_not_learnt():
    function = made("depth", jit=False)
    endless = np.array([10**6], np.int32), np.ones(1, np.float32)
    run = function.options(max_depth=1000).options(progress=True).run(*endless)
    assert run.status.tolist() == [LaneStatus.MAX_DEPTH]
    with stopping(None, trips=100):
        again = function.options(max_depth=1000).options(progress=True)
        again.run(*endless)
    assert again.stats().stack_entries == 33


# -- the bar -----------------------------------------------------------------------------------------------------------


def test_the_bar_shows_lanes_trips_and_utilisation(capsys, monkeypatch):
    function = made("walk", jit=False, progress=True)
    whole = function.options(progress=False).run(*BATCHES["walk"])
    assert capsys.readouterr() == ("", "")
    function(*BATCHES["walk"])
    shown = capsys.readouterr().err
    assert "walk: 100%" in shown
    assert f"{whole.trips} trips, {whole.utilization.overall:.0%} of rows of use" in shown
    with stopping(0, trips=40):
        function.run(*BATCHES["walk"])
    assert "walk:  75%" in capsys.readouterr().err
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert subprocess.run([sys.executable, "-c", SHOWS_A_BAR], capture_output=True, check=True).stderr == b""


SHOWS_A_BAR = """
import tqdm.auto
with tqdm.auto.tqdm(total=3) as bar:
    bar.update(3)
"""


def test_lanes_of_no_number():
    """A batch of none has nothing to wait for."""
    none = np.zeros(0, np.int32), np.zeros(0, np.float32)
    run = made("depth", jit=False, progress=True).run(*none)
    assert (run.status.tolist(), run.trips) == ([], 0)


def test_a_variable_changed_in_mid_run_is_read_once(tmp_path):
    whole = everything(made("walk", jit=False).run(*BATCHES["walk"]))

    def change():
        long_programs.OFFSET.assign(7.0)

    try:
        with stopping(3, trips=10, by=change):
            assert everything(made("walk", jit=False, progress=True).run(*BATCHES["walk"])) == whole
    finally:
        long_programs.OFFSET.assign(0.25)


def test_inside_a_tf_function_there_are_no_slices():
    function = made("walk", jit=False, progress=True)
    with pytest.raises(UsageError, match=r"PCB565: walk with progress or resume runs in slices"):
        tf.function(lambda n: function.run(n, 0.5).value, autograph=False)(tf.constant([3]))


def test_a_compiled_program_runs_in_slices_too(tmp_path):
    from pcbatch.function.precompiled import Precompiled

    batch = BATCHES["depth"]
    table = made("depth", jit=False).pipeline(*batch).table
    given = {name: table.types[name] for name in table.parameters}, table.parameters
    with stopping(3, trips=10):
        run = Precompiled(table, *given, jit=False, progress=True).run(*batch)
    assert run.interrupted
    run.save(tmp_path / "run.npz")
    whole = everything(made("depth", jit=False).run(*batch))
    assert everything(Precompiled(table, *given, jit=False, resume=tmp_path / "run.npz").run()) == whole


def test_depth_is_where_lanes_fail():
    """The programs of these tests fail as they say."""
    assert depth.options(jit=False).run(*BATCHES["depth"]).status.tolist() == [0, 0, LaneStatus.ASSERTION, 0, 0, 0]
