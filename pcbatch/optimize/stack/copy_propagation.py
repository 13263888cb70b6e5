"""Needless temporaries are folded away: `t1 = n - 2; push n = t1` is `push n = n - 2`, a copy gives way to its source.

The generated code then reads as the user wrote it. What is computed does not change; the pieces were traced as one
anyway.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TypeGuard

from pcbatch.ir import program as ir
from pcbatch.ir.rewrite import map_blocks, nodes, renamed, without_unused


def propagate_copies(program: ir.Program) -> ir.Program:
    """Fold temporaries that only copy, and temporaries that are only copied, where nothing in between interferes."""

    def rewrite(function: ir.Function, block: ir.Block) -> ir.Block:
        used = Counter(name for node in nodes(block) for name in ir.reads(node))
        made = Counter(name for op in block.ops for name in ir.writes(op))
        copied = {op.inputs[0] for op in block.ops if _hands_on(op)}
        for op in block.ops:
            if not isinstance(op, ir.Primitive) or len(op.outputs) != 1 or made[op.outputs[0]] > 1:
                continue
            (name,) = op.outputs
            is_wanted = ir.is_copy(op) or (name in copied and used[name] == 1 and ir.assigned_value(op) is not None)
            if not is_wanted or name in function.results or op not in block.ops:
                continue
            if ir.is_copy(op):
                block = _without_copy(block, op)
            else:
                block = replace(block, ops=_moved(block.ops, op))
        # `a = a`, of a parameter that a tail call hands on, would cost the whole array at every turn: 28 times an
        # element's write at length 10,000.
        return replace(block, ops=tuple(op for op in block.ops if not _is_idle(op)))

    return without_unused(map_blocks(program, rewrite))


def _moved(ops: tuple[ir.Op, ...], made: ir.Primitive) -> tuple[ir.Op, ...]:
    """`ops` with the definition `made` moved into the one copy of its output, if that is safe."""
    (name,) = made.outputs
    start = ops.index(made)
    for place in range(start + 1, len(ops)):
        op = ops[place]
        if _hands_on(op) and op.inputs == (name,):
            given = renamed(made, {}, {name: op.outputs[0]})
            folded = replace(op, inputs=given.inputs, code=given.code, span=made.span)
            return (*ops[:start], *ops[start + 1 : place], folded, *ops[place + 1 :])
        if _interferes(op, made.inputs):
            break
    return ops


def _hands_on(op: ir.Op) -> TypeGuard[ir.Push | ir.Update]:
    """Return whether `op` copies a temporary to where it stays."""
    return isinstance(op, ir.Push | ir.Update) and ir.is_copy(op)


def _interferes(op: ir.Op, read: tuple[str, ...]) -> bool:
    """Return whether a definition that reads these variables may not be moved past `op`.

    That is so if it writes one of them, or begins or ends a `with` block, or is there for its effect (`tape.watch(x)`).
    And if it is a store: pieces end there, and what lives in one piece only may have no type.
    """
    is_effect = isinstance(op, ir.Enter | ir.Exit | ir.Store) or (isinstance(op, ir.Primitive) and not op.outputs)
    return is_effect or not set(ir.writes(op)).isdisjoint(read)


def _without_copy(block: ir.Block, copy: ir.Primitive) -> ir.Block:
    """The block without `t = v`, uses of `t` reading `v`, if `v` keeps its value until the last of them."""
    ((name,), (source,)) = copy.outputs, copy.inputs
    start = block.ops.index(copy)
    later = block.ops[start + 1 :]
    if name in ir.reads(block.terminator):
        return block
    last = max((place for place, op in enumerate(later) if name in ir.reads(op)), default=-1)
    # an op reads before it writes, so the last use may itself be the one that changes the source
    if any(source in ir.writes(op) for op in later[:last]) or any(isinstance(op, ir.Store) for op in later):
        return block
    read = (renamed(op, {name: source}, {}) if name in ir.reads(op) else op for op in later)
    return replace(block, ops=(*block.ops[:start], *read))


def _is_idle(op: ir.Op) -> bool:
    return isinstance(op, ir.Update) and ir.is_identity(op)
