"""Jumps to a block that only sends lanes on lead to where it sends them.

That is a block without ops that jumps, returns, or branches on a condition that the jump has just decided, as the
short circuit of `a and b` does; a function does not begin with one. A turn of a loop stays: `max_steps` counts it.
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.debugging import text_of
from pcbatch.optimize.cfg.control_flow import Graph, makes_tail_call


def thread_jumps(program: ir.Program) -> ir.Program:
    """Shorten ways through blocks that do nothing."""
    return replace(program, functions=tuple(map(_threaded, program.functions)))


def _threaded(function: ir.Function) -> ir.Function:
    graph = Graph(function)
    blocks = tuple(_with_shorter_ways(graph, block) for block in function.blocks)
    return replace(function, blocks=_without_idle_entry(blocks))


def _without_idle_entry(blocks: tuple[ir.Block, ...]) -> tuple[ir.Block, ...]:
    """Begin where a first block that does nothing leads to."""
    first, *rest = blocks
    match first.terminator:
        case ir.Jump(target=target, turn=False) if _does_nothing(first) and target != first.label:
            return (*(each for each in rest if each.label == target), *(each for each in rest if each.label != target))
    return blocks


def _with_shorter_ways(graph: Graph, block: ir.Block) -> ir.Block:
    end = block.terminator
    match end:
        case ir.Branch(condition=condition, true=true, false=false, span=span):
            true, false = _onward(graph, true, condition, True), _onward(graph, false, condition, False)
            return replace(
                block, terminator=ir.Jump(true, span=span) if true == false else replace(end, true=true, false=false)
            )
        case ir.Jump(target=target, turn=turn):
            target = _onward(graph, target, None, False)
            onward = graph.blocks[target]
            is_end = _is_return(onward) and not makes_tail_call(block.ops, onward.terminator)
            if not turn and (is_end or (_is_turn(onward) and not _says_something(block))):
                return replace(block, terminator=onward.terminator)
            return replace(block, terminator=replace(end, target=target))
    return block


def _is_return(block: ir.Block) -> bool:
    return _does_nothing(block) and isinstance(block.terminator, ir.Return)


def _says_something(block: ir.Block) -> bool:
    """Return whether a block ends with an entry of `pcbatch.debug`, which a fault of the next turn must leave whole."""
    return bool(block.ops) and text_of(block.ops[-1]) is not None


def _is_turn(block: ir.Block) -> bool:
    return _does_nothing(block) and isinstance(block.terminator, ir.Jump) and block.terminator.turn


def _does_nothing(block: ir.Block) -> bool:
    return not block.ops and not block.sync


def _onward(graph: Graph, label: str, condition: str | None, holds: bool) -> str:
    """The block that a lane sent to `label` gets to without doing anything, `condition` being known to hold or not."""
    seen = {label}
    while _does_nothing(graph.blocks[label]):
        match graph.blocks[label].terminator:
            case ir.Jump(target=target, turn=False):
                following = target
            case ir.Branch(condition=again, true=true, false=false) if again == condition:
                following = true if holds else false
            case _:
                break
        if following in seen:  # an endless loop that does nothing
            break
        seen.add(following)
        label = following
    return label
