"""Lists of which a lane keeps some elements, and places where an array has something: arrays, and a flag for each.

Where their elements are wanted in a row, they are moved to the front.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import gast
import numpy as np

from pcbatch.reading.core import FilteredError, NeedsBlocksError
from pcbatch.reading.operations import GETITEM
from pcbatch.reading.ragged import Ragged, with_array
from pcbatch.reading.values import NONE, Host, Item, Lane, Lazy, Tuple, Value, View


class Filtered(Ragged):
    """Parts of a list, or places, that a lane's condition keeps."""

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

    # -- moved to the front --------------------------------------------------------------------------------------------

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

    # -- places --------------------------------------------------------------------------------------------------------

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
