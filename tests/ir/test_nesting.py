"""Loops of machine programs, and the order in which their blocks go forward."""

import pytest

from pcbatch.ir.analysis.effects import Loop, blocks_of, nest, nest_with_calls
from pcbatch.ir.machine import Block, Branch, Jump, Program, PushJump, Return, targets
from tests.ir import machine_programs
from tests.ir.machine_parser import parse_machine


def program(*terminators):
    blocks = tuple(Block(f"b{number}", (), terminator) for number, terminator in enumerate(terminators))
    return Program("f", (), (), {}, {}, blocks)


def test_without_loops_jumps_go_forward():
    assert nest(program(Branch("t", 2, 1), Jump(3), Jump(1), Return())) == (0, 2, 1, 3)


def test_a_loop_in_a_loop():
    found = nest(program(Jump(1), Branch("t", 2, 4), Branch("t", 2, 3), Jump(1), Return()))
    assert found == (0, Loop((1, Loop((2,), is_entered_first=True), 3), is_entered_first=True), 4)


def test_a_loop_of_one_block():
    assert nest(program(Jump(1), Branch("t", 1, 2), Return())) == (0, Loop((1,), is_entered_first=True), 2)


def test_a_loop_in_which_a_call_comes_back_is_entered_in_the_middle():
    found = nest(program(Jump(1), Branch("t", 2, 3), PushJump(5, 4, 0), Jump(4), Branch("t", 1, 6), Return(), Return()))
    (loop,) = [node for node in found if isinstance(node, Loop)]
    assert set(loop.nodes) == {1, 3, 4}
    assert not loop.is_entered_first


def test_what_a_loop_calls_is_in_the_loop_and_its_own_recursion_within():
    given = program(
        Jump(1), Branch("t", 2, 3), PushJump(4, 1, 0), Return(), Branch("t", 5, 6), PushJump(4, 6, 0), Return()
    )
    (_, loop, last) = nest_with_calls(given)
    assert last == 3
    assert [node for node in loop.nodes if isinstance(node, int)] == [1, 2]
    assert {*blocks_of(node for node in loop.nodes if isinstance(node, Loop))} == {4, 5, 6}
    assert nest(given) == (0, 1, 2, 3, 4, 5, 6)


def test_blocks_that_no_lane_comes_to_are_left_out():
    assert nest(program(Jump(2), Jump(2), Return())) == (0, 2)


@pytest.mark.parametrize("text", machine_programs.ALL.values(), ids=machine_programs.ALL)
def test_only_the_first_block_of_a_loop_is_jumped_back_to(text):
    given = parse_machine(text)
    nodes = nest(given)
    assert len([*blocks_of(nodes)]) == len({*blocks_of(nodes)})
    check(given, nodes, first=None)


def check(given, nodes, first):
    """Jumps among `nodes` go forward, or to the `first` block of the loop that they are in."""
    members = [set(blocks_of([node])) for node in nodes]
    for place, node in enumerate(nodes):
        for number in members[place]:
            terminator = given.blocks[number].terminator
            for target in () if isinstance(terminator, PushJump) else targets(terminator):
                behind = [at for at, inside in enumerate(members) if target in inside]
                assert target == first or not behind or behind[0] >= place
                assert target == first or behind != [place] or isinstance(node, Loop)
        if isinstance(node, Loop):
            check(given, node.nodes, next(blocks_of(node.nodes)))
