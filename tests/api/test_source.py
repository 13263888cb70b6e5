"""The generated source: what is shown is what runs, it says where it comes from, and it is always the same."""

from __future__ import annotations

import dataclasses
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError
from pcbatch.commands.cli import main
from pcbatch.ir import machine as table
from pcbatch.runtime.machine.state import Limits
from pcbatch.runtime.strategies.reference import Lane

ROOT = Path(__file__).parents[2]
NAMES = ("mixed_failures", "closure_arrays", "closure_functions", "structured_argument", "parity", "many_live")


def example(name):
    """A corpus program and a batch for it."""
    module = importlib.import_module(f"tests.corpus.{name}")
    return getattr(module, name).options(jit=False), module.batch(np.random.default_rng(0), 3)


def comparable(program: table.Program):
    """A table with the code of its pieces in place of the functions, which are other objects each time."""

    def item(each):
        return dataclasses.replace(each, function=each.function.__code__) if isinstance(each, table.Piece) else each

    blocks = tuple(dataclasses.replace(block, body=tuple(map(item, block.body))) for block in program.blocks)
    return dataclasses.replace(program, blocks=blocks)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_is_what_runs(name):
    """Executing the shown text, with the names that it reads from around the function, gives the machine's table."""
    function, batch = example(name)
    compilation = function.pipeline(*batch)
    namespace = dict(compilation.emitted.bindings)
    exec(function.source(*batch), namespace)
    assert comparable(namespace["PROGRAM"]) == comparable(compilation.table)
    assert compilation.machine.program is compilation.table


@pytest.mark.parametrize("name", NAMES)
def test_every_piece_is_headed_by_its_source_lines(name):
    function, batch = example(name)
    headed = re.findall(r"((?:^#.*\n)+)def (\w+)\(", function.source(*batch), re.MULTILINE)
    table_ = function.pipeline(*batch).table
    pieces = [(block, item) for block in table_.blocks for item in block.body if isinstance(item, table.Piece)]
    assert sorted(defined for _, defined in headed) == sorted(piece.function.__name__ for _, piece in pieces)
    lines = Path(importlib.import_module(f"tests.corpus.{name}").__file__).read_text().splitlines()
    for comment, defined in headed:
        title, *quoted = comment.splitlines()
        (block,) = (block for block, piece in pieces if piece.function.__name__ == defined)
        assert title == f"# {block.function}, block {block.label}"
        assert quoted
        for line in quoted:
            number, text = re.fullmatch(r"#   (\d+): (.*)", line).groups()
            assert lines[int(number) - 1].strip() == text


def test_the_source_of_the_last_program_is_shown_without_arguments():
    function, batch = example("parity")
    function = function.options(max_steps=1000)  # one of its own, that nothing is compiled of
    with pytest.raises(UsageError, match=r"PCB506: .* has not run yet; give source.. example arguments"):
        function.source()
    function.check(*batch)
    assert function.source() == function.source(*batch)


def texts(names):
    """All that is printed of some corpus programs."""
    every = [example(name) for name in names]
    stages = ("cfg", "stack", "optimized", "machine")
    return "".join(
        text
        for function, batch in every
        for text in (function.source(*batch), *(function.ir(stage, *batch) for stage in stages))
    )


@pytest.mark.slow
def test_two_runs_of_python_give_the_same_text():
    """No order of a set or of hashes, which are others in every process, shows in names, in the table or in the IR."""
    code = f"from tests.api.test_source import texts; print(texts({NAMES}), end='')"
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT, env=environment, text=True
    )
    here = texts(NAMES)
    assert done.stdout == here
    assert here.count("PROGRAM = ") == len(NAMES)


def test_a_module_that_needs_a_name_of_generated_code_is_not_written(tmp_path, capsys):
    """The written module would bind `PROGRAM` to its table, and the user's code would read that."""
    path = tmp_path / "clashing.py"
    path.write_text("import pcbatch\n\nPROGRAM = 3\n\n@pcbatch.autobatch\ndef f(x):\n    return x * PROGRAM\n")
    assert main(["compile", str(path), "--args", "[[1, 2]]", "-o", str(tmp_path / "out.py")]) != 0
    assert "PCB529: the module binds `PROGRAM`, which generated code needs" in capsys.readouterr().err
    assert not (tmp_path / "out.py").exists()


@pcbatch.autobatch
def fibonacci(n):
    if n <= 1:
        return 1
    return fibonacci(n - 2) + fibonacci(n - 1)


@pytest.mark.parametrize("schedule", ["earliest", "sweep", "busiest", "adaptive", "switch", "auto"])
def test_the_text_of_the_loop_does_what_the_machine_does(schedule):
    """`f.ir("loop", ..)` is run, on lanes of the reference: results, trips and runs of blocks are the machine's."""
    f, n = fibonacci.options(schedule=schedule, form="lockstep"), np.array([3, 7, 4, 5, 0, 6], np.int32)
    run = f.run(n)
    machine = f.pipeline(n).machine
    program, backend = machine.program_for(len(n)), machine.backend
    executions = np.zeros(len(program.blocks), int)

    def count(lanes):
        return np.bincount([lane.next for lane in lanes], minlength=len(program.blocks) + 1)[:-1]

    def guarded(go, block, lanes, followed):
        came = np.zeros(len(program.blocks) + 1, int)
        waiting = [lane for lane in lanes if go and lane.next == block]
        executions[block] += bool(waiting)
        for lane in waiting:
            lane.run_next()
            came[lane.next] += 1
        return lanes, came[followed], count(lanes)[block]

    def repeated(go, block, lanes, followed, again):
        came, times, total = np.zeros(len(followed), int), 0, 0
        left = count(lanes)[block]
        while go:
            total += left
            lanes, arrived, left = guarded(True, block, lanes, followed)
            came, times = came + arrived, times + 1
            go = left > 0 and times < 64 and again(left)
        return lanes, came, left, times, total

    names = {"count": count, "guarded": guarded, "repeated": repeated, "switch_case": lambda k, arms: arms[k]()}
    exec(compile(f.ir("loop", n), "<loop>", "exec"), names)
    inputs = [dict(zip(program.parameters, [tf.constant(each)], strict=True)) for each in n]
    limits = Limits.of(None, None)
    lanes = [Lane(program, backend, given, {}, limits) for given in inputs]
    lanes, trips = names["loop"](lanes)
    assert [int(lane.variables["result"][-1]) for lane in lanes] == run.value.numpy().tolist() == [3, 21, 5, 8, 1, 13]
    assert trips == run.trips
    assert dict(zip([block.label for block in program.blocks], executions, strict=True)) == dict(run.executions)
