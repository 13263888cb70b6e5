"""`pcbatch run --steps`: one lane, block by block, with its variables and stacks."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcbatch.commands.cli import main
from pcbatch.ir.machine import PushJump
from pcbatch.runtime.strategies.reference import ReferenceMachine, Walk, run_reference
from tests.goldens import check_golden
from tests.runtime import tables
from tests.runtime.libraries import library_named

ROOT = Path(__file__).parent.parent
GOLDENS = Path(__file__).parent / "steps"

MIXED = '''"""A recursion with a structure, an array, a fault and options that the reference knows nothing of."""

import tensorflow as tf

import pcbatch

WEIGHTS = tf.range(100.0)


@pcbatch.autobatch(strategy="local")
def parts(x, n):
    assert n != 2, f"{n} is refused"
    if n == 0:
        return {"sum": tf.reduce_sum(x), "last": (x[-1], True)}
    below = parts(x + 1.0, n - 1)
    return {"sum": below["sum"] * 2.0, "last": below["last"]}


@pcbatch.autobatch(progress=True, max_depth=3)
def weighted(x, n):
    weights = WEIGHTS * x[0]
    return parts(x, n)["sum"] + tf.reduce_sum(weights)


@pcbatch.autobatch(trace=5, schedule="sweep", form="lockstep", in_axes=None)
def endless(n):
    while n > 0:
        n += 1
        if n > 1000:
            n = 1
    return n


@pcbatch.autobatch
def deep(n):
    if n == 0:
        return 0
    return deep(n - 1) + n


@pcbatch.autobatch
def many(n):
    a, b, c, d, e, f, g = n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6
    h, i, j, k, l = n, n + 1, n + 2, n + 3, n + 4
    while n > 0:
        n -= 1
    return a + b + c + d + e + f + g + h + i + j + k + l
'''
VECTORS = "[[1.0, 2.0], [3.0, 4.0]]"
PRINTED = {
    "fibonacci": (0, ["{root}/examples/fibonacci.py:fibonacci", "[3, 7, 2]", "--lane", "2"]),
    "structures": (0, ["mixed.py:parts", "--steps=9", VECTORS, "[0, 1]", "--lane=1"]),
    "fault": (1, ["mixed.py:weighted", VECTORS, "[1, 3]", "--lane=1"]),
    "max_depth": (1, ["--steps=3", "mixed.py:weighted", VECTORS, "[9, 6]"]),
    "deep": (0, ["--steps=1", "mixed.py:deep", "[60]"]),
    "many": (0, ["--steps=2", "mixed.py:many", "[1]"]),
}


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with functions, in the folder that the commands run in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mixed.py").write_text(MIXED)
    return tmp_path


@pytest.mark.parametrize("name", PRINTED)
def test_printed_steps(name: str, mixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, words = PRINTED[name]
    steps = [] if any(word.startswith("--steps") for word in words) else ["--steps"]
    assert main(["run", *steps, *[word.format(root=ROOT) for word in words]]) == code
    printed = capsys.readouterr().out.replace(str(mixed.resolve()) + os.sep, "").replace(str(ROOT) + os.sep, "")
    check_golden(GOLDENS / f"{name}.txt", printed)


@pytest.mark.usefixtures("no_collector")
def test_ctrl_c_shows_where_a_lane_is(
    mixed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = Walk.go_on

    def interrupted(walk: Walk) -> bool:
        if walk.count == 100:
            signal.raise_signal(signal.SIGINT)
        return go_on(walk)

    monkeypatch.setattr(Walk, "go_on", interrupted)
    assert main(["run", "--steps=2", "mixed.py:endless", "5", "--lanes", "3", "--lane", "2"]) == 1
    printed = capsys.readouterr().out
    assert ".. 98 more block runs, not shown here. The last one:\n\n101  b" in printed
    assert "lane 2 (UNFINISHED): the run was stopped before this lane ended" in printed
    assert "101 block runs" in printed


def test_of_long_stacks_the_newest_entries_are_shown(mixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mixed.py:deep", "[60]", "--steps=100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    longest = next(line for line in lines if line.endswith("| 28 -> 27"))
    assert longest.startswith("   * n                 (")
    assert " more) | " in longest
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mixed.py:deep", "[1, 2]", "--steps", "--lane", "2"], "PCB562: there is no lane 2: this batch of deep has 2"),
        (["mixed.py:deep", "[1, 2]", "--steps", "--lane=-1"], "PCB562: there is no lane -1"),
        (["mixed.py:endless", "1", "--lanes=0", "--steps"], "PCB562: there is no lane 0: this batch of endless has no"),
        (["mixed.py:deep", "[1, 2]", "--lane", "1"], "PCB563: --lane says which lane --steps shows"),
        (["mixed.py:deep", "[1, 2]", "--steps", "--json"], "PCB563: --steps prints text"),
        (["mixed.py:deep", "[1, 2]", "--steps=0"], "PCB563: --steps says how many block runs are shown, at least 1"),
        (["mixed.py:deep", "[1, 2]", "--steps=two"], "--steps: invalid int value"),
        (["mixed.py:deep", "[1, 2]", "--steps", "--lane"], "--lane: invalid int value"),
    ],
)
def test_bad_usage(words: list[str], said: str, mixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *words]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""


@pytest.mark.parametrize("case", tables.CASES)
def test_a_walk_ends_as_the_run(case: str) -> None:
    """On tables of blocks written by hand, without TensorFlow: stacks, calls and steps of each visit fit together."""
    library = library_named("numpy")
    program, arguments, limits = tables.case(case, library.ops)
    lanes = len(arguments[0])
    wanted = run_reference(program, library.backend, arguments, [], lanes, **limits)
    machine = ReferenceMachine(program, library.backend, **limits)
    active = np.zeros(len(program.blocks), np.int64)
    for lane in range(lanes):
        walk = machine.walk(arguments, [], lane)
        before = walk.visit()
        assert (before.count, before.block, before.program_counters) == (0, None, ("end", program.blocks[0].label))
        while walk.go_on():
            now = walk.visit()
            assert now.block is not None
            assert (now.count, now.block.label) == (before.count + 1, before.program_counters[-1])
            called = isinstance(now.block.terminator, PushJump) and not now.status
            assert len(now.program_counters) - len(before.program_counters) <= called
            active[program.blocks.index(now.block)] += 1
            before = now
        outcome = walk.outcome()
        assert before.status == wanted.status[lane]
        assert before.steps == wanted.steps[lane]
        for mine, theirs in zip(outcome.values, wanted.values, strict=True):
            np.testing.assert_array_equal(np.asarray(mine)[0], np.asarray(theirs)[lane])
    np.testing.assert_array_equal(active, wanted.executions)


def test_a_walk_holds_values_as_they_were() -> None:
    """What a visit shows is not changed by what runs later: stores go into arrays of their own."""
    library = library_named("numpy")
    program, arguments, limits = tables.case("stores", library.ops)
    walk = ReferenceMachine(program, library.backend, **limits).walk(arguments, [], 0)
    visits: list[Any] = [walk.visit()]
    kept = [repr(visits[0])]
    while walk.go_on():
        visits.append(walk.visit())
        kept.append(repr(visits[-1]))
    assert list(map(repr, visits)) == kept
