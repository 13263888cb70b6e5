"""Rows of unequal length, as a batch is given them: parts of a padded array, of each lane's length.

They are slices of lane length in all that is computed of them. What is here besides: slices of slices, in steps, too,
products with matrices, softmax, functions of TensorFlow of each element, reductions along any axis, elements in order,
rows one behind the other, and rows as results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeGuard

import gast
import numpy as np

from pcbatch.ir.types import TensorType
from pcbatch.reading.kinds import Kind
from pcbatch.reading.moved_rows import JOINS, OF_ONE, RUNNING, SORTS, MovedRows
from pcbatch.reading.ragged import LIBRARIES, LIKE_ANY, NEUTRAL, with_array
from pcbatch.reading.values import NONE, Host, Item, Lazy, Tuple, Value, View, is_same
from pcbatch.reading.views import Index, Sliced

_NAMES = (
    "abs cos elu erf exp expm1 gelu log log1p relu rsqrt selu sigmoid sign sin softplus softsign sqrt square tanh cast "
    "one_hot leaky_relu silu log_sigmoid"
)
ELEMENTWISE = frozenset(_NAMES.split())
"""Functions of TensorFlow's that give a number, or an axis behind, for each element."""
SEVERAL = frozenset({"where", "maximum", "minimum", "add", "subtract"})
"""Functions of the elements of several arrays, which cannot fail."""
SOFTMAX = frozenset({"softmax", "log_softmax"})
PLACES = {"argmax": -math.inf, "argmin": math.inf}
OF_ARRAY = "store into the array itself, `x[::2] = v`, or copy the slice first, `y = x[::2].copy()`"
PRODUCTS = frozenset({"matmul", "matvec", "dot", "inner", "vdot", "tensordot", "einsum"})
MOVED = frozenset(
    {*ELEMENTWISE, *SEVERAL, *SOFTMAX, *PLACES, *SORTS, *RUNNING, *JOINS, *OF_ONE, "reverse", "boolean_mask"}
)
"""Functions for which the elements that a mask chooses are moved to the front."""
LOWEST, LOWEST_OF_16_BITS = -1e30, -3e4
"""The numbers outside of a part in a softmax: it has the weight 0, and no part of it is NaN, whatever the length."""


