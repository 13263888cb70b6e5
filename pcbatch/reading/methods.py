"""Methods that the reader knows, of containers, arrays and bounded lists; objects and functions as operands.

A method of one of several objects is emitted once, on an object that holds what the chosen one holds.

    arms[k].pull(x)          pulls = [pulls0, pulls1][k] + 1
                             pulls0 = pulls if k == 0 else pulls0; pulls1 = pulls if k == 1 else pulls1

So lanes meet in what the method does, whichever object is theirs. That can be done where the objects are of one
structure, the method can reach no other of them, and it changes numbers and arrays only. Elsewhere it is called on
each, where that is the one.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence
from functools import partial
from types import MethodType
from typing import Any

import gast
import numpy as np

from pcbatch.reading.arrays import AN_ELEMENT
from pcbatch.reading.containers import MUTABLE, MUTATORS
from pcbatch.reading.core import NeedsBlocksError, NeedsConstantError, RefusedError
from pcbatch.reading.objects import Objects
from pcbatch.reading.operations import Closed, Named, Record, lanes_in, method, method_of_held
from pcbatch.reading.sources import scope_of
from pcbatch.reading.state import Cell, are_alike, inside
from pcbatch.reading.values import (
    NONE,
    Bound,
    Choice,
    Function,
    Generator,
    Host,
    Lane,
    OneOf,
    Part,
    Ref,
    Tuple,
    Value,
    View,
)
from pcbatch.reading.views import SHAPED, Sliced


class Methods(Objects):
    """Methods."""

    def record(self, value: Value) -> Any:
        if isinstance(value, Tuple):
            assert value.cls is not None
            names: tuple[str, ...] = value.cls._fields  # type: ignore[attr-defined]
            return Record(self.bound(Host(value.cls)), names, tuple(map(self.pattern, value.items)))
        cell = self.cell(value)
        if cell is None or cell.cls is None:
            raise self.refusal("PCB404", f"{self.described(value)} goes into an operation")
        items = tuple(self.pattern(each) for each in cell.items.values())
        return Record(self.bound(Host(cell.cls)), tuple(cell.items), items)

    def closure(self, value: Function | Bound) -> Any:
        if isinstance(value, Bound):
            if isinstance(value.function, Function) and isinstance(value.receiver, Host):
                live: Any = value.function.live
                method = MethodType(live, value.receiver.value)
                return self.host_pattern(Host(method, path=value.function.name), method)
            raise self.refusal("PCB405", "a method of a lane's object goes into an operation", "write a lambda")
        if value.frame is None:
            return self.host_pattern(Host(value.live, path=value.name), value.live)
        return self._closed(value)

    def _closed(self, value: Function) -> Closed:
        """A function that stands in another, made of what it reads of that and of its defaults."""
        if scope_of(value.tree).nonlocals:
            name = min(scope_of(value.tree).nonlocals)
            raise self.refusal(
                "PCB405",
                f"{value.name} assigns `{name}`, a variable around it, and goes into an operation",
                f"let it return `{name}`, or write a loop",
            )
        names = [name for name in sorted(scope_of(value.tree).loads) if name not in scope_of(value.tree).locals]
        live = value.outermost.live
        cells = () if live is None else live.__code__.co_freevars
        free: dict[str, Any] = {}
        for name in names:
            found = self.outer_value(value, name)
            if found is None and name in cells:
                found = self.outside(live, name)
            if found is not None:
                free[name] = self.pattern(found)
        defaults = [*value.defaults, *value.keyword_defaults.values()]
        items = (*free.values(), *map(self.pattern, defaults))
        key = id(value.tree), tuple(free)
        if key not in self._made:
            self._made[key] = self._factory(value, list(free), {} if live is None else live.__globals__)
        name = value.name if value.name.isidentifier() else "inner"
        made = self._made[key]
        self.world.guards.follow(made(*(each.value if isinstance(each, Named) else None for each in items)))
        return Closed(Named(self.names.bind(name, made), made), items)

    def _factory(self, value: Function, free: Sequence[str], around: dict[str, Any]) -> Any:
        """Return a factory of a nested function, from its reads of the enclosing one, by these names, and its defaults.

        All other names mean what they do in its module, `around`.
        """
        plain: Any = gast.gast_to_ast(value.tree)
        arguments = plain.args
        defaults: list[str] = []
        for each in (arguments.defaults, arguments.kw_defaults):
            for place, default in enumerate(each):
                if default is not None:
                    defaults.append(f"_pcb_default_{len(defaults)}")
                    each[place] = ast.Name(defaults[-1], ast.Load())
        own = ast.arguments([], [ast.arg(name) for name in (*free, *defaults)], None, [], [], None, [])
        factory = "_pcb_factory"
        if isinstance(plain, ast.Lambda):
            body: list[Any] = [ast.Return(plain)]
        else:
            plain.decorator_list = []
            body = [plain, ast.Return(ast.Name(plain.name, ast.Load()))]
        function: Any = ast.FunctionDef(factory, own, body, [], None, None)
        function.type_params = []
        module = ast.Module([ast.copy_location(function, plain)], [])
        made: dict[str, Any] = {}
        exec(compile(ast.fix_missing_locations(module), value.file, "exec"), around, made)
        make, as_written = made[factory], self.ops.as_written
        return lambda *given: as_written(make(*given))

    @functools.cached_property
    def _made(self) -> dict[Any, Any]:
        return {}

    def _refuse_beside(self, given: Sequence[Any]) -> None:
        """Refuse the gradient by what a batched function that is one operation reads from around it."""
        for lane in (lane for pattern in given for lane in lanes_in(pattern)):
            captured = self.world.operands.get(lane.name)
            if captured is not None and any(each is captured.value for each in self.beside):
                raise self.refusal(
                    "PCB413",
                    "a gradient is taken by what a loop or a function on the tape reads from around it",
                    "pass it as an argument to a function that is called on the tape",
                )

    def method(self, value: Value, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A call of a method that the reader knows."""
        if isinstance(value, Host) and value.place is not None and value.place.kind == "held":
            given, named = self.patterns(arguments, keywords)
            self._refuse_beside([*given, *named.values()])
            return self.emit(method_of_held(name), [self.bound(value), *given], named)
        if name.startswith("dataclass "):
            op: Any = {"eq": gast.Eq, "lt": gast.Lt, "le": gast.LtE, "gt": gast.Gt, "ge": gast.GtE}[name[12:14]]
            other = self.cell(arguments[0])
            if other is None or other.cls is not self.state.cell(value).cls:  # type: ignore[arg-type]
                return Host(NotImplemented)
            return self.compare(op, self.fields_in_order(value), self.fields_in_order(arguments[0]))
        if isinstance(value, OneOf):
            return self.on_several(value, name, arguments, keywords)
        part = self.ragged(value)
        if part is not None and part.kind == "filtered":
            raise self.refuse_part(part)
        if part is not None:
            found = self.of_ragged(getattr(np, name, None), [value, *arguments], keywords)
            assert found is not None
            if name != "sort":
                return found
            self.set_item(part, Sliced(None, None, None), found)
            return NONE
        if isinstance(value, Part) or self.type_of(value) is not None:
            return self.array_method(value, name, arguments, keywords)
        match value:
            case Ref():
                cell = self.state.cell(value)
                with self.wanting(value):
                    if cell.kind == "list":
                        return self.list_method(value, name, arguments, keywords)
                    if cell.kind == "dict":
                        return self.dict_method(value, name, arguments, keywords)
                    if cell.kind == "set":
                        return self._set_method(value, cell, name, arguments)
            case Tuple(items, cls):
                if name == "_replace":
                    assert cls is not None
                    fields = dict(zip(cls._fields, items, strict=True)) | keywords  # type: ignore[attr-defined]
                    return Tuple(tuple(fields.values()), cls)
                if name == "_asdict":
                    assert cls is not None
                    return self.new("dict", dict(zip(cls._fields, items, strict=True)))  # type: ignore[attr-defined]
                if name in ("index", "count"):
                    return self.list_method(self.new("list", items), name, arguments, keywords)
            case Host(host) if isinstance(host, dict):
                return self.dict_method(value, name, arguments, keywords)
            case Host(host):
                if isinstance(host, MUTABLE) and name in MUTATORS:
                    raise self.captured_change(value)
                known = [
                    self.constant_text(self.read(each)) if isinstance(host, str) else self.constant(each, "an argument")
                    for each in arguments
                ]
                named = {key: self.constant(each, "an argument") for key, each in keywords.items()}
                return self.host(getattr(host, name)(*known, **named))
        raise self.refusal("PCB401", f"AttributeError: {self.described(value)} has no method `{name}`")

    def _set_method(self, value: Ref, cell: Cell, name: str, arguments: Sequence[Value]) -> Value:
        keys = [self.constant(each, AN_ELEMENT) for each in arguments]
        found = set(cell.items)
        result = getattr(found, name)(*keys)
        self.change(value, items=dict.fromkeys(found, NONE))
        if isinstance(result, set):
            return self.new("set", dict.fromkeys(result, NONE))
        return self.host(result)

    def on_several(self, value: OneOf, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A method of one of several objects: what it does to each, where it is that one."""

        def called(item: Value) -> Value:
            function = item if name == "__call__" else self.method_of(item, name) or self.attribute(item, name)
            return self.call_value(function, list(arguments), dict(keywords))

        return self.on_each(value, called)

    def array_method(self, value: Value, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A method of an array."""
        source = self.pattern(self.read(value))
        given, named = self.patterns(arguments, keywords)
        if name == "sort" or (name == "fill" and len(arguments) == 1):
            type_ = self.type_of(value)
            assert type_ is not None
            new = self.call_value(Host(np.sort), [value, *arguments], keywords) if name == "sort" else arguments[0]
            self.store_element(value, tuple(Sliced(None, None, None) for _ in type_.shape), new)
            return NONE
        if name == "astype" and "copy" in named:
            same = self.emit(method(name), [source, *given])
            if named.pop("copy") is False and self.type_of(same) == self.type_of(value):
                return value
            return same
        found = self.emit(method(name), [source, *given], named)
        if name in ("copy", "flatten") and isinstance(found, Lane):
            self.state.origins.pop(found.name, None)  # these lie row by row
        if name not in SHAPED:
            return found
        try:
            shape = [self.constant(each, "a shape") for each in arguments]
            options = {key: self.constant(each, "an option") for key, each in keywords.items()}
        except NeedsConstantError:
            return found
        return self.shaped(value, name, lambda array: getattr(array, name)(*shape, **options), found)


Row = tuple[Ref, ...]
"""Cells that correspond, one of each of several objects."""
OTHERS = Ref | View | OneOf | Choice | Part | Bound | Function
"""Values that are no numbers and no arrays."""


class Gathered(Methods):
    """Methods of one of several objects."""

    def on_several(self, value: OneOf, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        rows = self._rows_of_cells(value.items)
        if rows is not None and self._reach_none(rows, [*arguments, *keywords.values()]):
            mark = self.mark()
            try:
                return self._on_gathered(value, rows, name, arguments, keywords)
            except (_OtherwiseError, RefusedError, NeedsBlocksError):
                self.back_to(mark)
        return super().on_several(value, name, arguments, keywords)

    def _rows_of_cells(self, items: Sequence[Ref]) -> list[Row] | None:
        """The cells of objects of one structure, row by row; None where they have none, or share a part."""
        rows = [tuple(items)]
        for row in rows:
            cells = [self.state.cell(ref) for ref in row]
            if not are_alike(cells) or cells[0].kind not in ("object", "list", "dict", "array"):
                return None
            if len({tuple(key for key, _ in cell.parts()) for cell in cells}) > 1:
                return None
            for parts in zip(*(dict(cell.parts()).values() for cell in cells), strict=True):
                if all(isinstance(each, Ref) for each in parts):
                    rows.append(parts)
                elif any(
                    isinstance(each, Ref | View | OneOf | Choice | Bound | Function) or inside(each) for each in parts
                ):
                    return None
            if len({ref.cell for each in rows for ref in each}) < len(items) * len(rows):
                return None
        return rows

    def _reach_none(self, rows: Sequence[Row], given: Sequence[Value]) -> bool:
        """Tell whether a method cannot reach the objects by what it is given."""
        cells = {ref.cell for row in rows for ref in row}
        return not any(
            isinstance(each, Function | Bound | Generator | View) or (isinstance(each, Ref) and each.cell in cells)
            for each in self.state.reachable(iter(given))
        )

    def _on_gathered(
        self, value: OneOf, rows: Sequence[Row], name: str, arguments: Sequence[Value], keywords: dict[str, Value]
    ) -> Value:
        cells = [[self.state.cell(ref) for ref in row] for row in rows]
        refs = [self.new(row[0].kind, (), row[0].cls) for row in cells]
        twins = dict(zip(rows, refs, strict=True))
        for ref, row in zip(refs, cells, strict=True):
            parts = [dict(cell.parts()) for cell in row]

            def gathered(key: Any, first: Value, parts: Any = parts) -> Value:
                if isinstance(first, Ref):
                    return twins[tuple(each[key] for each in parts)]
                return self.taken([each[key] for each in parts], value.index)

            self.state.heap[ref.cell] = row[0].with_parts(gathered)
        before = [self.state.cell(ref) for ref in refs]
        with self.kept(refs) as kept:
            function = refs[0] if name == "__call__" else self.method_of(refs[0], name) or self.attribute(refs[0], name)
            found = self.call_value(function, list(arguments), dict(keywords))
            if not self.is_live:
                return found
            if list(kept) != refs:
                raise _OtherwiseError
        with self.kept([found]) as kept:
            self._refuse_choices_of(refs)
            for targets, ref, old in zip(rows, refs, before, strict=True):
                self._scattered(value, targets, dict(old.parts()), ref)
            several = {ref.cell: OneOf(value.index, targets) for targets, ref in zip(rows, refs, strict=True)}
            self.state.mapped(lambda each: several.get(each.cell) if isinstance(each, Ref) else None)
            return kept[0]

    def _refuse_choices_of(self, refs: Sequence[Ref]) -> None:
        """Give up where the stand-ins are among others in what a lane has one of: they cannot be told apart there."""
        numbers = {ref.cell for ref in refs}
        names = {f"#{number}" for number in numbers}
        is_one_of_them = any(
            isinstance(each, OneOf) and not numbers.isdisjoint(ref.cell for ref in each.items)
            for each in self.state.reachable()
        )
        if is_one_of_them or any(not names.isdisjoint(each) for each in self.state.origins.values()):
            raise _OtherwiseError

    def _scattered(self, value: OneOf, row: Row, before: dict[Any, Value], ref: Ref) -> None:
        """Give the object of a row that is the one what a method has left."""
        now = dict(self.state.cell(ref).parts())
        if list(now) != list(before):
            raise _OtherwiseError
        changed = {key: new for key, new in now.items() if new is not before[key]}
        for place, each in enumerate(row):
            cell = self.state.cell(each)
            old = dict(cell.parts())
            found: dict[Any, Value] = {}
            for key, new in changed.items():
                if self.type_of(new) is None or self.type_of(old[key]) is None:
                    raise _OtherwiseError
                found[key] = self.selection(self.is_place(value.index, place), new, old[key])
            if changed:
                made = cell.with_parts(partial(_replaced, found))
                self.change(each, items=made.items, version=cell.version + 1)


def _replaced(found: Mapping[Any, Value], key: Any, value: Value) -> Value:
    return found.get(key, value)


class _OtherwiseError(Exception):
    """A method changes more of an object than its numbers and arrays."""
