"""Static values: what is known when a program is compiled, and so decides branches and specialises functions.

The values of static parameters are known. From them, and from captured values, others are found by tracing: those that
are handed on to static parameters, and the conditions of branches. A number that is known on every path to a place
with one value is known there (Wegman and Zadeck, "Constant Propagation with Conditional Branches", TOPLAS 1991).
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir import records
from pcbatch.ir.code import Code
from pcbatch.ir.joins import ConflictError, join
from pcbatch.ir.types import NONE, StructType, TensorType, Type
from pcbatch.lowering.captures.fingerprints import static_key
from pcbatch.runtime.backends.protocol import Backend

MANY = 1000
"""In so many parts of a static value, at most, is looked for values of lanes."""


@dataclass(frozen=True, eq=False)
class Static:
    """A value known at compile time, in place of a type. Two are equal if their values are, and of one Python type."""

    value: Any

    @cached_property
    def key(self) -> Any:
        """A hashable key of the value; TypeError where there is none."""
        return static_key(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        """`static 5`, as types are printed in messages; a function by its name."""
        return f"static {getattr(self.value, '__name__', None) or repr(self.value)}"


Known = Type | Static
"""What inference knows of a variable: its type, or even its value."""


@dataclass(frozen=True)
class Binding:
    """What is known of a variable (None: nothing yet) and the assignment where that came from."""

    known: Known | None = None
    span: Span | None = None


def plain(known: Known | None) -> Type | None:
    """The type of a lane's value: known numbers are weak numbers, tuples of them structures; the rest has none."""
    return _plain_value(known.value) if isinstance(known, Static) else known


def _plain_value(value: Any) -> Type | None:
    match value:
        case bool():
            return TensorType("bool")
        case int():
            return TensorType("int32", (), weak=True)
        case float():
            return TensorType("float64", (), weak=True)
        case None:
            return NONE
        case tuple():
            items = tuple(type_ for type_ in map(_plain_value, value) if type_ is not None)
            if len(items) == len(value):
                fields = getattr(value, "_fields", ())
                named = (type(value).__name__, items, fields, type(value)) if fields else ("tuple", items)
                return StructType(*named)
        case _ if records.is_called(value) and (fields := records.fields_of(value)):
            return _plain_parts(type(value).__name__, fields, type(value))
    return None


def _plain_part(value: Any) -> Type | None:
    """The type of a part of an object that can be called, which may have arrays and lists."""
    match value:
        case list():
            return _plain_parts("list", dict(enumerate(value)))
        case dict() if all(isinstance(key, str) for key in value):
            return _plain_parts("dict", value)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return TensorType(value.dtype.name, tuple(value.shape))
    return _plain_value(value)


def _plain_parts(kind: str, parts: Mapping[Any, Any], constructor: type | None = None) -> Type | None:
    types = tuple(type_ for type_ in map(_plain_part, parts.values()) if type_ is not None)
    names = () if kind == "list" else tuple(parts)
    return StructType(kind, types, names, constructor) if len(types) == len(parts) else None


def meet(old: Known | None, new: Known | None) -> Known | None:
    """`pcbatch.ir.joins.join`, of known values too: different numbers are weak numbers; ConflictError for the rest."""
    if old is None or new is None or old == new:
        return new if old is None else old
    for known in (old, new):
        if plain(known) is None:
            raise ConflictError(f"{_told(old)} and {_told(new)} differ, and lanes keep numbers only{_INSTEAD}")
    return join(plain(old), plain(new))


_INSTEAD = (
    "; give each text a number, `START, END = 0, 1`, and call each function in the arm where it is chosen, "
    "`y = f(x)` there"
)


def _told(known: Known) -> str:
    """What is known, in a message."""
    name = getattr(known.value, "__name__", None) if isinstance(known, Static) else None
    return f"the function {name}" if name else str(known).removeprefix("static ")


def is_static(value: Any, backend: Backend) -> bool:
    """Whether a value that a piece has computed while it was traced is known: it has nothing of a lane in it."""
    match value:
        case bool() | int() | float() | str() | bytes() | None:
            return True
        case tuple():
            return all(is_static(item, backend) for item in value)
    if backend.is_array(value) or _holds_lane_value(value, backend):
        return False
    if records.is_called(value):  # a function, too
        return records.is_simple_class(type(value))
    try:
        backend.type_of(value)
    except TypeError:
        try:
            hash(value)
        except TypeError:
            return False
        return True
    return False


