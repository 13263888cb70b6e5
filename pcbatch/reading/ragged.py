"""Parts of arrays whose length differs by lane, `x[:n]` and `x[mask]`: sums and extremes of them, stores, loops.

A lane keeps the whole array beside the two ends, or the mask. What is computed of each element is computed of all, and
those outside are left out where elements are taken together; nothing has another shape in another lane.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gast
import numpy as np

from pcbatch.ir.types import TensorType
from pcbatch.reading.arrays import AXIS
from pcbatch.reading.core import NeedsConstantError
from pcbatch.reading.counters import Counters
from pcbatch.reading.operations import BINARY, GETITEM, builtin, method
from pcbatch.reading.values import NONE, Host, Lane, Lazy, Value, is_same
from pcbatch.reading.views import Index, Sliced, parts_of

ELEMENTWISE = frozenset({gast.Add, gast.Sub, gast.Mult, gast.Div, gast.Pow})
"""Operators that may be computed of elements outside of a slice, where nothing can fail in a way that shows."""
ROUNDED = (gast.FloorDiv, gast.Mod)
"""Operators that fail where they divide by zero."""
NEUTRAL: dict[str, Any] = {"sum": 0, "mean": 0, "prod": 1, "any": False, "all": True}
NEUTRAL |= {"max": -math.inf, "amax": -math.inf, "min": math.inf, "amin": math.inf}
"""Reductions, with their neutral elements."""
EXTREMES = frozenset({"max", "amax", "min", "amin"})
LIBRARIES = ("numpy", "tensorflow")
RAGGED = frozenset({"ragged", "masked", "filtered"})
"""The kinds of lazy values that parts are: slices, masks, and lists of which a lane keeps some elements."""
MASKED = "an array indexed by a mask has a length that differs from lane to lane"
CHOSEN = (
    "keep the whole array and choose within it: `np.where(mask, a, 0.0)`; sums, means and extremes of `a[mask]`, loops "
    "over it and `a[mask] += v` are fine"
)
LIKE_ANY = 0.5
"""An element that functions have a finite value and slope at, which the elements outside are computed as."""


class Ragged(Counters):
    """Parts of arrays whose length differs by lane."""

    # -- what they are -------------------------------------------------------------------------------------------------

    def ragged(self, value: Value) -> Lazy | None:
        """`value`, if it is such a part.

        A slice has its array, its ends, from 0 to how many rows there are, and its bounds; else an array and a mask.
        """
        value = self.known(value)
        return value if isinstance(value, Lazy) and value.kind in RAGGED else None

    def as_slice(self, value: Value) -> Lazy | None:
        found, type_ = self.ragged(value), self.type_of(value)
        if found is not None:
            return found if found.kind == "ragged" else None
        if type_ is None or not type_.shape:
            return None
        return Lazy("ragged", (value, Host(0), Host(type_.shape[0]), NONE, NONE))

    def element(self, array: Value, index: Index) -> Value:
        if self._is_mask(array, index):
            copied = self.emit(method("copy"), [self.pattern(self.read(array))])
            return Lazy("masked", (copied, self.read(index)))
        places = None if isinstance(index, Sliced | tuple) else self.ragged(index)
        if places is not None:
            taken = super().element(array, self.filled(places, 0))
            return Lazy("ragged" if places.kind == "ragged" else "masked", (taken, *places.parts[1:]))
        if not any(map(_is_ragged, parts_of(index))):
            return super().element(array, index)
        whole, axis, part = self._with_full_slice(array, index)
        if axis:
            raise self.no_length()
        if part.step is not None:
            return self.item(self.as_slice(whole) or NONE, replace(part, is_ragged=False))
        return Lazy("ragged", (whole, *self._ends(whole, 0, part)))

    def _is_mask(self, array: Value, index: Index) -> bool:
        """Tell whether an index is an array of bools of the lane's, for the first axes of an array."""
        if isinstance(index, Sliced | tuple):
            return False
        known = self.read(index)
        return isinstance(known, Lane) and known.type.dtype == "bool" and self._begins_with(array, known.type.shape)

    def _begins_with(self, array: Value, shape: tuple[int, ...]) -> bool:
        return bool(shape) and self._shape(array)[: len(shape)] == shape

    def item(self, whole: Value, index: Index) -> Value:
        found = self.ragged(whole)
        if found is None:
            return super().item(whole, index)
        if isinstance(index, Sliced | tuple):
            raise self.refuse_part(found)
        return self.lazy_item(found, self._place_in(found, index))

    def set_item(self, whole: Value, index: Index, value: Value) -> None:
        found = self.ragged(whole)
        if found is None:
            super().set_item(whole, index, value)
            return
        is_whole = isinstance(index, Sliced) and index.lower is index.upper is index.step is None
        if found.kind == "ragged" and is_whole:
            array, start, stop = found.parts[:3]
            self.store_element(array, Sliced(start, stop, None, is_ragged=True), value)
            return
        if found.kind != "ragged" or isinstance(index, Sliced | tuple):
            raise self.refuse_part(found)
        place = self.binary(gast.Add, found.parts[1], self._place_in(found, index))
        self.store_element(found.parts[0], place, value)

    def _place_in(self, found: Lazy, index: Value) -> Value:
        """The place that an index means among the elements of a part; the lane fails where there is none."""
        length = self.lazy_length(found)
        assert length is not None
        index = self.read(index)
        is_behind = self.truth(self.compare(gast.Lt, index, Host(0)))
        place = self.chosen_of(is_behind, self.binary(gast.Add, index, length), index)
        is_inside = self.both(
            self.truth(self.compare(gast.LtE, Host(0), place)), self.truth(self.compare(gast.Lt, place, length))
        )
        self.require(is_inside, "IndexError: index out of range")
        return place

    def chosen_of(self, condition: Host | Lane, x: Value, y: Value) -> Value:
        """One of two values, by a condition that may be known."""
        if isinstance(condition, Host):
            return x if condition.value else y
        return self.chosen(condition, x, y)

    def _with_full_slice(self, array: Value, index: Index) -> tuple[Value, int, Sliced]:
        """Return what an index would give were its ragged part a full slice; the axis of that part, and the part."""
        parts = parts_of(index)
        places = [place for place, part in enumerate(parts) if _is_ragged(part)]
        before = parts[: places[0]]
        is_plain = all(isinstance(part, Sliced) or self._is_int(part) for part in parts)
        if len(places) > 1 or not is_plain:
            raise self.no_length()
        full = [Sliced(None, None, None) if _is_ragged(part) else part for part in parts]
        whole = array if len(parts) == 1 else super().element(array, tuple(full))
        return whole, sum(isinstance(part, Sliced) for part in before), parts[places[0]]

    def _is_int(self, part: Index) -> bool:
        type_ = self.type_of(self.read(part))
        return type_ is not None and not type_.shape and type_.dtype.startswith(("int", "uint"))

    def _ends(self, whole: Value, axis: int, part: Sliced) -> tuple[Value, Value, Value, Value]:
        """The ends of a slice, and its bounds as they are written."""
        size = self._shape(whole)[axis]
        ends = self._end(part.lower, 0, size), self._end(part.upper, size, size)
        return *ends, part.lower or Host(0), part.upper or Host(size)

    def _end(self, bound: Value | None, default: int, size: int) -> Value:
        """A bound of a slice as Python takes it: counted from the end if it is negative, and within the array."""
        if bound is None or (isinstance(bound, Host) and bound.value is None):
            return Host(default)
        if isinstance(bound, Host):
            return Host(slice(bound.value, None).indices(size)[0])
        known = self.emit(builtin("__index__"), [self.pattern(bound)])
        from_end = self.emit(builtin("max"), [self.pattern(self.binary(gast.Add, known, Host(size))), 0])
        within = self.emit(builtin("min"), [self.pattern(known), size])
        return self.chosen_of(self.truth(self.compare(gast.Lt, known, Host(0))), from_end, within)

    def _shape(self, array: Value) -> tuple[int, ...]:
        type_ = self.type_of(array)
        assert type_ is not None
        return type_.shape

    def lazy_length(self, whole: Value) -> Value | None:
        found = self.ragged(whole)
        if found is None:
            return super().lazy_length(whole)
        if found.kind != "ragged":
            return self.opaque_call(np.sum, [self._counted(found)])
        start, stop = found.parts[1:3]
        return self.emit(builtin("max"), [self.pattern(self.binary(gast.Sub, stop, start)), 0])

    def _counted(self, found: Lazy) -> Value:
        """The mask of a part as ints."""
        return self.emit(method("astype"), [self.pattern(found.parts[1]), "int32"])

    def lazy_item(self, whole: Value, index: Value) -> Value:
        found = self.ragged(whole)
        if found is None:
            return super().lazy_item(whole, index)
        if found.kind != "ragged":
            if len(self._shape(found.parts[1])) > 1:
                raise self.refuse_part(found)
            so_far = self.opaque_call(np.cumsum, [self._counted(found)])
            place = self.opaque_call(np.argmax, [super().compare(gast.Gt, so_far, index)])
            return self.row_of(found.parts[0], place)
        return self.row_of(found.parts[0], self.binary(gast.Add, found.parts[1], index))

    def length(self, value: Value) -> Value:
        found = self.ragged(value)
        return super().length(value) if found is None else self.lazy_length(found)  # type: ignore[return-value]

    def pattern(self, value: Value) -> Any:
        found = self.ragged(value)
        if found is not None:
            raise self.refuse_part(found)
        return super().pattern(value)

    def refuse_part(self, found: Lazy) -> NeedsConstantError:
        """The refusal of a part whose length differs by lane where that cannot be."""
        if found.kind == "ragged" and found.site is None:
            return self.no_length()
        if found.kind == "masked":
            return self.no_constant("PCB407", MASKED, CHOSEN)
        error = self.no_list()
        error.wants = () if found.site is None else (found.site,)
        return error

    # -- stores --------------------------------------------------------------------------------------------------------

    def store_element(self, array: Value, index: Index, value: Value) -> None:
        masked = self.ragged(value)
        if masked is not None and masked.kind == "masked" and self._is_mask(array, index):
            if not is_same(masked.parts[1], self.read(index)):
                raise self.refuse_part(masked)
            old = self.read(array)
            given = self.element_of(old, masked.parts[0], 0)
            own = self.type_of(old)
            self.write(array, self.lane(self._where(self._in_part(masked, old), given, old), own))
            return
        if not any(map(_is_ragged, parts_of(index))):
            super().store_element(array, index, value)
            return
        whole, axis, part = self._with_full_slice(array, index)
        if part.step is not None:
            raise self.no_length()
        ends = self._ends(whole, axis, part)
        old = self.read(whole)
        own = self.type_of(old)
        assert own is not None
        value = self.row(value, old) if self.ragged(value) is None and self.type_of(value) is None else value
        given = self._rows_stored(own.shape[axis:], ends, value)
        given = self.element_of(old, given, axis)
        inside = self._in_slice(old, axis, *ends[:2])
        self.write(whole, self.lane(self._where(inside, given, old), own))

    def _rows_stored(self, shape: Sequence[int], ends: Sequence[Value], value: Value) -> Value:
        """Return what goes into the rows of an array of `shape` between two ends, each at its place in it."""
        found = self.ragged(value)
        if found is not None:
            return self._aligned(found, shape[0], ends)
        start, stop = ends[:2]
        given = self._shape(value)
        if len(given) < len(shape) or given[len(given) - len(shape)] == 1:
            return value
        if len(given) > len(shape):
            raise self.no_length()
        return self._moved(value, Host(0), Host(given[0]), shape[0], start, stop)

    def _aligned(self, found: Lazy, size: int, ends: Sequence[Value]) -> Value:
        """The array of a slice, moved so that its elements are at those places that have these ends in `size` ones."""
        if found.kind != "ragged" or len(ends) < len(found.parts) - 1:
            if found.kind == "masked" and len(ends) == 1 and is_same(found.parts[1], ends[0]):
                return found.parts[0]
            raise self.refuse_part(found)
        rows, first, _, *bounds = found.parts
        start, stop, *others = ends
        are_known = all(isinstance(each, Host) for each in (*bounds, *others))  # then they do not say the ends
        is_one = all(map(is_same, found.parts[1:3], ends)) or (not are_known and all(map(is_same, bounds, others)))
        if is_one and self._shape(rows)[0] == size:
            return self.read(rows)
        length = self.lazy_length(found)
        assert length is not None
        return self._moved(rows, first, length, size, start, stop)

    def _moved(self, rows: Value, first: Value, length: Value, size: int, start: Value, stop: Value) -> Value:
        """Rows from `first` on, of which there must be as many as from `start` to `stop`, at these places of `size`."""
        own = self.emit(builtin("max"), [self.pattern(self.binary(gast.Sub, stop, start)), 0])
        message = "ValueError: operands could not be broadcast together: slices of {} and {} elements"
        self.require(
            self.truth(self.compare(gast.Eq, own, length)), message, (self.lane(own).name, self.lane(length).name)
        )
        moved = self.binary(gast.Add, self.binary(gast.Sub, self._places(size), start), first)
        last = Host(max(self._shape(rows)[0] - 1, 0))
        places = self.emit_numpys(np.clip, [self.pattern(moved), 0, self.pattern(last)])
        return self.emit(GETITEM, [self.pattern(self.read(rows)), self.pattern(places)])

    def _places(self, size: int) -> Value:
        return self.emit(AXIS, [self.pattern(Host(np.zeros(size, np.int8))), 0])

    def _in_slice(self, array: Value, axis: int, start: Value, stop: Value) -> Value:
        """Tell which elements along an axis of an array are in a slice: bools that broadcast against it."""
        shape = self._shape(array)
        positions = self._places(shape[axis])
        behind, before = self.compare(gast.GtE, positions, start), self.compare(gast.Lt, positions, stop)
        inside = self.emit(BINARY[gast.BitAnd], [self.pattern(behind), self.pattern(before)])
        rest = len(shape) - axis - 1
        return self.emit(method("reshape"), [self.pattern(inside), (shape[axis], *[1] * rest)]) if rest else inside

    def _in_part(self, found: Lazy, array: Value) -> Value:
        """Tell which elements of an array are in a part: bools that broadcast against it."""
        if found.kind == "ragged":
            return self._in_slice(array, 0, *found.parts[1:3])
        mask, shape = found.parts[1], self._shape(array)
        rest = len(shape) - len(self._shape(mask))
        return self.emit(method("reshape"), [self.pattern(mask), (*self._shape(mask), *[1] * rest)]) if rest else mask

    def _where(self, inside: Value, x: Value, y: Value) -> Value:
        return self.emit_numpys(np.where, [self.pattern(each) for each in (inside, x, y)])

    # -- what is computed of the elements ------------------------------------------------------------------------------

    def filled(self, found: Lazy, neutral: Any) -> Value:
        """The array of a part with `neutral` in the place of all elements outside."""
        array = self.read(found.parts[0])
        own = self.type_of(array)
        assert own is not None
        if not own.dtype.startswith(("float", "bfloat", "complex", "bool")) and isinstance(neutral, float):
            if not math.isinf(neutral):
                neutral = 1
            else:
                bounds = np.iinfo(own.dtype)
                neutral = int(bounds.min if neutral < 0 else bounds.max)
        if own.dtype == "bool" and not isinstance(neutral, bool):
            array, own = self.emit(method("astype"), [self.pattern(array), "int32"]), TensorType("int32", own.shape)
            neutral = int(neutral)
        return self.lane(self._where(self._in_part(found, array), array, Host(neutral)), own)

    def _with_wholes(self, found: list[Lazy | None], values: Sequence[Value]) -> list[Lazy | None]:
        """Operands beside slices of as many axes are slices, too: whole arrays, which have to be as long."""
        return found

    def _elementwise(self, values: Sequence[Value]) -> tuple[list[Value], Lazy] | None:
        """Operands with whole arrays for parts, which have the same ends or mask then; None where none is a part."""
        found = self._with_wholes([self.ragged(each) for each in values], values)
        slices = [each for each in found if each is not None]
        if not slices:
            return None
        first = slices[0]
        for each in slices:
            if each.kind == "filtered":
                raise self.refuse_part(each)
        size, rank = self._shape(first.parts[0])[0], len(self._shape(first.parts[0]))
        given = []
        for own, value in zip(found, values, strict=True):
            if own is None:
                type_ = self.type_of(self.read(value))
                if type_ is None or len(type_.shape) >= rank + (type_.shape[:1] == (1,)):
                    raise self.refuse_part(first)
            given.append(value if own is None else self._aligned(own, size, first.parts[1:]))
        return given, first

    def binary(self, op: type, a: Value, b: Value) -> Value:
        given = self._elementwise([a, b])
        if given is None:
            return super().binary(op, a, b)
        (x, y), first = given
        divides = self.ragged(b) is not None or (isinstance(b, Host) and isinstance(b.value, int | float) and b.value)
        if op not in ELEMENTWISE and not (op in ROUNDED and divides):
            raise self.refuse_part(first)
        if op in (gast.Mult, gast.Div) and self.ragged(a) is not None:  # a slope of 0 times NaN would be NaN
            x = self.filled(with_array(first, x), 1)
        if op in (gast.Mult, gast.Div, *ROUNDED) and self.ragged(b) is not None:
            y = self.filled(with_array(first, y), 1)
        return with_array(first, super().binary(op, x, y))

    def compare(self, op: type, a: Value, b: Value) -> Value:
        is_order = op not in (gast.Is, gast.IsNot, gast.In, gast.NotIn)
        given = self._elementwise([a, b]) if is_order else None
        if given is None:
            return super().compare(op, a, b)
        (x, y), first = given
        return with_array(first, super().compare(op, x, y))

    def unary(self, op: type, value: Value) -> Value:
        found = self.ragged(value)
        if found is None or op is gast.Not:
            return super().unary(op, value)
        return with_array(found, super().unary(op, found.parts[0]))

    def of_ragged(self, function: Any, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value | None:
        """Return what a function of a library gives that takes such a part; None where it takes none."""
        if not any(self.ragged(each) is not None for each in arguments):
            return None
        is_list = any((part := self.ragged(each)) is not None and part.kind == "filtered" for each in arguments)
        given = self._elementwise(arguments) if isinstance(function, np.ufunc) and not is_list else None
        if given is not None and function.nin == len(arguments) and function.nout == 1 and not keywords:
            found, first = given
            pairs = zip(arguments, found, strict=True)
            safe = [y if self.ragged(x) is None else self.filled(with_array(first, y), LIKE_ANY) for x, y in pairs]
            return with_array(first, self.opaque_call(function, safe))
        part = next(filter(None, map(self.ragged, arguments)))
        name = getattr(function, "__name__", "").removeprefix("reduce_")
        is_known = (getattr(function, "__module__", None) or "").startswith(LIBRARIES) and name in NEUTRAL
        if len(arguments) > 1 or not is_known or not self._is_first_axis(part, keywords):
            raise self.refuse_part(part)
        if name in EXTREMES:
            length = self.lazy_length(part)
            assert length is not None
            message = f"ValueError: zero-size array to reduction operation {name} which has no identity"
            self.require(self.truth(self.compare(gast.Gt, length, Host(0))), message)
        filled = self.filled(part, NEUTRAL[name])
        if name != "mean":
            return self.opaque_call(function, [filled], keywords)
        total = self.opaque_call(np.sum, [filled], keywords)
        length = self.lazy_length(part)
        assert length is not None
        return self.opaque_call(np.true_divide, [total, length])

    def _is_first_axis(self, found: Lazy, keywords: dict[str, Value]) -> bool:
        """Tell whether a part is taken together along its first axis, which is the only one if none is said."""
        axes = self.masked_axes(found)
        if not keywords or axes > 1:
            return not keywords and len(self._shape(found.parts[0])) == axes
        axis = keywords.get("axis")
        return [*keywords] == ["axis"] and isinstance(axis, Host) and axis.value == 0

    def masked_axes(self, found: Lazy) -> int:
        """Tell how many axes of an array become the first one of a part of it."""
        return 1 if found.kind == "ragged" else len(self._shape(found.parts[1]))

    def opaque_call(self, function: Any, arguments: Sequence[Value], keywords: dict[str, Value] | None = None) -> Value:
        """A call of a function of NumPy's."""
        return self.call_value(Host(function, path=function.__name__), list(arguments), keywords or {})


def with_array(found: Lazy, array: Value) -> Lazy:
    """The same part of another array."""
    return Lazy(found.kind, (array, *found.parts[1:]))


def _is_ragged(part: Index) -> bool:
    return isinstance(part, Sliced) and part.is_ragged
