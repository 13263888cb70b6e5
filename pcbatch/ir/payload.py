"""The computation of an op that assigns.

    payload ::= Compute expression    y = an expression of the inputs (`pcbatch.ir.expressions`); y.. = its parts
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

A payload says all about its operands by their places among an op's inputs and outputs, so that renaming these renames
them. `expression_of` gives the expression that a payload stands for: what is evaluated, traced and generated.
`explicit` goes the other way; it is called by passes that take expressions apart.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pcbatch.ir import values
from pcbatch.ir.expressions import (
    Apply,
    Attribute,
    Expression,
    Input,
    Items,
    Name,
    Names,
    Operator,
    call,
    filled,
    inputs_read,
    operation,
)
from pcbatch.ir.expressions import Constant as Constant
from pcbatch.ir.operators import print_expression
from pcbatch.ir.types import Type, leaves

# -- pseudo builtins ---------------------------------------------------------------------------------------------------
# Functions that only frontends and passes call in the code of a program; no user can hide or call them.

CHANGED, STORED, TAKEN = "__changed__", "__stored__", "__taken__"
"""Changes of structures: an object after a method's call, a container after a store of an element."""
BLANK = "__blank__"
"""An array of zeros, into which `pcbatch.map` stores its results."""

PSEUDO_BUILTINS = frozenset(
    {
        "__axis__",  # all positions along an axis of an array
        "__blank__",  # an array of zeros
        "__changed__",  # what an object is after one of its methods has been called
        "__cast__",  # a value as one of exactly a type
        "__element__",  # an element that is there
        "__free__",  # the place behind the last of some rows, of which there may be so many
        "__guarded__",  # what counts where a condition holds
        "__index__",  # an int
        "__last__",  # the place of the last of so many rows, which is taken out
        "__length__",  # the length of the shortest of some sequences
        "__next__",  # the place behind the last of the rows of a bounded list
        "__object__",  # an object of a class, made of its fields
        "__place__",  # the place that an index means among so many rows
        "__record__",  # the words of an entry of `pcbatch.debug`
        "__recorded__",  # where the next entry of a record goes, and how many there are then
        "__row__",  # a tuple as an element of an array
        "__unrecorded__",  # a record without entries
        "__run__",  # what a batched function gives for this lane, run as one operation
        "__stored__",  # what has elements, with some of them replaced
        "__taken__",  # what a method gives, and what its object is after it
        "__with_field__",  # a record with an attribute replaced
        "__with_item__",  # a list or a dict with an entry replaced
    }
)


def _shortest(*sequences: Any, strict: bool = False) -> int:
    lengths = [len(sequence) for sequence in sequences]
    if strict and len(set(lengths)) > 1:
        raise ValueError(f"sequences of lengths {lengths}")
    return min(lengths)


def _element(sequence: Any, position: int, count: int | None = None) -> Any:
    return sequence[position] if count is None else list(sequence)[position]


def _with_field(record: Any, value: Any, name: str) -> Any:
    return values.made(type(record), {**(values.fields_of(record) or {}), name: value})


def _with_item(whole: Any, value: Any, key: Any) -> Any:
    changed = copy.copy(whole)
    changed[key] = value
    return changed


STRUCTURAL: Mapping[str, Callable[..., Any]] = {
    "__element__": _element,
    "__index__": operator.index,
    "__length__": _shortest,
    "__with_field__": _with_field,
    "__with_item__": _with_item,
}
"""Those that only take structures apart and put them together, as Python's values have it."""


# -- payload -----------------------------------------------------------------------------------------------------------

CAST = "__cast__"
"""The pseudo-builtin that Casts stand for: of a value and the types of its leaves."""
WITH_FIELD, WITH_ITEM = "__with_field__", "__with_item__"
"""The pseudo-builtins that Replaces stand for: of a structure, the new part, and its name or key."""

Pattern = tuple["Pattern | None", ...]
"""Targets of an unpacking: None for a variable, a pattern for a part that is taken apart again."""


@dataclass(frozen=True)
class Compute:
    """The value of an expression; with a pattern, its parts, in the order of the outputs.

    An op without outputs is there for the expression's effect.
    """

    expression: Expression
    pattern: Pattern | None = None


@dataclass(frozen=True)
class Copy:
    """The value of another variable."""


@dataclass(frozen=True)
class Cast:
    """The value of another variable as one of exactly `type`: a weak number gives way, all else is so already."""

    type: Type


@dataclass(frozen=True)
class Truth:
    """The truth of a value, as by Python's `bool`, for the condition of a branch."""


