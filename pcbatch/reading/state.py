"""The state of an interpretation: the variables of all frames, and the heap of objects that can change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol

from pcbatch.ir.types import TensorType
from pcbatch.lowering.captures.guarded_paths import Place
from pcbatch.lowering.captures.guards import Guards
from pcbatch.reading.values import (
    Attributes,
    Bound,
    Choice,
    Function,
    Generator,
    Item,
    Lane,
    Lazy,
    OneOf,
    Optional,
    Range,
    Ref,
    Super,
    Tuple,
    Value,
    View,
    is_same,
)

CellKind = Literal["list", "dict", "set", "object", "array", "fixed"]
GIVEN, OWN = " given ", " own "
"""The beginnings of names, of no frame, by which the objects of a function's parameters stay known to its end: those
of its caller, and those that are its own."""
Name = tuple[int, str]
"""A variable: the number of its frame, and its name there."""


def array_name(number: int) -> Name:
    """The name by which an array that a function stores into, its parameter of this number, stays known to its end."""
    return 0, f"{GIVEN}array {number}"


@dataclass(frozen=True)
class Home:
    """A place in rows, as they were: `version` counts what has been put into them, `whole` is the element there."""

    rows: Ref
    index: Value
    version: int
    whole: Value


@dataclass(frozen=True, eq=False)
class Cell:
    """An object that can change, as it is now. Nobody changes a Cell: the heap gets another one.

    `items` are a list's elements, a dict's values or an object's attributes by key, an array's one variable; `cls` is
    the class of an object. `version` counts the stores into an array's variable. A "fixed" one holds a function, or an
    object of the world, where it may be one of several.
    """

    kind: CellKind
    items: Any
    cls: type | None = None
    version: int = 0
    site: Any = None
    """The place where a container is made, if its length may come to differ by lane; see `lengths`."""
    is_held: bool = False
    """True if a list whose length differs by lane has it inside, as a value."""
    home: Home | None = None
    """The place in rows that it was read from: where a change of it is written back; None if nobody knows it."""
    variable: str = ""
    """The variable that an array was before it became an object."""
    is_spread: bool = False
    """Of rows, whether what can change in them may stand in two places: nothing is written back then."""

    def parts(self) -> Iterator[tuple[Any, Value]]:
        """The values inside, each with its key."""
        return iter(self.items.items()) if isinstance(self.items, dict) else iter(enumerate(self.items))

    def with_parts(self, change: Callable[[Any, Value], Value]) -> Cell:
        """The cell with each of its values changed; itself if none is."""
        new = {key: change(key, value) for key, value in self.parts()}
        if all(new[key] is value for key, value in self.parts()):
            return self
        return replace(self, items=new if isinstance(self.items, dict) else tuple(new.values()))


def are_alike(cells: Sequence[Cell]) -> bool:
    """Tell whether objects have the same structure."""
    first = cells[0]
    if any(cell.kind != first.kind or cell.cls is not first.cls for cell in cells):
        return False
    if first.kind == "object":
        return True
    if isinstance(first.items, dict):
        return all(list(cell.items) == list(first.items) for cell in cells)
    return all(len(cell.items) == len(first.items) for cell in cells)


def sites_of(cells: Sequence[Cell]) -> tuple[Any, ...]:
    """The places where containers were made whose length may come to differ by lane."""
    return tuple(cell.site for cell in cells if cell.kind in ("list", "dict", "set") and cell.site is not None)


TURNED, STRIDED = "turned ", "strided "
"""Beginnings of origins that say that NumPy may not have an array row by row in memory: neither it nor a new array that
is computed from it, as with a transpose; or it alone, as with every second element."""


def only_layouts(origins: Iterable[str]) -> frozenset[str]:
    """Those of an array's origins that say how it lies in memory."""
    return frozenset(each for each in origins if each.startswith((TURNED, STRIDED)))


def without_layouts(origins: Iterable[str]) -> Iterator[str]:
    """The others: what an array may share its elements with."""
    return (each for each in origins if not each.startswith((TURNED, STRIDED)))


def laid_anyhow(lanes: Iterable[Lane]) -> dict[str, frozenset[str]]:
    """Origins of arrays of which nobody knows how they lie in memory."""
    arrays = {each.name: each.type.shape for each in lanes if isinstance(each.type, TensorType) and each.type.shape}
    return {name: frozenset({(TURNED if shape[1:] else STRIDED) + name}) for name, shape in arrays.items()}


