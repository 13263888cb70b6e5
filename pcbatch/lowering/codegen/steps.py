"""Pieces as steps: ops that are alike share one function, so that a program's kinds of ops are traced, not its ops.

    a = h / 5.0; b = t + a; c = k1 / 9.0    -->    divide(h, 5.0) -> a; add(t, a) -> b; divide(k1, 9.0) -> c

Native code is made of steps. Only ops on numbers are taken apart: what computes arrays gains by being seen as a whole.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pcbatch.ir import program as ir
from pcbatch.ir.expressions import Apply, Constant, Expression, Input, Name, Operator, walk
from pcbatch.ir.machine import Block, Item, LaneStatus, Piece, Program, Step, Straight
from pcbatch.ir.payload import CAST, Compute
from pcbatch.ir.types import TensorType, Type, is_number
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.pieces import compile_piece, write_piece

PLAIN = frozenset({"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!="})
"""Operators that do to a constant what they do to a number of the other operand's dtype."""


class Steps:
    """The steps of a program's pieces."""

    def __init__(self, environment: Environment):
        self._environment = environment
        self._pieces: dict[Any, Piece] = {}
        self._ops: dict[Any, Step | None] = {}

    def of(self, program: Program, piece: Piece) -> tuple[Step, ...]:
        """The steps of a piece; none where it is not only made of ops on numbers.

        Nor where an op that loops comes behind one that may fail: it need not end for a lane that has failed.
        """
        if self._environment.tapes or self._environment.kept or not piece.statements:
            return ()
        found: list[Step] = []
        types = ChainMap[str, Type]({}, dict(program.types))  # names that only a piece has may be of no known type
        for statement in piece.statements:
            step = self._step_of(statement.op, types, program.shared_types)
            fails = any(each.sites for each in found)
            if step is None or (fails and self._loops(statement.op, step, program.shared_types)):
                return ()
            types.update(zip(step.writes, step.write_types, strict=True))
            found.append(replace(step, sites=statement.sites))
        return tuple(found)

    def _loops(self, op: Straight, step: Step, shared: Mapping[str, Type]) -> bool:
        if not _calls_library(op):
            return False
        operands = [shared[name] for name in step.piece.shared]
        return self._environment.backend.facts(step.piece, step.read_types, operands).has_loop

    def every(self, program: Program) -> Iterator[tuple[Step, str]]:
        """The steps of a program, of which one stands for those alike, with the labels of their blocks."""
        pieces = ((item, block.label) for block in program.blocks for item in block.body if isinstance(item, Piece))
        known: set[Piece] = set()
        for piece, label in pieces:
            for step in self.of(program, piece):
                if step.piece not in known:
                    known.add(step.piece)
                    yield step, label

    def attached(self, source: Program, program: Program) -> Program:
        """`program`, which was generated from `source`, its pieces with their steps."""

        def item(own: Item, made: Item) -> Item:
            if isinstance(own, Piece) and isinstance(made, Piece):
                return replace(made, steps=self.of(source, own))
            return made

        def block(own: Block, made: Block) -> Block:
            return replace(made, body=tuple(map(item, own.body, made.body)))

        return replace(program, blocks=tuple(map(block, source.blocks, program.blocks)))

    def _step_of(self, op: Straight, types: Mapping[str, Type], shared: Mapping[str, Type]) -> Step | None:
        """The step of an op, its sites left out; None where it is not one on numbers."""
        if not isinstance(op, ir.Primitive) or not all(name in types for name in op.inputs):
            return None
        read = {name: types[name] for name in op.inputs}
        results = tuple(types.get(name) for name in op.outputs)
        if not all(each is None or is_number(each) for each in results):
            return None
        key = op, *read.values(), results
        if key not in self._ops:
            self._ops[key] = self._step(op, read, results, shared)
        return self._ops[key]

    def _step(
        self, op: ir.Primitive, types: dict[str, Type], results: tuple[Type | None, ...], shared: Mapping[str, Type]
    ) -> Step | None:
        op, constant = _without_constant(op, types)
        names = {name: f"_x{place}" for place, name in enumerate(dict.fromkeys(op.inputs))}
        given = tuple(names[name] for name in op.inputs)
        targets = tuple(f"_y{place}" for place, _ in enumerate(op.outputs))
        count = 0

        def site(number: int, status: LaneStatus, message: str) -> int:
            nonlocal count
            count += 1
            return count - 1

        text = write_piece("step", [replace(op, inputs=given, outputs=targets)], targets, self._environment, site)
        own = {fresh: name for name, fresh in names.items()}
        if not own.keys().isdisjoint(text.free) or not set(targets).isdisjoint(text.free):
            return None
        reads = tuple(own[name] for name in text.reads)
        read_types = tuple(types[name] for name in reads)
        source = text.source()
        piece = self._pieces.get((source, read_types, results))
        if piece is None:
            piece = compile_piece(text, self._environment, tuple(range(count)))
            self._pieces[source, read_types, results] = piece
        if None in results:
            operands = [shared[name] for name in piece.shared]
            found = self._environment.backend.facts(piece, read_types, operands).types
            results = tuple(known or each for known, each in zip(results, found, strict=True))
        write_types = tuple(each for each in results if each is not None and is_number(each))
        if len(write_types) != len(results):
            return None
        piece = self._pieces.setdefault((source, read_types, write_types), piece)
        values = tuple(constant if name == _CONSTANT else name for name in reads)
        return Step(piece, values, op.outputs, read_types, write_types)


