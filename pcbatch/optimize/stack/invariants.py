"""Parameters that the whole recursion passes on unchanged are stored once, under one name.

A variable whose every write is a copy of one parameter of the entry that nothing else writes holds that parameter's
value for the whole run. It is replaced by it, which removes its copies, its saves and itself. What is left is never
written, and may even be shared by all lanes (`in_axes=None`). The analysis is optimistic, as in sparse constant
propagation (Wegman and Zadeck, TOPLAS 1991): cycles of copies through mutually recursive functions are found.
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.program import is_copy
from pcbatch.ir.rewrite import map_blocks, map_variables, renamed, restore_storage, variables


def share_invariants(program: ir.Program) -> ir.Program:
    """Replace every variable that always equals one unchanging parameter of the entry by that parameter."""
    value = _values(program)
    table = variables(program)
    parameters = program.entry.parameters
    results = {name for function in program.functions for name in function.results}
    same = {
        name: parameter
        for name, parameter in value.items()
        if parameter not in (None, name) and name not in results and table[name].type == table[parameter].type
    }
    unchanging = frozenset(name for name in parameters if value.get(name) == name) | same.keys()

    def rewrite_op(op: ir.Op) -> ir.Op | None:
        match op:
            case ir.Pop(variables=names):
                kept = tuple(name for name in names if name not in unchanging)
                return replace(op, variables=kept) if kept else None
            case ir.Primitive() | ir.Enter() | ir.Update() | ir.Push():
                if op.outputs and unchanging.issuperset(op.outputs):
                    return None
        return renamed(op, same, {})

    def rewrite(function: ir.Function, block: ir.Block) -> ir.Block:
        ops = tuple(op for op in map(rewrite_op, block.ops) if op is not None)
        return replace(block, ops=ops, terminator=renamed(block.terminator, same, {}))

    result = map_blocks(program, rewrite)
    functions = tuple(
        replace(function, parameters=tuple(name for name in function.parameters if name not in same))
        for function in result.functions
    )
    result = map_variables(replace(result, functions=functions), lambda v: None if v.name in same else v)
    return restore_storage(result, "the whole recursion passes it on unchanged")


def _values(program: ir.Program) -> dict[str, str | None]:
    """Variable to the entry's parameter that it always equals, None where there is no such parameter."""
    writers: dict[str, list[str | None]] = {}
    for block in program.blocks():
        for op in block.ops:
            if isinstance(op, ir.Pop) or ir.is_identity(op):
                continue
            for name in ir.writes(op):
                writers.setdefault(name, []).append(ir.reads(op)[0] if is_copy(op) else None)
    value: dict[str, str | None] = {name: name for name in program.entry.parameters}
    changed = True
    while changed:
        changed = False
        for name, sources in writers.items():
            known = {value[s] if s is not None else None for s in sources if s is None or s in value}
            if name in program.entry.parameters:
                known.add(name)
            new = next(iter(known)) if len(known) == 1 else None
            if known and value.get(name, "") != new:
                value[name] = new
                changed = True
    return value
