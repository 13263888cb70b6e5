"""Rows of unequal length, as a batch is given them: parts of a padded array, of each lane's length.

They are slices of lane length in all that is computed of them. What is here besides: slices of slices, in steps, too,
products with matrices, softmax, functions of TensorFlow of each element, reductions along any axis, elements in order,
rows one behind the other, and rows as results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

import gast
import numpy as np

from pcbatch.ir.types import TensorType
from pcbatch.reading.filtered import Filtered
from pcbatch.reading.kinds import Kind
from pcbatch.reading.ragged import LIBRARIES, LIKE_ANY, NEUTRAL, with_array
from pcbatch.reading.values import NONE, Host, Item, Lazy, Ref, Tuple, Value, View, is_same
from pcbatch.reading.views import Index, Sliced

ELEMENTWISE = frozenset(
    "abs cos elu erf exp expm1 gelu log log1p relu rsqrt selu sigmoid sign sin softplus softsign sqrt square tanh cast "
    "one_hot leaky_relu silu log_sigmoid".split()
)
"""Functions of TensorFlow's that give a number, or an axis behind, for each element."""
SEVERAL = frozenset({"where", "maximum", "minimum", "add", "subtract", "multiply"})
"""Functions of the elements of several arrays, which cannot fail."""
SOFTMAX = frozenset({"softmax", "log_softmax"})
PLACES = {"argmax": -math.inf, "argmin": math.inf}
SORTS = frozenset({"sort", "argsort"})
RUNNING = {"cumsum": 0, "cumprod": 1}
JOINS = frozenset({"concat", "concatenate", "append", "hstack", "stack"})
COPIES = frozenset({"array", "asarray", "copy", "convert_to_tensor", "identity"})
WITH_MASKS = frozenset({*NEUTRAL, "where"})
"""Functions that take parts that a mask chooses; for others these are moved to the front."""
LOWEST, LOWEST_OF_16_BITS = -1e30, -3e4
"""The numbers outside of a part in a softmax: it has the weight 0, and no part of it is NaN, whatever the length."""


