"""Blocks that no run can reach, and plain operators whose results nothing needs, go away.

A counter that only counts itself on (`waste = waste + 1`) is read, but not needed (a "faint" variable: Giegerich,
Moencke, Wilhelm, "Invariance of approximative semantics with respect to program transformations", 1981).
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import live_after_each_op
from pcbatch.ir.analysis.speculatable import is_cheap
from pcbatch.optimize.cfg.control_flow import Graph


def remove_dead_code(program: ir.Program) -> ir.Program:
    """Drop blocks without a path from their function's entry, and plain ops with unused results."""
    return replace(program, functions=tuple(map(_without_dead_code, program.functions)))


def _without_dead_code(function: ir.Function) -> ir.Function:
    graph = Graph(function)
    reached = _reached(graph)
    graph = Graph(graph.rebuilt(block for block in function.blocks if block.label in reached))
    needed = _needed(graph.function)
    return graph.rebuilt(replace(block, ops=_kept(graph, block, needed)) for block in graph.function.blocks)


def _reached(graph: Graph) -> set[str]:
    found: set[str] = set()
    work = [graph.function.entry]
    while work:
        label = work.pop()
        if label not in found:
            found.add(label)
            work += ir.successors(graph.blocks[label].terminator)
    return found


def _needed(function: ir.Function) -> set[str]:
    """The variables that a result, a terminator, or an op that must stay reads, or that these are computed from."""
    needed = set(function.results)
    droppable: list[ir.Op] = []
    for block in function.blocks:
        needed.update(ir.reads(block.terminator))
        for op, is_seen in zip(block.ops, _seen(block), strict=True):
            if not is_seen and is_cheap(op, function.externs):
                droppable.append(op)
            else:
                needed.update(ir.reads(op))
    while more := {name for op in droppable if not needed.isdisjoint(ir.writes(op)) for name in ir.reads(op)} - needed:
        needed |= more
    return needed


def _kept(graph: Graph, block: ir.Block, needed: set[str]) -> tuple[ir.Op, ...]:
    """The ops of `block` that must stay, or that give a variable that is needed a value that is read."""
    live = live_after_each_op(block, graph.live[block.label].end)
    return tuple(
        op
        for op, after, is_seen in zip(block.ops, live, _seen(block), strict=True)
        if is_seen
        or not is_cheap(op, graph.function.externs)
        or not after.intersection(needed).isdisjoint(ir.writes(op))
    )


def _seen(block: ir.Block) -> list[bool]:
    """Return for each op whether it is inside a `with` that binds a target, which may be asked later about it."""
    around: list[bool] = []
    found = []
    for op in block.ops:
        found.append(any(around))
        if isinstance(op, ir.Enter):
            around.append(bool(op.outputs))
        elif isinstance(op, ir.Exit):
            around.pop()
    return found
