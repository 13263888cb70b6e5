"""How the user's code is followed while a program is traced: in several threads, beside debuggers, for long."""

from __future__ import annotations

import contextlib
import sys
import threading
import time

import numpy as np
import pytest

import pcbatch
from pcbatch.lowering.captures.reads import Record, monitored, watching
from pcbatch.lowering.captures.reads.watch import MANY
from pcbatch.once import once
from pcbatch.runtime.backends import following
from tests.threads import in_threads

by_events = pytest.mark.skipif(sys.version_info < (3, 12), reason="Python gives no events before 3.12")
X = np.array([1.0, 3.0], np.float32)


class Model:
    """Read while it is followed."""

    def __init__(self):
        self.rate, self.bias = 2.0, 1.0

    def scaled(self, x):
        return x * self.rate + self.bias


MODEL = Model()


def read_in(function, *seeds):
    """Whether a later look finds that what `function()` reads has changed, after MODEL.rate has."""
    record = Record()
    with watching(record, [function, *seeds]):
        function()
    assert record.holds()
    MODEL.rate += 1.0
    try:
        return not record.holds()
    finally:
        MODEL.rate -= 1.0


def test_threads_that_compile_at_once():
    """Python 3.12 crashes where two of them have trace functions of instructions."""

    def work():
        def f(x, n):
            while n > 0:
                x = MODEL.scaled(x) / 2.0
                n = n - 1
            return x

        batched = pcbatch.autobatch(f)
        return [np.asarray(batched(X, np.array([2, 0], np.int32))).tolist() for _ in range(2)]

    expected = [2.0, 3.0]
    for found in in_threads(3, lambda: [work() for _ in range(2)]):
        assert found == [[expected, expected], [expected, expected]]


def test_another_thread_is_not_followed():
    """Nor does it keep the one that is from being followed."""
    go, done = threading.Event(), threading.Event()

    def other():
        go.wait(10)
        MODEL.scaled(1.0)
        done.set()

    def waits():
        go.set()
        done.wait(10)
        return len(vars())

    thread = threading.Thread(target=other)
    thread.start()
    assert not read_in(waits, MODEL)
    thread.join()
    assert read_in(lambda: MODEL.scaled(1.0), MODEL)


def test_an_exception_that_leaves_a_function():
    def raising():
        raise ValueError(MODEL.bias)

    def reads():
        with contextlib.suppress(ValueError):
            raising()
        return MODEL.rate

    assert read_in(reads)


def test_a_generator_is_followed_at_each_of_its_turns():
    def numbers():
        yield 1.0
        yield MODEL.rate

    assert read_in(lambda: sum(numbers()), numbers)


def test_a_long_loop_is_given_up_and_the_next_run_of_the_function_is_followed():
    class Other:
        rate = 0.0

    def total(models):
        found = 0.0
        for model in models:
            found += model.rate
        return found

    others = [Other()] * (2 * MANY)
    assert not read_in(lambda: total([*others, MODEL]), total, MODEL)
    assert read_in(lambda: total(others) + total([MODEL]), total, MODEL, others)


def test_what_is_followed_inside_of_what_is_followed():
    """Both find out."""
    inner = Record()

    def reads():
        with watching(inner, [MODEL.scaled]):
            with following.apart():  # the inner one does not look, the outer one does
                first = MODEL.rate
            return first + MODEL.scaled(1.0)

    assert read_in(reads, MODEL)
    MODEL.bias += 1.0
    assert not inner.holds()
    MODEL.bias -= 1.0


def test_nothing_is_left_behind():
    tracer = sys.gettrace()
    assert read_in(lambda: MODEL.scaled(1.0), MODEL)
    assert sys.gettrace() is tracer
    if sys.version_info >= (3, 12):
        assert not any(sys.monitoring.get_tool(tool) == "pcbatch" for tool in range(6))


@by_events
def test_where_other_tools_have_all_numbers():
    """Then there is a trace function."""
    for tool in monitored.TOOLS:
        sys.monitoring.use_tool_id(tool, "other")
    try:
        assert read_in(lambda: MODEL.scaled(1.0), MODEL)
    finally:
        for tool in monitored.TOOLS:
            sys.monitoring.free_tool_id(tool)


@by_events
def test_code_that_is_no_longer_followed_gives_no_events():
    assert read_in(lambda: MODEL.scaled(1.0), MODEL)
    seen = []
    tool, events = monitored.TOOLS[0], sys.monitoring.events
    sys.monitoring.use_tool_id(tool, "test")
    try:
        sys.monitoring.register_callback(tool, events.INSTRUCTION, lambda *given: seen.append(given))
        assert sys.monitoring.get_local_events(tool, Model.scaled.__code__) == 0
        MODEL.scaled(1.0)
    finally:
        sys.monitoring.register_callback(tool, events.INSTRUCTION, None)
        sys.monitoring.free_tool_id(tool)
    assert not seen


def test_a_property_that_one_thread_computes_for_all():
    made = []

    class Slow:
        @once
        def value(self):
            made.append(object())
            time.sleep(0.05)
            return made[-1]

    slow = Slow()
    found = in_threads(4, lambda: slow.value)
    assert len(made) == 1
    assert found == made * 4
    assert isinstance(Slow.value, once)
