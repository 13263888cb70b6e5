"""Registers of which one only takes over the value of the other become one, and the copy goes away.

    b1: update pair = result                              b1: push n = n - 1
        push n = n - 1                         -->            pushjump walk, back to b2
        pushjump walk, back to b2
    function walk(n, pair) -> result                      function walk(n, pair) -> pair

A register is written for every lane of the batch, so a copy costs as much as what it copies is long. What stays apart:
variables that are needed at the same time, those of other types, those with a stack, and numbers, of which a copy costs
next to nothing and whose names the user wants to see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import Interference, copies, liveness
from pcbatch.ir.rewrite import map_blocks, renamed, variables, without_unused
from pcbatch.ir.types import TensorType


def coalesce(program: ir.Program) -> ir.Program:
    """Give registers one name of which one is a copy of the other, as far as their values never meet."""
    candidates = _candidates(program)
    found = _interference(program, candidates)
    made = {name for function in program.functions for name in function.made}
    order = sorted(candidates, key=made.__contains__)  # a merged register goes by a name of the user's
    for pair in copies(program.blocks()):
        if candidates.keys() >= {*pair}:
            kept, merged = sorted((found.now[name] for name in pair), key=order.index)
            if kept != merged and candidates[kept] == candidates[merged] and not found.are_apart(kept, merged):
                found.merge(kept, merged)
    return _with_names(program, found.changed)


def _candidates(program: ir.Program) -> dict[str, object]:
    """The registers that may be merged, and their types, in the order of the tables of variables."""
    return {
        name: variable.type
        for name, variable in variables(program).items()
        if variable.storage == "register" and not _is_number(variable) and variable.type is not None
    }


def _is_number(variable: ir.Variable) -> bool:
    return isinstance(variable.type, TensorType) and not variable.type.shape


def _interference(program: ir.Program, candidates: Mapping[str, object]) -> Interference:
    live = liveness(program)
    found = Interference(candidates)
    found.meet(program.entry.parameters, {*program.entry.parameters, *live[program.entry.entry].start})
    for function in program.functions:
        found.meet_in(function, live)
    return found


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
