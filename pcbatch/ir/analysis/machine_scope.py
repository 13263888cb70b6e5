"""The names that are variables in the pieces of a machine program, in contrast to free names."""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir.analysis import scope as of_ops
from pcbatch.ir.machine import Block, Piece, Program, Statement, Store
from pcbatch.ir.program import writes


def variables_of(program: Program) -> frozenset[str]:
    """Return the names that are variables in all pieces: state, temporaries, targets of assignments."""
    pieces = [item for block in program.blocks for item in block.body if isinstance(item, Piece)]
    assigned = {name for piece in pieces for statement in piece.statements for name in writes(statement.op)}
    return frozenset({*program.storage, *(program.types.keys() - {*program.shared})}) | assigned


def scope(program: Program, variables: frozenset[str], piece: Piece) -> frozenset[str]:
    """The names that are variables in `piece`: its operands, those that all lanes share among them, and `variables`.

    Captured arrays are free names of the code, though the piece is handed them as shared operands.
    """
    return variables.union(piece.reads, piece.writes, piece.shared).difference(program.externs.get(piece.scope, ()))


def with_inputs(program: Program) -> Program:
    """`program` with the inputs of the statements of its pieces filled in."""
    variables = variables_of(program)

    def statement(each: Statement, names: frozenset[str]) -> Statement:
        return replace(each, op=of_ops.with_inputs(each.op, names))  # type: ignore[arg-type]

    def item(each: Piece | Store) -> Piece | Store:
        if not isinstance(each, Piece) or not each.statements:
            return each
        names = scope(program, variables, each)
        return replace(each, statements=tuple(statement(one, names) for one in each.statements))

    def block(each: Block) -> Block:
        return replace(each, body=tuple(map(item, each.body)))

    return replace(program, blocks=tuple(map(block, program.blocks)))
