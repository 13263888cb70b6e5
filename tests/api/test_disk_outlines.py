"""Native code that a process finds by what it has read, before it lowers anything; and what is not to be found so.

These tests play the second process in this one: the same file is imported anew.
"""

from __future__ import annotations

import functools
import importlib.util
import linecache
import math
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.function import pipeline
from pcbatch.runtime.llvm import compiler
from pcbatch.runtime.store import cache_session
from pcbatch.runtime.store import folder as records
from tests.api.test_disk import SWINGS, N, X, checked, entries, folder, found

__all__ = ["folder"]

COUNTS = """
import math
import pcbatch

RATE = 3


def helper(x):
    return x * RATE


@pcbatch.autobatch
def counts(n, x):
    while n > 0:
        x = helper(x) + int(math.sqrt(n))
        assert x < 100_000, f"too large: {x}"
        n = n - 1
    return x
"""
C = np.array([2, 3, 0, 12]), np.array([1, 5, 7, 9])


def again(path: Path, text: str = COUNTS, name: str = "counts") -> Any:
    """A function of a file at `path`, as another process would import it."""
    path.write_text(text)
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location("disk_program", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["disk_program"] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows whenever a stack program is lowered."""
    calls: list[str] = []
    lower = pipeline.lower_stacks

    def noted(program: Any, *rest: Any) -> Any:
        calls.append(program.entry.name)
        return lower(program, *rest)

    monkeypatch.setattr(pipeline, "lower_stacks", noted)
    return calls


def test_what_was_read_finds_native_code_and_lowers_nothing(tmp_path: Path, folder: Path, lowered: list[str]) -> None:
    path = tmp_path / "program.py"
    first = checked(again(path), *C)
    assert lowered
    del lowered[:]
    counts = again(path)
    for _ in range(3):
        run = counts.run(*C)
    assert counts.options(output="numpy").run(*C).value.tobytes() == first.value.numpy().tobytes()
    with pytest.raises(pcbatch.LaneError, match="too large"):
        counts(*C)
    assert counts.stats().forms == ("native",)
    assert not lowered
    assert found(counts) == (1, 0)
    assert run.value.numpy().tobytes() == first.value.numpy().tobytes()
    assert [(each.message, each.span) for each in run.errors] == [(each.message, each.span) for each in first.errors]
    assert list(run.lane_steps) == list(first.lane_steps)
    profiles = [str(each.profile()).partition("\n")[2] for each in (run, first)]
    assert profiles[0] == profiles[1], "who counts has it lowered"
    assert lowered


def test_who_asks_for_more_than_a_run_has_the_program_lowered(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "program.py"
    checked(again(path), *C)
    known = again(path)
    texts = [known.ir(stage, *C) for stage in ("machine", "llvm")], known.source(*C)
    counts = again(path)
    counts.run(*C)
    assert ([counts.ir(stage, *C) for stage in ("machine", "llvm")], counts.source(*C)) == texts
    assert "native" in str(pcbatch.explain(counts, *C))
    inside = tf.function(lambda *batch: counts.run(*batch).value)
    np.testing.assert_array_equal(inside(*map(tf.constant, C)), known.run(*C).value)
    empty = np.zeros(0, np.int64)
    assert counts(empty, empty).shape == (0,)
    checked(counts.options(form="lockstep"), *C)


OTHERS_READ = {
    "a global": ("RATE = 3", "RATE = 2"),
    "a class of numbers": ("RATE = 3", "RATE = True"),
    "a helper": ("x * RATE", "x - RATE"),
    "the function": ("n = n - 1", "n = n - 2"),
    "a library's function": ("math.sqrt", "math.exp"),
    "a name that hides a library's": ("import math", "class math:\n    sqrt = staticmethod(lambda x: x * 0.0)"),
    "a message": ("too large", "larger"),
    "a limit": ("@pcbatch.autobatch", "@pcbatch.autobatch(max_steps=2)"),
    "bits that are the same in any batch": ("@pcbatch.autobatch", "@pcbatch.autobatch(deterministic=True)"),
    "a shared argument": ("@pcbatch.autobatch", "@pcbatch.autobatch(in_axes=(0, None))"),
    "its place": ("import math", "import math\n\n"),
}
QUICK = ("a global", "a library's function", "a message", "its place")
SLOW = [what for what in OTHERS_READ if what not in QUICK]


@pytest.mark.parametrize("what", [*QUICK, *(pytest.param(what, marks=pytest.mark.slow) for what in SLOW)])
def test_another_program_is_not_taken_for_one_that_was_read(what: str, tmp_path: Path, folder: Path) -> None:
    path, (old, new) = tmp_path / "program.py", OTHERS_READ[what]
    checked(again(path), *C)
    assert old in COUNTS
    other = again(path, COUNTS.replace(old, new))
    batch = (C[0], 5) if "None" in new else C
    run = other.run(*batch)
    for lane, n in enumerate(batch[0]):
        x = batch[1] if "None" in new else batch[1][lane]
        if run.status[lane] == pcbatch.LaneStatus.OK:
            assert run.value[lane] == other.single(n, x), what
    assert all(each.span.text.strip().startswith(("assert", "while")) for each in run.errors)
    if what == "a message":
        assert "larger" in run.errors[0].message


def test_a_librarys_function_that_somebody_has_replaced_is_not_taken_for_it(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "program.py"
    checked(again(path), *C)
    monkeypatch.setattr(math, "sqrt", functools.wraps(math.sqrt)(lambda x: x * 0 + 7))
    checked(again(path), *C)


def test_another_processor_is_another_environment(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "program.py"
    checked(again(path), *C)
    monkeypatch.setattr(compiler, "target", lambda: ("another", "processor"))
    counts = again(path)
    checked(counts, *C)
    assert found(counts) == (0, 1)


@pytest.mark.parametrize("content", [b"", b"half", pickle.dumps(("an outline", 3))])
def test_a_damaged_outline_is_a_miss(content: bytes, tmp_path: Path, folder: Path, lowered: list[str]) -> None:
    path = tmp_path / "program.py"
    checked(again(path), *C)
    cache_session.current().settle()
    (outline,) = folder.glob("*/*/outline")
    if content == b"half":
        outline.write_bytes(outline.read_bytes()[: outline.stat().st_size // 2])
    else:
        records.write(str(outline), [outline.parent.name.encode(), content])
    del lowered[:]
    counts = again(path)
    checked(counts, *C)
    assert lowered
    assert found(counts) == (1, 0), "the machine code is there"
    del lowered[:]
    again(path)(C[0][:3], C[1][:3])
    assert not lowered, "it is written anew"


def test_an_outline_whose_machine_code_is_gone_has_it_made_again(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "program.py"
    checked(again(path), *C)
    cache_session.current().settle()
    (program,) = entries(folder)
    program.unlink()
    counts = again(path)
    checked(counts, *C)
    assert found(counts) == (0, 1)
    cache_session.current().settle()
    assert len(entries(folder)) == 1


NAMED = """
import collections
import pcbatch

State = collections.namedtuple("State", "a b")


@pcbatch.autobatch
def turned(n, x):
    s = State(x, n)
    while s.b > 0:
        s = State(s.b, s.a - s.b)
    return s
"""


def test_results_are_of_this_processs_classes(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "program.py"
    again(path, NAMED, "turned")(*C)
    turned = again(path, NAMED, "turned")
    value = turned(*C)
    assert type(value) is sys.modules["disk_program"].State
    assert found(turned) == (1, 0)


def test_gradients_go_through_a_program_that_was_found(tmp_path: Path, folder: Path) -> None:
    path, text = tmp_path / "program.py", SWINGS.replace("RATE", "0.5").replace("tf.sin", "math.sin")
    text = text.replace("import tensorflow as tf", "import math")
    found_of = []
    for _ in range(2):
        swings = again(path, text, "swings")
        swings(N, X)
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = tf.reduce_sum(swings(N, X))
        found_of.append(tape.gradient(y, X).numpy().tobytes())
    assert found_of[0] == found_of[1]
    assert swings.stats().misses == 0
