"""Native runs in chunks: the same whatever their size, ended by Ctrl-C, budgets that follow the clock."""

import dataclasses
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.runtime.native import chunks, cores
from pcbatch.runtime.native.chunks import Chunk, Pace
from tests.harness import load
from tests.runtime import tables
from tests.runtime.libraries import ints
from tests.runtime.test_native import assert_as_the_reference

FEW = ["fibonacci", "collatz"]
MORE = [
    "queens",
    "hanoi",
    "gcd",
    "tak",
    "many_live",
    "nested_loops",
    "insertion_sort",
    "mixed_failures",
    "adaptive_simpson",
]
MORE += ["return_from_loops", "step_limit"]


@pytest.fixture
def budget(monkeypatch):
    """Sets the budget of all chunks, of programs that have run as well; no chunk is too short."""
    monkeypatch.setattr(Pace, "note", lambda self, budget, seconds: None)

    def set_budget(number, *known):
        monkeypatch.setattr(Pace, "__init__", lambda self, work, moved: vars(self).update(budget=number, seconds=0.0))
        for each in known:
            each.pace.budget, each.pace.seconds, each.goes_on = number, 0.0, False

    return set_budget


def chunks_of(function, *arguments):
    """How the lanes of a call that was made are run."""
    return function.session.pipeline(arguments, {})[1].machine._chunks[len(arguments[0])]


@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("case", tables.CASES)
@pytest.mark.parametrize("library", ["numpy"], indirect=True)
def test_small_chunks_equal_the_reference(library, case, steps, budget):
    """Values, faults, steps and counts, with lanes left in the middle of loops and calls."""
    budget(steps)
    program, arguments, limits = tables.case(case, library.ops)
    for storage in ("stack", "cached stack"):
        assert_as_the_reference(library, tables.stored(program, storage), arguments, **limits)


