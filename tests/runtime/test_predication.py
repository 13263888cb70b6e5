"""Arms under predicates in the machine: every lane ends as it does block by block, also with other loops merged."""

import numpy as np
import pytest

from pcbatch.optimize.machine.merging import Merging
from pcbatch.optimize.machine.predication import Predication
from pcbatch.runtime.machine.machine import Machine
from tests.runtime import tables
from tests.runtime.libraries import STORAGES, library_named, on_both

ALWAYS = Predication(always=True)
CASES = [(name, STORAGES[place % 2], place // 2 % 2 == 0) for place, name in enumerate(tables.CASES)]


@on_both("name, storage, merges", CASES, [("faults", "stack", True)])
def test_lanes_do_what_they_do_block_by_block(library, name, storage, merges):
    program, arguments, limits = tables.case(name, library.ops)
    program = tables.stored(program, storage)
    expected = library.run(program, *arguments, merging=None, predication=None, **limits)
    merging = Merging(always=True) if merges else None
    outcome = library.run(program, *arguments, merging=merging, predication=ALWAYS, **limits)
    for part in ("status", "site", "steps"):
        np.testing.assert_array_equal(getattr(outcome, part), getattr(expected, part), err_msg=part)
    for one, other in zip(outcome.values, expected.values, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(outcome.active, expected.active, err_msg="asked afterwards it runs block by block")


@pytest.mark.parametrize("options", [{"schedule": "sweep"}, {"trace": 3}, {"jit": False}])
def test_who_chooses_blocks_has_them_apart(options):
    library = library_named("numpy")
    program, _, limits = tables.case("faults", library.ops)
    for chosen in ({}, options):
        made = Machine(program, library.backend, predication=ALWAYS, **{**limits, **chosen}).program_for(4)
        assert (made.blocks == program.blocks) == bool(chosen)
