"""What an op that assigns does: a statement of the user's (`Code`), or an operation that the compiler looks into.

    payload ::= Code                  the user's Python
              | Copy                  y = x
              | Cast type             y = x, as a value of exactly this type
              | Truth                 y = whether x is true, as Python's `bool`
              | Choose                y = a if c else b, of inputs c, a, b
              | Constant value        y = a number, True, False or None
              | Pack kind             y = a tuple or a list of x.., which may repeat
              | Unpack pattern        y.. = the parts of x, of which some may be taken apart again
              | Index key             y = x[key]
              | Field name            y = x.name
              | Replace part          y = x with another part v, of inputs x, v: an Index or a Field

What is no Code says all about its operands by their places among an op's inputs and outputs, so that renaming these
renames them. `statement` gives the Python that a payload stands for: what is evaluated, traced and generated.
`explicit` goes the other way; it is called where code comes into the IR, and by passes that make code of code.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from pcbatch.ir.code import Code
from pcbatch.ir.types import Type, leaves

CAST = "__cast__"
"""The pseudo-builtin that Casts stand for: of a value and the types of its leaves."""
WITH_FIELD, WITH_ITEM = "__with_field__", "__with_item__"
"""The pseudo-builtins that Replaces stand for: of a structure, the new part, and its name or key."""

Pattern = tuple["Pattern | None", ...]
"""The targets of an Unpack: None for a variable, a pattern for what is taken apart again."""


@dataclass(frozen=True)
class Copy:
    """The value of another variable."""


@dataclass(frozen=True)
class Cast:
    """The value of another variable as one of exactly `type`: a weak number gives way, all else is so already."""

    type: Type


@dataclass(frozen=True)
class Truth:
    """Whether a value is true, as Python's `bool` says; what the condition of a branch is made of."""


@dataclass(frozen=True)
class Choose:
    """The second input where the first is true, else the third: all three are there before."""


@dataclass(frozen=True)
class Constant:
    """A number, True, False or None; `text` is how Python writes it: 1, 1.0 and True differ, and 0.0 and -0.0."""

    value: bool | int | float | None = field(compare=False)
    text: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", repr(self.value))


@dataclass(frozen=True)
class Pack:
    """A tuple or a list of the inputs."""

    kind: Literal["tuple", "list"] = "tuple"


@dataclass(frozen=True)
class Unpack:
    """The parts of a value, in the order of the outputs."""

    pattern: Pattern


@dataclass(frozen=True)
class Index:
    """The part of a structure, or the row of a tensor, at a literal place (not counted from the end) or key."""

    key: int | str


@dataclass(frozen=True)
class Field:
    """An attribute."""

    name: str


@dataclass(frozen=True)
class Replace:
    """A structure with one part replaced: an attribute, or an entry of a list or a dict."""

    part: Index | Field


Explicit = Copy | Cast | Truth | Choose | Constant | Pack | Unpack | Index | Field | Replace
Payload = Code | Explicit
Names = tuple[str, ...]


def targets(pattern: Pattern) -> int:
    """How many variables a pattern has."""
    return sum(1 if part is None else targets(part) for part in pattern)


# -- from payloads to Python -------------------------------------------------------------------------------------------


@lru_cache(maxsize=16384)
def statement(payload: Payload, outputs: Names, inputs: Names) -> Code:
    """The Python statement that an op with this payload and these operands stands for."""
    if isinstance(payload, Code):
        return payload
    target, right = _assignment(payload, outputs, inputs)
    return Code(ast.unparse(ast.fix_missing_locations(ast.Assign([target], right))))


def assignment(payload: Payload, outputs: Names, inputs: Names) -> tuple[ast.expr, ast.expr] | None:
    """Target and value of what an op assigns; None where it is no such statement. Nobody changes the trees."""
    return payload.assignment if isinstance(payload, Code) else _assignment(payload, outputs, inputs)


@lru_cache(maxsize=16384)
def _assignment(payload: Explicit, outputs: Names, inputs: Names) -> tuple[ast.expr, ast.expr]:
    names = iter(outputs)
    target = _target(payload.pattern, names) if isinstance(payload, Unpack) else _stored(next(names))
    return target, _value(payload, inputs)


def _stored(name: str) -> ast.expr:
    return ast.Name(name, ast.Store())


def _target(pattern: Pattern, names: Iterator[str]) -> ast.expr:
    parts = [_stored(next(names)) if part is None else _target(part, names) for part in pattern]
    return ast.Tuple(parts, ast.Store())