@pytest.mark.parametrize("name", [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_small_chunks_equal_one(name, budget):
    """Bits, statuses, steps, messages and counts of compiled programs; the budgets cut in loops, calls and returns."""
    program = load(name)
    arguments = program.arguments(17)
    function = program.function.options(form="native")
    whole = function.run(*arguments)
    ways = chunks_of(function, *arguments)
    for steps in (1, 3, 8, 50):
        budget(steps, ways)
        run = function.run(*arguments)
        for one, other in zip(tf.nest.flatten(run.value), tf.nest.flatten(whole.value), strict=True):
            assert one.numpy().tobytes() == other.numpy().tobytes()
        np.testing.assert_array_equal(run.status, whole.status)
        assert run.executions == whole.executions
        assert [fault.render() for fault in run.errors] == [fault.render() for fault in whole.errors]
        np.testing.assert_array_equal(run.lane_steps, whole.lane_steps)
        assert ways.goes_on or steps > 1


def test_warm_calls_go_on_where_their_budget_ends(budget):
    function = load("collatz").function.options(form="native")
    arguments = load("collatz").arguments(17)
    whole = function(*arguments)
    ways = chunks_of(function, *arguments)
    budget(2**20, ways)
    np.testing.assert_array_equal(function(*arguments), whole)
    for steps in (40, 1):  # lanes in turn, then lanes in the middle
        budget(steps, ways)
        np.testing.assert_array_equal(function(*arguments), whole)
    assert ways.goes_on
    np.testing.assert_array_equal(function(*arguments), whole)


def test_lanes_are_no_longer_carried_after_a_short_run(budget):
    """What all lanes hold goes in and out of chunks only as long as some need several."""
    function = load("collatz").function.options(form="native")
    numbers = ints(27, 1, 97, 6)
    budget(5)
    whole = function(numbers)
    ways = chunks_of(function, numbers)
    np.testing.assert_array_equal(function(numbers), whole)
    assert ways.goes_on
    ways.pace.budget, ways.pace.seconds = 2**20, 100.0
    np.testing.assert_array_equal(function(numbers), whole)
    assert not ways.goes_on
    np.testing.assert_array_equal(function(numbers), whole)
    ways.pace.budget, ways.pace.seconds = 5, 0.0
    np.testing.assert_array_equal(function(numbers), whole)
    assert ways.goes_on


@pytest.mark.parametrize("name", FEW)
def test_a_budget_that_was_too_small_grows(name):
    """Lanes that were stopped in the middle of a short chunk begin anew, and no second program is compiled."""
    program = load(name)
    function, arguments = program.function.options(form="native"), program.arguments(17)
    whole = function.run(*arguments)
    ways, compiled = chunks_of(function, *arguments), function.stats().compilations
    for budget in (1, 2, 4):
        ways.pace.budget, ways.pace.seconds, ways.goes_on = budget, 100.0, False
        run = function.run(*arguments)
        for one, other in zip(tf.nest.flatten(run.value), tf.nest.flatten(whole.value), strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(run.lane_steps, whole.lane_steps)
        assert ways.pace.budget > budget
    assert not ways.goes_on
    assert function.stats().compilations == compiled


def test_parts_on_several_cores_are_in_chunks(budget, monkeypatch):
    monkeypatch.setattr(cores, "available", lambda: 3)
    monkeypatch.setattr(cores, "CPU", dataclasses.replace(cores.CPU, native_split=0.0, native_split_always=0.0))
    function = load("fibonacci").function.options(form="native")
    numbers = ints(*range(12), 3)
    wanted = [function.single(number) for number in numbers]
    budget(7)
    for _ in range(4):
        np.testing.assert_array_equal(function(numbers), wanted)
    machine = function.session.pipeline((numbers,), {})[1].machine
    assert len(machine._cores.parts(13)) == 3


ENDLESS = """
    import os, signal, sys, threading, time
    import pcbatch
    from pcbatch.runtime.native import cores

    @pcbatch.autobatch(form="native")
    def loop(n):
        while n >= 0:
            n = n ^ 6
        return n

    @pcbatch.autobatch(form="native")
    def inner(n):
        return n if n < 0 else inner(n ^ 6) + 0 if n == 100 else loop(n)

    cores.available = lambda: int(sys.argv[1])
    for function, call in ((loop, loop), (inner, inner.run)):
        short = [-1, -2, -3, -4]
        for _ in range(3):
            call(short)
        machine = function.session.pipeline((short,), {})[1].machine
        machine._cores._seconds[4] = 1.0 if sys.argv[1] == "2" else 0.0
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            call([-1, 4, -2, 5])
            print("ended")
        except KeyboardInterrupt as error:
            print(type(error).__name__)
        assert list(function(short)) == short
"""


@pytest.mark.parametrize("count", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_an_endless_lane_is_interrupted(count, tmp_path):
    """By Ctrl-C, on one core and on two; then all is as before."""
    script = tmp_path / "endless.py"
    script.write_text(textwrap.dedent(ENDLESS))
    command = [sys.executable, str(script), count]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ended.stdout.split() == ["KeyboardInterrupt"] * 2, ended.stderr


def test_chunks_keep_their_own_lanes_only():
    """Each gives arrays of all lanes: no more than two of them are there at a time, and carried arrays only once."""
    lanes, living = 1000, []

    class Whole(np.ndarray):
        pass

    def call(bounds, carried):
        assert sum(each() is not None for each in living) <= 2, "what the last chunk carries, and it"
        whole, held = (np.arange(lanes).view(Whole) for _ in range(2))
        living.extend(map(weakref.ref, (whole, held)))
        return Chunk((bounds[0], bounds[0] + 10), False, False, [whole], [held])

    def cut(chunk):
        return dataclasses.replace(chunk, arrays=[np.array(chunk.arrays[0][slice(*chunk.part)])], cut=True)

    run = chunks.Chunks(Pace(work=1.0, moved=0)).run
    found = run((0, lanes), call, list, cut, threading.Event())
    rows = [np.asarray(each.arrays[0]) if each.cut else each.arrays[0][slice(*each.part)] for each in found]
    assert np.concatenate(rows).tolist() == list(range(lanes))
    assert sum(bool(each.carried) for each in found) == 1


def test_budgets_follow_the_clock():
    pace = Pace(work=10.0, moved=0)
    for _ in range(20):
        pace.note(pace.budget, pace.budget * 1e-6)
    assert pace.budget in (2**15, 2**16)
    for _ in range(20):
        pace.note(pace.budget, 0.0)
    assert pace.budget == chunks.LARGEST
    for _ in range(40):
        pace.note(pace.budget, 1e9)
    assert pace.budget == 1
    assert Pace(work=float("inf"), moved=0).budget == 1
    assert Pace(work=10.0, moved=10**9).seconds > 1
