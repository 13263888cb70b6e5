"""Statements of the IR run at once on one example, so that the IR's interpreter can run a user's program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pcbatch.ir import program as ir
from pcbatch.ir.lane_result import Evaluate, LaneFaultError
from pcbatch.ir.machine import Piece
from pcbatch.ir.status import LaneStatus
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.pieces import compile_piece, write_piece


def evaluator(program: ir.Program, environment: Environment) -> Evaluate:
    """An `evaluate` for `pcbatch.ir.interpreter.interpret` of `program` in either dialect; pieces are compiled once."""
    compiled: dict[ir.Op, tuple[Piece, list[tuple[LaneStatus, str]]]] = {}

    def evaluate(function: str, op: ir.Primitive | ir.Push | ir.Update, inputs: dict[str, Any]) -> dict[str, Any]:
        if op not in compiled:
            compiled[op] = _compile(ir.Primitive(op.outputs, op.inputs, op.code), environment)
        piece, faults = compiled[op]
        values = environment.captured.values
        outputs, site = environment.backend.evaluate(
            piece, [inputs[name] for name in piece.reads], [values[name] for name in piece.shared]
        )
        if site:
            status, message = faults[site - 1]
            raise LaneFaultError(status.name, message)  # type: ignore[arg-type]
        return dict(zip(piece.writes, outputs, strict=True))

    return evaluate


def _compile(op: ir.Primitive, environment: Environment) -> tuple[Piece, list[tuple[LaneStatus, str]]]:
    faults: list[tuple[LaneStatus, str]] = []

    def site(number: int, status: LaneStatus, message: str) -> int:
        faults.append((status, message))
        return len(faults) - 1

    text = write_piece("statement", [op], op.outputs, environment, site)
    return compile_piece(text, environment, tuple(range(len(faults)))), faults


def interpreter_callbacks(
    program: ir.Program, environment: Environment
) -> tuple[Evaluate, Callable[[Any, tuple[Any, ...], Any], Any]]:
    """The two callbacks of `interpret`: statements and stores."""

    def store(array: Any, indices: tuple[Any, ...], value: Any) -> Any:
        try:
            return environment.backend.store_element(array, indices, value)
        except IndexError as error:
            raise LaneFaultError("INDEX", f"IndexError: {error}") from None

    return evaluator(program, environment), store