class RaggedRows(MovedRows):
    """Rows of unequal length."""

    # -- slices of them ------------------------------------------------------------------------------------------------

    def of_part(self, part: Lazy, name: str) -> Value:
        """An attribute of a part of an array whose length differs by lane."""
        of_array = self.type_of(part.parts[0])
        assert of_array is not None
        if name == "dtype":
            return self.attribute(part.parts[0], name)
        shape = (self.length(part), *map(Host, of_array.shape[self.masked_axes(part) :]))
        if name == "size":
            return reduce(lambda size, each: self.binary(gast.Mult, size, each), shape)
        return Tuple(shape) if name == "shape" else Host(len(shape))

    def item(self, whole: Value, index: Index) -> Value:
        found = self.ragged(whole)
        if found is not None and found.kind == "masked" and isinstance(index, Sliced):
            found = self.compacted(found)
        if found is None or found.kind != "ragged":
            return super().item(whole, index)
        if isinstance(index, tuple):
            first, *rest = self._without_dots(index, len(self._shape(found.parts[0])))
            if not isinstance(first, Sliced):
                return self.item(self.item(found, first), rest[0] if len(rest) == 1 else tuple(rest))
            part = found if _is_full(first) else self.ragged(self.item(found, first))
            assert part is not None
            return with_array(part, self.element(part.parts[0], (Sliced(None, None, None), *rest)))
        if isinstance(index, Sliced):
            return self._slice_of(found, index)
        mask = self.ragged(index)
        if mask is not None and mask.kind == "ragged" and self.type_of_rows(mask).dtype == "bool":
            aligned = self._aligned(mask, self._shape(found.parts[0])[0], found.parts[1:])
            return self.element(self.read(found.parts[0]), self.filled(with_array(found, aligned), False))
        index = self.opaque_call(np.array, [index]) if self.kind(index) == "list" else index
        if self.axes_count(index if mask is None else mask.parts[0]) == 1:
            return self._at_all(found, index, mask)
        return super().item(found, index)

    def _without_dots(self, index: tuple[Any, ...], rank: int) -> list[Any]:
        """The parts of an index of an array with `rank` axes, slices in the place of `...`."""
        known = [each if isinstance(each, Sliced) else self.read(each) for each in index]
        is_rest = [isinstance(each, Host) and each.value is ... for each in known]
        is_new = [isinstance(each, Host) and each.value is None for each in known]
        full = [Sliced(None, None, None)] * (rank - len(known) + sum(is_rest) + sum(is_new))
        pairs = zip(index, is_rest, strict=True)
        return [part for each, rest in pairs for part in (full if rest else [each])]

    def _at_all(self, found: Lazy, index: Value, of_index: Lazy | None) -> Value:
        """The elements of a part at several places; the lane fails where there is none at one of them."""
        length = self.lazy_length(found)
        assert length is not None
        places = self.read(index if of_index is None else of_index.parts[0])
        known = self.opaque_call(np.add, [places, length])
        inside = self.opaque_call(np.where, [self.compare(gast.Lt, places, Host(0)), known, places])
        low, high = self.compare(gast.GtE, inside, Host(0)), self.compare(gast.Lt, inside, length)
        is_right: Value = self.opaque_call(np.logical_and, [low, high])
        if of_index is not None:
            is_right = self.filled(with_array(of_index, is_right), True)
        self.require(self.truth(self.opaque_call(np.all, [is_right])), "IndexError: index out of range")
        taken = self.rows_at(found.parts[0], self.binary(gast.Add, inside, found.parts[1])).value
        return taken if of_index is None else with_array(of_index, taken)

    def set_item(self, whole: Value, index: Index, value: Value) -> None:
        found = self.ragged(whole)
        if found is not None and found.kind == "ragged":
            if isinstance(index, Sliced) and not _is_full(index):
                found = self._slice_of(found, index, is_stored=True)
                whole, index = found, Sliced(None, None, None)
            if _is_by_places(found.parts[0]):
                raise self.no_constant("PCB406", "a store into a slice in steps, which shares its elements", OF_ARRAY)
        super().set_item(whole, index, value)

    def _slice_of(self, found: Lazy, index: Sliced, *, is_stored: bool = False) -> Lazy:
        """A slice of a part: its ends count from those of the part.

        There is room for as many elements in it, so that a loop can go on with a slice of what it went on with; but
        for one that something is stored into, whose array shares the elements.
        """
        step = 1 if index.step is None or _is_none(index.step) else self.constant(index.step, "the step of a slice")
        if step == 0:
            raise self.refusal("PCB401", "ValueError: slice step cannot be zero")
        rows, start, length = found.parts[0], found.parts[1], self.lazy_length(found)
        assert length is not None
        size, is_back = self._shape(rows)[0], step < 0
        lowest, highest = (Host(-1), self.binary(gast.Sub, length, Host(1))) if is_back else (Host(0), length)
        lower, upper = (
            default if bound is None or _is_none(bound) else self._bound_within(bound, length, lowest, highest)
            for bound, default in (
                (index.lower, highest if is_back else lowest),
                (index.upper, lowest if is_back else highest),
            )
        )
        first = self.binary(gast.Add, start, lower)
        if step == 1:
            last = self.binary(gast.Add, start, upper)
            return Lazy("ragged", (rows, first, last, first, last))
        steps = self.binary(gast.Sub, lower, upper) if is_back else self.binary(gast.Sub, upper, lower)
        if step == -1:
            first = self.binary(gast.Sub, Host(size - 1), first)
            last = self.binary(gast.Add, first, steps)
            return Lazy("ragged", (self.element(rows, Sliced(None, None, Host(-1))), first, last, first, last))
        count = self.binary(gast.FloorDiv, self.binary(gast.Add, steps, Host(abs(step) - 1)), Host(abs(step)))
        place = start.value + index.lower.value if _is_int(start) and _is_int(index.lower) else 0
        if is_stored and not is_back and _is_int(start) and (_is_none(index.lower) or _is_int(index.lower)):
            taken = self.element(rows, Sliced(Host(min(place, size - 1)), None, Host(step)))
        else:
            moved = self.binary(gast.Mult, self._places(size), Host(step))
            taken = self.rows_at(rows, self.binary(gast.Add, moved, first))
        return Lazy("ragged", (taken, Host(0), count, NONE, NONE))

    def _bound_within(self, bound: Value, length: Value, lowest: Value, highest: Value) -> Value:
        """A bound of a slice as Python takes it where there are `length` elements."""
        if isinstance(bound, Host) and is_same(bound, lowest):
            return bound
        known = self.read(bound)
        from_end = self.opaque_call(np.maximum, [self.binary(gast.Add, known, length), lowest])
        within = self.opaque_call(np.minimum, [known, highest])
        return self.chosen_of(self.truth(self.compare(gast.Lt, known, Host(0))), from_end, within)

    # -- what is computed of them --------------------------------------------------------------------------------------

    def binary(self, op: type, a: Value, b: Value) -> Value:
        left, right = self.ragged(a), self.ragged(b)
        if op is gast.Pow and left is not None and left.kind == "ragged":
            a = with_array(left, self.filled(left, 1))  # whose slope is finite for any exponent
        if op is not gast.MatMult or (left is None and right is None):
            return super().binary(op, a, b)
        sums = _sums_of("matmul", [self.rank(a), self.rank(b)])
        if sums is None:
            raise self.refuse_part(left or right)  # type: ignore[arg-type]
        return self._product(sums, (a, b), lambda given: super(RaggedRows, self).binary(op, *given))

    def _of_product(self, function: Any, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A product of arrays, of which some are parts."""
        first = 1 if name == "einsum" else 0
        values = arguments[first:] if first else arguments[:2]
        rest = arguments[first + len(values) :]
        told = [self.constant(each, "how arrays are multiplied") for each in (*arguments[:first], *rest)]
        named = {key: self.constant(each, "how arrays are multiplied") for key, each in keywords.items()}
        sums = _sums_of(name, [*map(self.rank, values)], *told, **named)
        if sums is None or len(values) != sums.count(",") + 1:
            raise self.refuse_part(next(filter(None, map(self.ragged, arguments))))
        product, before = Host(function, path=name), arguments[:first]
        return self._product(sums, values, lambda given: self.call_value(product, [*before, *given, *rest], keywords))

    def rank(self, value: Value) -> int:
        """The number of axes of a part, or an array; -1 for what is neither."""
        found = self.ragged(value)
        return self.axes_count(value if found is None else found.parts[0])

    def _product(self, sums: str, values: Sequence[Value], call: Callable[[Sequence[Value]], Value]) -> Value:
        """A product by Einstein's convention: a sum over the elements of parts, or one for each of these."""
        given, out = sums.split("->")
        letters = given.split(",")
        found = [self.ragged(each) for each in values]
        found = [self.compacted(each) if each is not None and each.kind == "masked" else each for each in found]
        first = next(filter(None, found))
        axis, *others = {each[0] for each, own in zip(letters, found, strict=True) if own is not None}
        again = "".join(each if own is None else each[1:] for each, own in zip(letters, found, strict=True))
        if others or axis in again + out[1:] or first.kind != "ragged":
            raise self.refuse_part(first)
        size, ends = self._shape(first.parts[0])[0], first.parts[1:]
        aligned = [own and with_array(first, self._aligned(own, size, ends)) for own in found]
        result = call([each if own is None else self.filled(own, 0) for each, own in zip(values, aligned, strict=True)])
        return with_array(first, result) if out.startswith(axis) else result

    def _with_wholes(self, found: list[Lazy | None], values: Sequence[Value]) -> list[Lazy | None]:
        masks = [each.parts[1] for each in found if each is not None and each.kind == "masked"]
        kinds = {each.kind for each in found if each is not None}
        if masks and (len(kinds) > 1 or not all(is_same(masks[0], each) for each in masks)) and "filtered" not in kinds:
            found = [each and self.compacted(each) for each in found]
        first = next((each for each in found if each is not None), None)
        if first is None or first.kind != "ragged":
            return super()._with_wholes(found, values)
        rank = len(self._shape(first.parts[0]))
        return [
            self.as_slice(value) if own is None and self.axes_count(value) == rank and self._is_long(value) else own
            for own, value in zip(found, values, strict=True)
        ]

    def _is_long(self, value: Value) -> bool:
        return self._shape(self.read(value))[0] != 1

    def of_ragged(self, function: Any, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value | None:
        found = self.ragged(arguments[0]) if arguments else None
        name = getattr(function, "__name__", "").removeprefix("reduce_").removesuffix("_v2")
        module = getattr(function, "__module__", None) or ""
        if not module.startswith((*LIBRARIES, "keras")):
            return super().of_ragged(function, arguments, keywords)
        if name in PRODUCTS and any(self.ragged(each) is not None for each in arguments):
            return self._of_product(function, name, arguments, keywords)
        joined = self.put_together(function, name, arguments, keywords) if name in JOINS and arguments else None
        if joined is not None:
            return joined
        if found is not None and found.kind == "masked" and not isinstance(function, np.ufunc) and name in MOVED:
            found = self.compacted(found)
            arguments = [found, *arguments[1:]]
        is_any = any(self.ragged(each) is not None for each in arguments) and not keywords
        if is_any and name in ("multiply", "divide") and len(arguments) == 2:
            return self.binary(gast.Mult if name == "multiply" else gast.Div, *arguments)
        if is_any and name in SEVERAL and len(arguments) > 1 and not isinstance(function, np.ufunc):
            given = self._elementwise(arguments)
            assert given is not None
            return with_array(given[1], self.call_value(Host(function, path=name), given[0], {}))
        if found is None or found.kind != "ragged":
            places = self.ragged(arguments[1]) if len(arguments) == 2 and name == "gather" else None
            is_gather = places is not None and not keywords
            return (
                self.item(arguments[0], arguments[1]) if is_gather else super().of_ragged(function, arguments, keywords)
            )
        others = [*map(self.ragged, arguments[1:]), *map(self.ragged, keywords.values())]
        is_alone = all(each is None for each in others)
        if name in ELEMENTWISE and is_alone and not isinstance(function, np.ufunc):
            safe = self.filled(found, LIKE_ANY)
            return with_array(found, self.call_value(Host(function, path=name), [safe, *arguments[1:]], keywords))
        if is_alone and len(arguments) == 1 and not keywords:
            simple = self.of_one(name, found)
            if simple is not None:
                return simple
        if is_alone and name in SORTS:
            return self.sorted_rows(function, name, found, arguments, keywords)
        if name == "reverse" and len(arguments) == 2 and self.constant(arguments[1], "an axis") in ([0], (0,)):
            return self.item(found, Sliced(None, None, Host(-1)))
        if name == "boolean_mask" and len(arguments) == 2 and not keywords:
            return self.item(*arguments)
        axis = self._axis_of(found, arguments, keywords)
        if is_alone and name in RUNNING and (axis == 0 or (axis == () and len(self._shape(found.parts[0])) == 1)):
            filled = self.filled(found, RUNNING[name])
            return with_array(found, self.call_value(Host(function, path=name), [filled], {"axis": Host(0)}))
        if name in SOFTMAX and is_alone and axis is not None:
            return self._softmax(function, name, found, axis if isinstance(axis, int) else -1)
        if axis is None or axis == 0 or (axis == () and len(self._shape(found.parts[0])) == 1):
            named = dict(keywords)
            if axis == 0 and name in NEUTRAL:
                return super().of_ragged(function, arguments[:1], {"axis": Host(0)})
            if name in PLACES and axis is not None and is_alone:
                return self._place_of_extreme(function, name, found)
            return super().of_ragged(function, arguments, named)
        if name in NEUTRAL and is_alone:
            return self._reduced(function, name, found, axis)
        return super().of_ragged(function, arguments, keywords)

    def _axis_of(self, found: Lazy, arguments: Sequence[Value], keywords: dict[str, Value]) -> int | tuple[()] | None:
        """The axis that a call is about, from the front; () where it says none, and None where it says more."""
        given = [*arguments[1:], *(each for name, each in keywords.items() if name == "axis")]
        if len(given) > 1 or {*keywords} - {"axis"}:
            return None
        if not given or (isinstance(given[0], Host) and given[0].value is None):
            return ()
        known = given[0].value if isinstance(given[0], Host) else None
        rank = len(self._shape(found.parts[0]))
        return known % rank if isinstance(known, int) and -rank <= known < rank else None

    def _reduced(self, function: Any, name: str, found: Lazy, axis: int | tuple[()]) -> Value:
        """Elements taken together along an axis behind the first, or all of them."""
        rows = self.read(found.parts[0])
        if axis != ():
            return with_array(found, self.opaque_call(function, [rows], {"axis": Host(axis)}))
        shape = self._shape(rows)
        flat = self.flat_rows(rows, (shape[0], math.prod(shape[1:])))
        if name == "mean":
            inner = self.opaque_call(np.mean, [flat], {"axis": Host(1)})
            return super().of_ragged(np.mean, [with_array(found, inner)], {}) or NONE
        inner = self.opaque_call(function, [flat], {"axis": Host(1)})
        return super().of_ragged(function, [with_array(found, inner)], {}) or NONE

    def _softmax(self, function: Any, name: str, found: Lazy, axis: int) -> Value:
        """A softmax; along the first axis over the elements of the part alone."""
        rank = len(self._shape(found.parts[0]))
        is_first = axis % rank == 0
        lowest = LOWEST if "16" not in self.type_of_rows(found).dtype else LOWEST_OF_16_BITS
        rows = self.filled(found, lowest) if is_first else self.read(found.parts[0])
        return with_array(found, self.call_value(Host(function, path=name), [rows], {"axis": Host(axis)}))

    def _place_of_extreme(self, function: Any, name: str, found: Lazy) -> Value:
        length = self.lazy_length(found)
        assert length is not None
        some = self.truth(self.compare(gast.Gt, length, Host(0)))
        self.require(some, f"ValueError: attempt to get {name} of an empty sequence")
        places = self.call_value(Host(function, path=name), [self.filled(found, PLACES[name])], {"axis": Host(0)})
        start = found.parts[1]
        return places if isinstance(start, Host) and start.value == 0 else self.binary(gast.Sub, places, start)

    # -- as results ----------------------------------------------------------------------------------------------------

    def kind_of_rows(self, found: Lazy, leaves: list[Value]) -> Kind:
        """The kind of a part that a batch gives; its rows, from the first one on, and their number go to `leaves`."""
        rows, _, length, *_ = self.compacted(found).parts
        rows, length = self.lane(self.read(rows)), self.lane(length)
        type_ = self.type_of(rows)
        assert type_ is not None
        leaves += [rows, length]
        return kind_of_ragged(Kind("lane", type_), Kind("lane", TensorType("int32")))


def _sums_of(name: str, ranks: Sequence[int], *options: Any, **named: Any) -> str | None:
    """The sums of a product of arrays, as `np.einsum` has them; None where they are not known."""
    if name == "einsum":
        sums = str(options[0]).replace(" ", "")
        return sums if len(options) == 1 and not named and sums.count("->") == 1 and "." not in sums else None
    if len(ranks) != 2 or min(ranks) < 1 or max(ranks) > (2 if name in ("dot", "inner", "vdot") else 5):
        return None
    if name == "tensordot":
        rows, columns = f"{'abcd'[: ranks[0] - 1]}j", f"j{'klmn'[: ranks[1] - 1]}"
        return f"{rows},{columns}->{rows[:-1]}{columns[1:]}" if (*options, *named.values()) == (1,) else None
    if options or {*named} - {"transpose_a", "transpose_b"} or (name in ("inner", "vdot") and ranks != [1, 1]):
        return None
    batch, *axes = ["abc"[5 - rank :] for rank in (max(*ranks, 2), *ranks)]
    rows = "j" if ranks[0] == 1 else "ji" if named.get("transpose_a") else "ij"
    columns = "j" if ranks[1] == 1 else "kj" if named.get("transpose_b") else "jk"
    out = batch + "i" * (ranks[0] > 1) + "k" * (ranks[1] > 1)
    return f"{axes[0] if ranks[0] > 2 else ''}{rows},{axes[1] if ranks[1] > 2 else ''}{columns}->{out}"


def _is_none(bound: Value | None) -> bool:
    return bound is None or bound == NONE


def _is_int(bound: Value | None) -> TypeGuard[Host]:
    """Tell whether a bound is a known place, counted from the beginning."""
    return isinstance(bound, Host) and isinstance(bound.value, int) and bound.value >= 0


def _is_by_places(rows: Value) -> bool:
    """Tell whether rows are elements of an array at places that a lane computes."""
    return isinstance(rows, View) and isinstance(rows.steps, Item) and not isinstance(rows.steps.index, Sliced | tuple)


def _is_full(part: Any) -> bool:
    return isinstance(part, Sliced) and part.lower is part.upper is part.step is None


def kind_of_ragged(values: Kind, length: Kind) -> Kind:
    """The kind of rows that come from outside, or go there, by the kinds of what a `pcbatch.Ragged` has."""
    first, whole = Kind("host", value=Host(0)), Kind("host", value=NONE)
    return Kind("lazy", items=(values, first, length, whole, whole), cls="ragged")


def is_ragged_class(cls: type | None) -> bool:
    """Tell whether objects of a class are the padded rows that `pcbatch.ragged` makes."""
    return cls is not None and cls.__name__ == "Ragged" and cls.__module__.startswith("pcbatch.")
