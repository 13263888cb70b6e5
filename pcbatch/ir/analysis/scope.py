"""The names that are variables, in contrast to free names (globals, closures, builtins)."""

from __future__ import annotations

from pcbatch.ir import machine
from pcbatch.ir.machine import Piece
from pcbatch.ir.program import Coded, Function, Program, reads, writes

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
