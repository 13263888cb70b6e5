"""A temporary that is made only to be copied once is folded into the copy: `t1 = n - 2; push n = t1` is `push n = n - 2`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.optimize.rewriting import is_copy, map_blocks, map_variables, nodes


def fold_copies(program: ir.Program) -> ir.Program:
    """Fold single-use temporaries into the updates and pushes that copy them, where nothing between them interferes."""
    used = Counter(name for block in program.blocks() for node in nodes(block) for name in ir.reads(node))
    made = Counter(name for block in program.blocks() for op in block.ops for name in ir.writes(op))

    def rewrite(function: ir.Function, block: ir.Block) -> ir.Block:
        ops = list(block.ops)
        for op in block.ops:
            if isinstance(op, ir.Primitive) and len(op.outputs) == 1:
                name = op.outputs[0]
                if used[name] == made[name] == 1 and op.code.startswith(f"{name} = "):
                    ops = _fold(ops, op, name)
        return replace(block, ops=tuple(ops))

    result = map_blocks(program, rewrite)
    left = {name for block in result.blocks() for node in nodes(block) for name in (*ir.reads(node), *ir.writes(node))}
    return map_variables(result, lambda v: v if v.storage != "temporary" or v.name in left else None)


def _fold(ops: list[ir.Op], made: ir.Primitive, name: str) -> list[ir.Op]:
    """`ops` with the definition `made` of `name` moved into the one copy of it, if that is safe."""
    start = ops.index(made)
    for place in range(start + 1, len(ops)):
        op = ops[place]
        if isinstance(op, (ir.Push, ir.Update)) and is_copy(op) and op.inputs == (name,):
            folded = replace(op, inputs=made.inputs, code=f"{op.outputs[0]} = {made.code.removeprefix(f'{name} = ')}")
            return [*ops[:start], *ops[start + 1 : place], folded, *ops[place + 1 :]]
        if set(ir.writes(op)) & set(made.inputs):
            return ops  # the definition may not be moved past a write of what it reads
    return ops

