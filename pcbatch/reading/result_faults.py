"""Faults of functions that give values of several kinds."""

from __future__ import annotations

from collections.abc import Sequence

from pcbatch.errors import Diagnostic, Note
from pcbatch.reading.kinds import Kind
from pcbatch.reading.specialisations import Returning, told
from pcbatch.reading.values import is_none


def two_kinds(name: str, found: Sequence[Returning], one: Returning, result: Kind, kind: Kind) -> Diagnostic:
    """The fault that `one` gives another `kind` than the `result` that others give."""
    nothing = next((each for each in found if is_none(each.value)), None)
    if nothing is None:
        message, help = (
            f"this gives {told(kind)}, and another `return` gives {told(result)}",
            "give all the same structure",
        )
        if _has_given(kind) and _has_given(result):
            message = "this gives back one of its arguments, and another `return` gives another one, or something new"
            help = "give back the same argument on all ways; or a copy on each, `return a.copy()`"
        return Diagnostic("PCB301", message, one.span, "returned here", help, _others(found, one))
    notes = _others(found, nothing)
    if nothing.is_end:
        message, label = f"`{name}` can end without `return`", "after this statement the function ends"
        return Diagnostic("PCB203", message, nothing.span, label, "return a value on every path", notes)
    message, help = f"`{name}` returns nothing here, and a value elsewhere", "return a number, an array or a tuple"
    return Diagnostic("PCB121", message, nothing.span, "nothing is returned here", help, notes)


def _has_given(kind: Kind) -> bool:
    """Tell whether an argument is among what is given."""
    return kind.form in ("same", "given") or any(map(_has_given, kind.items))


def two_types(found: Sequence[Returning], one: Returning, conflict: str) -> Diagnostic:
    """The fault that `one` gives a value whose type does not meet that of others."""
    message, help = f"results of two types: {conflict}", "give all the same type"
    return Diagnostic("PCB301", message, one.span, "returned here", help, _others(found, one))


def _others(found: Sequence[Returning], one: Returning) -> tuple[Note, ...]:
    """Another place at which the function gives something back."""
    spans = [each.span for each in found if each is not one and each.span is not None and each.span != one.span]
    return tuple(Note(span, "another `return`") for span in spans[:1])