@dataclass(frozen=True)
class Choose:
    """The second input where the first is true, else the third: all three are there before."""


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


Payload = Compute | Copy | Cast | Truth | Choose | Constant | Pack | Unpack | Index | Field | Replace


NEGATION = Compute(operation("not", Input(0)))
"""`y = not x`."""


def targets(pattern: Pattern) -> int:
    """Count the variables of a pattern."""
    return sum(1 if part is None else targets(part) for part in pattern)


# -- from payloads to expressions --------------------------------------------------------------------------------------


def pattern_of(payload: Payload) -> Pattern | None:
    """Return the pattern that takes a payload's result apart; None where it is given to one variable, or to none."""
    return payload.pattern if isinstance(payload, Compute | Unpack) else None


@lru_cache(maxsize=16384)
def expression_of(payload: Payload, inputs: int) -> Expression:
    """Return the expression that a payload with so many inputs computes, or takes apart."""
    given = [Input(place) for place in range(inputs)]
    match payload:
        case Compute(expression):
            return expression
        case Copy() | Unpack():
            return given[0]
        case Cast(type):
            return call(CAST, given[0], *(Constant(str(leaf)) for leaf in leaves(type)))
        case Truth():
            return call("bool", *given)
        case Choose():
            return operation("if", *given)
        case Constant():
            return payload
        case Pack(kind):
            return Items(kind, tuple(given))
        case Index(key):
            return operation("[]", given[0], Constant(key))
        case Field(name):
            return Attribute(given[0], name)
        case Replace(Field(name)):
            return call(WITH_FIELD, *given, Constant(name))
        case Replace(Index(key)):
            return call(WITH_ITEM, *given, Constant(key))
    raise TypeError(f"no payload: {payload!r}")


def print_targets(pattern: Pattern | None, outputs: Names) -> str:
    """`a, (b, c)`; a single part is followed by a comma."""
    return ", ".join(outputs[:1]) if pattern is None else _targets(pattern, iter(outputs))


def _targets(pattern: Pattern, names: Iterator[str]) -> str:
    # a program that the verifier refuses may lack some
    parts = [next(names, "?") if part is None else f"({_targets(part, names)})" for part in pattern]
    return ", ".join(parts) + ("," if len(parts) == 1 else "")


def print_statement(payload: Payload, outputs: Names, inputs: Names) -> str:
    """The Python statement that an op with this payload and these operands stands for."""
    value = print_expression(expression_of(payload, len(inputs)), inputs)
    return f"{print_targets(pattern_of(payload), outputs)} = {value}" if outputs else value


# -- from expressions to payloads --------------------------------------------------------------------------------------


def explicit(expression: Expression, inputs: Names, externs: Names = ()) -> tuple[Payload, Names]:
    """Return the plainest payload, and its inputs, that computes an expression of `inputs`.

    `externs` are free names that are no built-in functions.
    """

    def read(*parts: Expression) -> Names | None:
        places = [each.place for each in parts if isinstance(each, Input)]
        return tuple(inputs[place] for place in places) if len(places) == len(parts) else None

    def is_key(key: int | str) -> bool:
        return not isinstance(key, bool) and (isinstance(key, str) or key >= 0)

    found: tuple[Payload, Names | None] | None = None
    match expression:
        case Input():
            found = Copy(), read(expression)
        case Constant(value=bool() | int() | float() | None):
            found = expression, ()
        case Items("tuple" | "list" as kind, items) if items:
            found = Pack(kind), read(*items)
        case Apply(Operator("[]"), (whole, Constant(int() | str() as key))) if is_key(key):
            found = Index(key), read(whole)
        case Attribute(whole, name):
            found = Field(name), read(whole)
        case Apply(Operator("if"), parts):
            found = Choose(), read(*parts)
        case Apply(Name("bool"), (given,), ()) if "bool" not in externs:
            found = Truth(), read(given)
        case Apply(Name("__with_field__"), (whole, part, Constant(str() as name))):
            found = Replace(Field(name)), read(whole, part)
        case Apply(Name("__with_item__"), (whole, part, Constant(int() | str() as key))) if is_key(key):
            found = Replace(Index(key)), read(whole, part)
    if found is not None and found[1] is not None:
        return found[0], found[1]
    read_ones = inputs_read(expression)
    places = {place: Input(at) for at, place in enumerate(read_ones)}
    own = filled(expression, [places.get(place, Input(place)) for place in range(len(inputs))])
    return Compute(own), tuple(inputs[place] for place in read_ones)
