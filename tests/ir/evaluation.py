"""Statements and stores on plain Python values, for the interpreters of the IR."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from pcbatch.ir import program as ir
from pcbatch.ir import values
from pcbatch.ir.debugging import TYPE, WORDS
from pcbatch.ir.machine import LaneStatus, Piece
from pcbatch.ir.payload import BLANK, CAST, STRUCTURAL
from pcbatch.ir.program import Coded, statement
from pcbatch.ir.slices import mesh
from pcbatch.ir.types import TensorType, Type, leaves
from pcbatch.ir.values import pack
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.pieces import compile_piece, write_piece
from tests.ir.interpreter import Evaluate, LaneFaultError

NO_NAMES: Mapping[str, Any] = {}


def _cast(value: Any, types: Iterator[str]) -> Any:
    """`value` with ints as floats where the types of its leaves, left to right, are floating."""
    match value:
        case None:
            return None
        case dict():
            return {key: _cast(part, types) for key, part in value.items()}
        case tuple() | list():
            parts = [_cast(part, types) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    fields = values.fields_of(value)
    if fields is not None:
        return values.made(type(value), _cast(fields, types))
    return float(value) if "float" in next(types) and isinstance(value, int) else value


def _stored(whole: Any, value: Any, *indices: Any) -> Any:
    return STRUCTURAL["__with_item__"](whole, value, indices[0] if len(indices) == 1 else mesh(indices))


def _taken(whole: Any, method: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    after = copy.deepcopy(whole)
    return getattr(after, method)(*args, **options), after


def _placed(index: int, length: int) -> int:
    if not -length <= index < length:
        raise IndexError("index out of range")
    return index % length


MEANINGS: Mapping[str, Callable[..., Any]] = {
    **STRUCTURAL,
    "__axis__": lambda array, axis: np.arange(np.shape(array)[axis]),
    CAST: lambda value, *types: _cast(value, iter(types)),
    BLANK: lambda dtype, *shape: np.zeros(shape, dtype),
    "__changed__": lambda *args, **options: _taken(*args, **options)[1],
    "__guarded__": lambda condition, value: value() if condition else None,
    "__free__": _placed,
    "__last__": _placed,
    "__next__": _placed,
    "__place__": _placed,
    "__object__": lambda cls, names, *parts: values.made(cls, dict(zip(names, parts, strict=True))),
    "__record__": lambda number, text, *values: np.zeros(WORDS, np.int32),
    "__recorded__": lambda record: (1, 0, int(record[0, 0]) + 1),
    "__row__": lambda value, array: np.array(value) if isinstance(array, np.ndarray) else value,
    "__unrecorded__": lambda: np.zeros(TYPE.shape, np.int32),
    "__run__": lambda function, *arguments, **keywords: function.single(*arguments, **keywords),
    "__stored__": _stored,
    "__taken__": _taken,
}
"""The functions of `payload.PSEUDO_BUILTINS` on plain Python values."""


@lru_cache(maxsize=4096)
def _compiled(text: str) -> CodeType:
    return compile(text, "<primitive>", "exec")


def python_evaluate(namespaces: Mapping[str, Mapping[str, Any]]) -> Evaluate:
    """An `evaluate` that executes ops as the Python that they stand for.

    Free names are looked up in `namespaces[function_name]`.
    A division by zero and an index out of range are faults of the lane.
    """

    def evaluate(function: str, op: Coded, inputs: dict[str, Any]) -> dict[str, Any]:
        scope = {**MEANINGS, **namespaces.get(function, NO_NAMES), **inputs}
        try:
            exec(_compiled(statement(op)), scope)
        except ZeroDivisionError as error:
            raise LaneFaultError("ARITHMETIC", f"ZeroDivisionError: {error}") from error
        except IndexError as error:
            raise LaneFaultError("INDEX", f"IndexError: {error}") from error
        return {name: scope[name] for name in op.outputs if name in scope}

    return evaluate


def copy_store(array: Any, indices: tuple[Any, ...], value: Any) -> Any:
    """A copy of a NumPy array or of a list of lists with `array[indices] = value`; out of range is a lane's fault.

    An index is a scalar or, of arrays, a vector of positions: every combination of them is stored to.
    """
    try:
        if isinstance(array, list):
            first, *rest = indices
            array = [*array]
            array[first] = copy_store(array[first], tuple(rest), value) if rest else value
        else:
            array = array.copy()
            array[mesh(indices) if len(indices) > 1 else indices[0]] = value
    except IndexError as error:
        raise LaneFaultError("INDEX", f"IndexError: {error}") from error
    return array


def zero(type_: Type) -> Any:
    """The value of `type_` that is zero everywhere: Python's numbers and NumPy's arrays."""
    return pack(type_, [_zero(leaf) for leaf in leaves(type_)])


def _zero(type_: TensorType) -> Any:
    prefixes: dict[str, type] = {"bool": bool, "float": float, "bfloat": float, "complex": complex, "string": str}
    kind = next((kind for prefix, kind in prefixes.items() if type_.dtype.startswith(prefix)), int)
    return np.zeros(type_.shape, kind) if type_.shape else kind()


def evaluator(program: ir.Program, environment: Environment) -> Evaluate:
    """An `evaluate` for `tests.ir.interpreter.interpret` of `program` in either dialect; pieces are compiled once."""
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
