"""Temporaries that do not live across blocks are never stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import liveness
from pcbatch.ir.rewrite import FreshNames, map_blocks, map_variables, renamed


def find_temporaries(program: ir.Program) -> ir.Program:
    """Updates of variables that every block writes before it reads them become plain primitives.

    A value that is not read behind its block, where others of its variable are stored, first gets a name of its own.
    """
    program = _named_apart(program, _stored(program))
    stored = _stored(program)
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


def _stored(program: ir.Program) -> set[str]:
    """The variables that have to be stored."""
    stored = set(program.entry.parameters) | set(program.entry.results)
    return stored.union(*map(_exposed, program.blocks()))


def _named_apart(program: ir.Program, stored: set[str]) -> ir.Program:
    """`program` with names of their own for values that would be `stored` for the sake of others."""
    own = FreshNames(program)
    live = liveness(program, comes_back=True)

    def rewrite(function: ir.Function, block: ir.Block) -> ir.Block:
        kept = live[block.label].end | set(function.results)
        if isinstance(block.terminator, ir.Fault):
            kept |= set(block.terminator.arguments)
        kept = kept.union(*(ir.writes(op) for op in block.ops if isinstance(op, (ir.Push, ir.Store))))
        ops = [op for op in block.ops if isinstance(op, ir.Primitive | ir.Enter | ir.Update)]
        assigned = (name for op in ops for name in op.outputs)
        lost = dict.fromkeys(name for name in assigned if name in stored and name not in kept)
        return _with_own_names(block, {name: own.name(name) for name in lost}) if lost else block

    return own.listed(map_blocks(program, rewrite))


def _with_own_names(block: ir.Block, own: Mapping[str, str]) -> ir.Block:
    """The block with the variables in `own` renamed from where it first writes them."""
    now: dict[str, str] = {}
    ops: list[ir.Op] = []
    for op in block.ops:
        loads = dict(now)
        if not isinstance(op, ir.Pop):
            now |= {name: own[name] for name in ir.writes(op) if name in own}
        ops.append(renamed(op, loads, now))
    return replace(block, ops=tuple(ops), terminator=renamed(block.terminator, now, {}))


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
