"""Pop then push with no read between becomes an update in place.

A block between two calls gets a variable back only to save it again. Where nothing in the block needs the value, the
entry stays on the stack: the pop vanishes, and the push of a new argument becomes an update of the top.
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import owners
from pcbatch.ir.rewrite import map_blocks, popped, pushed, without_pops


def update_in_place(program: ir.Program) -> ir.Program:
    """Leave saved values on their stacks between two calls where the block between does not read or write them."""
    owner = owners(program)

    def rewrite(function: ir.Function, block: ir.Block) -> ir.Block:
        if not isinstance(block.terminator, ir.PushJump):
            return block
        parameters = program.function(owner[block.terminator.target]).parameters
        kept = frozenset(popped(block)) & frozenset(pushed(block)) - _touched(block, parameters)
        updates: list[ir.Op] = []
        pushes: list[ir.Op] = []
        for op in block.ops:
            if not isinstance(op, ir.Push) or not kept & set(op.outputs):
                (pushes if isinstance(op, ir.Push) else updates).append(op)
            elif not ir.is_identity(op):
                updates.append(ir.Update(op.outputs, op.inputs, op.code, op.span))
        return replace(block, ops=(*without_pops(updates, kept), *pushes))

    return map_blocks(program, rewrite)


def _touched(block: ir.Block, parameters: tuple[str, ...]) -> frozenset[str]:
    """The variables whose popped values the block reads or changes, to save them again being neither.

    A parameter that is saved and passed on as it is (`push k = k`) is read: by the function that is called.
    """
    touched: set[str] = set()
    for op in block.ops:
        if isinstance(op, ir.Push):
            if not ir.is_identity(op) or set(op.outputs) & set(parameters):
                touched |= set(op.inputs)
        elif not isinstance(op, ir.Pop):
            touched |= {*ir.reads(op), *ir.writes(op)}
    return frozenset(touched)