def _value(payload: Explicit, inputs: Names) -> ast.expr:
    read: list[ast.expr] = [ast.Name(name, ast.Load()) for name in inputs]
    match payload:
        case Copy() | Unpack():
            return read[0]
        case Cast(type):
            types = [ast.Constant(str(leaf)) for leaf in leaves(type)]
            return ast.Call(ast.Name(CAST, ast.Load()), [read[0], *types], [])
        case Truth():
            return ast.Call(ast.Name("bool", ast.Load()), read, [])
        case Choose():
            return ast.IfExp(*read)
        case Constant(constant):
            return ast.Constant(constant)
        case Pack("tuple"):
            return ast.Tuple(read, ast.Load())
        case Pack("list"):
            return ast.List(read, ast.Load())
        case Index(key):
            return ast.Subscript(read[0], ast.Constant(key), ast.Load())
        case Field(name):
            return ast.Attribute(read[0], name, ast.Load())
        case Replace(Field(name)):
            return ast.Call(ast.Name(WITH_FIELD, ast.Load()), [*read, ast.Constant(name)], [])
        case Replace(Index(key)):
            return ast.Call(ast.Name(WITH_ITEM, ast.Load()), [*read, ast.Constant(key)], [])
    raise TypeError(f"no payload: {payload!r}")


# -- from Python to payloads -------------------------------------------------------------------------------------------


def explicit(code: Code, variables: Collection[str], hidden: Collection[str] = ()) -> tuple[Payload, Names] | None:
    """The payload and the inputs of an op that does what `code` does; None where only `code` says it.

    `variables` are the names that are variables, `hidden` those that are no built-in functions.
    """
    match code.assignment:
        case ast.Name(), right:
            return _of_value(right, variables, "bool" in hidden)
        case (ast.Tuple() | ast.List()) as target, ast.Name(id=name) if name in variables:
            pattern = _pattern(target)
            if pattern is not None and targets(pattern) == len(code.writes):
                return Unpack(pattern), (name,)
    return None


def _of_value(node: ast.expr, variables: Collection[str], is_bool_hidden: bool) -> tuple[Payload, Names] | None:
    def are_variables(nodes: list[ast.expr]) -> bool:
        return all(isinstance(each, ast.Name) and each.id in variables for each in nodes)

    def names(nodes: list[ast.expr]) -> Names:
        return tuple(each.id for each in nodes if isinstance(each, ast.Name))

    match node:
        case ast.Name():
            return (Copy(), names([node])) if are_variables([node]) else None
        case ast.Tuple(elts=parts) | ast.List(elts=parts) if parts and are_variables(parts):
            return Pack("tuple" if isinstance(node, ast.Tuple) else "list"), names(parts)
        case ast.Subscript(value=whole, slice=ast.Constant(value=int() | str() as key)) if are_variables([whole]):
            return (Index(key), names([whole])) if not isinstance(key, bool) else None
        case ast.Attribute(value=whole, attr=name) if are_variables([whole]):
            return Field(name), names([whole])
        case ast.Call(func=ast.Name(id="bool"), args=[given], keywords=[]) if are_variables([given]):
            return (Truth(), names([given])) if not is_bool_hidden and "bool" not in variables else None
        case ast.Call(func=ast.Name(id="__with_field__"), args=[*parts, ast.Constant(value=str() as name)]):
            return (Replace(Field(name)), names(parts)) if are_variables(parts) else None
        case ast.Call(func=ast.Name(id="__with_item__"), args=[*parts, ast.Constant(value=int() | str() as key)]):
            is_part = are_variables(parts) and not isinstance(key, bool)
            return (Replace(Index(key)), names(parts)) if is_part else None
        case ast.IfExp(test=test, body=true, orelse=false) if are_variables(parts := [test, true, false]):
            return Choose(), names(parts)
    constant = _constant(node)
    return None if constant is None else (constant, ())


def _constant(node: ast.expr) -> Constant | None:
    match node:
        case ast.Constant(value=bool() | int() | None as found):
            return Constant(found)
        case ast.Constant(value=float(found)) if math.isfinite(found):
            return Constant(found)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as found)):
            return Constant(-found) if type(found) is int or (type(found) is float and math.isfinite(found)) else None
    return None


def _pattern(target: ast.expr) -> Pattern | None:
    """The pattern of a tuple of names and of tuples of such; None for other targets."""
    if not isinstance(target, ast.Tuple | ast.List) or not target.elts:
        return None
    parts: list[Pattern | None] = []
    for each in target.elts:
        part = None if isinstance(each, ast.Name) else _pattern(each)
        if part is None and not isinstance(each, ast.Name):
            return None
        parts.append(part)
    return tuple(parts)