@dataclass(eq=False)
class State:
    """Variables and heap. Copying is cheap: values and cells never change themselves."""

    names: dict[Name, Value] = field(default_factory=dict)
    heap: dict[int, Cell] = field(default_factory=dict)
    origins: dict[str, frozenset[str]] = field(default_factory=dict)
    """Of arrays that are one of several by now: the variables that they may share their elements with. Of those
    that may lie in memory otherwise than row by row, a mark that says so."""
    places: dict[Name, tuple[Any, str]] = field(default_factory=dict)
    """The places of the last assignments of variables, for messages: a node, and its file."""

    twins: dict[int, frozenset[int]] = field(default_factory=dict)
    """Of objects that may be others, or not: these others."""
    facts: dict[str, bool] = field(default_factory=dict)
    """Bools of the lane's that are known on this way, since it is the one that a test on them has taken."""
    meanings: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Of bools that are made of such: "not", "and" or "or", and the names of those that they are made of. Of those that
    tell which word a lane has, "word", the name of its number, and the words that it is not where they hold, or do not.
    """
    excluded: dict[str, frozenset[int]] = field(default_factory=dict)
    """The words that a lane cannot have on this way, by the name of the word's number."""

    def copy(self) -> State:
        """A state that can go another way."""
        facts, meanings = dict(self.facts), dict(self.meanings)
        objects = dict(self.heap), dict(self.origins)
        return State(
            dict(self.names), *objects, dict(self.places), dict(self.twins), facts, meanings, dict(self.excluded)
        )

    def hold(self, name: str, cells: Iterable[tuple[State, Cell]]) -> None:
        """Note that a variable is what an array holds where `cells` meet: it may share what these may have shared."""
        held = [(state, cell.items[0]) for state, cell in cells]
        known = [state.origins.get(item.name, ()) for state, item in held if isinstance(item, Lane)]
        self.origins[name] = frozenset().union(*known)

    def assume(self, name: str, holds: bool) -> None:
        """Note that a bool of the lane's is known from here on, and what follows from that for those it is made of."""
        self.facts[name] = holds
        match self.meanings.get(name):
            case "not", part:
                self.assume(part, not holds)
            case "word", number, *excluded:
                self.excluded[number] = self.excluded.get(number, frozenset()).union(excluded[not holds])
            case (("and" | "or") as word, *parts) if holds == (word == "and"):
                for part in parts:
                    self.assume(part, holds)

    def pair(self, one: int, other: int) -> None:
        """Two objects may be one: whichever of them nobody can reach any more is no danger to the other."""
        for a, b in ((one, other), (other, one)):
            self.twins[a] = self.twins.get(a, frozenset()) | {b}

    def cell(self, ref: Ref) -> Cell:
        """The object that a reference means."""
        found = self.heap[ref.cell]
        return replace(found, kind="dict", cls=None) if isinstance(ref, Attributes) else found

    def set_cell(self, ref: Ref, **changes: Any) -> None:
        """Change an object."""
        self.heap[ref.cell] = replace(self.heap[ref.cell], **changes)

    def mapped(self, change: Callable[[Value], Value | None]) -> None:
        """Put `change(value)` in the place of every value for which that is not None, wherever it stands."""

        def walk(value: Value) -> Value:
            found = change(value)
            return within(value, walk) if found is None else found

        self.names = {name: walk(value) for name, value in self.names.items()}
        self.heap = {number: cell.with_parts(lambda _, value: walk(value)) for number, cell in self.heap.items()}

    def reachable(self, roots: Iterator[Value] | None = None) -> Iterator[Value]:
        """All values that variables lead to, each once for each way to it that no cell is on twice."""
        seen: set[int] = set()
        waiting = list(self.names.values()) if roots is None else list(roots)
        while waiting:
            value = waiting.pop()
            yield value
            if isinstance(value, Ref):
                if value.cell not in seen and value.cell in self.heap:
                    seen.add(value.cell)
                    waiting += [each for _, each in self.heap[value.cell].parts()]
            else:
                waiting += inside(value)

    def collect(self) -> None:
        """Forget cells that nothing leads to."""
        found = {value.cell for value in self.reachable() if isinstance(value, Ref)}
        self.heap = {number: cell for number, cell in self.heap.items() if number in found}


class HasState(Protocol):
    """An interpretation, which has another state after each branch and join."""

    state: State


@dataclass(frozen=True, eq=False)
class Row:
    """Values on the way, operands or arguments, as they are now: the state has them, as it has variables."""

    reader: HasState
    slot: Name

    def __enter__(self) -> Row:
        return self

    def __exit__(self, *raised: object) -> None:
        self.reader.state.names.pop(self.slot, None)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Value]:
        return iter(self._items)

    def __getitem__(self, place: int) -> Value:
        return self._items[place]

    def __setitem__(self, place: int, value: Value) -> None:
        items = [*self._items]
        items[place] = value
        self.reader.state.names[self.slot] = Tuple(tuple(items))

    def append(self, *values: Value) -> None:
        """Keep more values."""
        self.reader.state.names[self.slot] = Tuple((*self._items, *values))

    def become(self, *values: Value) -> None:
        """Keep these values, and no others."""
        self.reader.state.names[self.slot] = Tuple(values)

    @property
    def _items(self) -> tuple[Value, ...]:
        found = self.reader.state.names[self.slot]
        assert isinstance(found, Tuple)
        return found.items


