"""Speculation: cheap code in an arm of a branch moves before the branch, if that leaves no block of the arm.

    branch c b1 b2                          y = cast x; branch c b1 b3
    b1: y = f(x); jump b3            -->    b1: y = f(x); jump b3
    b2: y = cast x; jump b3

So an `if` without an `else` is one block, whatever the lanes hold that do not take it (Allen, Kennedy, Porterfield,
Warren, "Conversion of control dependence to data dependence", POPL 1983, of which this is the half that always pays).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.speculatable import is_cheap, work
from pcbatch.ir.types import TensorType
from pcbatch.optimize.cfg.control_flow import Graph
from pcbatch.optimize.cfg.if_conversion import MAX_WORK


def hoist_free_arms(program: ir.Program) -> ir.Program:
    """Move copies, casts and constants before the branch that leads to nothing but them."""
    return replace(program, functions=tuple(map(_hoisted, program.functions)))


def _hoisted(function: ir.Function) -> ir.Function:
    while (changed := _hoisted_once(Graph(function))) is not None:
        function = changed
    return function


def _hoisted_once(graph: Graph) -> ir.Function | None:
    for block in graph.function.blocks:
        branch = block.terminator
        if not isinstance(branch, ir.Branch) or branch.true == branch.false:
            continue
        for label, other in ((branch.true, branch.false), (branch.false, branch.true)):
            arm = graph.blocks[label]
            written = {name for op in arm.ops for name in ir.writes(op)}
            is_needed = not written.isdisjoint(graph.live[other].start | {branch.condition})
            if is_needed or arm is block or not _is_free(graph, arm) or not _meets(graph, block, other, arm):
                continue
            longer = replace(block, ops=(*block.ops, *arm.ops))
            emptied = {block.label: longer, label: replace(arm, ops=())}
            return graph.rebuilt(emptied.get(each.label, each) for each in graph.function.blocks)
    return None


def _is_free(graph: Graph, arm: ir.Block) -> bool:
    """Return whether a block goes away if all of its work, which costs next to nothing, is done before."""
    if not arm.ops or graph.arrivals[arm.label] != 1 or not isinstance(arm.terminator, ir.Jump) or arm.terminator.turn:
        return False
    return all(
        isinstance(op, ir.Primitive)
        and is_cheap(op, graph.function.externs)
        and work(op.code) == 0
        and all(_is_small(graph.types.get(name)) for name in op.outputs)
        for op in arm.ops
    )


def _meets(graph: Graph, block: ir.Block, other: str, arm: ir.Block) -> bool:
    """Return whether the other way from a branch leads to where the arm does, and not by the branch again.

    It does not where the arm leads into a loop, and the other way past it: what sets up a loop stays before it.
    """
    (target,) = ir.successors(arm.terminator)
    seen, waiting = {block.label}, [other]
    while waiting:
        label = waiting.pop()
        if label == target:
            return True
        if label not in seen:
            seen.add(label)
            waiting += ir.successors(graph.blocks[label].terminator)
    return False


def _is_small(type_: object) -> bool:
    return isinstance(type_, TensorType) and prod(type_.shape) <= MAX_WORK
