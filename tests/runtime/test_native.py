"""The native form on tables written by hand, against the reference; and the order of a region's code."""

import dataclasses

import numpy as np
import pytest

from pcbatch.ir.analysis.nesting import Loop, blocks_of, nest
from pcbatch.ir.machine import Block, Jump, Return
from pcbatch.runtime.llvm.program import LlvmProgram
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.native import arrangement, code
from pcbatch.runtime.report.run import Run
from pcbatch.runtime.strategies.reference import run_reference
from tests.runtime import tables
from tests.runtime.libraries import STORAGES, ints

CASES = [(case, storage) for case in tables.CASES for storage in STORAGES]


def native(program, library, **limits):
    return LlvmProgram(Machine(program, library.backend, **limits))


def assert_as_the_reference(library, program, arguments, **limits):
    """Values, status, sites, steps, what messages show, and how often each lane ran each block."""
    lanes = len(arguments[0])
    wanted = run_reference(program, library.backend, arguments, [], lanes, **limits)
    actual = native(program, library, **limits).run(arguments, [], lanes)
    for got, expected in zip(actual.values, wanted.values, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    for name in ("status", "site", "place", "steps", "executions", "active", "rows", "trips"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(wanted, name), err_msg=name)
    one, other = Run.of(program, actual), Run.of(program, wanted)
    assert [fault.render() for fault in one.errors] == [fault.render() for fault in other.errors]


@pytest.mark.parametrize(("case", "storage"), CASES)
@pytest.mark.parametrize("library", ["tensorflow"], indirect=True)
def test_native_code_equals_the_reference(library, case, storage):
    program, arguments, limits = tables.case(case, library.ops)
    assert_as_the_reference(library, tables.stored(program, storage), arguments, **limits)


@pytest.mark.parametrize("library", ["tensorflow"], indirect=True)
def test_a_lane_finds_its_stacks_as_if_no_other_had_been_there(library):
    """A lane that makes no call, and one that fails in the depth of a recursion, come before one that returns."""
    for numbers in ([0, 2], [9, 0, 5], [9, 9, 3, 0, 9, 2]):
        assert_as_the_reference(library, tables.fibonacci(), [ints(*numbers)], max_depth=6)


def test_many_blocks_go_into_groups():
    nodes = (*range(20), Loop((20, 21), is_entered_first=True), 22)
    groups = arrangement.grouped(nodes)
    assert [*blocks_of(groups)] == [*range(23)]
    assert len(groups) <= code.CPU.native_row
    assert all(isinstance(group, Loop) and not group.is_entered_first for group in groups)


def test_recursion_goes_back_then_on_then_down():
    program = tables.fibonacci()
    behind, down = Loop((4,), is_entered_first=True), Loop((0, 2), is_entered_first=False)
    assert arrangement.arranged(program, nest(program)) == (behind, 3, down, 1)


def test_functions_that_call_each_other_are_gone_round_together():
    program = tables.even()
    down, behind = (Loop(blocks, is_entered_first=False) for blocks in ((0, 2, 4, 6), (3, 7)))
    assert arrangement.arranged(program, nest(program)) == (down, 5, 1, behind)


def test_what_is_not_recursive_stands_apart_in_large_programs():
    program = tables.fibonacci()
    others = tuple(Block(f"b{5 + n}", (), Jump(6 + n), function="main") for n in range(9))
    last = (Block("b14", (), Return(), function="main"),)
    program = dataclasses.replace(program, blocks=(*program.blocks, *others, *last))
    nodes = (*range(5, 15), *range(5))
    seldom, often = arrangement.arranged(program, nodes)
    assert [*blocks_of([seldom])] == [*range(5, 15)]
    assert [*blocks_of([often])] == [4, 3, 0, 2, 1]
