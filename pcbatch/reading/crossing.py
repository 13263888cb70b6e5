"""Values that cross a call: their kinds on one side, and made of kinds on the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pcbatch.reading.kinds import Kind
from pcbatch.reading.methods import Methods
from pcbatch.reading.sources import scope_of
from pcbatch.reading.specialisations import Specialisation
from pcbatch.reading.values import (
    Bound,
    Frame,
    Function,
    Host,
    Lane,
    Lazy,
    OneOf,
    Range,
    Ref,
    Tuple,
    Value,
)


class Crossing(Methods):
    """Kinds of values."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._ending: Specialisation | None = None
        """The function of which a result is taken apart."""
        self._given_leaves: Sequence[Value] = ()
        """The arrays and numbers that the call was given of which a result is made."""

    def kind_of(self, value: Value, leaves: list[Value], seen: dict[Any, int], *, is_static: bool = False) -> Kind:
        """The kind of a value that crosses a call; its numbers and arrays go to `leaves`."""
        value = self.known(value)
        type_ = self.type_of(value)
        if type_ is not None and type_.shape and self._ending is not None:
            number = self._given_number(self._ending, value)
            if number is not None:
                return Kind("given", number)
        if type_ is not None and not (is_static and isinstance(value, Host)):
            leaves.append(value)
            return Kind("lane", type_)
        match value:
            case Host():
                return Kind("host", value=value)
            case Tuple(items, cls):
                return Kind("tuple", items=self._kinds(items, leaves, seen, is_static), cls=cls)
            case Range(start, stop, step):
                return Kind("range", items=self._kinds((start, stop, step), leaves, seen, is_static))
            case Lazy(name, parts):
                return Kind("lazy", items=self._kinds(parts, leaves, seen, is_static), cls=name)
            case Ref(number):
                if number in seen:
                    return Kind("same", seen[number])
                seen[number] = len(seen)
                cell = self.state.cell(value)
                own = dict(cell.parts())
                items_of = self._kinds(list(own.values()), leaves, seen, is_static)
                return Kind(cell.kind, items=items_of, keys=tuple(own), cls=cell.cls)
            case Bound(function, receiver) if isinstance(function, str):
                return Kind("method", items=self._kinds([receiver], leaves, seen, is_static), cls=function)
            case Bound(Function() as function, receiver):
                return Kind("bound", items=self._kinds([function, receiver], leaves, seen, is_static))
            case Function() if value.frame is None and not value.defaults and not value.keyword_defaults:
                return Kind("host", value=value)
            case Function():
                key = id(value.tree), value.frame.number  # type: ignore[union-attr]
                if key in seen:
                    return Kind("same", seen[key])
                seen[key] = len(seen)
                return self._kind_of_function(value, leaves, seen)
            case OneOf() if all(self.kind(each) == "array" for each in value.items):
                return self.kind_of(self.selected(value), leaves, seen)
        raise self.refusal("PCB206", f"{self.described(value)} is handed to a function that is a part of the program")

    def _given_number(self, spec: Specialisation, value: Value) -> int | None:
        """Which array of its caller's a plain function gives back; refused for a part of one."""
        if isinstance(value, Lane) and value.name in spec.lanes:
            return spec.lanes.index(value.name)
        if isinstance(value, Ref) and value in spec.arrays:
            return spec.stored[spec.arrays.index(value)]
        known = {*spec.lanes, *(f"#{ref.cell}" for ref in spec.arrays)}
        if not known.isdisjoint(self.shares(value)):
            raise self.refusal(
                "PCB420",
                f"{spec.function.name} gives back a part of an array of its caller's, or one of several",
                "give back a copy: `return a[:2].copy()`",
            )
        return None

    def _kinds(
        self, values: Sequence[Value], leaves: list[Value], seen: dict[Any, int], is_static: bool
    ) -> tuple[Kind, ...]:
        return tuple(self.kind_of(each, leaves, seen, is_static=is_static) for each in values)

    def _kind_of_function(self, value: Function, leaves: list[Value], seen: dict[Any, int]) -> Kind:
        """A function that stands in another: with what it reads of that."""
        names = self.free_names(value)
        found = [self.outer_value(value, name) for name in names]
        items = self._kinds([*found, *value.defaults, *value.keyword_defaults.values()], leaves, seen, False)
        return Kind("function", items=items, keys=tuple(names), cls=_Closure(value))

    def free_names(self, value: Function) -> list[str]:
        """The variables of functions around it that a function reads."""
        scope = scope_of(value.tree)
        return [n for n in sorted(scope.loads) if n not in scope.locals and self.outer_value(value, n) is not None]

    def outer_value(self, value: Function, name: str) -> Any:
        """What a name means in the functions around another one; None where they have no such variable."""
        frame = value.frame
        while frame is not None:
            found = self.state.names.get((frame.number, name))
            if found is not None:
                return found
            frame = frame.function.frame
        return None

    def made_of(self, kind: Kind, leaves: Iterator[Value], made: list[Any]) -> Value:
        """A value of a kind, of these numbers and arrays."""
        match kind.form:
            case "lane":
                return next(leaves)
            case "host":
                assert kind.value is not None
                return kind.value
            case "same":
                return made[kind.type]
            case "given":
                return self._given_leaves[kind.type]
            case "tuple":
                return Tuple(tuple(self.made_of(each, leaves, made) for each in kind.items), kind.cls)
            case "range":
                return Range(*(self.made_of(each, leaves, made) for each in kind.items))
            case "lazy":
                return Lazy(kind.cls, tuple(self.made_of(each, leaves, made) for each in kind.items))
            case "method":
                return Bound(kind.cls, self.made_of(kind.items[0], leaves, made))
            case "bound":
                function, receiver = (self.made_of(each, leaves, made) for each in kind.items)
                assert isinstance(function, Function)
                return Bound(function, receiver)
            case "function":
                return self._function_made(kind, leaves, made)
        ref = self.new(kind.form, (), kind.cls)  # type: ignore[arg-type]
        made.append(ref)
        items = [self.made_of(each, leaves, made) for each in kind.items]
        is_keyed = kind.form in ("dict", "object", "set")
        self.state.set_cell(ref, items=dict(zip(kind.keys, items, strict=True)) if is_keyed else tuple(items))
        return ref

    def _function_made(self, kind: Kind, leaves: Iterator[Value], made: list[Any]) -> Function:
        """A function that stands in another, in a frame that has what it reads of that."""
        function: Function = kind.cls.function
        around = Function("around", function.tree, function.file, None, self._live_of(function))
        frame = Frame(self.number(), around)
        frame.escapes.append(True)
        known = Function(function.name, function.tree, function.file, frame)
        made.append(known)
        items = [self.made_of(each, leaves, made) for each in kind.items]
        for name, value in zip(kind.keys, items, strict=False):
            self.state.names[frame.number, name] = value
        rest = items[len(kind.keys) :]
        count = len(function.defaults)
        keyword = dict(zip(function.keyword_defaults, rest[count:], strict=True))
        if not rest:
            return known
        found = replace(known, defaults=tuple(rest[:count]), keyword_defaults=keyword)
        self.replace(lambda value: found if value is known else None)
        return found

    def _live_of(self, function: Function) -> Any:
        while function.frame is not None:
            function = function.frame.function
        return function.live


@dataclass(frozen=True)
class _Closure:
    """A function that stands in another, told from others by its tree."""

    function: Function = field(compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Closure) and other.function.tree is self.function.tree

    def __hash__(self) -> int:
        return id(self.function.tree)