def _holds_lane_value(value: Any, backend: Backend) -> bool:
    """Whether a function or an object has something of a lane in it: `lambda v: v * y`, where `y` is being traced."""
    work, seen = [value], {id(value): value}
    while work and len(seen) < MANY:
        each = work.pop()
        if not backend.is_concrete(each):
            return True
        for part in _held(each):
            if id(part) not in seen:
                seen[id(part)] = part
                work.append(part)
    return False


def _held(value: Any) -> list[Any]:
    """What is captured by a function, bound in a method, stored in an object or a container."""
    match value:
        case types.FunctionType():
            cells = [cell.cell_contents for cell in value.__closure__ or () if _is_bound(cell)]
            return [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        case types.MethodType():
            return [value.__self__, value.__func__]
        case functools.partial():
            return [value.func, *value.args, *value.keywords.values()]
        case dict():
            return list(value.values())
        case tuple() | list() | set() | frozenset():
            return list(value)
        case type() | types.ModuleType():
            return []
    stored = getattr(value, "__dict__", None)
    slots = (getattr(value, name, None) for each in type(value).__mro__ for name in vars(each).get("__slots__", ()))
    return [*(stored.values() if isinstance(stored, dict) else ()), *slots]


def _is_bound(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def wanted(function: ir.Function, statics: Mapping[str, frozenset[str]], program: ir.Program) -> frozenset[str]:
    """The variables of `function` whose values should be found, if they can be.

    These are arguments for static parameters, conditions to which static parameters or `is None` contribute or that
    come from captured values alone, and all that they are computed from. `statics` has the static parameters of each
    function.
    """
    sources = Sources(function, statics.get(function.name, frozenset()))
    found: set[str] = set()
    for block in function.blocks:
        for op in block.ops:
            if isinstance(op, ir.Call):
                for argument in static_arguments(op, statics, program).values():
                    found |= sources.of(argument)
        if isinstance(block.terminator, ir.Branch) and sources.may_be_known(block.terminator.condition):
            found |= sources.of(block.terminator.condition)
    return frozenset(found)


def static_arguments(call: ir.Call, statics: Mapping[str, frozenset[str]], program: ir.Program) -> dict[str, str]:
    """Static parameter of the callee to the variable that a call hands to it."""
    pairs = zip(program.function(call.function).parameters, call.arguments, strict=True)
    return {parameter: given for parameter, given in pairs if parameter in statics.get(call.function, ())}


class Sources:
    """Where the values of the variables of one function come from."""

    def __init__(self, function: ir.Function, static: frozenset[str] = frozenset()):
        self.static = static
        self.externs = frozenset(function.externs)
        self.makers: dict[str, list[ir.Op | None]] = {name: [None] for name in function.parameters}
        for block in function.blocks:
            for op in block.ops:
                for name in ir.writes(op):
                    self.makers.setdefault(name, []).append(op)

    def of(self, name: str) -> frozenset[str]:
        """`name` and all variables that it is computed from."""
        found: set[str] = set()
        work = [name]
        while work:
            each = work.pop()
            if each not in found:
                found.add(each)
                work += [source for op in self._ops(each) for source in ir.reads(op)]
        return frozenset(found)

    def may_be_known(self, name: str) -> bool:
        """Whether a static parameter goes into `name`, or `is None`, or free names and nothing of a lane.

        Any type says whether a value is None.
        """
        every = self.of(name)
        if every & self.static:
            return True
        makers = [op for each in every for op in self.makers.get(each, ())]
        primitives = [op for op in makers if isinstance(op, ir.Primitive)]
        if any(_asks_for_none(ir.statement(op)) for op in primitives):
            return True
        free = {word for op in primitives for word in ir.statement(op).reads} & self.externs
        return bool(free) and len(primitives) == len(makers)

    def _ops(self, name: str) -> Iterator[ir.Op]:
        yield from (op for op in self.makers.get(name, ()) if op is not None)


@lru_cache(maxsize=16384)
def _asks_for_none(code: Code) -> bool:
    """Whether something is compared with None in `code`: by `is`, which the language has for None only, or by `==`."""
    compared = (node for each in code.body for node in ast.walk(each) if isinstance(node, ast.Compare))
    return any(
        isinstance(operator, (ast.Is, ast.IsNot)) or (isinstance(right, ast.Constant) and right.value is None)
        for node in compared
        for operator, right in zip(node.ops, node.comparators, strict=True)
    )
