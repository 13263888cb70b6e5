"""Views: parts of arrays that share their elements, as NumPy has them, and what they hold now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pcbatch.ir.types import TensorType
from pcbatch.reading.branches import Branches
from pcbatch.reading.operations import GETITEM, method
from pcbatch.reading.state import STRIDED, TURNED, only_layouts
from pcbatch.reading.values import Host, Item, Lane, Moved, OneOf, Ref, Value, View

SHAPED = frozenset({"reshape", "ravel", "transpose", "squeeze", "swapaxes", "diagonal"})
"""Methods of arrays that only move elements, and give views where NumPy can."""
BY_LAYOUT = frozenset({"reshape", "ravel", "ascontiguousarray"})
"""Those that give a view, or a copy, by how an array lies in memory."""


@dataclass(frozen=True, eq=False)
class Sliced:
    """A slice of an index; `length` is how long it is where its bounds are a lane's, unless that `is_ragged`."""

    lower: Value | None
    upper: Value | None
    step: Value | None
    length: int | None = None
    is_ragged: bool = False
    """True if its length differs by lane."""


Index = Any
"""A value, a `Sliced`, or a tuple of these."""


def parts_of(index: Index) -> tuple[Any, ...]:
    """The parts of an index, one for each axis."""
    return index if isinstance(index, tuple) else (index,)


