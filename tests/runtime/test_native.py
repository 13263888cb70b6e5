"""The native form on tables written by hand, against the reference."""

import numpy as np
import pytest

from pcbatch.runtime.llvm.program import LlvmProgram
from pcbatch.runtime.machine.machine import Machine
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
