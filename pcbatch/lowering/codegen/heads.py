"""Heads: blocks that only ask where to go on, like that of a loop; who jumps to one asks at once.

In the machine each block that runs costs the same few kernels, whatever it computes, and one that sends lanes to a
block further up costs them a trip. So a jump or call that leads to a head evaluates the head's question itself and
goes on to the answer: a recursion descends, and a loop turns, in one block instead of two. (The sampler: 8.3 trips and
32 blocks run for each gradient of 64 chains become 7.3 and 23.) In the IR heads stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.cheap_code import is_cheap
from pcbatch.ir.types import TensorType

LARGEST = 4
"""How many statements a head may have: all who jump there get a copy."""

Head = tuple[ir.Function, ir.Block]
"""A head and its function."""


def heads(program: ir.Program) -> Mapping[str, Head]:
    """The heads of `program` (stack dialect, typed) by label."""
    types = {variable.name: variable.type for function in program.functions for variable in function.variables}
    temporary = {v.name for function in program.functions for v in function.variables if v.storage == "temporary"}

    def is_scalar(name: str) -> bool:
        type_ = types.get(name)
        return name in temporary and isinstance(type_, TensorType) and type_.shape == ()

    def is_head(function: ir.Function, block: ir.Block) -> bool:
        """Whether the block only computes scalars that do not leave it, cannot fail, and branches."""
        return (
            isinstance(block.terminator, ir.Branch)
            and 0 < len(block.ops) <= LARGEST
            and not block.sync
            and all(is_cheap(op, function.externs) and all(map(is_scalar, ir.writes(op))) for op in block.ops)
        )

    return {
        block.label: (function, block)
        for function in program.functions
        for block in function.blocks
        if is_head(function, block)
    }


def head_of(block: ir.Block, found: Mapping[str, Head]) -> Head | None:
    """The head among `found` that the jump or call at the end of `block` leads to."""
    match block.terminator:
        case ir.Jump(target=target) | ir.PushJump(target=target):
            return found.get(target)
    return None
