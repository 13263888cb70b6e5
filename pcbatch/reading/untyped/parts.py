"""Parts of values of which nothing is known: elements and attributes, and what changes them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

from pcbatch.ir import program as ir
from pcbatch.reading.operations import GETITEM, Operation, attribute, builtin, method
from pcbatch.reading.untyped.values import Unknowns
from pcbatch.reading.values import Bound, Host, Lane, Ref, Value
from pcbatch.reading.views import Index, Sliced

TAKING = frozenset({"pop", "popitem", "popleft", "setdefault"})
"""Methods that give something and change their object."""
CHANGED, TAKEN, STORED, WITH_FIELD = map(builtin, ("__changed__", "__taken__", "__stored__", "__with_field__"))


class Parts(Unknowns):
    """Items, attributes and methods."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._within: dict[Any, tuple[Value, Operation, Any]] = {}
        """Of variables and objects that are a part of an unknown value: of which, and what puts them back there."""

    # -- reading -------------------------------------------------------------------------------------------------------

    def part_of(self, whole: Value, operation: Operation, index: Index) -> Value:
        pattern = self.index_pattern(index)
        found = self.emit(operation, [self.pattern(whole), pattern])
        if isinstance(found, Lane) and not isinstance(index, Sliced):
            self._within[found.name] = whole, STORED, pattern
        return found

    def element(self, array: Value, index: Index) -> Value:
        return self.part_of(array, GETITEM, index)

    def unpacked(self, value: Value, count: int, star: int | None) -> list[Value]:
        if not self.is_unknown(value):
            return super().unpacked(value, count, star)
        if star is None:
            return [self.part_of(value, GETITEM, Host(k)) for k in range(count)]
        behind = count - star - 1
        end = Host(-behind) if behind else None
        middle = self.emit(GETITEM, [self.pattern(value), self.index_pattern(Sliced(Host(star), end, None))])
        first = [self.part_of(value, GETITEM, Host(k)) for k in range(star)]
        return [*first, middle, *(self.part_of(value, GETITEM, Host(k - behind)) for k in range(behind))]

    def _slice(self, node: Any, lower: Any, upper: Any, step: Any) -> Sliced:
        first, last, by = (None if each is None else self.read(self.expression(each)) for each in (lower, upper, step))
        return Sliced(first, last, by)

    def attribute(self, value: Value, name: str) -> Value:
        value = self.known(value)
        if self.is_opaque(value):
            assert isinstance(value, Host)
            match value.value.opaque_name.methods.get(name):
                case property(fget=FunctionType() as getter) | functools.cached_property(func=FunctionType() as getter):
                    return self._got(getter, object, value)
            return self.host(getattr(value.value, name), value.place)
        return super().attribute(value, name)

    def of_array(self, value: Value, name: str) -> Value:
        found = self.emit(attribute(name), [self.pattern(value)])
        if isinstance(found, Lane):
            self._within[found.name] = value, WITH_FIELD, name
        return found

    def method_of(self, value: Value, name: str) -> Value | None:
        if not self.is_opaque(value):
            return super().method_of(value, name)
        own = value.value.opaque_name  # type: ignore[union-attr]
        found = own.methods.get(name) if own.is_object else None
        known = self.function_of(found) if isinstance(found, FunctionType) else None
        return None if known is None else Bound(known, value)

    # -- changing ------------------------------------------------------------------------------------------------------

    def become(self, value: Value, new: Value) -> None:
        """Let an unknown value be another one under all its names."""
        ref = self._celled(value)
        cell = self.state.cell(ref)
        self.state.set_cell(ref, items=(self.lane(new),), version=cell.version + 1)
        self._put_back(ref)

    def _celled(self, value: Value) -> Ref:
        if isinstance(value, Ref):
            return value
        if isinstance(value, Host):
            return self.own_of_host(value)
        assert isinstance(value, Lane)
        ref = self.own(value)
        if value.name in self._within:
            self._within[ref.cell] = self._within[value.name]
        return ref

    def _put_back(self, ref: Ref) -> None:
        """Let what a changed value is a part of have it, too."""
        if ref.cell not in self._within:
            return
        whole, operation, where = self._within[ref.cell]
        if isinstance(whole, Host) or (isinstance(whole, Ref) and not self.is_unknown(whole)):
            return
        places = where if isinstance(where, tuple) else (where,)
        self.become(whole, self.emit(operation, [self.pattern(whole), self.pattern(ref), *places]))

    def store_element(self, array: Value, index: Index, value: Value) -> None:
        ref = self._celled(array)
        cell = self.state.cell(ref)
        parts = index if isinstance(index, tuple) else (index,)
        current = cell.items[0]
        known = [None if isinstance(each, Sliced) else self.read(each) for each in parts]
        if any(each is None or not self._is_index(each) for each in known) or self.guard is not None or self.contexts:
            patterns = [self.index_pattern(each) for each in parts]
            self.become(ref, self.emit(STORED, [self.pattern(current), self.pattern(value), *patterns]))
            return
        if not isinstance(current, Lane) or current.name not in self.types:
            current = self.lane(current)
            self.state.set_cell(ref, items=(current,))
        places = tuple(self.lane(each).name for each in known if each is not None)
        self.emitter.append(ir.Store(current.name, places, self.lane(value).name, self.span()))
        self.state.set_cell(ref, version=self.state.cell(ref).version + 1)
        self._put_back(ref)

    def _is_index(self, value: Value) -> bool:
        return self.is_unknown(value) or (isinstance(value, Host) and isinstance(value.value, int | str))

    def set_item(self, whole: Value, index: Index, value: Value) -> None:
        whole = self.known(whole)
        at = index if isinstance(index, tuple) else (index,)
        is_known = not any(self.has_unknown(each) for each in at if not isinstance(each, Sliced))
        if isinstance(whole, Ref) and not self.is_unknown(whole) and not is_known and self.kind(whole) != "object":
            self.forget(whole)
        if self.is_unknown(whole):
            self.store_element(whole, index, value)
        else:
            super().set_item(whole, index, value)

    def set_attribute(self, value: Value, name: str, new: Value) -> None:
        value = self.known(value)
        if self.is_unknown(value):
            self.become(value, self.emit(WITH_FIELD, [self.pattern(value), self.pattern(new), name]))
        else:
            super().set_attribute(value, name, new)

    def delete_item(self, whole: Value, index: Index) -> None:
        whole = self.known(whole)
        if self.is_unknown(whole):
            given = [self.pattern(whole), "__delitem__", self.index_pattern(index)]
            self.become(whole, self.emit(CHANGED, given))
        else:
            super().delete_item(whole, index)

    # -- methods -------------------------------------------------------------------------------------------------------

    def method(self, value: Value, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        if not self.is_unknown(value):
            return super().method(value, name, arguments, keywords)
        given, named = self.patterns(arguments, keywords)
        if name not in TAKING:
            return self.emit(method(name), [self.pattern(value), *given], named)
        found = self.emit(TAKEN, [self.pattern(value), name, *given], named)
        result, after = found.items  # type: ignore[union-attr]
        self.become(value, after)
        return result

    def bounded(self, function: Host, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
        return self.opaque(function, arguments, dict(keywords))

    def changed(self, value: Value, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> None:
        """A method that is called for what it does to an unknown value."""
        given = [self.pattern(value), name, *map(self.pattern, arguments)]
        named = {key: self.pattern(each) for key, each in keywords.items()}
        self.become(value, self.emit(CHANGED, given, named))
