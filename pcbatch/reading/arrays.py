"""Arrays: elements and views that are read, stores through either, and which other names see a store."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import gast
import numpy as np

from pcbatch.ir import program as ir
from pcbatch.ir.slices import length_of
from pcbatch.ir.types import ConflictError, TensorType
from pcbatch.reading.core import NeedsConstantError, RefusedError
from pcbatch.reading.opaque_calls import forbidden_method
from pcbatch.reading.operations import BINARY, GETITEM, WindowOf, builtin, lanes_in, method
from pcbatch.reading.values import Host, Item, Lane, Moved, OneOf, Part, Ref, Tuple, Value, View
from pcbatch.reading.views import Index, Sliced, Views, parts_of

STORED, AXIS = builtin("__stored__"), builtin("__axis__")
A_KEY = "a key of a dict"
AN_ELEMENT = "an element of a set"
FLAGS = "keep a flag for each number that may be in it, `seen = np.zeros(n, bool)`, then `seen[k] = True` and `seen[k]`"
KEYS = (
    "make the entries before, `counts = {0: 0, 1: 0}`, then a number that differs by lane may be a key; or count in an "
    "array: `counts[k] += 1`"
)


LISTED = (
    "sums, extremes, means, `sorted`, `len` and loops take such a list; else store its elements into an array of the "
    "largest size, `a[k] = x`"
)


class Arrays(Views):
    """Elements of arrays."""

    # of parts above
    expression: Callable[[Any], Value]

    # -- what an index is ----------------------------------------------------------------------------------------------

    def index(self, node: Any) -> Index:
        """The index that an expression in brackets is."""
        match node:
            case gast.Slice(lower=lower, upper=upper, step=step):
                return self._slice(node, lower, upper, step)
            case gast.Tuple(elts=parts):
                if any(isinstance(part, gast.Slice) for part in parts):
                    return tuple(self.index(part) for part in parts)
        return self.index_of(self.expression(node))

    def index_of(self, value: Value) -> Index:
        """The index that a value is in brackets."""
        return tuple(value.items) if isinstance(value, Tuple) and value.cls is None else value

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
        if length is None and isinstance(by, Lane):
            raise self.no_length(node)
        return Sliced(first, last, by, length, is_ragged=length is None)

    def no_length(self, node: Any = None) -> NeedsConstantError:
        """The refusal of a slice whose length differs by lane where that cannot be."""
        return self.no_constant(
            "PCB406",
            "the length of a slice differs from lane to lane",
            "copy it into an array with room for the longest, `y = np.zeros(N)`, `y[:len(x)] = x`; or read a fixed "
            "number of elements, `a[i:i + k]` with k a literal or a captured int",
            node=node,
        )

    def no_list(self, node: Any = None) -> NeedsConstantError:
        """The refusal of a list whose length differs by lane where that cannot be."""
        return self.no_constant("PCB130", "how many elements this list has differs by lane", LISTED, node=node)

    def _constant_of(self, tree: ast.expr) -> int | None:
        node = gast.ast_to_gast(ast.fix_missing_locations(ast.Expression(tree))).body
        value = self.read(self.expression(node))
        return value.value if isinstance(value, Host) and isinstance(value.value, int) else None

    def index_pattern(self, index: Index) -> Any:
        """An index as an argument of an operation."""
        match index:
            case Sliced(is_ragged=True):
                raise self.no_length()
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
            if value.place is not None and self.is_array(value.value):
                self.world.guards.note(value.place, value.value, by_elements=True)
            return value.value
        if isinstance(value, Tuple):
            items = [self.constant(each, what) for each in value.items]
            return tuple(items) if value.cls is None else value.cls(*items)
        if self.kind(value) == "list":
            return [self.constant(each, what) for each in self.state.cell(value).items]  # type: ignore[arg-type]
        message = f"{what} must be known when the function is compiled, and differs by lane"
        if what == AN_ELEMENT:
            raise self.no_constant("PCB313", message, FLAGS)
        raise self.no_constant("PCB313", message, self.if_static([value], KEYS if what == A_KEY else ""))

    # -- reading -------------------------------------------------------------------------------------------------------

    def element(self, array: Value, index: Index) -> Value:
        """`array[index]`."""
        type_ = self.type_of(array)
        assert type_ is not None
        source = self.read(array)
        found = self.emit(GETITEM, [self.pattern(source), self.index_pattern(index)])
        if not self.is_basic(type_, index) or not isinstance(found, Lane):
            return found
        return View(array, Item(index, ()), self.held(array), found)

    # -- storing -------------------------------------------------------------------------------------------------------

    def store_element(self, array: Value, index: Index, value: Value) -> None:
        """`array[index] = value`, as all names of the array see it."""
        match array:
            case View(base, Item(outer)) if self._are_ints(outer) and not isinstance(outer, Sliced):
                both = (*parts_of(outer), *parts_of(index))
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
            for part in parts_of(index)
        )

    def own(self, array: Lane) -> Ref:
        """An array as an object that is about to change; refused where others may be it, and nobody knows."""
        if array.name not in self.types:
            raise self._captured_array(array.name)
        self.refuse_shared(array)
        return self.celled(array)

    def _captured_array(self, name: str) -> RefusedError:
        """The refusal of a change of an array that stands outside of the function."""
        message = f"`{name}` is captured, and this changes it for everybody"
        help = "copy it first, `own = np.array(..)`; or pass it as an argument, and return it"
        return self.refusal("PCB204", message, help, label="changed here")

    def refuse_method(self, name: str) -> None:
        """Refuse a method of an array or a variable that must not be called."""
        wrong = forbidden_method(name)
        if wrong is not None:
            raise self.refusal(wrong.code, f"`{name}` {wrong.why}", wrong.help, label=f"`{name}` is read here")

    def change(self, ref: Ref, **changes: Any) -> None:
        """Change an object of the user's; refused where it may be another one that is read later."""
        self.refuse_held(ref)
        self.refuse_twin(ref)
        self.state.set_cell(ref, **changes)
        self.write_back(ref)

    def own_of_host(self, array: Host) -> Ref:
        """An array that is known now as one that is about to change."""
        if array.place is not None:
            raise self._captured_array(array.place.text or "it")
        lane = self.lane(array, hint="array")
        ref = self.new("array", (lane,))
        self.state.mapped(lambda each: ref if each is array else None)
        for name, origins in self.state.origins.items():
            if not self.shares(array).isdisjoint(origins):
                self.state.origins[name] = origins | {f"#{ref.cell}"}
        return ref

    def write(self, array: Value, new: Value) -> None:
        """`array[...] = new`: all elements at once; `new` has its type."""
        match array:
            case Ref():
                self.refuse_shared(array)
                cell = self.state.cell(array)
                self.state.set_cell(array, items=(self.lies_as(self.lane(new), array),), version=cell.version + 1)
                self.write_back(array)
            case View(base, Item(index)):
                plain, shape = self.without_new_axes(base, index)
                if shape is not None:
                    new = self.emit(method("reshape"), [self.pattern(new), shape])
                self.store_element(base, plain, new)
            case View(base, Moved() as steps):
                type_ = self.type_of(base)
                assert type_ is not None
                places = np.ravel(steps.places)
                if len(places) == int(np.prod(type_.shape)):
                    inverse = np.argsort(places).astype(np.int32)
                    self.write(
                        base if not isinstance(base, Lane) else self.own(base),
                        self.moved(self.pattern(new), inverse, type_.shape),
                    )
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

    def stored(self, array: Any, index: Index, value: Value) -> Value:
        """An array with some elements replaced, as a value."""
        if self._are_pairs(parts_of(index)):
            return self._stored_by_pairs(array, index, value)
        parts = [self._position(array, axis, part) for axis, part in enumerate(parts_of(index))]
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
            raise self.refusal(
                "PCB305", "`None` and `...` are no indices of a store here", "write a slice for each axis"
            )
        if self.kind(known) == "list" or isinstance(known, Tuple):
            of_ints = self.pattern(Host(np.zeros(1, np.int32)))
            return self.pattern(self.emit(builtin("__row__"), [self.pattern(known), of_ints]))
        return self.pattern(known)

    def _store_into(self, array: Ref, index: Index, value: Value) -> None:
        """Store into the variable of an array."""
        self.refuse_shared(array)
        cell = self.state.cell(array)
        parts = parts_of(index)
        if parts and isinstance(parts[-1], Host) and parts[-1].value is Ellipsis:
            parts = parts[:-1]
        current = cell.items[0]
        is_masked = any(
            not isinstance(part, Sliced) and (t := self.type_of(self.read(part))) is not None and t.dtype == "bool"
            for part in parts
        )
        value = self.element_of(current, value, len(parts))
        are_different = self._are_different(current, parts)
        listed = self._items_of(parts[0]) if len(parts) == 1 and self.guard is None and not are_different else ()
        if listed and self._store_in_turn(array, listed, value):
            return
        is_whole = is_masked or not parts or self._are_pairs(parts) or not are_different
        if is_whole or not isinstance(current, Lane) or self.guard is not None:
            new = self.stored(self.pattern(current), index if parts == parts_of(index) else tuple(parts), value)
            self.state.set_cell(array, items=(self.lies_as(self.lane(new), array),), version=cell.version + 1)
            self.write_back(array)
            return
        if len(parts) > len(current.type.shape):
            raise self.refusal(
                "PCB306",
                f"an array of {len(current.type.shape)} axes is stored into at {len(parts)} indices",
                "write one index or slice for each axis: `a[i, j:j + 2] = v`",
            )
        places = []
        for axis, part in enumerate(parts):
            place = self._position(current, axis, part)
            known = self.lane(place if isinstance(place, Lane) else Host(place))
            if not known.type.dtype.startswith(("int", "uint")):
                raise self.refusal("PCB305", f"an index is an integer, not {known.type}", "write int(..)")
            places.append(known)
        self.tried(STORED, [self.pattern(current), self.pattern(value), *places], {})  # refuses what does not fit
        name = self._writable(array, current)
        self.emitter.append(ir.Store(name, tuple(each.name for each in places), self.lane(value).name, self.span()))
        now = self.state.cell(array)
        self.state.set_cell(array, version=now.version + 1)
        self.write_back(array)

    def _store_in_turn(self, array: Ref, places: Sequence[Value], value: Value) -> bool:
        """Store at one place after another, so that the last value counts, and return whether that is meant."""
        lane, (current, *_) = self.lane(value), self.state.cell(array).items
        types = [self.type_of(each) for each in places]
        if not all(each and each.shape == () and each.dtype.startswith(("int", "uint")) for each in types):
            return False
        if not isinstance(current, Lane) or (extra := len(lane.type.shape) - len(current.type.shape) + 1) > 1:
            return False
        if extra == 1 and lane.type.shape[0] not in (1, len(places)):
            return False
        rows = range(len(places)) if extra < 1 or lane.type.shape[0] > 1 else [0] * len(places)
        parts = [self.emit(GETITEM, [self.pattern(lane), row]) if extra == 1 else lane for row in rows]
        for place, part in zip(places, parts, strict=True):
            self._store_into(array, place, part)
        return True

    def _items_of(self, part: Index) -> Sequence[Value]:
        """The numbers of a list or a tuple that is an index."""
        known = None if isinstance(part, Sliced) else self.read(part)
        if isinstance(known, Ref) and self.kind(known) == "list":
            return self.state.cell(known).items
        return known.items if isinstance(known, Tuple) else ()

    def _are_different(self, array: Value, parts: Sequence[Index]) -> bool:
        """Tell whether the places of a store are known to differ from each other, as its operation needs them."""
        shape = array.type.shape if isinstance(array, Lane) else ()
        for part, size in zip(parts, shape, strict=False):
            if not self._rank(part):
                continue
            known = self.read(part)
            if not all(isinstance(self.read(each), Host) for each in self._items_of(part) or (known,)):
                return False
            places = np.ravel(self.constant(known, AN_ELEMENT)) % max(size, 1)
            if len(np.unique(places)) < places.size:
                return False
        return True

    def _are_pairs(self, parts: Sequence[Index]) -> bool:
        """Tell whether several arrays of numbers are among the parts of an index, or one of several axes."""
        ranks = [self._rank(part) for part in parts]
        return sum(map(bool, ranks)) > 1 or max(ranks, default=0) > 1

    def _rank(self, part: Index) -> int:
        """Tell how many axes an array of numbers has that is an index; 0 for a mask, which is no such."""
        if isinstance(part, Sliced):
            return 0
        known = self.read(part)
        if self.kind(known) == "list" or isinstance(known, Tuple):
            return 1
        type_ = self.type_of(known)
        return 0 if type_ is None or type_.dtype == "bool" else len(type_.shape)

    def _stored_by_pairs(self, array: Any, index: Index, value: Value) -> Value:
        """An array with the elements replaced that arrays of numbers name together: `a[rows, columns] = value`."""
        type_ = self.type_of(array)
        assert type_ is not None
        size = int(np.prod(type_.shape))
        grid = self.pattern(Host(np.arange(size, dtype=np.int32).reshape(type_.shape)))
        places = self.emit(GETITEM, [grid, self.index_pattern(index)])
        shape = self.type_of(places).shape  # type: ignore[union-attr]
        values = self.emit_numpys(np.broadcast_to, [self.pattern(value), shape])
        flat, row, at = (
            self.emit(method("ravel"), [self.pattern(each)]) for each in (self.read(array), values, places)
        )
        put = self.emit(STORED, [self.pattern(flat), self.pattern(row), self.pattern(at)])
        return self.emit(method("reshape"), [self.pattern(put), type_.shape])

    def _writable(self, array: Ref, current: Lane) -> str:
        """The variable of an array, which may be changed in place: nothing else reads it."""
        is_read = any(isinstance(each, Part) and current in lanes_in(each.pattern) for each in self.state.reachable())
        if current.name in self.types and not is_read:
            return current.name
        lane = Lane(self.emitter.fresh(current.type, current.name), current.type)
        self.give(lane.name, current, current.type)
        self.state.set_cell(array, items=(lane,))
        self.write_back(array)
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
                raise self.refusal(
                    "PCB307",
                    f"a value of {given} is stored into an array of {own.dtype}: {self.conflict(error)}",
                    "make the array one of the wider type before, `a = a.astype(float)`, or store what fits it",
                ) from None
        return self.lane(value, TensorType(own.dtype, given.shape))

    def row(self, value: Value, array: Value) -> Value:
        """A tuple or a list as an element of an array."""
        return self.emit(builtin("__row__"), [self.pattern(value), self.pattern(array)])

    def added(self, array: Value, op: type, value: Value) -> bool:
        """`array += value` in place, seen by all names; False where it is no array."""
        own = self.type_of(array)
        if own is None or not own.shape:
            return False
        new = self.emit(BINARY[op], [self.pattern(self.read(array)), self.pattern(value)])
        given = self.type_of(new)
        help = "write it out, which makes another array: `a = a + v`"
        if given is None or given.shape != own.shape:
            message = f"ValueError: an array of {own} is changed in place into {given or self.described(new)}"
            raise self.refusal("PCB401", message, help)
        if not _fits(given, own):
            message = f"an array of {own.dtype} is changed in place by numbers of {given.dtype}, which it cannot hold"
            raise self.refusal("PCB307", message, help)
        self.write(array, self.lane(new, own))
        return True


def _fits(given: TensorType, own: TensorType) -> bool:
    """Return whether NumPy stores such values without changing their kind."""
    order = {"bool": 0, "int": 1, "uint": 1, "float": 2, "bfloat": 2, "complex": 3}
    kinds = [order["".join(filter(str.isalpha, each.dtype))] for each in (given, own)]
    return kinds[0] <= kinds[1]
