"""The phi of a loop's head, for a path that each turn gives a new value, and where what it has may come from.

Of values that do not meet behind a branch is said what they are, and where each came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gast

from pcbatch.errors import Diagnostic, Note, Span
from pcbatch.frontend.nodes import span_of, walk
from pcbatch.ir.types import TensorType
from pcbatch.reading.core import Core, NeedsConstantError, RefusedError
from pcbatch.reading.emitter import hint_of
from pcbatch.reading.state import STRIDED, TURNED, Cell, Name, State, are_alike
from pcbatch.reading.values import (
    Bound,
    Host,
    Lane,
    Lazy,
    OneOf,
    Optional,
    Part,
    Ref,
    Tuple,
    Undefined,
    Value,
    is_number,
    is_same,
)

# -- values that do not meet -------------------------------------------------------------------------------------------


def quoted(what: str) -> str:
    """A variable in a message; the reader's own have blanks before their names."""
    return "this value" if what.startswith(" ") else f"`{what}`"


def unassigned(name: str) -> Undefined:
    """A variable that has no value on some way."""
    return Undefined(
        "PCB201",
        f"`{name}` may be read before it is assigned",
        help=f"assign `{name}` on every path, for example before the branch or the loop",
    )


def of_kinds(values: Sequence[Value], kinds: Sequence[str], what: str) -> Undefined:
    """A variable whose values are of kinds that do not meet."""
    help = "give it the same kind on each path, or another name on one"
    if all(isinstance(each, Bound) or (isinstance(each, Part) and each.is_function) for each in values):
        help = "call each where it is chosen: `f(x) if flag else g(x)`"
    return Undefined("PCB301", f"{quoted(what)} is {kinds[0]} on one path and {kinds[-1]} on another", help=help)


def unlike(cells: Sequence[Cell], what: str) -> str:
    """Return the reason why objects have no structure in common."""
    first, last = cells[0], next(cell for cell in cells if not are_alike([cells[0], cell]))
    if first.kind == last.kind == "list":
        return f"{quoted(what)} is a list of {len(first.items)} on one path and of {len(last.items)} on another"
    return f"{quoted(what)} is an object of one structure on one path and of another on another"


def placed(
    reader: Core, states: Sequence[State], name: Name, found: Undefined, values: Sequence[Value | None]
) -> Undefined:
    """A variable whose values in `states` do not meet, with where each of these has assigned it."""
    if found.spans or any(isinstance(each, Undefined) for each in values):
        return found
    spans: dict[tuple[Span, str], None] = {}
    for state, value in zip(states, values, strict=True):
        place = state.places.get(name)
        if value is not None and place is not None and getattr(place[0], "lineno", None) is not None:
            kind = _kind(reader, state, value)
            label = f"`{name[1]}` is {kind} here" if None not in values else "assigned here, on some paths only"
            spans[span_of(*place), label] = None
    return replace(found, spans=tuple(spans))


def _kind(reader: Core, state: State, value: Value) -> str:
    before, reader.state = reader.state, state
    try:
        type_ = reader.type_of(value)
        return reader.described(value) if type_ is None or isinstance(value, Host) else f"{type_}"
    finally:
        reader.state = before


CODES = ("PCB301", "PCB304", "PCB404")
"""The refusals of structures that differ by lane, or that grow."""


def advise(error: RefusedError, state: State) -> None:
    """Have a refusal say how to write a tree or a linked list that grows by lane, if there is such a one."""
    name = _nested(state) if error.diagnostic.code in CODES else ""
    if name:
        help = (
            f"how many `{name}` there are inside of a `{name}` must not differ by lane: keep one list for each of its "
            f'fields, and refer to a `{name}` by its number, as in "Trees and linked lists" in docs/language.md'
        )
        error.diagnostic = replace(error.diagnostic, help=help)


def _nested(state: State) -> str:
    """The name of a class of which an object leads to another one; "" if there is none."""
    for number, cell in state.heap.items():
        if cell.kind != "object" or cell.cls is None:
            continue
        for each in state.reachable(iter([part for _, part in cell.parts()])):
            other = state.heap.get(each.cell) if isinstance(each, Ref) and each.cell != number else None
            if other is not None and other.cls is cell.cls:
                return cell.cls.__name__
    return ""


# -- phis --------------------------------------------------------------------------------------------------------------


Path = tuple[Any, ...]
"""The path of a value: a variable ("n", frame, name, ..) or a part of an object ("c", cell, key, ..), then items."""


@dataclass(frozen=True)
class Celled:
    """A path of the head at which an array is an object that changes.

    `content` is the type of what it holds then, if that is known already.
    """

    content: TensorType | None = None
    is_stored: bool = False


