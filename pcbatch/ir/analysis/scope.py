"""The names that are variables, in contrast to free names (globals, closures, builtins)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pcbatch.ir import machine
from pcbatch.ir.expressions import resolved
from pcbatch.ir.machine import Block, Piece, Statement, Store
from pcbatch.ir.payload import Compute
from pcbatch.ir.program import Coded, Function, Op, Program, reads, writes

# -- scope -------------------------------------------------------------------------------------------------------------


def variables_of(function: Function) -> tuple[str, ...]:
    """Parameters, everything that an op writes or that a Store, Call, Branch or Fault reads, and results.

    In order of first appearance. What a piece of code merely reads does not become a variable by that.
    """
    found: list[str] = list(function.parameters)
    for block in function.blocks:
        for node in (*block.ops, block.terminator):
            if not isinstance(node, Coded):
                found += reads(node)
            found += writes(node)
    return tuple(dict.fromkeys([*found, *function.results]))


def scope(program: Program, function: Function) -> frozenset[str]:
    """The names that are variables in the code of `function`: its own in "cfg", the whole program's in "stack"."""
    functions = (function,) if program.dialect == "cfg" else program.functions
    return frozenset(name for each in functions for name in variables_of(each))


def with_inputs(op: Op, variables: Collection[str]) -> Op:
    """`op`, as it is read from a text, with the names that are `variables` as its inputs."""
    if not isinstance(op, Coded) or not isinstance(op.code, Compute):
        return op
    expression, inputs = resolved(op.code.expression, variables)
    return replace(op, inputs=inputs, code=Compute(expression, op.code.pattern))


# -- machine scope -----------------------------------------------------------------------------------------------------
# The names that are variables in the pieces of a machine program, in contrast to free names.


def variables_of_pieces(program: machine.Program) -> frozenset[str]:
    """Return the names that are variables in all pieces: state, temporaries, targets of assignments."""
    pieces = [item for block in program.blocks for item in block.body if isinstance(item, Piece)]
    assigned = {name for piece in pieces for statement in piece.statements for name in writes(statement.op)}
    return frozenset({*program.storage, *(program.types.keys() - {*program.shared})}) | assigned


def scope_of_piece(program: machine.Program, variables: frozenset[str], piece: Piece) -> frozenset[str]:
    """The names that are variables in `piece`: its operands, those that all lanes share among them, and `variables`.

    Captured arrays are free names of the code, though the piece is handed them as shared operands.
    """
    return variables.union(piece.reads, piece.writes, piece.shared).difference(program.externs.get(piece.scope, ()))


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
