"""What a program is built with once it is known what its pieces cannot do: helpers that are part of it, written loops.

A helper is traced, as one piece. Where that fails since it branches or loops on values of lanes, or calls a batched
function, it is built into the program as if it were batched. That is known when types are inferred, so the program is
built anew; and so it is where a comprehension has a batched call, for which the length must be known. Where nothing
else is wanted, and something in a `for` loop is wrong, the loop is written out: it may be right turn by turn.
"""

from __future__ import annotations

import itertools
import types
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pcbatch.errors import (
    Change,
    CompileError,
    InPlace,
    LeaveOut,
    Map,
    Method,
    Span,
    TakeIn,
    Unroll,
)
from pcbatch.frontend.source.iteration import loops_around
from pcbatch.frontend.translate.unrolling import MethodCall, Turns, Unrolling, places
from pcbatch.function.taken import Taken
from pcbatch.function.taken_methods import TakenMethod
from pcbatch.ir.called import name_of_class
from pcbatch.ir.joins import ConflictError, join
from pcbatch.ir.types import Type


@dataclass(frozen=True)
class Grants:
    """The code of the helpers that are taken in, and, by their places, what loops and comprehensions are written out.

    `lengths` are the numbers of elements that are known, `failed` the places of faults with how many loops around them
    are written out; see `unrolling.Unrolling`.
    """

    taken: frozenset[types.CodeType] = frozenset()
    lengths: tuple[tuple[tuple[Span, Turns], int | None], ...] = ()
    failed: tuple[tuple[Span, int], ...] = ()
    in_place: frozenset[tuple[Span, str]] = frozenset()
    """The augmented assignments and element stores that change an object, and their methods."""
    takings: frozenset[tuple[Span, str]] = frozenset()
    """The places where a method changes a variable and gives a value."""
    forking: bool = False
    """Whether calls are to be made at the same time, those of loops too."""
    methods: frozenset[tuple[Span, Method]] = frozenset()
    """The methods of values that are functions of the program, and where they are called."""
    left_out: frozenset[tuple[Span, Method]] = frozenset()
    """The calls there that are calls of other methods."""
    measured: frozenset[tuple[Span, Turns]] = frozenset()
    """The places whose length was another one at first, when less was written out; a third one is a fault."""
    mapped: tuple[tuple[tuple[Span, Turns], tuple[int, Type]], ...] = ()
    """Over how many elements a `pcbatch.map` goes, and what its calls give."""

    def extended(self, error: CompileError) -> Grants:
        """With what the diagnostics of `error` ask for; the same where they ask for nothing new."""
        wants = [diagnostic.wants for diagnostic in error.diagnostics]
        taken = self.taken.union(want.code for want in wants if isinstance(want, TakeIn))
        lengths = dict(self.lengths)
        measured = set(self.measured)
        mapped = dict(self.mapped)
        for want in wants:
            if isinstance(want, Map):
                place = want.span, want.turns
                before = mapped.setdefault(place, (want.length, want.type))
                if before[0] == want.length and _widens(before[1], want.type):
                    mapped[place] = want.length, want.type
            if not isinstance(want, Unroll):
                continue
            place = want.span, want.turns
            if place not in lengths:
                lengths[place] = want.length
            elif lengths[place] != want.length and place not in measured:
                lengths[place] = want.length
                measured.add(place)
        in_place = self.in_place.union((want.span, want.method) for want in wants if isinstance(want, InPlace))
        changes = (want for want in wants if isinstance(want, Change))
        takings = self.takings.union((want.span, name) for want in changes for name in want.names)
        methods = set(self.methods)
        for want in wants:
            if isinstance(want, TakeIn) and want.method is not None and want.span is not None:
                methods.add((want.span, want.method))
        left_out = self.left_out.union((want.span, want.method) for want in wants if isinstance(want, LeaveOut))
        known = tuple(sorted(lengths.items(), key=lambda each: each[0]))
        return Grants(
            taken,
            known,
            self.failed,
            in_place,
            takings,
            self.forking,
            methods=frozenset(methods),
            left_out=left_out,
            measured=frozenset(measured),
            mapped=tuple(sorted(mapped.items(), key=lambda each: each[0])),
        )

    def unrolled(self, error: CompileError) -> Grants:
        """With one more loop written out around each fault of `error`; the same where there is none.

        What the syntax check refuses is wrong in every turn, and so are operands of two dtypes.
        """
        failed = dict(self.failed)
        for diagnostic in error.diagnostics:
            is_settled = diagnostic.code < "PCB2" or diagnostic.trait == "settled"
            for span in () if is_settled else places(diagnostic):
                depth = failed.get(span, 0)
                if depth < loops_around(span):
                    failed[span] = depth + 1
        return replace(self, failed=tuple(sorted(failed.items())))

    def calls_two(self, error: CompileError) -> bool:
        """Whether a call that is known to be none of a method of the program is one after all: it is one of two then.

        It may be the same call in two turns of a loop that is written out.
        """
        asked = [each.wants for each in error.diagnostics if isinstance(each.wants, TakeIn)]
        return any(
            want.method == method and want.span is not None and want.span.surrounds(place)
            for want in asked
            for place, method in self.left_out
        )

    @property
    def unrolling(self) -> Unrolling:
        """What the frontend is told of it."""
        labels = {each.method: label for label, each in self.functions.items()}
        calls = tuple(
            MethodCall(
                span,
                method.name,
                labels[method],
                method.is_property,
                self.functions[labels[method]].gives_back,
                frozenset(place for place, other in self.left_out if other == method),
                name_of_class(method.owner),
            )
            for span, method in sorted(self.methods, key=lambda each: (each[0], labels[each[1]]))
        )
        return Unrolling(
            dict(self.lengths),
            dict(self.failed),
            self.in_place,
            self.takings,
            self.forking,
            methods=calls,
            mapped=dict(self.mapped),
        )

    @cached_property
    def functions(self) -> dict[str, TakenMethod]:
        """The methods that are functions of the program, by the names that they have there."""
        found: dict[str, TakenMethod] = {}
        called = sorted({method for _, method in self.methods}, key=_order)
        for method in called:  # grows while methods are found that these call by `super()`
            names = (f"{method.owner.__name__}.{method.name}{number or ''}" for number in itertools.count())
            taken = TakenMethod(method, self.takings, self.methods, found)
            found[next(name for name in names if name not in found)] = taken
            called += [each for each in taken.supers if each not in called]
        return found


def _order(method: Method) -> tuple[str, str]:
    return method.function.__qualname__, "" if method.cls is None else name_of_class(method.cls)


def _widens(before: Type, now: Type) -> bool:
    """Whether what is of one type is of the other, too: it was weaker as long as less was known."""
    try:
        return join(before, now) == now
    except ConflictError:
        return False


NOTHING = Grants()


def taken(value: Any, grants: Grants) -> Taken | None:
    """A function that is taken in, as linking knows it; None of anything else."""
    plain = value.__func__ if isinstance(value, types.MethodType) else value
    if isinstance(plain, types.FunctionType) and plain.__code__ in grants.taken:
        return Taken(value)
    return None