def _calls_library(op: Straight) -> bool:
    """Tell whether an op is more than operators and casts."""
    if not isinstance(op, ir.Primitive) or not isinstance(op.code, Compute):
        return False
    called = (each.function for each in walk(op.code.expression) if isinstance(each, Apply))
    return any(not isinstance(each, Operator) and each != Name(CAST) for each in called)


_CONSTANT = "a constant"
"""The mark among an op's inputs of a constant that is an operand of its step."""


def _without_constant(op: ir.Primitive, types: dict[str, Type]) -> tuple[ir.Primitive, Any]:
    """The op with its constant as one more input, whose type is added, and the constant; None where that must stay."""
    match op.code:
        case Compute(Apply(Operator(symbol), (Input(), Constant() as constant), ()), None) if symbol in PLAIN:
            arguments: tuple[Expression, ...] = (Input(0), Input(1))
        case Compute(Apply(Operator(symbol), (Constant() as constant, Input()), ()), None) if symbol in PLAIN:
            arguments = (Input(1), Input(0))
        case _:
            return op, None
    type_ = types[op.inputs[0]]
    if len(op.inputs) != 1 or not isinstance(type_, TensorType) or not _is_of(type_, constant.value, symbol):
        return op, None
    types[_CONSTANT] = type_
    code = Compute(Apply(Operator(symbol), arguments))
    return replace(op, code=code, inputs=(*op.inputs, _CONSTANT)), constant.value


def _is_of(type_: TensorType, value: Any, symbol: str) -> bool:
    """True if an operator makes of a constant a number of this type first, and that has it."""
    if type_.weak or type_.shape != () or type(value) not in (int, float):
        return False
    if type_.dtype in ("float32", "float64"):
        with np.errstate(over="ignore"):
            number = np.dtype(type_.dtype).type(value)
        return math.isfinite(number) and (isinstance(value, float) or number == value)
    if type_.dtype not in ("int32", "int64") or isinstance(value, float) or symbol == "/":
        return False
    limits = np.iinfo(type_.dtype)
    return bool(limits.min <= value <= limits.max)


def shared_types(program: Program, step: Step) -> list[Type]:
    """The types of what a step reads that all lanes share."""
    known: Mapping[str, Type] = program.shared_types
    return [known[name] for name in step.piece.shared]
