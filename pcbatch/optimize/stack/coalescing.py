"""Registers of which one only takes over the value of the other become one, and the copy goes away.

    b1: update pair = result                              b1: push n = n - 1
        push n = n - 1                         -->            pushjump walk, back to b2
        pushjump walk, back to b2
    function walk(n, pair) -> result                      function walk(n, pair) -> pair

A register is written for every lane of the batch, so a copy costs as much as what it copies is long. Two registers can
be one if neither is written while the value of the other is still needed, unless by a copy of it (Chaitin, "Register
allocation and spilling via graph coloring", 1982). What stays apart: variables of other types, those with a stack, and
numbers, of which a copy costs next to nothing and whose names the user wants to see.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import live_after_each_op, liveness
from pcbatch.ir.rewrite.mapping import map_blocks, variables, without_unused
from pcbatch.ir.rewrite.renaming import renamed
from pcbatch.ir.types import TensorType


def coalesce(program: ir.Program) -> ir.Program:
    """Give registers one name of which one is a copy of the other, as far as their values never meet."""
    candidates = _candidates(program)
    apart = _interference(program, candidates)
    names = {name: name for name in candidates}
    made = {name for function in program.functions for name in function.made}
    order = sorted(candidates, key=made.__contains__)  # a merged register goes by a name of the user's
    for block in program.blocks():
        for op in block.ops:
            if isinstance(op, ir.Update) and ir.is_copy(op) and candidates.keys() >= {*op.outputs, *op.inputs}:
                kept, merged = sorted((names[op.inputs[0]], names[op.outputs[0]]), key=order.index)
                if kept != merged and candidates[kept] == candidates[merged] and merged not in apart[kept]:
                    _merge(apart, kept, merged)
                    names = {name: kept if now == merged else now for name, now in names.items()}
    return _with_names(program, {name: now for name, now in names.items() if name != now})


def _candidates(program: ir.Program) -> dict[str, object]:
    """The registers that may be merged, and their types, in the order of the tables of variables."""
    return {
        name: variable.type
        for name, variable in variables(program).items()
        if variable.storage == "register" and not _is_number(variable) and variable.type is not None
    }


def _is_number(variable: ir.Variable) -> bool:
    return isinstance(variable.type, TensorType) and not variable.type.shape


def _interference(program: ir.Program, candidates: Iterable[str]) -> dict[str, set[str]]:
    """The candidates that conflict with each: needed where it is written, or written with it."""
    names = frozenset(candidates)
    live = liveness(program)
    apart: dict[str, set[str]] = defaultdict(set)

    def meet(written: Iterable[str], others: Iterable[str]) -> None:
        for name in names.intersection(written):
            for other in names.intersection(others) - {name}:
                apart[name].add(other)
                apart[other].add(name)

    meet(program.entry.parameters, {*program.entry.parameters, *live[program.entry.entry].start})
    for function in program.functions:
        for block in function.blocks:
            returns = isinstance(block.terminator, ir.Return)
            end = live[block.label].end | (set(function.results) if returns else set())
            for op, after in zip(block.ops, live_after_each_op(block, end), strict=True):
                source = set(op.inputs) if isinstance(op, ir.Update) and ir.is_copy(op) else set()
                meet(ir.writes(op), {*after, *ir.writes(op)} - source)
    return apart


def _merge(apart: dict[str, set[str]], kept: str, merged: str) -> None:
    for other in apart.pop(merged, set()):
        apart[other].discard(merged)
        apart[other].add(kept)
        apart[kept].add(other)


def _with_names(program: ir.Program, names: Mapping[str, str]) -> ir.Program:
    """`program` with variables renamed, and without the copies that then copy nothing."""
    if not names:
        return program

    def each(variables: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(name, name) for name in variables)

    def rewrite(function: ir.Function, block: ir.Block) -> ir.Block:
        ops = tuple(renamed(op, names, names) for op in block.ops)
        kept = tuple(op for op in ops if not (isinstance(op, ir.Update) and ir.is_identity(op)))
        return replace(block, ops=kept, terminator=renamed(block.terminator, names, names))

    functions = tuple(
        replace(function, parameters=each(function.parameters), results=each(function.results))
        for function in program.functions
    )
    return without_unused(map_blocks(replace(program, functions=functions), rewrite))