def computes_again(name: str, one: tuple[State, Cell], other: tuple[State, Cell]) -> bool:
    """Tell whether an object computes an attribute that it has in one of two states as it did: it is a cached property.

    Nothing that the object leads to is another in the other state then.
    """
    (here, a), (there, b) = one, other
    owner = next((base for base in getattr(a.cls, "__mro__", ()) if name in vars(base)), None)
    if owner is None or not isinstance(vars(owner)[name], cached_property):
        return False
    common = [(a.items[key], b.items[key]) for key in a.items.keys() & b.items.keys()]
    if not all(x is y or is_same(x, y) for x, y in common):
        return False
    reached = (each.cell for each in here.reachable(iter([x for x, _ in common])) if isinstance(each, Ref))
    return all(here.heap.get(number) is there.heap.get(number) for number in reached)


def joined_twins(states: Sequence[State], cells: Mapping[tuple[int, ...], Ref]) -> dict[int, frozenset[int]]:
    """The objects that may be others where `states` meet, of which `cells` are what meets and what it becomes."""
    found: dict[int, frozenset[int]] = {}
    for place, state in enumerate(states):
        becomes: dict[int, set[int]] = {}
        for key, ref in cells.items():
            becomes.setdefault(key[place], set()).add(ref.cell)
        for number, others in state.twins.items():
            behind = frozenset().union(*(becomes.get(each, ()) for each in others))
            for each in becomes.get(number, ()):
                found[each] = found.get(each, frozenset()) | behind - {each}
    return found


def with_joined(origins: dict[str, frozenset[str]], cells: Mapping[tuple[int, ...], Ref]) -> dict[str, frozenset[str]]:
    """Return the origins of arrays, also of those that meet by their common successor; see `joined_twins`."""
    becomes: dict[str, set[str]] = {}
    for key, ref in cells.items():
        for number in key:
            becomes.setdefault(f"#{number}", set()).add(f"#{ref.cell}")
    return {name: own.union(*(becomes.get(each, ()) for each in own)) for name, own in origins.items()}


def inside(value: Value) -> list[Value]:
    """The values that a value which is no reference leads to."""
    match value:
        case Tuple(items) | OneOf(items=items):
            return [*items, value.index] if isinstance(value, OneOf) else list(items)
        case Choice(number):
            return [number]
        case Optional(there, content):
            return [there, content]
        case Range(start, stop, step):
            return [start, stop, step]
        case Lazy(_, parts):
            return list(parts)
        case View(base, steps):
            return [base, *(steps.operands if isinstance(steps, Item) else ())]
        case Bound(function, receiver):
            return [receiver, *([function] if isinstance(function, Function) else [])]
        case Super(receiver):
            return [receiver]
        case Generator():
            return [value.first]
        case Function():
            return [*value.defaults, *value.keyword_defaults.values()]
    return []


def within(value: Value, walk: Callable[[Value], Value]) -> Value:
    """`value` with what is inside of it changed, if it is no reference; itself if nothing is."""
    match value:
        case Tuple(items):
            new = tuple(map(walk, items))
            return value if is_unchanged(new, items) else replace(value, items=new)
        case Range(start, stop, step):
            new = (walk(start), walk(stop), walk(step))
            return value if is_unchanged(new, (start, stop, step)) else Range(*new)
        case Lazy(parts=parts):
            new = tuple(map(walk, parts))
            return value if is_unchanged(new, parts) else replace(value, parts=new)
        case View(base, Item(index, operands)):
            new = (walk(base), *map(walk, operands))
            if is_unchanged(new, (base, *operands)):
                return value
            return replace(value, base=new[0], steps=Item(index, new[1:]))
        case View(base):
            found = walk(base)
            return value if found is base else replace(value, base=found)
        case Bound(function, receiver):
            whole = within(function, walk) if isinstance(function, Function) else function
            found = walk(receiver)
            is_one = found is receiver and whole is function
            return value if is_one else replace(value, function=whole, receiver=found)  # type: ignore[arg-type]
        case Function(defaults=defaults, keyword_defaults=named):
            new = tuple(map(walk, (*defaults, *named.values())))
            if is_unchanged(new, (*defaults, *named.values())):
                return value
            others = dict(zip(named, new[len(defaults) :], strict=True))
            return replace(value, defaults=new[: len(defaults)], keyword_defaults=others)
        case Generator(first=first):
            found = walk(first)
            return value if found is first else replace(value, first=found)
        case Optional(content=content):
            found = walk(content)
            return value if found is content else replace(value, content=found)
    return value


def is_unchanged(new: Sequence[Value], old: Sequence[Value]) -> bool:
    """Tell whether values are the very same."""
    return all(a is b for a, b in zip(new, old, strict=True))


Lanes = Mapping[str, Lane]


@dataclass(eq=False)
class Operand:
    """A captured array: its value now, and all places where it is read; none where nothing else can ever be there."""

    value: Any
    places: list[Place]

    def kept(self) -> Operand:
        """The same for a program that is kept: it lets go of an array that each call reads again."""
        return Operand(None if self.places else self.value, self.places)


@dataclass(eq=False)
class World:
    """The reads of the world around the function, in their order."""

    guards: Guards = field(default_factory=Guards)
    """The places of the program's dependences, with their values."""
    operands: dict[str, Operand] = field(default_factory=dict)
    """Captured arrays by the name of the shared operand."""
