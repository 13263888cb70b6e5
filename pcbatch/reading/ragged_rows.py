"""Rows of unequal length, as a batch is given them: parts of a padded array, of each lane's length.

They are slices of lane length in all that is computed of them. What is here besides: slices of slices, products with
matrices, softmax, functions of TensorFlow of each element, reductions along any axis, and rows as results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gast
import numpy as np

from pcbatch.ir.types import TensorType
from pcbatch.reading.filtered import Filtered
from pcbatch.reading.kinds import Kind
from pcbatch.reading.operations import GETITEM
from pcbatch.reading.ragged import LIBRARIES, LIKE_ANY, NEUTRAL, with_array
from pcbatch.reading.values import NONE, Host, Lazy, Tuple, Value
from pcbatch.reading.views import Index, Sliced

ELEMENTWISE = frozenset(
    {
        "abs",
        "cos",
        "elu",
        "erf",
        "exp",
        "expm1",
        "gelu",
        "log",
        "log1p",
        "relu",
        "rsqrt",
        "selu",
        "sigmoid",
        "sign",
        "sin",
    }
    | {"softplus", "softsign", "sqrt", "square", "tanh", "cast", "one_hot", "leaky_relu", "silu", "log_sigmoid"}
)
"""Functions of TensorFlow's that give a number, or an axis behind, for each element."""
SEVERAL = frozenset({"where", "maximum", "minimum", "add", "subtract", "multiply"})
"""Functions of the elements of several arrays, which cannot fail."""
SOFTMAX = frozenset({"softmax", "log_softmax"})
PLACES = {"argmax": -math.inf, "argmin": math.inf}
LOWEST, LOWEST_OF_16_BITS = -1e30, -3e4
"""The numbers outside of a part in a softmax: it has the weight 0, and no part of it is NaN, whatever the length."""


class RaggedRows(Filtered):
    """Rows of unequal length."""

    # -- slices of them ------------------------------------------------------------------------------------------------

    def item(self, whole: Value, index: Index) -> Value:
        found = self.ragged(whole)
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
            return with_array(part, self.element(self.read(part.parts[0]), (Sliced(None, None, None), *rest)))
        mask = None if isinstance(index, Sliced) else self.ragged(index)
        if mask is not None and mask.kind == "ragged" and self._type_of_rows(mask).dtype == "bool":
            aligned = self._aligned(mask, self._shape(found.parts[0])[0], found.parts[1:])
            return self.element(self.read(found.parts[0]), self.filled(with_array(found, aligned), False))
        is_step = isinstance(index, Sliced) and index.step is not None
        if not isinstance(index, Sliced) or is_step:
            return super().item(whole, index)
        return self._slice_of(found, index)

    def set_item(self, whole: Value, index: Index, value: Value) -> None:
        found = self.ragged(whole)
        is_slice = isinstance(index, Sliced) and index.step is None and not _is_full(index)
        if found is not None and found.kind == "ragged" and is_slice:
            whole, index = self.item(found, index), Sliced(None, None, None)
        super().set_item(whole, index, value)

    def _type_of_rows(self, found: Lazy) -> TensorType:
        type_ = self.type_of(self.read(found.parts[0]))
        assert type_ is not None
        return type_

    def _slice_of(self, found: Lazy, index: Sliced) -> Value:
        """A slice of a part: its ends count from those of the part."""
        length, start = self.lazy_length(found), found.parts[1]
        assert length is not None
        ends = [
            length if bound is None and is_upper else Host(0) if bound is None else self._bound_within(bound, length)
            for bound, is_upper in ((index.lower, False), (index.upper, True))
        ]
        first, last = (self.binary(gast.Add, start, each) for each in ends)
        return Lazy("ragged", (found.parts[0], first, last, first, last))

    def _turned_round(self, found: Lazy) -> Lazy:
        """A slice with its elements the other way round: a copy of the array has them so, in the same places."""
        rows, start, stop, *_ = found.parts
        size = self._shape(rows)[0]
        last = self.binary(gast.Sub, self.binary(gast.Add, start, stop), Host(1))
        places = self.binary(gast.Sub, last, self._places(size))
        inside = self.opaque_call(np.clip, [places, Host(0), Host(size - 1)])
        return with_array(found, self.emit(GETITEM, [self.pattern(self.read(rows)), self.pattern(inside)]))

    def _bound_within(self, bound: Value, length: Value) -> Value:
        """A bound of a slice as Python takes it where there are `length` elements."""
        if isinstance(bound, Host) and bound.value == 0:
            return bound
        known = self.read(bound)
        from_end = self.opaque_call(np.maximum, [self.binary(gast.Add, known, length), Host(0)])
        within = self.opaque_call(np.minimum, [known, length])
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
        axis = self._axis_of(found, arguments, keywords)
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
        flat = self._flat_rows(rows, (shape[0], math.prod(shape[1:])))
        if name == "mean":
            inner = self.opaque_call(np.mean, [flat], {"axis": Host(1)})
            return super().of_ragged(np.mean, [with_array(found, inner)], {}) or NONE
        inner = self.opaque_call(function, [flat], {"axis": Host(1)})
        return super().of_ragged(function, [with_array(found, inner)], {}) or NONE

    def _flat_rows(self, rows: Value, shape: tuple[int, ...]) -> Value:
        return self.opaque_call(np.reshape, [rows, Tuple(tuple(map(Host, shape)))])

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
        rows, start = self.read(found.parts[0]), found.parts[1]
        length = self.lane(self.lazy_length(found) or NONE)
        if not (isinstance(start, Host) and start.value == 0):
            size = self._shape(rows)[0]
            places = self.opaque_call(np.minimum, [self.binary(gast.Add, self._places(size), start), Host(size - 1)])
            rows = self.lane(super().element(rows, places))
        type_ = self.type_of(rows)
        assert type_ is not None
        leaves += [rows, length]
        return kind_of_ragged(Kind("lane", type_), Kind("lane", TensorType("int32")))


def _is_full(part: Any) -> bool:
    return isinstance(part, Sliced) and part.lower is part.upper is part.step is None


def kind_of_ragged(values: Kind, length: Kind) -> Kind:
    """The kind of rows that come from outside, or go there, by the kinds of what a `pcbatch.Ragged` has."""
    first, whole = Kind("host", value=Host(0)), Kind("host", value=NONE)
    return Kind("lazy", items=(values, first, length, whole, whole), cls="ragged")


def is_ragged_class(cls: type | None) -> bool:
    """Tell whether objects of a class are the padded rows that `pcbatch.ragged` makes."""
    return cls is not None and cls.__name__ == "Ragged" and cls.__module__.startswith("pcbatch.")
