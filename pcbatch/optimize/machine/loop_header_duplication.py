"""Loop-header duplication: who jumps to a block that only asks where to go on asks at once.

    b0: piece count = 0; jump b1             b0: piece count = 0; piece t0 = n > 1; jump t0 ? b2 : b3
    b1: piece t0 = n > 1; branch t0 b2 b3    b1: ..                        (nobody comes here any more)
    b2: piece n = n // 2; jump b1     -->    b2: piece n = n // 2; piece t0 = n > 1; jump t0 ? b2 : b3

In the machine each block that runs costs the same few kernels, whatever it computes, and one that sends lanes to a
block further up costs them a trip. So a jump or call that leads to a header evaluates the header's question itself and
goes on to the answer: a recursion descends, and a loop turns, in one block instead of two. (The sampler: 8.3 trips and
32 blocks run for each gradient of 64 chains become 7.3 and 23.)
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir.analysis.parallel_call_groups import groups
from pcbatch.ir.analysis.speculatable import is_cheap, work
from pcbatch.ir.machine import Block, Branch, Jump, Piece, Program, PushJump, Statement
from pcbatch.ir.program import Primitive, writes
from pcbatch.ir.types import TensorType

LARGEST = 12
"""The number of operators that a header may have: all who jump there get a copy."""


def duplicate_headers(program: Program) -> Program:
    """Give jumps and calls to headers the header's statements, and its branch for a target."""
    headers = {number: block for number, block in enumerate(program.blocks) if _is_header(program, block)}
    forked = {number for group in groups(program) for number in group.between}  # others run what is called there
    return replace(
        program,
        blocks=tuple(b if number in forked else _asking(b, headers) for number, b in enumerate(program.blocks)),
    )


def _asking(block: Block, headers: dict[int, Block]) -> Block:
    match block.terminator:
        case Jump(target=int(target)) | PushJump(target=int(target)) if target in headers:
            header = headers[target]
            assert isinstance(header.terminator, Branch)
            return replace(
                block,
                body=(*block.body, *header.body),
                terminator=replace(block.terminator, target=header.terminator),
            )
    return block


def _is_header(program: Program, block: Block) -> bool:
    """Return whether the block only computes scalars that do not leave it, cannot fail, and branches."""

    def is_scalar(name: str) -> bool:
        type_ = program.types.get(name)
        return name not in program.storage and isinstance(type_, TensorType) and type_.shape == ()

    match block:
        case Block(
            body=(Piece(statements=statements, predicate=None, scope=scope),), terminator=Branch(fork=None), sync=False
        ):
            externs = program.externs.get(scope, ())
            return (
                not (block.pops or block.pushes)
                and 0 < sum(map(_work, statements)) <= LARGEST
                and all(_is_cheap(each, externs) and all(map(is_scalar, writes(each.op))) for each in statements)
            )
    return False


def _work(statement: Statement) -> int:
    """Count the operators of a statement, but one at the least."""
    return max(1, work(statement.op.code)) if isinstance(statement.op, Primitive) else 1


def _is_cheap(statement: Statement, externs: tuple[str, ...]) -> bool:
    """Return whether the statement can neither fail nor call anything: idle checks are gone by now."""
    never_fails = bool(statement.sites) and all(site is None for site in statement.sites)
    return is_cheap(statement.op, externs, never_fails=never_fails)
