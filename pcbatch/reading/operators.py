"""Operators and comparisons: of what is known now, of lanes' numbers, of sequences, and of objects that define them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gast
import numpy as np

from pcbatch.ir.operators import BY_NODE, Row
from pcbatch.ir.types import TensorType, casts_into
from pcbatch.reading.containers import Containers
from pcbatch.reading.core import RefusedError
from pcbatch.reading.operations import BINARY, UNARY
from pcbatch.reading.several import refs_of
from pcbatch.reading.values import (
    NONE,
    Bound,
    Choice,
    Function,
    Host,
    Lane,
    OneOf,
    Optional,
    Range,
    Ref,
    Tuple,
    Value,
    View,
)

ROWS: dict[type, Row] = {getattr(gast, row.node): row for row in BY_NODE.values()}
"""The rows of operators by the classes of trees."""
COMPARE = "compare what is in them: `a.x == b.x`"


def _methods(op: type) -> tuple[str, str]:
    """The names of the methods by which the left operand defines an operator, and the right one."""
    row = ROWS[op]
    return f"__{row.method}__", f"__{row.reflected}__"


class Operators(Containers):
    """Python's operators."""

    # of parts above
    method_of: Callable[[Value, str], Value | None]
    call_value: Callable[[Value, Sequence[Value], dict[str, Value]], Value]

    def binary(self, op: type, a: Value, b: Value) -> Value:
        """`a op b`."""
        error = f"TypeError: unsupported operand type(s) for {BINARY[op].key}: 'NoneType'"
        a, b = self.there(a, error), self.known(b)
        found = self.overloaded(a, b, *_methods(op))
        if found is not None:
            return found
        a, b = self.read(a), self.read(self.there(b, error))
        known = self._of_sequences(op, a, b)
        if known is not None:
            return known
        if isinstance(a, Host) and isinstance(b, Host) and not self.is_array(a.value) and not self.is_array(b.value):
            try:
                return Host(ROWS[op].python(a.value, b.value))
            except (ZeroDivisionError, ValueError, OverflowError):
                if not all(isinstance(each.value, bool | int | float) for each in (a, b)):
                    raise
            except TypeError as error:
                raise self.refusal("PCB401", f"TypeError: {error}") from None
        if isinstance(a, Host) and isinstance(a.value, str):
            raise self.no_text()
        self._refuse_too_large(a, b)
        self._refuse_too_large(b, a)
        return self.emit(BINARY[op], [self.operand_of(each) for each in self._met(a, b)])

    def no_text(self) -> RefusedError:
        """The refusal of a text of a lane's value."""
        message = "a lane's value cannot be formatted into a string, except in the message of assert and raise"
        help = 'keep the number; text is for the messages of `assert` and `raise`: `f"x is {x}"`'
        return self.refusal("PCB114", message, help)

    def _refuse_too_large(self, number: Value, other: Value) -> None:
        """Refuse an int of Python's that the ints which it meets cannot hold, as NumPy does."""
        its = self.type_of(other)
        if not isinstance(number, Host) or type(number.value) is not int or its is None:
            return
        if its.dtype.startswith(("int", "uint")):
            bounds = np.iinfo(its.dtype)
            if not bounds.min <= number.value <= bounds.max:
                raise self.refusal(
                    "PCB117",
                    f"the integer {number.value} does not fit in {its.dtype}",
                    "say of which dtype it is: `np.int64(..)`, `np.uint32(..)` or `tf.constant(.., tf.int64)`",
                    label=f"from {bounds.min} to {bounds.max}",
                )

    def _met(self, a: Value, b: Value) -> tuple[Value, Value]:
        """Two operands, a constant array of NumPy's in the dtype of what it meets where that keeps what it has."""
        return self._beside(a, b), self._beside(b, a)

    def _beside(self, constant: Value, other: Value) -> Value:
        own, its = self.type_of(constant), self.type_of(other)
        if not _is_constant_array(constant) or _is_constant_array(other) or own is None or its is None or its.weak:
            return constant
        are_ints = all(each.dtype.startswith(("int", "uint")) for each in (own, its))
        if own.dtype == its.dtype or are_ints or not casts_into(own.dtype, its.dtype):
            return constant
        return self.lane(constant, TensorType(its.dtype, own.shape))

    def operand_of(self, value: Value) -> Any:
        """An operand of an operator: a number or an array."""
        if isinstance(value, Function | Bound | Range) or (isinstance(value, Ref) and self.kind(value) == "object"):
            raise self.refusal("PCB401", f"TypeError: unsupported operand: {self.described(value)}")
        return self.pattern(value)

    def _items(self, value: Value) -> tuple[Value, ...] | None:
        """The items of a tuple or a list; None for everything else."""
        if isinstance(value, Tuple):
            return value.items
        if self.kind(value) == "list":
            return tuple(self.state.cell(value).items)  # type: ignore[arg-type]
        if isinstance(value, Host) and isinstance(value.value, list) and value.place is not None:
            return tuple(self.sequence(value))
        if isinstance(value, Host) and isinstance(value.value, tuple):
            return tuple(map(self.host, value.value))
        if isinstance(value, OneOf) and all(self.kind(each) == "list" for each in value.items):
            return tuple(self.sequence(value))
        return None

    def _like(self, value: Value, items: Sequence[Value]) -> Value:
        return Tuple(tuple(items)) if isinstance(value, Tuple) else self.new_container("list", tuple(items))

    def _of_sequences(self, op: type, a: Value, b: Value) -> Value | None:
        xs, ys = self._items(a), self._items(b)
        if op is gast.Add and xs is not None and ys is not None:
            if isinstance(a, Tuple) != isinstance(b, Tuple):
                kinds = "tuple" if isinstance(a, Tuple) else "list", "tuple" if isinstance(b, Tuple) else "list"
                raise self.refusal(
                    "PCB401", f'TypeError: can only concatenate {kinds[0]} (not "{kinds[1]}") to {kinds[0]}'
                )
            return self._like(a, [*xs, *ys])
        if op is gast.Mult:
            for items, whole, count in ((xs, a, b), (ys, b, a)):
                if items is not None and self._items(count) is None and self.is_whole(count):
                    return self.repeated(whole, items, count)
        for one, other in ((a, b), (b, a)):
            if self.kind(one) == "set" and (self.kind(other) == "set" or isinstance(other, Host)):
                keys = [self._set_of(each) for each in (a, b)]
                return self.new_container("set", dict.fromkeys(ROWS[op].python(*keys), Host(None)))
        return None

    def repeated(self, whole: Value, items: Sequence[Value], times: Value) -> Value:
        """`whole * times` of a list or a tuple with these items."""
        with self.wanting():
            return self._like(whole, [*items] * self.constant(times, "how often a list is repeated"))

    def _set_of(self, value: Value) -> Any:
        return set(self.state.cell(value).items) if isinstance(value, Ref) else value.value  # type: ignore[union-attr]

    def is_whole(self, value: Value) -> bool:
        """Return whether a value is an int, or a lane's scalar of ints."""
        type_ = self.type_of(value)
        return type_ is not None and not type_.shape and type_.dtype.startswith(("int", "uint", "bool"))

    def overloaded(self, a: Value, b: Value, name: str, reflected: str) -> Value | None:
        """Return the result of an operator of the user's own classes; None where neither operand has one."""
        for whole, other, method in ((a, b, name), (b, a, reflected)):
            found = self.method_of(whole, method)
            if found is not None:
                result = self.call_value(found, [other], {})
                if not (isinstance(result, Host) and result.value is NotImplemented):
                    return result
        return None

    def unary(self, op: type, value: Value) -> Value:
        """`op value`."""
        if op is gast.Not:
            return self.negated(self.truth(value))
        value = self.there(value, "TypeError: bad operand type for an operator: 'NoneType'")
        names = {gast.USub: "__neg__", gast.UAdd: "__pos__", gast.Invert: "__invert__"}
        found = self.method_of(value, names[op])
        if found is not None:
            return self.call_value(found, [], {})
        value = self.read(value)
        if isinstance(value, Host) and not self.is_array(value.value):
            with self.raising(TypeError):
                return Host(ROWS[op].python(value.value))
        return self.emit(UNARY[op], [self.operand_of(value)])

    def _augmented(self, op: type, old: Value, value: Value) -> Value | None:
        """The value of an augmented assignment's target; None where that is an array that has been changed in place."""
        method = self.method_of(old, f"__i{ROWS[op].method}__")
        if method is not None:
            return self.call_value(method, [value], {})
        cell = self.cell(old)
        if cell is not None and cell.kind == "list" and op is gast.Add and isinstance(old, Ref):
            self.change(old, items=(*self.state.cell(old).items, *self.sequence(value)))
            return old
        if cell is not None and cell.kind == "list" and op is gast.Mult and isinstance(old, Ref):
            self.change(old, items=tuple(cell.items) * self.constant(value, "how often a list is repeated"))
            return old
        if cell is not None and cell.kind == "dict" and op is gast.BitOr and isinstance(old, Ref):
            self.change(old, items={**cell.items, **self.entries(value)})
            return old
        is_array = not isinstance(old, Host) or isinstance(old.value, np.ndarray)
        if self.guard is None and is_array and self.added(old, op, value):
            return None
        return self.binary(op, old, value)

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def compare(self, op: type, a: Value, b: Value) -> Value:
        """`a op b` of one comparison."""
        a, b = self.known(a), self.known(b)
        if op not in (gast.Is, gast.IsNot):
            a, b = self.number_beside(a, b), self.number_beside(b, a)
        if isinstance(a, Choice):
            return self.of_words(a, lambda word: self.compare(op, word, b))
        if isinstance(b, Choice):
            return self.of_words(b, lambda word: self.compare(op, a, word))
        if op in (gast.Is, gast.IsNot):
            same = self.is_one(a, b)
            return self.negated(same) if op is gast.IsNot else same
        if op in (gast.In, gast.NotIn):
            inside = self.contains(self.there(b, "TypeError: argument of type 'NoneType' is not iterable"), a)
            return self.negated(inside) if op is gast.NotIn else inside
        if isinstance(a, Optional) or isinstance(b, Optional):
            return self._compared_if_there(op, a, b)
        known = self.overloaded(a, b, *_methods(op))
        if known is not None:
            return known
        if op is gast.NotEq and (equal := self.overloaded(a, b, "__eq__", "__eq__")) is not None:
            return self.negated(self.truth(equal))
        a, b = self.read(a), self.read(b)
        xs, ys = self._items(a), self._items(b)
        if xs is not None and ys is not None and isinstance(a, Tuple) == isinstance(b, Tuple):
            return self._compared(op, xs, ys)
        if any(self.kind(each) == "set" for each in (a, b)) and all(map(self._is_set, (a, b))):
            return Host(ROWS[op].python(self._set_of(a), self._set_of(b)))
        if op in (gast.Eq, gast.NotEq) and all(map(self.is_dict, (a, b))):
            same = self._same_entries(self.entries(a), self.entries(b))
            return self.negated(same) if op is gast.NotEq else same
        if isinstance(a, Host) and isinstance(b, Host) and not self.is_array(a.value) and not self.is_array(b.value):
            with self.raising(TypeError):
                return Host(ROWS[op].python(a.value, b.value))
        if op in (gast.Eq, gast.NotEq) and self._differ_in_kind(a, b):
            same = Host(False) if self._is_number_of_both(a, b) else self.is_one(a, b)
            return self.negated(same) if op is gast.NotEq else same
        return self.emit(BINARY[op], [self.operand_of(each) for each in self._met(a, b)])

    def _compared_if_there(self, op: type, a: Value, b: Value) -> Value:
        """`a op b` of values that may be None."""
        if op in (gast.Eq, gast.NotEq):
            if any(
                (type_ := self.type_of(self.parts_of(each)[1] or NONE)) is not None and type_.shape for each in (a, b)
            ):
                raise self.refusal("PCB113", "an array that is None in some lanes is compared", "ask `is None` before")
            same = self.is_same_or_none(a, b, lambda x, y: self.compare(gast.Eq, x, y))
            return self.negated(same) if op is gast.NotEq else same
        error = f"TypeError: '{BINARY[op].key}' not supported between instances of 'NoneType' and others"
        return self.compare(op, self.there(a, error), self.there(b, error))

    def _is_set(self, value: Value) -> bool:
        return self.kind(value) == "set" or (isinstance(value, Host) and isinstance(value.value, set | frozenset))

    def is_dict(self, value: Value) -> bool:
        """Tell whether a value is a dict."""
        return self.kind(value) == "dict" or (isinstance(value, Host) and isinstance(value.value, dict))

    def _same_entries(self, xs: Mapping[Any, Value], ys: Mapping[Any, Value]) -> Host | Lane:
        if xs.keys() != ys.keys():
            return Host(False)
        found: Host | Lane = Host(True)
        for key in xs:
            found = self.both(found, self.truth(self.compare(gast.Eq, xs[key], ys[key])))
        return found

    def _differ_in_kind(self, a: Value, b: Value) -> bool:
        """Return whether two values are equal only if they are one: a number and a text, an object without `__eq__`."""
        return any(
            isinstance(each, Function | Bound)
            or (isinstance(each, Ref | OneOf) and any(self.kind(ref) != "array" for ref in refs_of(each)))
            or (isinstance(each, Host) and not self.is_array(each.value) and self.type_of(each) is None)
            or isinstance(each, Tuple)
            for each in (a, b)
        )

    def is_one(self, a: Value, b: Value) -> Host | Lane:
        """`a is b`."""
        if isinstance(a, Choice):
            return self.truth(self.of_words(a, lambda word: self.is_one(word, b)))
        a, b = self.known(a), self.known(b)
        if isinstance(a, Optional) or isinstance(b, Optional):
            return self.is_same_or_none(a, b, self.is_one)
        objects = self.fixed([a, b]) if any(isinstance(each, OneOf) for each in (a, b)) else None
        if objects is not None or (isinstance(a, Ref) and isinstance(b, Ref)):
            return self._is_one_object(*(objects or (a, b)))
        if isinstance(a, Host) and isinstance(b, Host):
            return Host(a.value is b.value)
        for one, other in ((a, b), (b, a)):
            if isinstance(one, Host) and isinstance(one.value, bool):
                type_ = self.type_of(other)
                if type_ is not None and type_.dtype == "bool" and not type_.shape:
                    lane = self.lane(other)
                    return lane if one.value else self.negated(lane)
                return Host(False)
            if isinstance(one, Host) and (one.value is None or isinstance(one.value, type)):
                return Host(False)
        if type(a) is not type(b) and not {type(a), type(b)} <= {Lane, View, Ref} and not self._is_number_of_both(a, b):
            return Host(False)
        if isinstance(a, Function) and isinstance(b, Function):
            return Host(a is b)
        raise self.refusal("PCB113", "`is` compares identities, which numbers of a lane do not have", "write `==`")

    def _is_number_of_both(self, a: Value, b: Value) -> bool:
        """Tell whether one is a known number, such as a member of an IntEnum, and the other one a lane's."""
        numbers = [each for each in (a, b) if isinstance(each, Host) and isinstance(each.value, int | float | complex)]
        return len(numbers) == 1 and any(self.is_scalar(each) for each in (a, b) if each is not numbers[0])

    def _is_one_object(self, a: Ref | OneOf, b: Ref | OneOf) -> Host | Lane:
        """Tell whether two objects, each of which may be one of several, are one."""
        others = {ref.cell for ref in refs_of(b)}
        if any(not others.isdisjoint(self.state.twins.get(ref.cell, ())) for ref in refs_of(a)):
            raise self.refusal(
                "PCB113", "whether these are one object depends on whether a loop has made a turn", COMPARE
            )
        every = list(dict.fromkeys((*refs_of(a), *refs_of(b))))
        if a != b and all(any(self.state.cell(ref).is_held for ref in refs_of(each)) for each in (a, b)):
            raise self.refusal(
                "PCB113",
                "`is` compares elements of a list whose length differs by lane, which it has by value",
                COMPARE,
            )
        if a == b or others.isdisjoint(ref.cell for ref in refs_of(a)):
            return Host(a == b)
        places = [self.pattern(self.place_among(each, every)) for each in (a, b)]
        return self.truth(self.emit(BINARY[gast.Eq], places))

    def _compared(self, op: type, xs: Sequence[Value], ys: Sequence[Value]) -> Value:
        """Two sequences, compared by the first of their elements that differ."""
        if op in (gast.Eq, gast.NotEq):
            if len(xs) != len(ys):
                return Host(op is gast.NotEq)
            found: Host | Lane = Host(True)
            for x, y in zip(xs, ys, strict=True):
                found = self.both(found, self.truth(self.compare(gast.Eq, x, y)))
            return self.negated(found) if op is gast.NotEq else found
        strict = gast.Lt if op in (gast.Lt, gast.LtE) else gast.Gt
        if len(xs) == len(ys):
            found = Host(op in (gast.LtE, gast.GtE))
        else:
            found = Host((len(xs) < len(ys)) == (strict is gast.Lt))
        for x, y in reversed([*zip(xs, ys, strict=False)]):
            same = self.both(self.truth(self.compare(gast.Eq, x, y)), found)
            found = self.either(self.truth(self.compare(strict, x, y)), same)
        return found

    def contains(self, whole: Value, item: Value) -> Host | Lane:
        """`item in whole`."""
        if isinstance(whole, OneOf):
            whole = self.iterable(whole)
        found = self.method_of(whole, "__contains__")
        if found is not None:
            return self.truth(self.call_value(found, [item], {}))
        if self.differs_in_length(whole):
            return self.truth(self.emit(BINARY[gast.In], [self.pattern(self.read(item)), self.record(whole)]))
        type_ = self.type_of(whole)
        if type_ is not None:
            return self.truth(
                self.emit(BINARY[gast.In], [self.pattern(self.read(item)), self.pattern(self.read(whole))])
            )
        item = self.read(item)
        if isinstance(whole, Host) and isinstance(whole.value, range) and isinstance(item, Lane):
            whole = Range(Host(whole.value.start), Host(whole.value.stop), Host(whole.value.step))
        if isinstance(whole, Range):
            return self._in_range(whole, item)
        if isinstance(whole, Host) and isinstance(item, Host):
            with self.raising(TypeError):
                return Host(item.value in whole.value)
        if self.kind(whole) in ("dict", "set"):
            inside = self.is_key(self.state.cell(whole).items, self.key(item))  # type: ignore[arg-type]
            if inside is not None:
                return inside
            if isinstance(item, Host | Tuple):
                with self.wanting(whole):
                    return Host(self.constant(item, "a key") in self.state.cell(whole).items)  # type: ignore[arg-type]
        if isinstance(whole, Host) and isinstance(whole.value, dict | set | frozenset) and self.is_list(item):
            inside = self.is_key(dict.fromkeys(whole.value, NONE), item)
            if inside is not None:
                return inside
        if isinstance(whole, Host) and isinstance(whole.value, str):
            raise self.refusal("PCB114", "a lane's value is looked for in a text", "compare numbers: `x in (1, 2)`")
        result: Host | Lane = Host(False)
        for each in self.sequence(whole):
            if isinstance(result, Host) and result.value:
                break
            same = (
                self.is_one(item, each) if self._are_one(item, each) else self.truth(self.compare(gast.Eq, item, each))
            )
            result = self.either(result, same)
        return result

    def _are_one(self, a: Value, b: Value) -> bool:
        """Return whether two values are certainly one object."""
        return isinstance(a, Ref) and a == b

    def _in_range(self, whole: Range, item: Value) -> Host | Lane:
        step = whole.step
        if not isinstance(step, Host):
            raise self.refusal("PCB129", "`in` takes a range whose step is known", "compare with its bounds")
        low, high = (whole.start, whole.stop) if step.value > 0 else (whole.stop, whole.start)
        first, last = (gast.LtE, gast.Lt) if step.value > 0 else (gast.Lt, gast.LtE)
        inside = self.both(self.truth(self.compare(first, low, item)), self.truth(self.compare(last, item, high)))
        if step.value in (1, -1):
            return inside
        rest = self.binary(gast.Mod, self.binary(gast.Sub, item, whole.start), step)
        return self.both(inside, self.truth(self.compare(gast.Eq, rest, Host(0))))


def _is_constant_array(value: Value) -> bool:
    """Tell whether a value is an array of NumPy's that is known now, or captured."""
    return isinstance(value, Host) and isinstance(value.value, np.ndarray) and value.value.ndim > 0
