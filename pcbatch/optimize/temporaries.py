"""Temporaries that do not live across blocks are never stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.optimize.rewriting import map_blocks, map_variables


def find_temporaries(program: ir.Program) -> ir.Program:
    """Updates of variables that every block writes before it reads them become plain primitives."""
    stored = set(program.entry.parameters) | set(program.entry.results)
    for block in program.blocks():
        stored |= set(_exposed(block))
    every = {name for block in program.blocks() for op in block.ops for name in ir.writes(op)}
    temporary = every - stored

    def demoted(op: ir.Op) -> ir.Op:
        if isinstance(op, ir.Update) and temporary.issuperset(op.outputs):
            return ir.Primitive(op.outputs, op.inputs, op.code, op.span)
        return op

    def rewrite(function: ir.Function, block: ir.Block) -> ir.Block:
        return replace(block, ops=tuple(demoted(op) for op in block.ops))

    results = {name for function in program.functions for name in function.results}

    def explained(variable: ir.Variable) -> ir.Variable:
        if variable.name in temporary:
            return replace(variable, storage="temporary", reason="does not leave its block")
        if variable.storage != "register" or variable.reason:
            return variable
        reason = "hands a result to the caller" if variable.name in results else "lives from one block to another"
        return replace(variable, reason=reason)

    return map_variables(map_blocks(program, rewrite), explained)


def _exposed(block: ir.Block) -> Iterator[str]:
    """The variables that the block needs from before, keeps on a stack, or leaves for a message after the run."""
    written: set[str] = set()
    for op in block.ops:
        match op:
            case ir.Pop(variables=names) | ir.Push(outputs=names):
                yield from names
        yield from (name for name in ir.reads(op) if name not in written)
        written |= set(ir.writes(op))
    terminator = block.terminator
    yield from (name for name in ir.reads(terminator) if name not in written or isinstance(terminator, ir.Fault))
