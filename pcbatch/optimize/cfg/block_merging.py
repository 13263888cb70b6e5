"""A block that is reached from one place only becomes the end of the block before it."""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.debugging import text_of
from pcbatch.optimize.cfg.control_flow import Graph, makes_tail_call


def merge_straight_lines(program: ir.Program) -> ir.Program:
    """Join blocks between which there is no choice."""
    return replace(program, functions=tuple(map(_merged, program.functions)))


def _merged(function: ir.Function) -> ir.Function:
    while (merged := _merged_once(function)) is not None:
        function = merged
    return function


def _merged_once(function: ir.Function) -> ir.Function | None:
    graph = Graph(function)
    for block in function.blocks:
        end = block.terminator
        if (
            end != ir.Jump(block.label)
            and isinstance(end, ir.Jump)
            and not end.turn
            and graph.arrivals[end.target] == 1
        ):
            following = graph.blocks[end.target]
            if block.ops and text_of(block.ops[-1]) is not None:  # a fault behind it must leave the entry whole
                continue
            if not following.ops and makes_tail_call(block.ops, following.terminator):
                continue
            joined = replace(block, ops=(*block.ops, *following.ops), terminator=following.terminator)
            rest = (each for each in function.blocks if each.label != following.label)
            return graph.rebuilt(joined if each is block else each for each in rest)
    return None
