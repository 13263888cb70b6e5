"""Files of long runs: what is in them, and which programs go on with them."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError
from tests.api import long_programs
from tests.api.interrupting import (
    as_new,
    everything,
    few_turns,  # noqa: F401 -- a fixture for all tests here
    made,
    stopped,
    stopping,
)
from tests.api.long_programs import BATCHES, walk

ROOT = Path(__file__).parents[2]


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
