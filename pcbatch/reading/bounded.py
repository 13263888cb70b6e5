"""Bounded lists: lists whose length differs by lane, of numbers or arrays of one type that is known beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.ir.types import TensorType
from pcbatch.reading import lists_in_python
from pcbatch.reading.containers import MUTATORS
from pcbatch.reading.kinds import Kind
from pcbatch.reading.lengths import Lengths
from pcbatch.reading.lists_in_python import List
from pcbatch.reading.rows import Elements, rows_class
from pcbatch.reading.values import Host, Value


class BoundedLists(Lengths):
    """Bounded lists."""

    def bounded(self, function: Host, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
        """A list that `pcbatch.bounded` makes."""
        given = [self.constant(each, "what a bounded list is made with") for each in arguments]
        named = {name: self.constant(each, "what a bounded list is made with") for name, each in keywords.items()}
        try:
            whole = function.value(*given, **named)
        except UsageError as error:
            help = "give an element's shape and dtype, and how many there may be: `pcbatch.bounded([], float, 8)`"
            raise self.refusal(error.code, error.message, help) from None
        except TypeError as error:
            raise self.refusal("PCB401", f"TypeError: {error}") from None
        items = np.asarray(whole.items)
        array = self.new("array", (self.lane(Host(items)),))
        elements = Elements(Kind("lane", TensorType(items.dtype.name, items.shape[1:])), len(items), is_bounded=True)
        rows = self.new("object", {0: array}, rows_class(elements))
        return self.new("object", {"rows": rows, "length": Host(int(whole.length))}, List)

    def attribute(self, value: Value, name: str) -> Value:
        if isinstance(value, Host) and is_bounded_class(type(value.value)) and name in MUTATORS:
            raise self.captured_change(value)
        cell = self.cell(value)
        is_own = cell is not None and cell.cls is List and self.file != lists_in_python.__file__
        if not is_own or name not in ("items", "length", "rows"):
            return super().attribute(value, name)
        assert cell is not None
        rows = self.state.cell(cell.items["rows"])
        elements: Elements = rows.cls.elements  # type: ignore[union-attr]
        if not elements.is_bounded or name == "rows" or elements.kind is None:
            raise self.refusal("PCB401", f"AttributeError: 'list' object has no attribute '{name}'")
        if name == "length":
            return self.known(cell.items["length"])
        with self.kept(rows.items.values()) as row:
            arrays = [self.call_value(Host(np.copy), [each], {}) for each in row]
        kind = elements.kind.with_leaves(self.lane(each).type for each in arrays)
        return self.made_of(kind, iter(arrays), [])


def kind_of_bounded(items: Kind, length: Kind) -> Kind:
    """The kind of a list that comes from outside, by the kinds of what a `pcbatch.Bounded` has."""
    arrays = [*items.leaves()]
    room = min((each.shape[0] for each in arrays), default=0)
    element = items.with_leaves(replace(each, shape=each.shape[1:]) for each in arrays)
    leaves = tuple(Kind("lane", each) for each in arrays)
    elements = Elements(element, room, is_bounded=True)
    rows = Kind("object", items=leaves, keys=tuple(range(len(leaves))), cls=rows_class(elements))
    return Kind("object", items=(rows, length), keys=("rows", "length"), cls=List)


def is_bounded_class(cls: type | None) -> bool:
    """Tell whether objects of a class are the lists that `pcbatch.bounded` makes."""
    return cls is not None and cls.__name__ == "Bounded" and cls.__module__.startswith("pcbatch.")
