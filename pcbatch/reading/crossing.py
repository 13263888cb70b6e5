"""Values that cross a call: their kinds on one side, and made of kinds on the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pcbatch.ir import values
from pcbatch.reading.core import A_LIST
from pcbatch.reading.kinds import Kind, Specialisation
from pcbatch.reading.methods import Gathered
from pcbatch.reading.several import NUMBER, is_word
from pcbatch.reading.sources import scope_of
from pcbatch.reading.state import Cell
from pcbatch.reading.values import (
    Bound,
    Choice,
    Frame,
    Function,
    Generator,
    Host,
    Lane,
    Lazy,
    OneOf,
    Optional,
    Part,
    Range,
    Ref,
    Tuple,
    Value,
    is_none,
)

Stays = Callable[[Host], bool]
"""A predicate: whether a known number or array stays known behind a call."""


def _never(value: Host) -> bool:
    return False


def always(value: Host) -> bool:
    """Return what is static stays known."""
    return True


class Crossing(Gathered):
    """Kinds of values."""

    # of parts above
    _comes_by_value: Callable[[], bool]

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._ending: Specialisation | None = None
        """The function of which a result is taken apart."""
        self._is_result = False
        """True for a result that is taken apart: of several words it may be another one elsewhere."""
        self._gives_numbers = False
        """Tell whether members of an IntEnum are numbers in a result: beside them it has numbers on another way."""
        self._is_apart = False
        """True if nobody sees changes of the crossing value: it is passed by value."""
        self._given_leaves: Sequence[Value] = ()
        """The arrays and numbers that the call was given of which a result is made."""
        self._several: dict[int, Sequence[Ref]] = {}
        """The objects of which one, of what number differs by lane, has been copied to cross a call by value."""
        self._is_whole = False
        """True if given objects come back with all of their parts, for callers that lack them."""

    def kind_of(self, value: Value, leaves: list[Value], seen: dict[Any, int], stays: Stays = _never) -> Kind:
        """The kind of a value that crosses a call; its numbers and arrays go to `leaves`, unless they stay known."""
        value = self.known(value)
        type_ = self.type_of(value)
        is_among = isinstance(value, Choice) or (self._is_result and is_word(value) and not is_none(value))
        if is_among and (type_ is None or not (self._is_result and self._gives_numbers)):
            leaves.append(self.number_of(value))
            return Kind("word", items=(Kind("lane", NUMBER),), keys=self.numbers_of([value]))
        if type_ is not None and type_.shape and self._ending is not None:
            number = self._given_number(self._ending, value)
            if number is not None:
                return Kind("given", number)
        is_one = is_word(value) and not (self._is_result or self._is_apart)
        is_known = isinstance(value, Host) and (is_one or stays(value))
        if type_ is not None and not is_known:
            leaves.append(value)
            cell = self.cell(value)
            return Kind("lane", type_, is_held=cell is not None and cell.is_held)
        match value:
            case Host():
                return Kind("host", value=value)
            case Optional(there=there):
                return Kind("optional", items=self._kinds([there, value.content], leaves, seen, stays))
            case Tuple(items, cls):
                return Kind("tuple", items=self._kinds(items, leaves, seen, stays), cls=cls)
            case Range(start, stop, step):
                return Kind("range", items=self._kinds((start, stop, step), leaves, seen, stays))
            case Lazy("ragged" | "masked") if self._is_result and self._comes_by_value():
                return self.kind_of_rows(value, leaves)
            case Lazy("ragged", (rows, Host() as start, *rest)) if not self._is_result:
                first, *others = self._kinds([rows, *rest], leaves, seen, stays)
                return Kind("lazy", items=(first, Kind("host", value=start), *others), cls="ragged")
            case Lazy(name, parts):
                return Kind("lazy", items=self._kinds(parts, leaves, seen, stays), cls=name)
            case Ref(number):
                if number in seen:
                    content = (self._content(value, leaves),) if self._is_whole else ()
                    return Kind("same", seen[number], content)
                if self._ending is not None and not seen.keys().isdisjoint(self.state.twins.get(number, ())):
                    raise self.refusal(
                        "PCB420",
                        f"{self._ending.function.name} gives back a new object, or one of its caller's",
                        "give back a copy: `return copy.copy(..)`",
                    )
                seen[number] = len(seen)
                cell = self.state.cell(value)
                own = in_order(cell)
                items_of = self._kinds(list(own.values()), leaves, seen, stays)
                return Kind(
                    cell.kind, items=items_of, keys=tuple(own), cls=cell.cls, site=cell.site, is_held=cell.is_held
                )
            case Bound(function, receiver) if isinstance(function, str):
                return Kind("method", items=self._kinds([receiver], leaves, seen, stays), cls=function)
            case Bound(Function() as function, receiver):
                return Kind("bound", items=self._kinds([function, receiver], leaves, seen, stays))
            case Function() if value.frame is None and not value.defaults and not value.keyword_defaults:
                return Kind("host", value=value)
            case Function():
                key = id(value.tree), value.frame.number  # type: ignore[union-attr]
                if key in seen:
                    return Kind("same", seen[key])
                seen[key] = len(seen)
                return self._kind_of_function(value, leaves, seen)
            case OneOf(index, items) if self._is_apart and seen.keys() >= {each.cell for each in items}:
                return Kind("oneof", items=self._kinds([index, *items], leaves, seen, stays))
            case OneOf(items=items) if self._is_apart or all(self.kind(each) == "array" for each in items):
                chosen = self.selected(value)
                if isinstance(chosen, Ref):
                    self._several[chosen.cell] = items
                return self.kind_of(chosen, leaves, seen)
        if isinstance(value, Part):
            raise self.no_constant(*value.why)
        what = f"{self.described(value)} is handed to a function that is compiled as one of its own"
        is_generator = isinstance(value, Generator)
        raise self.refusal("PCB404", what, A_LIST if is_generator else "hand over what is in it")

    def unshared(self, value: Value, around: tuple[int, ...] = ()) -> Value:
        """`value` with an object of its own wherever it has one: what a batch gives has no object twice."""
        value = self.known(value)
        if isinstance(value, Tuple):
            return replace(value, items=tuple(self.unshared(each, around) for each in value.items))
        if isinstance(value, OneOf):
            value = self.selected(value)
        cell = self.cell(value)
        if cell is None or not isinstance(value, Ref) or cell.kind == "array":
            return value
        if value.cell in around:
            raise self.refusal(
                "PCB404", f"{self.described(value)} that contains itself is returned", "return its parts"
            )
        inner = (*around, value.cell)
        return self.new_like(cell.with_parts(lambda _, part: self.unshared(part, inner)))

    def _content(self, value: Ref, leaves: list[Value]) -> Kind:
        """The kind of an object that was given, by itself."""
        self._is_whole = False
        try:
            return self.kind_of(value, leaves, {})
        finally:
            self._is_whole = True

    def _given_number(self, spec: Specialisation, value: Value) -> int | None:
        """Return the number of the caller's array that a plain function returns; refuse a part of one."""
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
        self, values: Sequence[Value], leaves: list[Value], seen: dict[Any, int], stays: Stays = _never
    ) -> tuple[Kind, ...]:
        return tuple(self.kind_of(each, leaves, seen, stays) for each in values)

    def _kind_of_function(self, value: Function, leaves: list[Value], seen: dict[Any, int]) -> Kind:
        """A function that stands in another: with what it reads of that."""
        names = self.free_names(value)
        found = [self.outer_value(value, name) for name in names]
        items = self._kinds([*found, *value.defaults, *value.keyword_defaults.values()], leaves, seen)
        return Kind("function", items=items, keys=tuple(names), cls=_Closure(value))

    def free_names(self, value: Function) -> list[str]:
        """The variables of functions around it that a function reads."""
        scope = scope_of(value.tree)
        names = sorted({*scope.loads, *scope.nonlocals} - scope.locals)
        return [name for name in names if self.outer_value(value, name) is not None]

    def made_of(self, kind: Kind, leaves: Iterator[Value], made: list[Any]) -> Value:
        """A value of a kind, of these numbers and arrays."""
        match kind.form:
            case "lane" if kind.is_held:
                leaf = next(leaves)
                array = leaf if isinstance(leaf, Ref) else self.new("array", (leaf,))
                self.state.set_cell(array, is_held=True)
                return array
            case "lane":
                return next(leaves)
            case "host":
                assert kind.value is not None
                return kind.value
            case "same":
                for item in kind.items:
                    self.made_of(item, leaves, [])
                return made[kind.type]
            case "oneof":
                index, *items = (self.made_of(each, leaves, made) for each in kind.items)
                if isinstance(index, Host):
                    return items[index.value]
                assert isinstance(index, Lane)
                return OneOf(index, tuple(each for each in items if isinstance(each, Ref)))
            case "optional":
                there, content = (self.made_of(each, leaves, made) for each in kind.items)
                assert isinstance(there, Host | Lane)
                return self.or_none(there, content)
            case "given":
                return self._given_leaves[kind.type]
            case "word":
                return self.one_word(next(leaves), kind.keys)
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
        self.state.set_cell(ref, site=kind.site, is_held=kind.is_held)
        made.append(ref)
        items = [self.made_of(each, leaves, made) for each in kind.items]
        is_keyed = kind.form in ("dict", "object", "set")
        self.state.set_cell(ref, items=dict(zip(kind.keys, items, strict=True)) if is_keyed else tuple(items))
        return ref

    def _function_made(self, kind: Kind, leaves: Iterator[Value], made: list[Any]) -> Function:
        """A function that stands in another, in a frame that has what it reads of that."""
        function: Function = kind.cls.function
        around = Function("around", function.tree, function.file, None, function.outermost.live)
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
        self.state.mapped(lambda value: found if value is known else None)
        return found


def in_order(cell: Cell) -> dict[Any, Value]:
    """The parts of an object by key: fields of a dataclass as it declares them."""
    parts = dict(cell.parts())
    known = (cell.cls and values.field_names(cell.cls)) or ()
    return {**{name: parts[name] for name in known if name in parts}, **parts}


@dataclass(frozen=True)
class _Closure:
    """A function that stands in another, told from others by its tree."""

    function: Function = field(compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Closure) and other.function.tree is self.function.tree

    def __hash__(self) -> int:
        return id(self.function.tree)
