"""Lists of which a lane keeps some elements, and places where an array has something: arrays, and a flag for each."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import gast
import numpy as np

from pcbatch.reading.core import FilteredError, NeedsBlocksError
from pcbatch.reading.ragged import Ragged, with_array
from pcbatch.reading.values import Host, Lane, Lazy, Tuple, Value


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
