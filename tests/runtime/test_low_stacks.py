"""Stacks of native code are low at first: a lane that needs more is run anew, and nobody can tell."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow.private import lookup
from pcbatch.runtime.native import cores, registers
from pcbatch.runtime.native.program import NativeProgram
from tests.runtime import tables
from tests.runtime.libraries import ints
from tests.runtime.test_chunks import budget  # noqa: F401 -- a fixture
from tests.runtime.test_native import assert_as_the_reference, native
from tests.threads import in_threads

LOW = 4
"""Live calls of low stacks here."""


@pytest.fixture(autouse=True)
def low(monkeypatch):
    """Stacks have room for few calls at first."""
    monkeypatch.setattr(registers, "LEAST_DEPTH", LOW)
    monkeypatch.setattr(registers, "CPU", dataclasses.replace(registers.CPU, native_low=0))


@pytest.mark.parametrize("steps", [None, 3])
@pytest.mark.parametrize("case", tables.CASES)
@pytest.mark.parametrize("library", ["numpy"], indirect=True)
def test_equal_to_the_reference(library, case, steps, budget):  # noqa: F811
    """With lanes that have room and lanes that have none, whole and in chunks; and what fails for good fails so."""
    if steps is not None:
        budget(steps)
    program, arguments, limits = tables.case(case, library.ops)
    assert_as_the_reference(library, tables.stored(program, "stack"), arguments, **limits)


@pytest.mark.parametrize("library", ["numpy"], indirect=True)
def test_they_are_high_once_a_lane_needs_more(library):
    executable = native(tables.fibonacci(), library)
    entries = executable.stack_entries
    executable.run([ints(3, 2)], [], 2)
    assert executable.stack_entries == entries < 10
    assert [*executable.run([ints(3, 9, 2)], [], 3).values[0]] == [3, 55, 2]
    assert executable.stack_entries > 8192
    assert native(tables.fibonacci(), library, max_depth=LOW).stack_entries == entries
    assert native(tables.fibonacci(), library, max_depth=LOW + 1).stack_entries == entries


@pcbatch.autobatch(form="native", max_depth=20)
def down(n):
    assert n != 13, f"unlucky with {n}"
    if n <= 0:
        return 0
    return down(n - 1) + 2


def test_warm_calls_that_need_more():
    """The first one that does is a warm one; lanes that fail for good do so with their own status and message."""
    function = down.options(name="warm")
    shallow, deep, worse = tf.constant([3, 0, 2]), tf.constant([3, 12, 0]), tf.constant([40, 12, 13, 1])
    for _ in range(4):
        assert function(shallow).numpy().tolist() == [6, 0, 4]
    assert function.stats().stack_entries < 10
    for _ in range(3):
        assert function(deep).numpy().tolist() == [6, 24, 0]
        assert function(shallow).numpy().tolist() == [6, 0, 4]
    assert function.stats().stack_entries > 20
    for each in (function, down.options(name="cold")):
        for _ in range(4):
            run = each.run(worse)
            assert run.status.tolist() == [5, 0, 1, 0]
            assert run.value.numpy().tolist() == [0, 24, 0, 2]
            assert "unlucky with 13" in run.errors[1].message
            assert run.lane_steps.tolist() == down.options(form="lockstep").run(worse).lane_steps.tolist()
        with pytest.raises(pcbatch.LaneError):
            each(worse)


def test_parts_on_several_cores(monkeypatch):
    monkeypatch.setattr(cores, "available", lambda: 3)
    monkeypatch.setattr(cores, "CPU", dataclasses.replace(cores.CPU, native_split=0.0, native_split_always=0.0))
    function = down.options(name="in parts")
    shallow = tf.constant([1, 2, 3, 0, 1, 2, 3])
    for _ in range(5):
        assert function(shallow).numpy().tolist() == [2, 4, 6, 0, 2, 4, 6]
    assert function.stats().stack_entries < 10
    for _ in range(2):
        assert function(tf.constant([1, 2, 3, 12, 1, 2, 3])).numpy().tolist() == [2, 4, 6, 24, 2, 4, 6]
    assert function.stats().stack_entries > 20


def test_threads_that_need_more_at_the_same_time():
    function, deep = down.options(name="of threads"), tf.constant([3, 12])
    for _ in range(3):
        function(tf.constant([1, 2]))
    found = in_threads(4, lambda: [function(deep).numpy().tolist() for _ in range(5)])
    assert found == [[[6, 24]] * 5] * 4


@pytest.mark.parametrize("parts", [1, 2])
def test_what_others_need_while_a_call_runs(monkeypatch, parts):
    """What ran with low stacks is not taken for what ran with high ones, though they are high when it is done."""
    monkeypatch.setattr(cores, "available", lambda: parts)
    monkeypatch.setattr(cores, "CPU", dataclasses.replace(cores.CPU, native_split=0.0, native_split_always=0.0))
    function, deep = down.options(name=f"of others {parts}"), tf.constant([3, 12])
    for _ in range(4):
        function(tf.constant([1, 2]))
    known, first, others = NativeProgram._chunk, iter([True]), []

    def slow(*args, **options):
        if next(first, False):
            others.extend(function(deep).numpy().tolist() for _ in range(3))
        return known(*args, **options)

    monkeypatch.setattr(NativeProgram, "_chunk", slow)
    assert function(deep).numpy().tolist() == [6, 24]
    assert others == [[6, 24]] * 3


def test_all_calls_ask_tensorflow_in_one_way(monkeypatch):
    """Else XLA would compile the program once for each: attributes are part of what TensorFlow keeps it by."""
    execute, asked = lookup.find(lookup.EXECUTE_NOW), []

    def spy(handle, device, name, inputs, attributes, count):
        asked.append((name, attributes))
        return execute(handle, device, name, inputs, attributes, count)

    find = lookup.find
    monkeypatch.setattr(lookup, "find", lambda path: spy if path == lookup.EXECUTE_NOW else find(path))
    context = type(find(lookup.CONTEXT)())
    known = context.call_function

    def called(self, name, *args):
        asked.append((name.decode(), None))
        return known(self, name, *args)

    monkeypatch.setattr(context, "call_function", called)
    function = down.options(name="in one way")
    numbers = tf.constant([1, 2])
    for _ in range(4):
        function(numbers)
    with tf.GradientTape():
        function(numbers)
    (name,) = {name for name, _ in asked if "native" in name or "inference" in name}
    assert {attributes for each, attributes in asked if each == name} == {()}
    assert len([each for each, _ in asked if each == name]) >= 5
    np.testing.assert_array_equal(function(numbers), [2, 4])
