"""Elements of parts of arrays that are moved: to the front, into order, behind those of another part."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import gast
import numpy as np

from pcbatch.ir.types import TensorType
from pcbatch.reading.core import FilteredError, NeedsBlocksError
from pcbatch.reading.operations import GETITEM
from pcbatch.reading.ragged import Ragged, with_array
from pcbatch.reading.values import NONE, Host, Item, Lane, Lazy, Ref, Tuple, Value, View
from pcbatch.reading.views import Sliced

SORTS = frozenset({"sort", "argsort"})
RUNNING = {"cumsum": 0, "cumprod": 1}
JOINS = frozenset({"concat", "concatenate", "append", "hstack", "stack"})
COPIES = frozenset({"array", "asarray", "copy", "convert_to_tensor", "identity"})
OF_ONE = frozenset({*COPIES, "flip", "diff", "norm", "std", "var", "variance"})


class MovedRows(Ragged):
    """Parts of arrays whose elements are moved."""

    # of parts above
    as_part: Callable[[Value], Value]

    def rows_at(self, rows: Value, places: Value) -> View:
        """Rows at places, or at the nearest ones that there are; later changes of the rows show in them."""
        inside = self.opaque_call(np.clip, [places, Host(0), Host(self._shape(rows)[0] - 1)])
        taken = self.lane(self.emit(GETITEM, [self.pattern(self.read(rows)), self.pattern(inside)]))
        return View(rows, Item(inside, ()), self.held(rows), taken)

    def compacted(self, found: Lazy) -> Lazy:
        """The same elements as a slice that begins at the first place."""
        rows, start = self.read(found.parts[0]), found.parts[1]
        length = self.lane(self.lazy_length(found) or NONE)
        if found.kind == "ragged":
            if isinstance(start, Host) and start.value == 0:
                return found
            rows = self.rows_at(rows, self.binary(gast.Add, self._places(self._shape(rows)[0]), start)).value
        else:
            mask, shape = found.parts[1], self._shape(rows)
            if (axes := self.masked_axes(found)) > 1:
                size = math.prod(shape[:axes])
                rows, mask = self.flat_rows(rows, (size, *shape[axes:])), self.flat_rows(mask, (size,))
            left_out = self.opaque_call(np.logical_not, [mask])
            rows = self.rows_at(rows, self.opaque_call(np.argsort, [left_out], {"kind": Host("stable")})).value
        return Lazy("ragged", (rows, Host(0), length, NONE, NONE), found.site)

    def with_room(self, found: Lazy, room: int) -> Lazy:
        """The elements of a part as a slice of an array with room for more."""
        found = self.compacted(found) if found.kind == "masked" else found
        rows = self.read(found.parts[0])
        is_enough = self._shape(rows)[0] == room
        return found if is_enough else with_array(found, self.rows_at(rows, self._places(room)).value)

    def flat_rows(self, rows: Value, shape: tuple[int, ...]) -> Value:
        return self.opaque_call(np.reshape, [rows, Tuple(tuple(map(Host, shape)))])

    def of_one(self, name: str, found: Lazy) -> Value | None:
        """Functions of a part alone that are made of others; None for all that are not."""
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

    def sorted_rows(
        self, function: Any, name: str, found: Lazy, arguments: Sequence[Value], keywords: dict[str, Value]
    ) -> Value:
        """The elements of a part in order, or their places: what is outside comes behind them."""
        named = {**dict(zip(("axis", "direction"), arguments[1:], strict=False)), **keywords}
        direction, axis = named.get("direction", Host("ASCENDING")), named.get("axis", Host(-1))
        is_numpys = isinstance(function, type(np.sort)) and function.__module__.startswith("numpy")
        rank, dtype = len(self._shape(found.parts[0])), self.type_of_rows(found).dtype
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

    def put_together(
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
        if name == "append" and parts[1] is None and self.axes_count(items[1]) < 1:
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

    def type_of_rows(self, found: Lazy) -> TensorType:
        type_ = self.type_of(self.read(found.parts[0]))
        assert type_ is not None
        return type_

    def axes_count(self, value: Value) -> int:
        type_ = self.type_of(self.read(value))
        return -1 if type_ is None else len(type_.shape)

    def filtered(self, node: Any, error: FilteredError) -> Value:
        """A comprehension of numbers, or arrays of one type, of which a lane keeps some: all, with a flag for each."""
        generator = node.generators[0]
        if len(node.generators) > 1:
            raise error
        whole = self.expression(generator.iter)
        frame = self._scoped(node)
        self.frames.append(frame)
        values, flags = [], []
        try:
            for item, flag in self._flagged(whole, error):
                self.store(generator.target, item)
                for test in generator.ifs:
                    flag = self.lazily(True, flag, partial(self.condition, test))
                if isinstance(flag, Host):
                    if not flag.value:
                        continue
                    values.append(self.expression(node.elt))
                else:
                    values.append(self.straightly(flag, lambda: self.expression(node.elt)))
                flags.append(flag)
            types = [self.type_of(self.read(each)) for each in values]
        except NeedsBlocksError:
            raise error from None
        finally:
            self.leave(self.frames.pop())
        if None in types or len({each.shape for each in types if each is not None}) > 1:
            raise error
        stacked = [self.opaque_call(np.array, [self.new("list", tuple(each))]) for each in (values, flags)]
        return Lazy("filtered", tuple(stacked), self.site())

    def _flagged(self, whole: Value, error: FilteredError) -> Iterator[tuple[Value, Host | Lane]]:
        """The items that a comprehension goes over, and whether a lane has them."""
        part = self.ragged(whole)
        if part is None:
            yield from ((item, Host(True)) for item in self.live(whole))
            return
        rows = part.parts[0]
        if len(self._shape(rows)) > 1:
            raise error
        mask = self._in_part(part, rows)
        for k in range(self._shape(rows)[0]):
            yield self.element(rows, Host(k)), self.truth(self.element(mask, Host(k)))

    def truth(self, value: Value) -> Host | Lane:
        found = self.ragged(value)
        if found is None:
            return super().truth(value)
        if found.kind != "filtered":
            raise self.refuse_part(found)
        length = self.lazy_length(found)
        assert length is not None
        return super().truth(super().compare(gast.Gt, length, Host(0)))

    def contains(self, whole: Value, item: Value) -> Host | Lane:
        found = self.ragged(whole)
        if found is None:
            return super().contains(whole, item)
        equal = with_array(found, super().compare(gast.Eq, self.read(found.parts[0]), item))
        return self.truth(self.opaque_call(np.any, [self.filled(equal, False)]))

    def of_ragged(self, function: Any, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value | None:
        """Return what a function gives that takes a part of an array, or gives places in one; None for all else."""
        found = super().of_ragged(function, arguments, keywords)
        is_known = isinstance(function, Hashable)
        return self._places_of(function, arguments, keywords) if found is None and is_known else found

    def _places_of(self, function: Any, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value | None:
        """Return what NumPy's `where` of a condition alone, and `nonzero`, give; None for everything else."""
        if function not in (np.where, np.nonzero, np.flatnonzero) or len(arguments) != 1 or keywords:
            return None
        given = self.read(arguments[0])
        if not isinstance(given, Lane) or len(given.type.shape) != 1:
            return None
        mask = given if given.type.dtype == "bool" else super().compare(gast.NotEq, given, Host(0))
        part = Lazy("masked", (self._places(given.type.shape[0]), mask))
        return part if function is np.flatnonzero else Tuple((part,))