@dataclass(frozen=True)
class Stale:
    """A path at which what a view held before is not what it holds in the next turn."""


@dataclass(frozen=True)
class Chosen:
    """A path at which one of several objects stands."""

    cells: tuple[int, ...]


@dataclass(frozen=True)
class Copied:
    """A path at which a new object stands after each turn, and before them one that has another name."""


@dataclass(frozen=True)
class Worded:
    """A path at which one of several words stands."""

    words: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class MissingValue:
    """A path at which None stands in some lanes; in the others what stands for `value`, which `source` has."""

    value: Value
    source: State


Phi = TensorType | MissingValue | Celled | Copied | Stale | Chosen | Worded | Undefined


def value_at(state: State, path: Path) -> Value:
    """Return the value at a path."""
    value: Any
    if path[0] == "n":
        value, steps = state.names[path[1], path[2]], path[3:]
    else:
        cell = state.heap[path[1]]
        value, steps = cell.items[path[2]], path[3:]
    for step in steps:
        value = getattr(value, _inside(value))[step] if isinstance(step, int) else getattr(value, step)
    return value


def _inside(value: Any) -> str:
    """The field of a value that has its items."""
    return "parts" if isinstance(value, Lazy) else "items"


def put_at(state: State, path: Path, new: Value) -> None:
    """Put a value at a path."""

    def within(value: Any, steps: Path) -> Any:
        if not steps:
            return new
        step, *rest = steps
        if isinstance(step, int):
            items = list(getattr(value, _inside(value)))
            items[step] = within(items[step], tuple(rest))
            return replace(value, **{_inside(value): tuple(items)})
        return replace(value, **{step: within(getattr(value, step), tuple(rest))})

    if path[0] == "n":
        name = path[1], path[2]
        state.names[name] = within(state.names[name], path[3:])
        return
    cell = state.heap[path[1]]
    if path[2] not in dict(cell.parts()):
        state.heap[path[1]] = replace(cell, items={**cell.items, path[2]: new})
        return
    state.heap[path[1]] = cell.with_parts(lambda key, value: within(value, path[3:]) if key == path[2] else value)


def outermost(phis: Mapping[Path, Phi]) -> list[tuple[Path, Phi]]:
    """Return all but what is inside of a value that has turned out to be none."""
    unknown = {path for path, phi in phis.items() if isinstance(phi, Undefined)}
    return [(p, phi) for p, phi in phis.items() if all(p[:depth] not in unknown for depth in range(3, len(p)))]


def is_known_better(one: Cell, other: Cell) -> bool:
    """Tell whether more is known of an object than after a turn: that it is no element, or of which rows it is one."""
    is_free = not one.is_held and other.is_held
    return is_free or (one.home is not None and one.home != other.home) or (other.is_spread and not one.is_spread)


class NeedsTurnsError(NeedsConstantError):
    """A container has another length, or other entries, after each turn."""

    def __init__(self, found: Phi):
        assert isinstance(found, Undefined)
        notes = tuple(Note(span, label) for span, label in found.spans[1:])
        place = found.spans[0][0] if found.spans else None
        super().__init__(Diagnostic(found.code, found.why, place, "", found.help, notes))
        self.wants = found.wants


def is_alike(a: Tuple, b: Tuple) -> bool:
    """Return whether two tuples have one class and one length."""
    return a.cls is b.cls and len(a.items) == len(b.items)


def cells_of(value: Value) -> list[int]:
    """The objects that a value may be."""
    if isinstance(value, OneOf):
        return [ref.cell for ref in value.items]
    assert isinstance(value, Ref)
    return [value.cell]


def hint_at(path: Path) -> str:
    """The name that what is at a path goes by."""
    names = [step for step in path[2:] if isinstance(step, str)]
    return hint_of(names[-1]) if names else ""


Head = Any
"""The head of a loop; see `heads`."""


