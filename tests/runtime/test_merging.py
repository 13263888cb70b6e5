"""Blocks that are run as one: every lane does what it does block by block, in fewer trips."""

from dataclasses import replace

import numpy as np
import pytest

from pcbatch.ir.machine import Chunks
from pcbatch.ir.text.machine_printer import print_machine
from pcbatch.ir.verify.machine import verify_machine
from pcbatch.optimize.machine.compaction import Row
from pcbatch.optimize.machine.merging import Merging
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.blocks import BlockRunner
from pcbatch.runtime.machine.machine import Machine
from tests.ir.machine_parser import parse_machine
from tests.runtime import tables
from tests.runtime.libraries import ON_BOTH, STORAGES, ints, library_named, on_both

LOOPS = Merging(always=True)


class Everything(Merging):
    """All blocks of a program are one."""

    def merged(self, program, rows, lanes):
        return replace(program, merged=(program.order or tuple(range(len(program.blocks))),))


BY_LANE = ("status", "site", "place", "steps")


def assert_alike(actual, expected):
    """The same results, faults and steps of every lane."""
    for name in BY_LANE:
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name), err_msg=name)
    for one, other in zip(actual.values, expected.values, strict=True):
        np.testing.assert_array_equal(one, other)
    for name, leaves in expected.fault_values.items():
        np.testing.assert_array_equal(actual.fault_values[name], leaves)


KINDS = {"loops": LOOPS, "everything": Everything()}
CASES = [(name, storage, kind) for name in tables.CASES for storage in STORAGES for kind in KINDS]


@on_both("name, storage, kind", CASES, [("faults", "cached stack", "everything")])
def test_lanes_do_what_they_do_block_by_block(library, name, storage, kind):
    program, arguments, limits = tables.case(name, library.ops)
    program = tables.stored(program, storage)
    expected = library.run(program, *arguments, merging=None, **limits)
    outcome = library.run(program, *arguments, merging=KINDS[kind], **limits)
    assert_alike(outcome, expected)
    np.testing.assert_array_equal(outcome.active, expected.active)


def test_a_loop_turns_within_a_trip(library):
    a, b = ints(12, 5, 0, 100, 9), ints(18, 1, 0, 75, 3)
    expected = library.run(tables.gcd(library.ops), a, b, merging=None)
    outcome = library.run(tables.gcd(library.ops), a, b, merging=LOOPS)
    assert_alike(outcome, expected)
    assert outcome.trips < expected.trips
    np.testing.assert_array_equal(outcome.active, expected.active)
    turns = outcome.rows[:2] // len(a)
    assert turns[0] == turns[1] >= max(outcome.executions[:2]), "each turn computes all blocks for every lane"


@ON_BOTH
def test_lanes_that_lack_room_are_paused_where_they_are(library):
    """A recursion of one group of blocks, on stacks that grow."""
    n = ints(3, 70, 200)
    expected = library.run(tables.even(), n, merging=None)
    outcome = library.run(tables.even(), n, merging=Everything())
    assert_alike(outcome, expected)
    assert int(outcome.stack_entries) == int(expected.stack_entries) == 513


def test_what_is_asked_afterwards_runs_again_on_the_same_stacks(library):
    """A second run would begin on stacks as long as the first one's in the end, and pause no lane."""
    machine = Machine(tables.even(), library.backend)
    first, second = (machine.run([ints(3, 200)], [], 2) for _ in range(2))
    assert int(first.trips) > int(second.trips)


@pytest.mark.parametrize("options", [{"schedule": "sweep"}, {"schedule": "adaptive"}, {"trace": 3}, {"jit": False}])
def test_who_chooses_blocks_has_them_apart(options):
    backend = library_named("numpy").backend
    program = tables.reverse()
    assert Machine(program, backend, merging=LOOPS).program_for(4).merged == ((1, 2),)
    assert Machine(program, backend, merging=LOOPS, **options).program_for(4).merged == ()


def merged(program, lanes, costs, device=CPU):
    """The blocks that are run as one where rows cost so much."""
    return Merging(device).merged(program, [Row(cost) for cost in costs], lanes).merged


def test_price_decides():
    storing = tables.reverse()
    dividing = tables.gcd(library_named("numpy").ops)
    assert merged(dividing, 64, [1, 10, 1]) == ((0, 1),)
    assert merged(dividing, 65, [1, 10, 1]) == ()
    assert merged(dividing, None, [1, 10, 1]) == ()
    assert merged(dividing, 64, [1, 1000, 1]) == ()
    assert merged(storing, 1024, [1, 2, 2, 1]) == ((1, 2),)
    assert merged(storing, 1025, [1, 2, 2, 1]) == ()
    other = replace(CPU, merged_lanes=100, merged_storing=8, merged_work=5000.0)
    assert merged(dividing, 100, [1, 1000, 1], other) == ((0, 1),)
    assert merged(storing, 9, [1, 2, 2, 1], other) == ()
    assert merged(storing, 8, [1, 2, 2, 1], replace(other, merged_blocks=1)) == ()


def test_blocks_that_lanes_are_gathered_for_are_not_merged():
    program = tables.gcd(library_named("numpy").ops)
    for change in ({"chunks": Chunks(4)}, {"sync": True}):
        blocks = (program.blocks[0], replace(program.blocks[1], **change), program.blocks[2])
        assert LOOPS.merged(replace(program, blocks=blocks), [Row(1.0)] * 3, 8).merged == ()


def test_it_is_said_in_the_text():
    text = "program machine p(n) -> n\n  var n: int32[]  register\n  var t: bool[]  temporary\n{}" + (
        "b0:\n  piece (n) -> t:\n    t = n > 1\n  branch t b1 b2\n"
        "b1:\n  piece (n) -> n:\n    n = n - 1\n  jump b0, turn\nb2:\n  return\n"
    )
    program = parse_machine(text.format(""))
    found = LOOPS.merged(program, [Row(1.0)] * 3, 8)
    verify_machine(found)
    assert "  merged b0, b1\n" in print_machine(found)
    assert parse_machine(print_machine(found)) == found


def test_sabotage_is_noticed(monkeypatch):
    """Lanes run all blocks that are merged, wherever they are."""
    library, n = library_named("numpy"), ints(0, 3, 5)
    wanted = library.run(tables.fibonacci(), n, merging=Everything(), max_steps=50)
    monkeypatch.setattr(BlockRunner, "ready", lambda self, state, chosen: state["pc"] < 5)
    found = library.run(tables.fibonacci(), n, merging=Everything(), max_steps=50)
    assert not np.array_equal(found.values[0], wanted.values[0])
