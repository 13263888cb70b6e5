"""Values that do not meet behind a branch: what is said of them, and where each came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pcbatch.errors import Span
from pcbatch.frontend.nodes import span_of
from pcbatch.reading.core import Core, RefusedError
from pcbatch.reading.state import Cell, Name, State, are_alike
from pcbatch.reading.values import Bound, Host, Part, Ref, Undefined, Value


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