@dataclass(eq=False)
class Origins:
    """Origins that a turn may give to what the head of a loop has, found out in all rounds so far."""

    loop: Any = None
    arrays: dict[Path, frozenset[str]] = field(default_factory=dict)
    """The arrays, and marks for those of other variables of the head, that a variable may be."""
    twins: set[tuple[int, int]] = field(default_factory=set)
    """Objects that may be one, or have one in them."""

    def of(self, path: Path) -> frozenset[str]:
        """The arrays that the variable at a path may be after a turn."""
        return self.arrays.get(path, frozenset())

    def enter(self, state: State) -> None:
        """Note in the state before a loop which objects may be one after a turn."""
        for one, other in self.twins:
            if one in state.heap and other in state.heap:
                state.pair(one, other)

    def widened(self, head: Head) -> bool:
        """Tell whether a turn has made more of what the head has be one."""
        is_wider = self._has_more_arrays(head)
        for number, others in head.behind.twins.items():
            for other in others:
                pair = (head.back.get(number, number), head.back.get(other, other))
                is_known = pair in self.twins or pair[0] in head.state.twins.get(pair[1], ())
                if pair[0] != pair[1] and not is_known and all(each in head.state.heap for each in pair):
                    self.twins.add(pair)
                    is_wider = True
        return is_wider

    def _has_more_arrays(self, head: Head) -> bool:
        reader = head.reader
        paths = {lane.name: path for path, lane in head.lanes.items() if lane.name in head.state.origins}
        found = {paths[lane.name]: _sources(head, now) for lane, now in head.moves if lane.name in paths}
        if not found:
            return False
        before = reader.in_state(head.state, lambda: self._living(head))
        is_wider = False
        for path, names in found.items():
            is_cell = path[0] == "c" and head.state.heap[path[1]].kind == "array"  # an array itself, whatever it holds
            own = set() if is_cell else names & before
            for other, theirs in found.items():
                if other != path and not is_cell and not names.isdisjoint(theirs):
                    own.add(f"{reader.span()} {sorted([repr(path), repr(other)])}")
            own |= {f"{mark}{path!r}" for mark in (TURNED, STRIDED) if any(each.startswith(mark) for each in names)}
            if not own <= self.of(path) | head.state.origins[head.lanes[path].name]:
                self.arrays[path] = self.of(path) | own
                is_wider = True
        return is_wider

    def _living(self, head: Head) -> set[str]:
        """The origins of the arrays that are read in the loop or behind it, but those of the head."""
        reader = head.reader
        given = {lane.name for lane, _ in head.moves}
        roots = iter([*reader.state.names.values()])
        if getattr(self.loop.node, "lineno", None) is not None:
            reader.loops.append(self.loop)
            roots = iter([*reader.living()])
            reader.loops.remove(self.loop)
        values = [each for each in reader.state.reachable(roots) if not isinstance(each, Optional)]
        return set().union(*(reader.shares(each) for each in values if getattr(each, "name", None) not in given))


def _sources(head: Head, now: Value) -> set[str]:
    """The origins of an array at the end of a turn, where it is an array that stays there, too."""
    found: set[str] = {*head.reader.in_state(head.behind, lambda: head.reader.origins_of(now))}
    cells = {int(name[1:]) for name in found if name.startswith("#")}
    return found | {f"#{head.back[cell]}" for cell in cells if cell in head.back}


# -- what a turn changes to all appearance -----------------------------------------------------------------------------


class StillError(Exception):
    """A turn does not change a variable that was taken for one that it changes."""


def changing(reader: Any, node: Any) -> dict[Path, Phi]:
    """Phis of the variables that a loop's turns assign by what they were: they save a round.

    Only where a `with` stands in it: what is inside is traced in each round, and nothing outside is.
    """
    nodes = [] if node is None else [*walk(node)]
    if not any(isinstance(each, gast.With) for each in nodes):
        return {}
    augmented = {each.target.id for each in nodes if isinstance(each, gast.AugAssign) and _is_name(each.target)}
    assigned = {name for each in nodes if isinstance(each, gast.Assign) for name in _assigned_by_itself(each)}
    found: dict[Path, Phi] = {}
    for (number, name), value in reader.state.names.items():
        type_ = reader.type_of(value) if number == reader.frame.number and name in augmented | assigned else None
        if isinstance(value, Lane) and type_ is not None and value.name in reader.types:
            found["n", number, name] = Celled(type_, True) if type_.shape and name in augmented else type_
        elif isinstance(value, Host) and type_ is not None and is_number(value.value):
            found["n", number, name] = type_
    return found


def _is_name(node: Any) -> bool:
    return isinstance(node, gast.Name)


def _assigned_by_itself(node: Any) -> set[str]:
    read = {each.id for each in walk(node.value) if _is_name(each)}
    return {each.id for each in node.targets if _is_name(each)} & read


def has_moved(head: Head, path: Path) -> bool:
    """Tell whether a turn gives what is at a path another value."""
    value = value_at(head.state, path)
    if isinstance(value, Ref):
        return head.behind.heap[head.pairs.get(value.cell, value.cell)] is not head.state.heap[value.cell]
    return any(lane == value and not is_same(lane, now) for lane, now in head.moves)
