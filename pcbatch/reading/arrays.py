"""Arrays: elements and views that are read, stores through either, and which other names see a store."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gast
import numpy as np

from pcbatch.ir import program as ir
from pcbatch.ir.joins import ConflictError
from pcbatch.ir.slices import length_of
from pcbatch.ir.types import TensorType
from pcbatch.reading.branches import Branches
from pcbatch.reading.operations import BINARY, GETITEM, WindowOf, builtin, method
from pcbatch.reading.values import Host, Item, Lane, Moved, OneOf, Ref, Tuple, Value, View

STORED, AXIS = builtin("__stored__"), builtin("__axis__")
SHAPED = frozenset({"reshape", "ravel", "transpose", "squeeze", "swapaxes", "diagonal"})
"""Methods of arrays that only move elements, and give views."""
INT = TensorType("int32")


@dataclass(frozen=True, eq=False)
class Sliced:
    """A slice of an index; `length` is how long it is where its bounds are a lane's."""

    lower: Value | None
    upper: Value | None
    step: Value | None
    length: int | None = None


Index = Any
"""A value, a `Sliced`, or a tuple of these."""


class Arrays(Branches):
    """Elements of arrays."""

    # -- what an index is ----------------------------------------------------------------------------------------------

    def index(self, node: Any) -> Index:
        """The index that an expression in brackets is."""
        match node:
            case gast.Slice(lower=lower, upper=upper, step=step):
                return self._slice(node, lower, upper, step)
            case gast.Tuple(elts=parts):
                if any(isinstance(part, gast.Slice) for part in parts):
                    return tuple(self.index(part) for part in parts)
        value = self.expression(node)
        return tuple(value.items) if isinstance(value, Tuple) and value.cls is None else value

    def expression(self, node: Any) -> Value:
        """The value of an expression; see `expressions`."""
        raise NotImplementedError

    def _slice(self, node: Any, lower: Any, upper: Any, step: Any) -> Sliced:
        first, last, by = (None if each is None else self.read(self.expression(each)) for each in (lower, upper, step))
        if not any(isinstance(each, Lane) for each in (first, last)):
            return Sliced(first, last, by)
        length = None
        if lower is not None and upper is not None:
            plain: Any = gast.gast_to_ast(gast.Expression(gast.Tuple([lower, upper], gast.Load())))
            found = length_of(*plain.body.elts)
            if found is not None:
                value = self._constant_of(found)
                length = value
        if length is None:
            self.needs_constant(
                "PCB406",
                "the length of a slice differs from lane to lane",
                "an array of a lane has one static length: read a fixed number of elements, a[i:i + k] with k a literal "
                "or a captured int, or keep the whole array and mask it: tf.where((p >= i) & (p < j), a, 0.), "
                "p = tf.range(len(a))",
                node=node,
            )
        return Sliced(first, last, by, length)

    def _constant_of(self, tree: ast.expr) -> int | None:
        node = gast.ast_to_gast(ast.fix_missing_locations(ast.Expression(tree))).body
        value = self.read(self.expression(node))
        return value.value if isinstance(value, Host) and isinstance(value.value, int) else None

    def index_pattern(self, index: Index) -> Any:
        """An index as an argument of an operation."""
        match index:
            case Sliced(lower, upper, step, None):
                return slice(*(None if each is None else self.pattern(each) for each in (lower, upper, step)))
            case Sliced(lower, _, step, length):
                by = None if step is None else self.constant(step, "the step of a slice")
                assert lower is not None and length is not None
                return WindowOf(self.pattern(lower), length, by)
            case tuple():
                return tuple(self.index_pattern(each) for each in index)
        return self.pattern(index)

    def constant(self, value: Value, what: str) -> Any:
        """The value of Python's that `value` is; refused for a lane's."""
        value = self.read(self.known(value))
        if isinstance(value, Host):
            return value.value
        if isinstance(value, Tuple):
            items = [self.constant(each, what) for each in value.items]
            return tuple(items) if value.cls is None else value.cls(*items)
        if self.kind(value) == "list":
            return [self.constant(each, what) for each in self.state.cell(value).items]  # type: ignore[arg-type]
        self.needs_constant("PCB313", f"{what} must be known when the function is compiled, and differs by lane")

    def is_basic(self, type_: TensorType, index: Index) -> bool:
        """Whether an index gives a view in NumPy: ints, slices, None and `...`, and some axis is left."""
        parts = index if isinstance(index, tuple) else (index,)
        ints = 0
        for part in parts:
            if isinstance(part, Sliced):
                continue
            known = self.read(part)
            if isinstance(known, Host) and (known.value is None or known.value is Ellipsis or isinstance(known.value, slice)):
                continue
            own = self.type_of(known)
            if own is None or own.shape or not own.dtype.startswith(("int", "uint")):
                return False
            ints += 1
        return len(type_.shape) > ints

    # -- reading -------------------------------------------------------------------------------------------------------

    def element(self, array: Value, index: Index) -> Value:
        """`array[index]`."""
        type_ = self.type_of(array)
        assert type_ is not None
        source = self.read(array)
        found = self.emit(GETITEM, [self.pattern(source), self.index_pattern(index)])
        if not self.is_basic(type_, index) or not isinstance(found, Lane):
            return found
        return View(array, Item(_frozen(index), ()), self.held(array), found)

    def held(self, value: Value) -> Any:
        """What tells the elements that an array holds now from those that it held before."""
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
            return view.value
        source = self.pattern(view.base)
        match view.steps:
            case Item(index):
                found = self.emit(GETITEM, [source, self.index_pattern(index)])
            case Moved(_, _, shape):
                found = self.moved(source, view.steps.places, shape)
        assert isinstance(found, Lane)
        fresh = replace(view, seen=now, value=found)
        self.replace(lambda each: fresh if each is view else None)
        return found

    def moved(self, source: Any, places: np.ndarray, shape: tuple[int, ...]) -> Value:
        """The elements of an array at flat positions, in an array of `shape`."""
        flat = self.emit(method("ravel"), [source])
        positions = self.pattern(Host(np.ravel(places).astype(np.int32)))
        taken = self.emit(GETITEM, [self.pattern(flat), positions])
        return self.emit(method("reshape"), [self.pattern(taken), shape])

    def shaped(self, array: Value, name: str, arguments: Sequence[Any], found: Value) -> Value:
        """What a method that only moves elements gives: a view, of which `found` are the elements."""
        type_ = self.type_of(array)
        assert type_ is not None
        if not isinstance(found, Lane) or not type_.shape:
            return found
        grid = np.arange(int(np.prod(type_.shape)), dtype=np.int32).reshape(type_.shape)
        moved = np.ascontiguousarray(getattr(grid, name)(*arguments) if name != "T" else grid.T)
        if moved.shape != found.type.shape:
            return found
        return View(array, Moved(name, moved.tobytes(), moved.shape), self.held(array), found)

    # -- storing -------------------------------------------------------------------------------------------------------

    def store_element(self, array: Value, index: Index, value: Value) -> None:
        """`array[index] = value`, as all names of the array see it."""
        match array:
            case View(base, Item(outer)) if self._are_ints(outer) and not isinstance(outer, Sliced):
                both = (*_parts(outer), *_parts(index))
                self.store_element(base, both, value)
            case View():
                self.write(array, self.stored(self.pattern(self.read(array)), index, value))
            case Ref():
                self._store_into(array, index, value)
            case Lane():
                self._store_into(self.own(array), index, value)
            case OneOf(which, items):
                for place, each in enumerate(items):
                    old = self.read(each)
                    new = self.stored(self.pattern(old), index, value)
                    self.write(each, self.chosen(self.is_place(which, place), new, old))
            case Host():
                self._store_into(self.own_of_host(array), index, value)

    def _are_ints(self, index: Index) -> bool:
        return all(
            not isinstance(part, Sliced) and (t := self.type_of(self.read(part))) is not None and not t.shape
            for part in _parts(index)
        )

    def own(self, array: Lane) -> Ref:
        """An array as an object that is about to change; refused where others may be it, and nobody knows."""
        if array.name not in self.types:
            self.refuse(
                "PCB204",
                f"`{array.name}` is captured, and a store would change it for everybody",
                f"copy it first: `{array.name}_ = np.array({array.name})`",
            )
        self.refuse_shared(array)
        return self.celled(array)

    def refuse_shared(self, array: Value) -> None:
        """Refuse a store into an array where another that is read later may share its elements, and nobody knows."""
        mine = self.shares(array)
        name = array.name if isinstance(array, Lane) else "it"
        for other in self.state.reachable(self.living()):
            if not isinstance(other, Lane) or (isinstance(array, Lane) and other.name == array.name):
                continue
            theirs = self.state.origins.get(other.name, frozenset())
            is_known = isinstance(other.type, TensorType) and bool(other.type.shape)
            if is_known and (not theirs.isdisjoint(mine) or other.name in self.state.origins.get(name, ())):
                self.refuse(
                    "PCB205",
                    f"`{name}` is changed here, and `{other.name}` may be the same array: it is on some paths",
                    "copy the one that is to stay as it is, where it is assigned: `b = a.copy()`",
                )

    def living(self) -> Iterator[Value]:
        """The values of variables that may be read later; see `names`."""
        return iter(self.state.names.values())

    def own_of_host(self, array: Host) -> Ref:
        """An array that is known now as one that is about to change."""
        if array.place is not None:
            name = array.place.text or "it"
            self.refuse(
                "PCB204", f"`{name}` is captured, and a store would change it for everybody", f"copy it first: np.array({name})"
            )
        lane = self.lane(array, hint="array")
        ref = self.new("array", (lane,))
        self.replace(lambda each: ref if each is array else None)
        return ref

    def write(self, array: Value, new: Value) -> None:
        """`array[...] = new`: all elements at once; `new` has its type."""
        match array:
            case Ref():
                self.refuse_shared(array)
                cell = self.state.cell(array)
                self.state.set_cell(array, items=(self.lane(new),), version=cell.version + 1)
            case View(base, Item(index)):
                plain, shape = self._without_new_axes(base, index)
                if shape is not None:
                    new = self.emit(method("reshape"), [self.pattern(new), shape])
                self.store_element(base, plain, new)
            case View(base, Moved() as steps):
                type_ = self.type_of(base)
                assert type_ is not None
                places = np.ravel(steps.places)
                if len(places) == int(np.prod(type_.shape)):
                    inverse = np.argsort(places).astype(np.int32)
                    self.write(base if not isinstance(base, Lane) else self.own(base), self.moved(self.pattern(new), inverse, type_.shape))
                else:
                    whole = base if not isinstance(base, Lane) else self.own(base)
                    flat = self.emit(method("ravel"), [self.pattern(self.read(whole))])
                    values = self.emit(method("ravel"), [self.pattern(new)])
                    put = self.stored(self.pattern(flat), Host(places.astype(np.int32)), values)
                    self.write(whole, self.emit(method("reshape"), [self.pattern(put), type_.shape]))
            case Lane():
                self.write(self.own(array), new)
            case OneOf(which, items):
                for place, each in enumerate(items):
                    old = self.read(each)
                    self.write(each, self.chosen(self.is_place(which, place), new, old))
            case Host():
                self.write(self.own_of_host(array), new)

    def _without_new_axes(self, base: Value, index: Index) -> tuple[Index, tuple[int, ...] | None]:
        """An index without `None` and `...`, and the shape of what it takes where it had any of these."""
        parts, type_ = list(_parts(index)), self.type_of(base)
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
                    at = slice(*(None if e is None else self.constant(e, "a bound") for e in (part.lower, part.upper, part.step)))
                    length = len(range(*at.indices(grid.shape[axis])))
                sizes.append(length)
        return tuple(plain), tuple(sizes)

    def stored(self, array: Any, index: Index, value: Value) -> Value:
        """An array with some elements replaced, as a value."""
        parts = [self._position(array, axis, part) for axis, part in enumerate(_parts(index))]
        return self.emit(STORED, [array, self.pattern(value), *parts])

    def _position(self, array: Any, axis: int, part: Index) -> Any:
        """One index of a store: a number, a mask, or the positions along an axis."""
        known = part if isinstance(part, Sliced) else self.read(part)
        if isinstance(known, Sliced):
            whole = self.emit(AXIS, [array, axis])
            if known.lower is known.upper is known.step is None:
                return self.pattern(whole)
            return self.pattern(self.emit(GETITEM, [self.pattern(whole), self.index_pattern(known)]))
        if isinstance(known, Host) and (known.value is None or known.value is Ellipsis):
            self.refuse("PCB305", "`None` and `...` are no indices of a store here", "write a slice for each axis")
        if self.kind(known) == "list" or isinstance(known, Tuple):
            of_ints = self.pattern(Host(np.zeros(1, np.int32)))
            return self.pattern(self.emit(builtin("__row__"), [self.pattern(known), of_ints]))
        return self.pattern(known)

    def _store_into(self, array: Ref, index: Index, value: Value) -> None:
        """Store into the variable of an array."""
        self.refuse_shared(array)
        cell = self.state.cell(array)
        parts = _parts(index)
        if parts and isinstance(parts[-1], Host) and parts[-1].value is Ellipsis:
            parts = parts[:-1]
        current = cell.items[0]
        is_masked = any(
            not isinstance(part, Sliced) and (t := self.type_of(self.read(part))) is not None and t.dtype == "bool"
            for part in parts
        )
        value = self.element_of(current, value, len(parts))
        if is_masked or not isinstance(current, Lane) or not parts or self.guard is not None:
            if not parts:
                new = self.emit(STORED, [self.pattern(current), self.pattern(value)])
            else:
                new = self.stored(self.pattern(current), index if parts == _parts(index) else tuple(parts), value)
            self.state.set_cell(array, items=(self.lane(new),), version=cell.version + 1)
            return
        if len(parts) > len(current.type.shape):
            self.refuse("PCB306", f"an array of {len(current.type.shape)} axes is stored into at {len(parts)} indices")
        places = []
        for axis, part in enumerate(parts):
            place = self._position(current, axis, part)
            known = self.lane(place if isinstance(place, Lane) else Host(place))
            if not known.type.dtype.startswith(("int", "uint")):
                self.refuse("PCB305", f"an index is an integer, not {known.type}", "write int(..)")
            places.append(known)
        name = self._writable(array, current)
        self.emitter.append(ir.Store(name, tuple(each.name for each in places), self.lane(value).name, self.span()))
        now = self.state.cell(array)
        self.state.set_cell(array, version=now.version + 1)

    def _writable(self, array: Ref, current: Lane) -> str:
        """The variable of an array, which may be changed in place: nothing else reads it."""
        if current.name in self.types:
            return current.name
        lane = self.lane(current)
        self.state.set_cell(array, items=(lane,))
        return lane.name

    def element_of(self, array: Value, value: Value, depth: int) -> Value:
        """`value` as something that is stored into an array: of its dtype."""
        own, given = self.type_of(array), self.type_of(value)
        if own is None:
            return value
        if given is None:
            return self.row(value, array)
        if given.dtype == own.dtype and not given.weak:
            return value
        try:
            joined = self.joined([TensorType(own.dtype), replace(given, shape=())])
            if joined.dtype != own.dtype and not _fits(given, own):
                raise ConflictError(f"{given} does not fit {own.dtype}")
        except ConflictError as error:
            if not _fits(given, own):
                self.refuse("PCB307", f"a value of {given} is stored into an array of {own.dtype}: {self.conflict(error)}")
        return self.lane(value, TensorType(own.dtype, given.shape))

    def row(self, value: Value, array: Value) -> Value:
        """A tuple or a list as an element of an array."""
        return self.emit(builtin("__row__"), [self.pattern(value), self.pattern(array)])

    def added(self, array: Value, op: type, value: Value) -> Value | None:
        """`array += value` in place, seen by all names; None where it is no array, or the result is of another type."""
        type_ = self.type_of(array)
        if type_ is None or not type_.shape:
            return None
        new = self.emit(BINARY[op], [self.pattern(self.read(array)), self.pattern(value)])
        if self.type_of(new) != type_:
            return None
        if isinstance(array, Lane):
            array = self.own(array)
        self.write(array, new)
        return array


def _parts(index: Index) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _frozen(index: Index) -> Any:
    return index


def _fits(given: TensorType, own: TensorType) -> bool:
    """Whether NumPy stores such values without losing what they are."""
    order = {"bool": 0, "int": 1, "uint": 1, "float": 2, "bfloat": 2, "complex": 3}
    kinds = [order["".join(filter(str.isalpha, each.dtype))] for each in (given, own)]
    return 0 < kinds[0] <= kinds[1] or kinds[0] == kinds[1]
