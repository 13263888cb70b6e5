"""Views: parts of arrays that share their elements, as NumPy has them; stores that others may see are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import eq, is_
from typing import Any

import numpy as np

from pcbatch.ir.types import TensorType
from pcbatch.reading.branches import Branches
from pcbatch.reading.core import RefusedError
from pcbatch.reading.operations import GETITEM, method
from pcbatch.reading.state import GIVEN, STRIDED, TURNED, Home, only_layouts
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

    def known_slice(self, part: Sliced) -> slice:
        """A slice whose bounds are known."""
        bounds = (part.lower, part.upper, part.step)
        return slice(*(None if each is None else self.constant(each, "a bound of a slice") for each in bounds))

    def _anywhere(self, part: Index) -> Any:
        """A part of an index, with numbers that are in range in the place of a lane's."""
        if isinstance(part, Sliced):
            if part.length is not None:
                return slice(0, part.length, None if part.step is None else self.constant(part.step, "a step"))
            return self.known_slice(part)
        known = self.read(part)
        if isinstance(known, Host) and not self.is_array(known.value):
            return known.value
        type_ = self.type_of(known)
        return 0 if type_ is None or not type_.shape else np.zeros(type_.shape, np.intp)

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
                    at = self.known_slice(part)
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

    # of parts above
    is_callers: Callable[[Ref], bool]
    write_back: Callable[[Ref], None]

    def refuse_held(self, value: Value) -> None:
        """Refuse a change of what a list whose length differs by lane has by value, unless it can be put back there."""
        cell = self.cell(value)
        if cell is None or not cell.is_held or self._is_at_home(value):
            return
        name = self.users_name(partial(eq, value), "this")
        raise self.refusal(
            "PCB205",
            f"{name} is changed here, and is, or was, an element of a list whose length differs by lane",
            "change a copy, `x = copy.copy(xs[k])`, and store that: `xs[k] = x`; or put a copy into the list",
        )

    def _is_at_home(self, value: Value) -> bool:
        """Tell whether an element of rows is what these have in one place, and in nobody's hands but those."""
        cell = self.cell(value)
        home = None if cell is None else cell.home
        rows = None if home is None else self.state.heap.get(home.rows.cell)
        is_there = home is not None and rows is not None and rows.version == home.version
        return home is not None and is_there and not self.is_callers(home.rows) and self.is_alone(value, home)

    def is_alone(self, value: Value, home: Home) -> bool:
        """Tell whether nobody but some rows, and who has `value`, an element of these or a part of it, may have it."""
        rows = self.state.heap[home.rows.cell]
        own = {each.cell for each in self.state.reachable(iter([home.whole])) if isinstance(each, Ref)}
        if rows.is_spread or not isinstance(value, Ref) or value.cell not in own:
            return False
        living = {each.cell for each in self.state.reachable(self.living()) if isinstance(each, Ref)} - own
        if not living.isdisjoint(self.state.twins.get(home.rows.cell, ())):
            return False
        return not any(self.state.heap[each].is_held for each in living if each in self.state.heap)

    def refuse_twin(self, ref: Ref) -> None:
        """Refuse a change of an object that may be another one that is read later."""
        twins = self.state.twins.get(ref.cell, frozenset())
        living = twins and {each.cell for each in self.state.reachable(self.living()) if isinstance(each, Ref)}
        if not twins.isdisjoint(living):
            one = self.users_name(partial(eq, ref), "this object")
            other = self.users_name(lambda each: isinstance(each, Ref) and each.cell in twins, "another one")
            raise self.refusal(
                "PCB205",
                f"{one} is changed here, and {other} may be the same object: it is if the loop makes no turn",
                "copy what is to stay as it is, where the loop begins: `copy.copy(..)`",
            )

    def refuse_shared(self, array: Value) -> None:
        """Refuse a store into an array where another that is read later may share its elements, and nobody knows."""
        self.refuse_held(array)
        if isinstance(array, Ref):
            self.refuse_twin(array)
        mine = self.shares(array)
        held = self.state.cell(array).items if isinstance(array, Ref) else (array,)
        own = {each.name for each in held if isinstance(each, Lane)}
        older = frozenset().union(*(self.state.origins.get(name, ()) for name in own))
        for other in self.state.reachable(self.living()):
            if self.is_fresh(other) and not self.shares(other).isdisjoint(mine):
                raise self._may_be_one(array, mine, partial(is_, other))
            if isinstance(other, Ref) and f"#{other.cell}" in older and other != array and self._is_seen(other):
                raise self._may_be_one(array, mine, partial(eq, other))
            if not isinstance(other, Lane) or other.name in own:
                continue
            theirs = self.state.origins.get(other.name, frozenset())
            is_known = isinstance(other.type, TensorType) and bool(other.type.shape)
            if is_known and (not theirs.isdisjoint(mine) or other.name in older):
                raise self._may_be_one(array, mine, partial(self._is_array_of, other))

    def _is_seen(self, ref: Ref) -> bool:
        """Tell whether an object has a name of the user's, and not only the one by which a function hands it back."""
        names = self.state.names.items()
        return ref in self.state.reachable(value for (_, name), value in names if not name.startswith(GIVEN))

    def _may_be_one(self, array: Value, mine: set[str], is_other: Callable[[Value], bool]) -> RefusedError:
        """The refusal of a store into an array that may be another one, too."""
        some = self.users_name(lambda each: not mine.isdisjoint(self.shares(each)), "an array")
        one, two = self.users_name(partial(eq, array), some), self.users_name(is_other, "another one")
        return self.refusal(
            "PCB205",
            f"{one} is changed here, and {two} may be the same array: it is on some paths",
            "copy the one that is to stay as it is, where it is assigned: `b = a.copy()`",
        )

    def _is_array_of(self, held: Lane, value: Value) -> bool:
        """Tell whether a value is the array that a variable holds."""
        if isinstance(value, Ref) and self.kind(value) == "array":
            return self.state.cell(value).items == (held,)
        return value == held
