"""Measured constants: all there, each with its measurement, and a device that was not measured reads as the CPU."""

import ast
import dataclasses
import inspect
import itertools

import pytest

from pcbatch.ir.machine import Block, Chunks, Jump, Program, Return
from pcbatch.optimize.machine.compaction import Compaction, Row
from pcbatch.runtime.costs import device
from pcbatch.runtime.costs.device import CPU, GPU, MEASURED, Device, like_the_cpu
from pcbatch.runtime.costs.estimate import Prices
from pcbatch.runtime.machine.pool import BatchBuckets, spare_lanes


def test_every_field_has_a_docstring():
    (definition,) = (node for node in ast.parse(inspect.getsource(device)).body if isinstance(node, ast.ClassDef))
    lines = definition.body[1:]
    documented = {
        field.target.id
        for field, text in itertools.pairwise(lines)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }
    assert documented == {field.name for field in dataclasses.fields(Device)}


def test_what_was_not_measured_reads_as_the_cpu():
    assert CPU.not_measured == frozenset()
    entries = {**dict.fromkeys(MEASURED), "guard": 7.0}
    some = like_the_cpu("gpu", entries)
    assert (some.kind, some.guard, some.trip) == ("gpu", 7.0, CPU.trip)
    assert some.not_measured == set(MEASURED) - {"guard"}
    measured = {name: getattr(GPU, name) for name in set(MEASURED) - GPU.not_measured}
    assert dataclasses.replace(CPU, kind="gpu", not_measured=GPU.not_measured, **measured) == GPU


def test_entries_are_complete():
    with pytest.raises(ValueError, match="a device has the entries guard, trip"):
        like_the_cpu("gpu", {"guard": 1.0})


def test_another_device_has_other_prices_and_chunks():
    slow = dataclasses.replace(CPU, trip=1.0, guard=10.0, execution=100.0)
    assert Prices([2.0, 3.0], 4, slow).trip == 21.0
    assert Prices([2.0, 3.0], 4, slow).executions == [108.0, 112.0]
    two = dataclasses.replace(CPU, chunk_least=8, chunk_most=64, chunk_work=1e6, gathered=1e9)
    assert [Compaction(device=each).size(Row(1e6)) for each in (CPU, two)] == [4, 8]
    assert [Compaction(device=each).size(Row(1e3)) for each in (CPU, two)] == [32, 64]
    blocks = Block("b0", (), Jump(1)), Block("b1", (), Return())
    program, rows = Program("two", (), (), {}, {}, blocks), [Row(1.0), Row(1e6)]
    assert Compaction().chunks(program, rows, 64)[1] == Chunks(4, 52)
    assert Compaction(device=two).chunks(program, rows, 64)[1] is None


def test_another_device_has_other_rooms():
    small = dataclasses.replace(CPU, room_share=1.0, idle_most=4, idle_least=2)
    for device_, wanted in ((CPU, [12, 12, 24]), (small, [12, 8, 24])):
        rooms = BatchBuckets(lambda device_=device_: spare_lanes([1.0], 1, device_) // 8, device_)
        assert [rooms.of(examples) for examples in (12, 7, 20)] == wanted


def test_it_imports_nothing_of_pcbatch():
    assert "import pcbatch" not in inspect.getsource(device)
    assert "from pcbatch" not in inspect.getsource(device)