class Views(Branches):
    """Views of arrays."""

    # of parts above
    index_pattern: Callable[[Index], Any]
    constant: Callable[[Value, str], Any]

    # -- what is a view ------------------------------------------------------------------------------------------------

    def is_basic(self, type_: TensorType, index: Index) -> bool:
        """Tell whether an index gives a view in NumPy: ints, slices, None and `...`, and some axis is left."""
        parts = parts_of(index)
        ints = 0
        for part in parts:
            if isinstance(part, Sliced):
                continue
            known = self.read(part)
            if isinstance(known, Host) and (
                known.value is None or known.value is Ellipsis or isinstance(known.value, slice)
            ):
                continue
            own = self.type_of(known)
            if own is None or own.shape or not own.dtype.startswith(("int", "uint")):
                return False
            ints += 1
        return len(type_.shape) > ints

    def shaped(self, array: Value, name: str, function: Callable[[np.ndarray], Any], found: Value) -> Value:
        """Return the view or copy that `function` of NumPy's gives, which only moves elements, to those in `found`."""
        type_ = self.type_of(array)
        if not isinstance(found, Lane) or type_ is None or not type_.shape:
            return found
        if name in BY_LAYOUT and self._marks(array):
            return self.sharing(found, [array])
        own = self.layout(array)
        try:
            layout = function(own)
        except (ValueError, TypeError):
            return found
        if layout is own and found.type == type_:
            return array
        is_same = layout.shape == found.type.shape and type_.dtype == found.type.dtype
        if not is_same or not np.shares_memory(own, layout):
            return found
        places = np.ascontiguousarray(function(np.arange(own.size, dtype=np.int32).reshape(own.shape)))
        return View(array, Moved(name, places.tobytes(), places.shape, layout), self.held(array), found)

    def layout_marks(self, array: Value) -> set[str]:
        """Return origins that say how an array may lie in memory, if not row by row."""
        found = self._marks(array)
        if isinstance(array, View):
            own = self.layout(array)
            if not own.flags.c_contiguous:
                found.add((STRIDED if np.empty_like(own).flags.c_contiguous else TURNED) + array.value.name)
        return found

    def _marks(self, array: Value) -> set[str]:
        """Such origins of the array that a view is a part of."""
        match array:
            case View(base):
                return self._marks(base)
            case Lane(name):
                return {*only_layouts(self.state.origins.get(name, ()))}
            case Ref() if self.kind(array) == "array":
                return self._marks(self.state.cell(array).items[0])
            case OneOf(items=items):
                return set().union(*map(self._marks, items))
        return set()

    def lies_as(self, new: Lane, old: Value) -> Lane:
        """Note that an array that holds `new` now lies in memory as it did when it held `old`; give `new`."""
        marks = self._marks(old)
        if marks:
            self.state.origins[new.name] = self.state.origins.get(new.name, frozenset()) | marks
        return new

    def layout(self, array: Value) -> np.ndarray:
        """An array that lies in memory as NumPy's would; of an index that is a lane's any will do."""
        if isinstance(array, View):
            match array.steps:
                case Item(index):
                    part: np.ndarray = self.layout(array.base)[tuple(map(self._anywhere, parts_of(index)))]
                    return part
                case Moved(layout=layout):
                    return layout
        type_ = self.type_of(array)
        assert type_ is not None
        return np.zeros(type_.shape, np.int8)

    def _anywhere(self, part: Index) -> Any:
        """A part of an index, with a number that is in range in the place of a lane's."""
        if isinstance(part, Sliced):
            if part.length is not None:
                return slice(0, part.length, None if part.step is None else self.constant(part.step, "a step"))
            bounds = (part.lower, part.upper, part.step)
            return slice(*(None if each is None else self.constant(each, "a bound") for each in bounds))
        known = self.read(part)
        return known.value if isinstance(known, Host) and not self.is_array(known.value) else 0

    def without_new_axes(self, base: Value, index: Index) -> tuple[Index, tuple[int, ...] | None]:
        """An index without `None` and `...`, and the shape of what it takes where it had any of these."""
        parts, type_ = list(parts_of(index)), self.type_of(base)
        assert type_ is not None
        known = [None if isinstance(part, Sliced) else self.read(part) for part in parts]
        is_new = [isinstance(each, Host) and each.value is None for each in known]
        is_rest = [isinstance(each, Host) and each.value is Ellipsis for each in known]
        if not any(is_new) and not any(is_rest):
            return index, None
        missing = len(type_.shape) - (len(parts) - sum(is_new) - sum(is_rest))
        plain: list[Any] = []
        for part, new, rest in zip(parts, is_new, is_rest, strict=True):
            plain += [Sliced(None, None, None)] * missing if rest else [] if new else [part]
        grid = np.zeros(type_.shape, np.int8)
        sizes = []
        for axis in range(len(type_.shape)):
            part = plain[axis] if axis < len(plain) else Sliced(None, None, None)
            if isinstance(part, Sliced):
                length = part.length
                if length is None:
                    at = slice(
                        *(
                            None if e is None else self.constant(e, "a bound")
                            for e in (part.lower, part.upper, part.step)
                        )
                    )
                    length = len(range(*at.indices(grid.shape[axis])))
                sizes.append(length)
        return tuple(plain), tuple(sizes)

    # -- what a view holds ---------------------------------------------------------------------------------------------

    def held(self, value: Value) -> Any:
        """Return what tells the elements that an array holds now from those that it held before."""
        match value:
            case Ref():
                cell = self.state.cell(value)
                return "cell", value.cell, cell.version, *(self.held(each) for each in cell.items)
            case View(base, steps):
                return "view", self.held(base), id(steps)
            case Lane(name):
                return "lane", name
            case OneOf(index, items):
                return "one of", index.name, *(self.held(each) for each in items)
        return "host", id(value)

    def read_view(self, view: View) -> Value:
        """The elements of a view as they are now."""
        now = self.held(view.base)
        if view.seen == now:
            self._note_layout(view)
            return view.value
        source = self.pattern(view.base)
        match view.steps:
            case Item(index):
                found = self.emit(GETITEM, [source, self.index_pattern(index)])
            case Moved(shape=shape):
                found = self.moved(source, view.steps.places, shape)
        assert isinstance(found, Lane)
        fresh = replace(view, seen=now, value=found)
        self._note_layout(fresh)
        self.state.mapped(lambda each: fresh if each is view else None)
        return found

    def _note_layout(self, view: View) -> None:
        """Mark the elements of a view, from which new arrays are computed, if they lie otherwise than row by row."""
        marks = self.layout_marks(view)
        if marks:
            self.state.origins[view.value.name] = self.state.origins.get(view.value.name, frozenset()) | marks

    def moved(self, source: Any, places: np.ndarray, shape: tuple[int, ...]) -> Value:
        """The elements of an array at flat positions, in an array of `shape`."""
        flat = self.emit(method("ravel"), [source])
        positions = self.pattern(Host(np.ravel(places).astype(np.int32)))
        taken = self.emit(GETITEM, [self.pattern(flat), positions])
        return self.emit(method("reshape"), [self.pattern(taken), shape])
