"""Long runs: wherever a run is stopped, what is saved goes on to the results of the run that nobody stopped."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus, RunInterruptedError, UsageError
from pcbatch.runtime.machine import guarded
from pcbatch.runtime.resume import slices
from tests.api import long_programs
from tests.api.interrupting import bare_interrupt, ctrl_c, everything, stopping
from tests.api.long_programs import BATCHES, STATICS, depth, walk
from tests.schedules import SCHEDULES
from tests.threads import in_threads

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def few_turns(monkeypatch):
    """Short runs have trips enough to be stopped between, if a block does not run many times in one."""
    monkeypatch.setattr(guarded, "MOST_TURNS", 1)


def made(name, **options):
    """A program of its own, in lockstep, as runs in slices are."""
    base = getattr(long_programs, name)
    return pcbatch.autobatch(base.function, **{**base.changed_options(), "form": "lockstep", **options})


def as_new(function):
    """The function as if it had never run: stacks start small again."""
    for compilation in function.session.compiled.values():
        compilation.machine.sizes.capacity = compilation.machine.legs.limits.first_capacity
    return function


MODES = [
    *(("walk", name, False) for name in SCHEDULES),
    *(("depth", "switch", False), ("orbit", "auto", False), ("narrow", "auto", False), ("walk", "auto", True)),
    pytest.param("depth", "auto", True, marks=pytest.mark.slow),
    *(pytest.param("depth", name, False, marks=pytest.mark.slow) for name in SCHEDULES if name != "switch"),
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
    assert slices.next_budget(100, 0.25) == 100
    assert slices.next_budget(100, 0.125) == 200
    assert slices.next_budget(100, 0.0) == 400
    assert slices.next_budget(100, 30.0) == 25
    assert slices.next_budget(1, 30.0) == 1


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
    assert subprocess.run([sys.executable, "-c", SHOWS_A_BAR], capture_output=True, check=True, cwd=ROOT).stderr == b""


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


# -- files -------------------------------------------------------------------------------------------------------------


def stopped(name, path, after=2, trips=10, **options):
    with stopping(after, trips=trips):
        run = made(name, jit=False, progress=True, **options).run(*BATCHES[name])
    run.save(path)
    return run


@pytest.mark.parametrize("names", [["walk", "narrow"], pytest.param([*BATCHES], marks=pytest.mark.slow)], ids=len)
def test_another_process_goes_on(names, tmp_path):
    paths, wholes = {}, []
    for name in names:
        batch = BATCHES[name]
        function = getattr(long_programs, name).options(jit=False)
        wholes.append(everything(as_new(function).run(*batch)))
        with stopping(3, trips=7):
            run = as_new(function).options(progress=True).run(*batch)
        assert run.interrupted
        paths[name] = str(tmp_path / f"{name}.npz")
        run.save(paths[name])
    code = (
        "import json, sys\n"
        "from pcbatch.runtime.machine import guarded\n"
        "from tests.api import long_programs\n"
        "from tests.api.interrupting import everything\n"
        "guarded.MOST_TURNS = 1\n"
        "for name, path in json.loads(sys.argv[1]).items():\n"
        "    function = getattr(long_programs, name).options(resume=path, jit=False)\n"
        "    run = function.run(**long_programs.STATICS.get(name, {}))\n"
        "    print(repr(everything(run)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code, json.dumps(paths)]
    printed = subprocess.run(command, capture_output=True, check=True, cwd=ROOT, env=environment, text=True).stdout
    found = [ast.literal_eval(line) for line in printed.splitlines()]
    assert found == wholes


def test_a_finished_run_resumes_to_its_results(tmp_path):
    run = made("walk", jit=False, progress=True).run(*BATCHES["walk"])
    run.save(tmp_path / "run.npz")
    again = made("walk", jit=False, resume=tmp_path / "run.npz").run()
    assert everything(again) == everything(run)
    assert not again.interrupted


def test_a_run_made_in_one_go_cannot_be_saved(tmp_path):
    run = made("walk", jit=False).run(*BATCHES["walk"])
    with pytest.raises(UsageError, match=r"PCB566: .*walk.options\(progress=True\) can be saved"):
        run.save(tmp_path / "run.npz")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    run = stopped("walk", path)
    before = path.read_bytes()

    def full(*_):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            run.save(path)
    assert [each.name for each in tmp_path.iterdir()] == ["run.npz"]
    assert path.read_bytes() == before
    run.save(path)
    assert [each.name for each in tmp_path.iterdir()] == ["run.npz"]
    with pytest.raises(FileNotFoundError):
        run.save(tmp_path / "missing" / "run.npz")
    with pytest.raises(FileNotFoundError):
        walk.options(resume=tmp_path / "missing.npz")()


def test_numpy_reads_the_file_without_pickle(tmp_path):
    stopped("walk", tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as arrays:
        assert {"header", "state/pc", "counter/trips", "shared/scale/0"} <= set(arrays.files)
        header = json.loads(arrays["header"].tobytes())
        assert arrays["counter/trips"] == 30
    assert header["pcbatch"] == pcbatch.__version__
    assert header["types"] == {"n": "int32[]", "scale": "float32[]"}
    assert sorted(header["captured"]) == ["OFFSET", "WEIGHTS"]


def changed(monkeypatch, name, value):
    monkeypatch.setattr(f"{long_programs.__name__}.{name}", value, raising=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LIMIT", 41),
        ("Shift.by", 0.5),
        ("FACTORS", [0.25, 0.75]),
        ("bend", lambda x: tf.cos(x * long_programs.FACTORS[0]) + long_programs.LIMIT / 100.0),
    ],
    ids=["number", "attribute", "list", "helper"],
)
def test_a_program_that_reads_something_else_is_another_one(name, value, tmp_path, monkeypatch):
    stopped("walk", tmp_path / "run.npz")
    resumed = made("walk", jit=False, resume=tmp_path / "run.npz")
    whole = everything(resumed.run())
    changed(monkeypatch, name, value)
    with pytest.raises(
        UsageError, match=r"PCB592: the run in .*run.npz cannot go on here: walk is another program now"
    ):
        resumed.run()
    monkeypatch.undo()
    assert everything(resumed.run()) == whole


def test_captured_arrays_must_be_what_they_were(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    stopped("walk", path)
    resumed = made("walk", jit=False, resume=path)
    with monkeypatch.context() as patch:
        changed(patch, "WEIGHTS", np.linspace(0.1, 0.8, 5, dtype=np.float32))
        with pytest.raises(UsageError, match=r"PCB594: .*captures other arrays now \(`WEIGHTS`\)"):
            resumed.run()
    long_programs.OFFSET.assign(0.5)
    try:
        with pytest.raises(UsageError, match=r"PCB594: .*\(`OFFSET`\)"):
            resumed.run()
    finally:
        long_programs.OFFSET.assign(0.25)
    assert not resumed.run().status.any()


def test_a_variable_changed_in_mid_run_is_read_once(tmp_path):
    whole = everything(made("walk", jit=False).run(*BATCHES["walk"]))

    def change():
        long_programs.OFFSET.assign(7.0)

    try:
        with stopping(3, trips=10, by=change):
            assert everything(made("walk", jit=False, progress=True).run(*BATCHES["walk"])) == whole
    finally:
        long_programs.OFFSET.assign(0.25)


@pytest.mark.parametrize(
    ("header", "body", "message"),
    [
        ("n, scale", "n * 2", "other is another program now"),
        ("n, factor", "n * 2", r"its parameters are n, scale, those of this are \(n, factor\)"),
        ("n", "n * 2", r"its parameters are n, scale, those of this are \(n\)"),
        ("n, scale", "tf.matmul(n, scale)", "is another program now, refused for the arguments in the file: PCB4"),
    ],
    ids=["code", "names", "fewer", "types"],
)
def test_the_run_of_another_program_is_refused(header, body, message, tmp_path):
    stopped("walk", tmp_path / "run.npz")
    function = written(tmp_path / "other.py", f"def other({header}):\n    return {body}\n")
    with pytest.raises(UsageError, match=f"PCB592: (.|\n)*{message}"):
        pcbatch.autobatch(function, jit=False, resume=tmp_path / "run.npz").run()


def written(path, text):
    """The only function of a file with this text."""
    path.write_text(text)
    scope = {"tf": tf}
    exec(compile(text, str(path), "exec"), scope)
    return next(value for value in scope.values() if hasattr(value, "__code__"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "earliest"}, "it runs under schedule='sweep', not 'earliest'"),
        ({"jit": True}, "it runs under jit=False, not True"),
        ({"max_depth": 7}, "it runs under max_depth=None, not 7"),
        ({"max_steps": 70}, "it runs under max_steps=None, not 70"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_a_run_goes_on_under_its_own_options(options, message, tmp_path):
    stopped("walk", tmp_path / "run.npz", schedule="sweep")
    other = made("walk", **{"jit": False, "schedule": "sweep", "resume": tmp_path / "run.npz", **options})
    with pytest.raises(UsageError, match=rf"PCB593: .*{message}"):
        other.run()


@pytest.mark.parametrize(
    ("where", "what"), [("pcbatch.version.__version__", "0.0.1"), ("pcbatch.runtime.resume.checkpoint.FORMAT", 0)]
)
def test_the_run_of_another_version_is_refused(where, what, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(where, what)
        stopped("walk", tmp_path / "run.npz")
    with pytest.raises(UsageError, match=rf"PCB591: .*it was saved by (pcbatch|file format) {what}, this is"):
        walk.options(resume=tmp_path / "run.npz", jit=False).run()


def test_a_resumed_run_takes_no_arguments_but_static_ones(tmp_path):
    path = tmp_path / "run.npz"
    stopped("orbit", path)
    resumed = made("orbit", jit=False, resume=path)
    start, n, _ = BATCHES["orbit"]
    with pytest.raises(UsageError, match=r"PCB567: a resumed run must be given the static argument 'power' anew"):
        resumed()
    with pytest.raises(UsageError, match=r"PCB567: .*, and 'start' is none: it is in the file"):
        resumed(start, n, 2)
    with pytest.raises(UsageError, match=r"PCB567: .* got an unexpected keyword argument 'lanes'"):
        resumed(lanes=3, power=2)
    with pytest.raises(UsageError, match=r"PCB592: .*another program"):
        resumed(power=3)
    assert isinstance(resumed(power=2), long_programs.Point)


def test_classes_are_looked_up_and_never_imported(tmp_path, monkeypatch):
    stopped("orbit", tmp_path / "run.npz")
    monkeypatch.delattr(long_programs, "Point")
    with pytest.raises(
        UsageError, match=r"PCB592: .*have the class Point of the module tests.api.long_programs; import"
    ):
        made("orbit", jit=False, resume=tmp_path / "run.npz").run(power=2)


def test_a_program_may_move_in_its_file(tmp_path):
    """Comments, blank lines and the file's name are no part of a program."""
    texts = {
        "a": "def count(n):\n    i = 0\n    while i < n:\n        i += 1\n    return i\n",
        "b": "\n# moved\ndef count(n):\n    i = 0\n    # so far\n    while i < n:\n        i += 1\n\n    return i\n",
    }
    files = {name: written(tmp_path / f"{name}.py", text) for name, text in texts.items()}
    functions = {name: pcbatch.autobatch(function, jit=False) for name, function in files.items()}
    with stopping(1, trips=3):
        functions["a"].options(progress=True).run(np.array([30, 4], np.int32)).save(tmp_path / "run.npz")
    assert functions["b"].options(resume=tmp_path / "run.npz")().numpy().tolist() == [30, 4]


def test_inside_a_tf_function_there_are_no_slices():
    function = made("walk", jit=False, progress=True)
    with pytest.raises(UsageError, match=r"PCB565: walk with progress or resume runs in slices"):
        tf.function(lambda n: function.run(n, 0.5).value, autograph=False)(tf.constant([3]))


def test_a_compiled_program_runs_in_slices_too(tmp_path):
    from pcbatch.function.precompiled import Precompiled

    batch = BATCHES["depth"]
    table = made("depth", jit=False).pipeline(*batch).table
    given = {name: name for name in table.parameters}
    with stopping(3, trips=10):
        run = Precompiled(table, given, jit=False, progress=True).run(*batch)
    assert run.interrupted
    run.save(tmp_path / "run.npz")
    whole = everything(made("depth", jit=False).run(*batch))
    assert everything(Precompiled(table, given, jit=False, resume=tmp_path / "run.npz").run()) == whole


def test_depth_is_where_lanes_fail():
    """The programs of these tests fail as they say."""
    assert depth.options(jit=False).run(*BATCHES["depth"]).status.tolist() == [0, 0, LaneStatus.ASSERTION, 0, 0, 0]
