"""A branch on `bool(x)`, `x` being a bool already, is a branch on `x`: who branches on `x` again can be told why."""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.payload import Truth
from pcbatch.ir.types import TensorType
from pcbatch.optimize.cfg.control_flow import Graph


def branch_on_bools(program: ir.Program) -> ir.Program:
    """Remove conversions to bool of a bool."""
    return replace(program, functions=tuple(map(_plain, program.functions)))


def _plain(function: ir.Function) -> ir.Function:
    graph = Graph(function)
    return graph.rebuilt(_with_plain_condition(graph, block) for block in function.blocks)


def _with_plain_condition(graph: Graph, block: ir.Block) -> ir.Block:
    match block:
        case ir.Block(
            ops=(*ops, ir.Primitive(outputs=(asked,), inputs=(given,), code=Truth())), terminator=ir.Branch() as end
        ):
            converted = asked == end.condition and graph.uses[asked] == 1
            if converted and graph.types.get(given) == TensorType("bool"):
                return replace(block, ops=tuple(ops), terminator=replace(end, condition=given))
    return block
