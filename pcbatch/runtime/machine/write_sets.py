"""The arrays of the state that each block writes.

A guard `cond(someone waits, block, identity)` may only carry what its block writes, for XLA copies what else passes
through; so the machine must know each block's writes beforehand.
"""

from __future__ import annotations

from pcbatch.ir.analysis.effects import can_fault, is_step, written
from pcbatch.ir.machine import Block, Piece, PushJump, Return
from pcbatch.runtime.machine.state import Layout


def changes(layout: Layout, number: int, max_steps: int | None) -> tuple[str, ...]:
    """The keys of the state that block `number` may change, sorted."""
    block = layout.program.blocks[number]
    keys = {"pc"}
    if can_fault(block, max_steps):
        keys.add("fault")
    if is_step(block):
        keys.add("steps")
    match block.terminator:
        case PushJump(fork=None):
            keys |= {"depth", "calls"}
        case Return() if layout.has_calls:
            keys.add("depth")
    pushed = {push.variable for push in block.pushes}
    for name in {*block.pops, *pushed}:
        keys.add(layout.pointer(name))
    for name in {*block.pops, *written(block)}:
        if layout.storage(name) is not None and name not in block.dead:
            keys.update(layout.tops(name))
    for name in pushed:
        keys.update(layout.stack_arrays(name))
    for name in written(block):
        if layout.storage(name) == "stack":
            keys.update(layout.stacks(name))
    return tuple(sorted(keys))


def in_place(layout: Layout, block: Block) -> set[str]:
    """The keys of the state of which `block` writes elements at most, however long the arrays are."""
    pushed = {push.variable for push in block.pushes}
    pieces = [item for item in block.body if isinstance(item, Piece)]
    computed = {*block.pops, *pushed, *(name for piece in pieces for name in piece.writes)}
    stored = set(written(block)) - computed
    return {
        *layout.all_stacks,
        *(key for name in stored if layout.storage(name) for key in layout.tops(name)),
    }
