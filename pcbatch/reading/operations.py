"""Operations: what a lane's values are computed by, how they are said, and what of the backend stands for them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gast

from pcbatch.ir import operators
from pcbatch.ir.expression_parser import parse_expression
from pcbatch.ir.expressions import (
    Apply,
    Attribute,
    Constant,
    Expression,
    Items,
    Name,
    Slice,
    call,
    constant_of,
    dotted,
    operation,
)
from pcbatch.ir.operators import Row
from pcbatch.ir.values import made
from pcbatch.lowering.codegen.environment import BUILTINS, CHECKED_BUILTINS, may_fail
from pcbatch.reading.values import Lane

SITE = 0
"""Any fault site will do where an operation is only tried."""

Made = Callable[[Sequence[Expression], Mapping[str, Expression]], Expression]
Called = Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]


@dataclass(frozen=True, eq=False)
class Operation:
    """One kind of operation: `key` tells it from others, or is None where it is not the same at each time.

    `made(arguments, keywords)` is its expression, `called(ops, arguments, keywords)` calls it on symbols.
    """

    key: Hashable
    made: Made
    called: Called


def _operator(row: Row, key: str) -> Operation:
    def called(ops: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        if not row.ops:
            return row.python(*arguments)
        return getattr(ops, row.ops)(*arguments, *([SITE] if row.may_fail else []))

    return Operation(key, lambda given, named: operation(row.symbol, *given), called)


BINARY: dict[type, Operation] = {
    getattr(gast, row.node): _operator(row, row.symbol) for row in operators.BINARY.values() if row.ops
}
"""Operators of two operands, comparisons among them."""

UNARY: dict[type, Operation] = {
    getattr(gast, row.node): _operator(row, row.symbol if row.symbol == "not" else f"{row.symbol}x")
    for row in operators.UNARY.values()
}


def _both(ops: Any, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    return ops.both(given[0], lambda: given[1])


def _either(ops: Any, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    return ops.either(given[0], lambda: given[1])


AND = Operation("and", lambda given, named: operation("and", *given), _both)
OR = Operation("or", lambda given, named: operation("or", *given), _either)
CHOICE = Operation(
    "if",
    lambda given, named: operation("if", *given),
    lambda ops, given, named: ops.select(given[0], lambda: given[1], lambda: given[2]),
)


def call_of(function: Expression, given: Sequence[Expression], named: Mapping[str, Expression]) -> Apply:
    """A call."""
    return Apply(function, tuple(given), tuple(named.items()))


def builtin(name: str) -> Operation:
    """A built-in function of the language, or a pseudo-builtin."""

    def called(ops: Any, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        options = dict(named)
        if name in CHECKED_BUILTINS:
            options["site"] = SITE
        return getattr(ops, BUILTINS[name])(*given, **options)

    return Operation(("builtin", name), lambda given, named: call_of(dotted(name), given, named), called)


def library(function: Any, name: str, path: str | None, *, is_steady: bool) -> Operation:
    """A function of a library, or an opaque one of the user's, known by `name`; steady ones give the same each time.

    `path` is what of `ops` stands for it, if anything does.
    """

    def called(ops: Any, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        if path is None:
            return function(*given, **named)
        if path == "without_equivalent":
            return ops.without_equivalent(function)(*given, **named)
        module, _, own = path.partition(".")
        options = dict(named)
        if module == "math" or path == "numpy.take":
            options["site"] = SITE
        return getattr(getattr(ops, module), own)(*given, **options)

    key = ("function", id(function)) if is_steady else None
    return Operation(key, lambda given, named: call_of(dotted(name), given, named), called)


def unread(function: Any, name: str) -> Operation:
    """A function of the user's that cannot be read, known by `name`."""

    def called(ops: Any, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        return (ops.checking(function, SITE, SITE) if may_fail(function) else function)(*given, **named)

    return Operation(None, lambda given, named: call_of(dotted(name), given, named), called)


def method(name: str) -> Operation:
    """A method of an array."""
    return Operation(
        ("method", name),
        lambda given, named: call_of(Attribute(given[0], name), given[1:], named),
        lambda ops, given, named: ops.member(given[0], name)(*given[1:], **named),
    )


def method_of_held(name: str) -> Operation:
    """A method of what a context manager has given."""
    return Operation(
        None,
        lambda given, named: call_of(Attribute(given[0], name), given[1:], named),
        lambda ops, given, named: getattr(given[0], name)(*given[1:], **named),
    )


def attribute(name: str) -> Operation:
    """An attribute of an array."""
    return Operation(
        ("attribute", name),
        lambda given, named: Attribute(given[0], name),
        lambda ops, given, named: ops.member(given[0], name),
    )


GETITEM = Operation(
    "[]", lambda given, named: operation("[]", *given), lambda ops, given, named: ops.getitem(given[0], given[1], SITE)
)


CALL = Operation(
    None,
    lambda given, named: call_of(given[0], given[1:], named),
    lambda ops, given, named: given[0](*given[1:], **named),
)
"""A call of a function that an operation has made."""
POSITION = Operation(
    "position",
    lambda given, named: call_of(Attribute(given[0], "index"), given[1:], named),
    lambda ops, given, named: ops.position(*given, 0),
)


@dataclass(frozen=True)
class WindowOf:
    """A slice of fixed length that begins at a lane's number; a part of the pattern of an index."""

    start: Any
    length: int
    step: int | None = None


@dataclass(frozen=True)
class Named:
    """A value of Python's that code knows by a name."""

    text: str
    value: Any


class ObjectOperation(Named):
    """A context manager's result that lives in its piece: a gradient tape."""


@dataclass(frozen=True, eq=False)
class Record:
    """An object or a named tuple, made of its fields."""

    cls: Named
    names: tuple[str, ...]
    items: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Closed:
    """A function that stands in another: `factory` makes it of what it reads of that, and of its defaults."""

    factory: Named
    items: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Applied:
    """The result of an operation, or a part of it, that no variable can hold: it is computed where it is used.

    `path` leads to the part: names of attributes, and numbers or keys of items.
    """

    ops: Any
    operation: Operation
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    path: tuple[tuple[str, Any], ...] = ()

    @property
    def patterns(self) -> tuple[Any, ...]:
        """The patterns of its arguments."""
        return *self.arguments, *self.keywords.values()

    def expression(self) -> Expression:
        """Return the expression that computes it."""
        found = self.operation.made(*expressions_of(self.operation, self.arguments, self.keywords))
        for kind, key in self.path:
            found = Attribute(found, key) if kind == "attribute" else operation("[]", found, constant_of(key))
        return found

    def computed(self, fill: Callable[[Any], Any]) -> Any:
        """Its value for what `fill` puts in the place of arguments."""
        found = self.operation.called(
            self.ops, [*map(fill, self.arguments)], {n: fill(v) for n, v in self.keywords.items()}
        )
        for kind, key in self.path:
            found = getattr(found, key) if kind == "attribute" else found[key]
        return found

    def key(self) -> Hashable:
        """Return what tells it from others that may be of another type."""
        operation = self.operation if self.operation.key is None else self.operation.key
        return "applied", operation, key_of(self.arguments), key_of(dict(self.keywords)), self.path


@dataclass(frozen=True)
class Spelled:
    """An expression, and the variables that it reads."""

    expression: Expression
    lanes: tuple[Lane, ...]


# -- patterns of arguments: lanes and constants inside of tuples, lists, dicts and slices ------------------------------


def lanes_in(pattern: Any) -> list[Lane]:
    """The lane's values in a pattern, in order; one that stands in it twice is there twice."""
    match pattern:
        case Lane():
            return [pattern]
        case WindowOf(start):
            return lanes_in(start)
        case Applied():
            return lanes_in(pattern.patterns)
        case Record(items=items) | Closed(items=items):
            return [lane for each in items for lane in lanes_in(each)]
        case Spelled(lanes=lanes):
            return list(lanes)
        case tuple() | list():
            return [lane for each in pattern for lane in lanes_in(each)]
        case dict():
            return [lane for each in pattern.values() for lane in lanes_in(each)]
        case slice():
            return [lane for each in (pattern.start, pattern.stop, pattern.step) for lane in lanes_in(each)]
    return []


def held_in(pattern: Any) -> list[ObjectOperation]:
    """Return the results of context managers in a pattern."""
    match pattern:
        case ObjectOperation():
            return [pattern]
        case Applied():
            return held_in(pattern.patterns)
        case tuple() | list():
            return [found for each in pattern for found in held_in(each)]
        case dict():
            return [found for each in pattern.values() for found in held_in(each)]
    return []


def filled(pattern: Any, symbol: Callable[[Lane], Any], window: Callable[..., Any]) -> Any:
    """A pattern with symbols in the place of lanes, and the values of Python's that it names."""

    def fill(part: Any) -> Any:
        match part:
            case Lane():
                return symbol(part)
            case Named():
                return part.value
            case Applied():
                return part.computed(fill)
            case Record(cls, names, items):
                return made(cls.value, dict(zip(names, map(fill, items), strict=True)))
            case Closed(factory, items):
                return factory.value(*map(fill, items))
            case WindowOf(start, length, step):
                first = fill(start)
                return window(first, first + length, step, length)
            case tuple() if hasattr(part, "_fields"):
                return type(part)(*map(fill, part))
            case tuple() | list():
                return type(part)(map(fill, part))
            case dict():
                return {key: fill(each) for key, each in part.items()}
            case slice():
                return slice(fill(part.start), fill(part.stop), fill(part.step))
        return part

    return fill(pattern)


def key_of(pattern: Any) -> Hashable:
    """Return a key that tells apart patterns whose results may have other types."""
    match pattern:
        case Lane(_, type_):
            return type_
        case Named(_, value):
            return ("named", id(value))
        case Applied():
            return pattern.key()
        case Record(cls, names, items):
            return ("record", id(cls.value), names, *map(key_of, items))
        case Closed(factory, items):
            return ("closed", id(factory.value), *map(key_of, items))
        case WindowOf(start, length, step):
            return ("window", key_of(start), length, step)
        case tuple() | list():
            return (type(pattern), *map(key_of, pattern))
        case dict():
            return ("dict", *((name, key_of(each)) for name, each in pattern.items()))
        case slice():
            return ("slice", key_of(pattern.start), key_of(pattern.stop), key_of(pattern.step))
    return type(pattern), repr(pattern)


def expressions_of(
    operation: Operation, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[list[Expression], dict[str, Expression]]:
    """The expressions of the patterns that an operation gets."""
    in_index = operation.key == "[]"
    return (
        [expression_of(each, in_index) for each in arguments],
        {name: expression_of(each) for name, each in keywords.items()},
    )


def expression_of(pattern: Any, in_index: bool = False) -> Expression:
    """A pattern as an expression; inside of brackets slices are written with colons."""
    match pattern:
        case Lane(name):
            return Name(name)
        case Named(text=text):
            return dotted(text)
        case Spelled(expression=expression):
            return expression
        case Applied():
            return pattern.expression()
        case Record(cls, names, items):
            fields = Items("tuple", tuple(map(Constant, names)))
            return call("__object__", dotted(cls.text), fields, *map(expression_of, items))
        case Closed(factory, items):
            return Apply(dotted(factory.text), tuple(map(expression_of, items)))
        case WindowOf(start, length, step):
            first = expression_of(start)
            end = operation("+", first, Constant(length))
            return Slice(first, end, None if step is None else Constant(step))
        case tuple() if hasattr(pattern, "_fields"):
            raise TypeError("a named tuple is written by its class")
        case tuple() if in_index:
            return Items("tuple", tuple(expression_of(each, True) for each in pattern))
        case tuple() | list() | set():
            return Items(type(pattern).__name__, tuple(map(expression_of, pattern)))
        case dict():
            return Items("dict", tuple(map(expression_of, pattern.values())), tuple(map(expression_of, pattern)))
        case slice():
            parts = (pattern.start, pattern.stop, pattern.step)
            if in_index:
                return Slice(*(None if each is None else expression_of(each) for each in parts))
            return call("slice", *map(expression_of, parts))
        case str() | bytes() | bool() | int() | float() | complex() | None:
            return constant_of(pattern)
        case _ if pattern is Ellipsis:
            return Constant(...)
    return parse_expression(repr(pattern))