class RaggedRows(Filtered):
    """Rows of unequal length."""

    def as_part(self, value: Value) -> Value:
        """A list whose length differs by lane as a part of an array; see `lengths`."""
        raise NotImplementedError

    # -- slices of them ------------------------------------------------------------------------------------------------

    def item(self, whole: Value, index: Index) -> Value:
        found = self.ragged(whole)
        if found is not None and found.kind == "masked" and isinstance(index, Sliced):
            found = self.compacted(found)
        if found is None or found.kind != "ragged":
            return super().item(whole, index)
        if isinstance(index, tuple):
            first, *rest = index
            if first is ... or any(each is ... for each in rest):
                return super().item(whole, index)
            if not isinstance(first, Sliced):
                return self.item(self.item(found, first), rest[0] if len(rest) == 1 else tuple(rest))
            part = found if _is_full(first) else self.ragged(self.item(found, first))
            assert part is not None
            return with_array(part, self.element(part.parts[0], (Sliced(None, None, None), *rest)))
        if isinstance(index, Sliced):
            return self._slice_of(found, index)
        mask = self.ragged(index)
        if mask is not None and mask.kind == "ragged" and self._type_of_rows(mask).dtype == "bool":
            aligned = self._aligned(mask, self._shape(found.parts[0])[0], found.parts[1:])
            return self.element(self.read(found.parts[0]), self.filled(with_array(found, aligned), False))
        index = self.opaque_call(np.array, [index]) if self.kind(index) == "list" else index
        if self._axes_count(index if mask is None else mask.parts[0]) == 1:
            return self._at_all(found, index, mask)
        return super().item(found, index)

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
                raise self.refuse_part(found)
        super().set_item(whole, index, value)

    def _type_of_rows(self, found: Lazy) -> TensorType:
        type_ = self.type_of(self.read(found.parts[0]))
        assert type_ is not None
        return type_

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
        ranks = [
            len(self._shape(each.parts[0])) if each is not None else self._axes_count(v)
            for each, v in ((left, a), (right, b))
        ]
        if left is not None and right is None and ranks[0] >= 2 and left.kind == "ragged":
            return with_array(left, super().binary(op, self.read(left.parts[0]), b))
        if left is not None and right is not None and ranks == [1, 2]:
            size = self._shape(right.parts[0])[0]
            weights = with_array(right, self._aligned(left, size, right.parts[1:]))
            return super().binary(op, self.filled(weights, 0), self.filled(right, 0))
        return super().binary(op, a, b)

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
            self.as_slice(value) if own is None and self._axes_count(value) == rank and self._is_long(value) else own
            for own, value in zip(found, values, strict=True)
        ]

    def _is_long(self, value: Value) -> bool:
        return self._shape(self.read(value))[0] != 1

    def _axes_count(self, value: Value) -> int:
        type_ = self.type_of(self.read(value))
        return -1 if type_ is None else len(type_.shape)

    def of_ragged(self, function: Any, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value | None:
        found = self.ragged(arguments[0]) if arguments else None
        name = getattr(function, "__name__", "").removeprefix("reduce_").removesuffix("_v2")
        module = getattr(function, "__module__", None) or ""
        if not module.startswith((*LIBRARIES, "keras")):
            return super().of_ragged(function, arguments, keywords)
        joined = self._put_together(function, name, arguments, keywords) if name in JOINS and arguments else None
        if joined is not None:
            return joined
        if (
            found is not None
            and found.kind == "masked"
            and not isinstance(function, np.ufunc)
            and name not in WITH_MASKS
        ):
            found = self.compacted(found)
            arguments = [found, *arguments[1:]]
        if found is None or found.kind != "ragged":
            places = self.ragged(arguments[1]) if len(arguments) == 2 and name == "gather" else None
            is_gather = places is not None and not keywords
            return (
                self.item(arguments[0], arguments[1]) if is_gather else super().of_ragged(function, arguments, keywords)
            )
        others = [*map(self.ragged, arguments[1:]), *map(self.ragged, keywords.values())]
        is_alone = all(each is None for each in others)
        if name == "matmul" and len(arguments) == 2 and not keywords:
            return self.binary(gast.MatMult, *arguments)
        if name in ("dot", "matvec") and len(arguments) == 2 and is_alone and not keywords:
            return self.binary(gast.MatMult, *arguments)
        if name in ELEMENTWISE and is_alone and not isinstance(function, np.ufunc):
            safe = self.filled(found, LIKE_ANY)
            return with_array(found, self.call_value(Host(function, path=name), [safe, *arguments[1:]], keywords))
        if name in SEVERAL and len(arguments) > 1 and not keywords:
            given = self._elementwise(arguments)
            assert given is not None
            return with_array(given[1], self.call_value(Host(function, path=name), given[0], {}))
        if is_alone and len(arguments) == 1 and not keywords:
            simple = self._of_one(name, found)
            if simple is not None:
                return simple
        if is_alone and name in SORTS:
            return self._sorted(function, name, found, arguments, keywords)
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

    def _of_one(self, name: str, found: Lazy) -> Value | None:
        """What functions give of a part alone that are made of others; None for all that are not."""
        if name in COPIES:
            return with_array(found, self.opaque_call(np.copy, [self.read(found.parts[0])]))
        if name == "flip" and len(self._shape(found.parts[0])) == 1:
            return self.item(found, Sliced(None, None, Host(-1)))
        if name == "diff" and len(self._shape(found.parts[0])) == 1:
            behind, before = Sliced(Host(1), None, None), Sliced(None, Host(-1), None)
            return self.binary(gast.Sub, self.item(found, behind), self.item(found, before))
        if name == "norm":
            return self.opaque_call(np.sqrt, [self.opaque_call(np.sum, [self.binary(gast.Mult, found, found)])])
        if name in ("std", "var", "variance"):
            apart = self.binary(gast.Sub, found, self.opaque_call(np.mean, [found]))
            variance = self.opaque_call(np.mean, [self.binary(gast.Mult, apart, apart)])
            return self.opaque_call(np.sqrt, [variance]) if name == "std" else variance
        return None

    def _sorted(
        self, function: Any, name: str, found: Lazy, arguments: Sequence[Value], keywords: dict[str, Value]
    ) -> Value:
        """The elements of a part in order, or their places: what is outside comes behind them."""
        named = {**dict(zip(("axis", "direction"), arguments[1:], strict=False)), **keywords}
        direction, axis = named.get("direction", Host("ASCENDING")), named.get("axis", Host(-1))
        is_numpys = isinstance(function, type(np.sort)) and function.__module__.startswith("numpy")
        rank, dtype = len(self._shape(found.parts[0])), self._type_of_rows(found).dtype
        if not (isinstance(axis, Host) and isinstance(axis.value, int) and isinstance(direction, Host)):
            raise self.refuse_part(found)
        if axis.value % rank:
            return with_array(found, self.call_value(Host(function, path=name), [self.read(found.parts[0])], named))
        is_up = direction.value != "DESCENDING"
        last: Any = math.inf if is_up else -math.inf
        if dtype == "bool":
            last = is_up
        elif is_numpys and "float" in dtype:
            last = math.nan  # which comes last
        whole = self.compacted(found)
        named = {**named, "axis": Host(0), **({"kind": Host("stable")} if is_numpys else {})}
        return with_array(whole, self.call_value(Host(function, path=name), [self.filled(whole, last)], named))

    def _put_together(
        self, function: Any, name: str, arguments: Sequence[Value], keywords: dict[str, Value]
    ) -> Value | None:
        """Parts and arrays one behind the other, or beside each other; None where there is no part."""
        whole, *others = map(self.known, arguments)
        is_pair = name == "append"
        if not is_pair and not (isinstance(whole, Tuple) or (isinstance(whole, Ref) and self.kind(whole) == "list")):
            return None
        items = [self.as_part(each) for each in ([whole, *others[:1]] if is_pair else self.sequence(whole))]
        found = [self.ragged(each) for each in items]
        first = next((each for each in found if each is not None), None)
        axis = keywords.get("axis", next(iter(others[is_pair:]), Host(0)))
        if first is None:
            return None
        known, rank = self.constant(axis, "an axis"), len(self._shape(first.parts[0]))
        if {*keywords} - {"axis"} or not isinstance(known, int) or len(others) > is_pair + 1:
            raise self.refuse_part(first)
        known = known % (rank + (name == "stack"))
        if name == "hstack":
            known = min(rank - 1, 1)
        if known:
            given = self._elementwise(items)
            assert given is not None
            together = self.call_value(
                Host(function, path=name),
                [self.new("list", tuple(given[0]))],
                {} if name == "hstack" else {"axis": axis},
            )
            return with_array(given[1], together)
        if name == "stack":
            raise self.refuse_part(first)
        return self._one_behind_the_other(function, name, items, found)

    def _one_behind_the_other(
        self, function: Any, name: str, items: Sequence[Value], found: Sequence[Lazy | None]
    ) -> Value:
        """The elements of all parts, of one array that has them with what is between: taken from there."""
        parts = [None if each is None else each if each.kind == "ragged" else self.compacted(each) for each in found]
        if name == "append" and parts[1] is None and self._axes_count(items[1]) < 1:
            items = [items[0], self.new("list", (items[1],))]
        arrays = [item if part is None else self.read(part.parts[0]) for item, part in zip(items, parts, strict=True)]
        joiner = np.concatenate if name in ("append", "hstack") else function
        every = self.call_value(
            Host(joiner, path=joiner.__name__), [self.new("list", tuple(arrays))], {"axis": Host(0)}
        )
        before, steps = 0, []
        total: Value = Host(0)
        room = self._shape(every)[0]
        numbers = self._places(room)
        for array, part in zip(arrays, parts, strict=True):
            start, length = (Host(0) if part is None else part.parts[1]), self.length(array if part is None else part)
            shift = self.binary(gast.Sub, self.binary(gast.Add, start, Host(before)), total)
            total = self.binary(gast.Add, total, length)
            steps.append((self.binary(gast.Add, numbers, shift), total))
            known = self.length(array)
            assert isinstance(known, Host)
            before += known.value
        places = steps.pop()[0]
        for own, end in reversed(steps):
            places = self._where(self.compare(gast.Lt, numbers, end), own, places)
        return Lazy("ragged", (self.rows_at(every, places).value, Host(0), total, NONE, NONE))

    def _softmax(self, function: Any, name: str, found: Lazy, axis: int) -> Value:
        """A softmax; along the first axis over the elements of the part alone."""
        rank = len(self._shape(found.parts[0]))
        is_first = axis % rank == 0
        lowest = LOWEST if "16" not in self._type_of_rows(found).dtype else LOWEST_OF_16_BITS
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
