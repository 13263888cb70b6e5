"""The inputs of operations that were read from a text or made by hand, filled in."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pcbatch.ir import machine
from pcbatch.ir.analysis.dataflow import scope_of_piece, variables_of_pieces
from pcbatch.ir.expressions import resolved
from pcbatch.ir.machine import Block, Piece, Statement, Store
from pcbatch.ir.payload import Compute
from pcbatch.ir.program import Coded, Op


def with_inputs(op: Op, variables: Collection[str]) -> Op:
    """`op`, as it is read from a text, with the names that are `variables` as its inputs."""
    if not isinstance(op, Coded) or not isinstance(op.code, Compute):
        return op
    expression, inputs = resolved(op.code.expression, variables)
    return replace(op, inputs=inputs, code=Compute(expression, op.code.pattern))


def with_inputs_of_pieces(program: machine.Program) -> machine.Program:
    """`program` with the inputs of the statements of its pieces filled in."""
    variables = variables_of_pieces(program)

    def statement(each: Statement, names: frozenset[str]) -> Statement:
        return replace(each, op=with_inputs(each.op, names))  # type: ignore[arg-type]

    def item(each: Piece | Store) -> Piece | Store:
        if not isinstance(each, Piece) or not each.statements:
            return each
        names = scope_of_piece(program, variables, each)
        return replace(each, statements=tuple(statement(one, names) for one in each.statements))

    def block(each: Block) -> Block:
        return replace(each, body=tuple(map(item, each.body)))

    return replace(program, blocks=tuple(map(block, program.blocks)))
