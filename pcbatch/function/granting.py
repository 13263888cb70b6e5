"""A program built anew until nothing that its diagnostics ask for is left to grant, or nothing helps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from pcbatch.errors import CompileError, Diagnostic, InPlace, LeaveOut, PrimitiveError, TakeIn
from pcbatch.function.grants import Grants

T = TypeVar("T")


def granted(make: Callable[[Grants], T], known: Grants, fewest: Grants) -> tuple[T, Grants]:
    """What `make` gives with grants from those `known` to help on, or from the `fewest`, and these; else CompileError.

    What helped before may be wrong where a captured value is another one now.
    """
    if known != fewest:
        try:
            return make(known), known
        except CompileError as error:
            if _is_final(error):
                raise _final(error, error) from None
    return _granted(make, fewest)


def _granted(make: Callable[[Grants], T], known: Grants) -> tuple[T, Grants]:
    """A loop is written out only where the program is wrong without, the innermost one first."""
    first: CompileError | None = None
    before: CompileError | None = None  # what was wrong before a helper was taken in whose operators may mean more then
    others: list[Diagnostic] = []  # that a call there is one of another method than it was thought to be
    grants = known
    while True:
        try:
            return make(grants), grants
        except CompileError as error:
            if _is_final(error):
                raise _final(error, error) from None
            if grants.calls_two(error):
                of_two = PrimitiveError(others)
                raise _final(of_two, of_two) from None
            others += [each for each in error.diagnostics if isinstance(each.wants, LeaveOut)]
            is_wrong = any(each.code < "PCB4" and each.wants is None for each in error.diagnostics)
            if before is not None and is_wrong and not _asks(error):
                raise _final(before, before) from None
            more = grants.extended(error)
            if more != grants and any(isinstance(each.wants, TakeIn) and each.wants.may for each in error.diagnostics):
                before = error
            if more == grants:
                first = first or error
                more = grants.unrolled(error)
            if more == grants:
                raise _final(first or error, error) from None
            grants = more


def _is_final(error: CompileError) -> bool:
    return any(each.trait == "final" for each in error.diagnostics) and not _asks(error)


def _asks(error: CompileError) -> bool:
    """Whether it must be known what methods do, before anything is told."""
    return any(isinstance(each.wants, InPlace) for each in error.diagnostics)


def _final(first: CompileError, last: CompileError) -> CompileError:
    """What is told: the faults of the program as it is written, or those that are left once loops are written out."""
    left = list(_each_once(last.diagnostics))
    is_better = {_place(each) for each in first.diagnostics} - {_place(each) for each in left}
    has_notes = any(one.notes != other.notes for one, other in zip(first.diagnostics, left, strict=False))
    told = left if is_better or has_notes or _says_more(first, left) else first.diagnostics
    return type(last if told is left else first)(replace(each, wants=None, trait=None) for each in told)


def _says_more(first: CompileError, left: Iterable[Diagnostic]) -> bool:
    """Whether something else is wrong in a loop than that the comprehension, which it was, could not be traced."""
    untraced = {_place(each): each.message for each in first.diagnostics if each.trait == "untraced"}
    return any(untraced.get(_place(each), each.message) != each.message for each in left)


def _each_once(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Of what is wrong in several turns of a loop the first."""
    seen = set()
    for each in diagnostics:
        if _place(each) not in seen:
            seen.add(_place(each))
            yield each


def _place(diagnostic: Diagnostic) -> tuple[object, ...]:
    return diagnostic.code, diagnostic.span
