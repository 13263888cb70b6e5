"""What a program is built with once it is known what its pieces cannot do: helpers that are part of it, written loops.

A helper is traced, as one piece. Where that fails since it branches or loops on values of lanes, or calls a batched
function, it is built into the program as if it were batched. That is known when types are inferred, so the program is
built anew; and so it is where a comprehension has a batched call, for which the length must be known. Where nothing
else is wanted, and something in a `for` loop is wrong, the loop is written out: it may be right turn by turn.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pcbatch.errors import (
    Change,
    CompileError,
    Diagnostic,
    InPlace,
    NameResolutionError,
    Note,
    Span,
    TakeIn,
    Unroll,
    UnsupportedSyntaxError,
)
from pcbatch.frontend import FunctionSource, read_function
from pcbatch.frontend.source.changes import changed_in
from pcbatch.frontend.source.iteration import loops_around
from pcbatch.frontend.translate.unrolling import Turns, Unrolling, places
from pcbatch.function.linkable import Linkable
from pcbatch.lowering.captures.captured import Namespace


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

    def extended(self, error: CompileError) -> Grants:
        """With what the diagnostics of `error` ask for; the same where they ask for nothing new."""
        wants = [diagnostic.wants for diagnostic in error.diagnostics]
        taken = self.taken.union(want.code for want in wants if isinstance(want, TakeIn))
        lengths = dict(self.lengths)
        for want in wants:
            if isinstance(want, Unroll):
                lengths.setdefault((want.span, want.turns), want.length)
        in_place = self.in_place.union((want.span, want.method) for want in wants if isinstance(want, InPlace))
        takings = self.takings.union((want.span, want.name) for want in wants if isinstance(want, Change))
        known = tuple(sorted(lengths.items(), key=lambda each: each[0]))
        return replace(self, taken=taken, in_place=in_place, takings=takings, lengths=known)

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

    @property
    def unrolling(self) -> Unrolling:
        """What the frontend is told of it."""
        return Unrolling(dict(self.lengths), dict(self.failed), self.in_place, self.takings, self.forking)


NOTHING = Grants()
_PART = "is part of the program, since it branches or loops on values of a lane, or calls a batched function"


class Taken(Linkable):
    """A plain function of the user's, or a method, as linking knows a batched one."""

    def __init__(self, function: Any):
        self.function = function.__func__ if isinstance(function, types.MethodType) else function
        self.receiver = getattr(function, "__self__", None)
        self.__name__, self.__qualname__ = self.function.__name__, self.function.__qualname__
        self.__signature__ = inspect.signature(function)
        self._function = function

    @cached_property
    def function_source(self) -> FunctionSource:
        """The captured source; UnsupportedSyntaxError where something in it has no place in a program."""
        source = replace(self._read(), is_taken=True)
        changed = changed_in(source.tree.body) & {parameter.name for parameter in source.parameters}
        if changed:
            raise NameResolutionError([_changed(source, min(changed))])
        return source

    def _read(self) -> FunctionSource:
        """The source; what is refused in it says why it is looked at."""
        try:
            return read_function(self._function)
        except UnsupportedSyntaxError as error:
            code = self.function.__code__
            note = Note(Span.of_line(code.co_filename, code.co_firstlineno), f"`{self.__name__}` {_PART}")
            raise UnsupportedSyntaxError(
                replace(each, notes=(*each.notes, note)) for each in error.diagnostics
            ) from None

    @property
    def static_argnames(self) -> tuple[str, ...]:
        """None."""
        return ()

    @cached_property
    def namespace(self) -> Namespace:
        """Lookup of the function's free names."""
        receiver = self.function_source.receiver
        return Namespace(self.function, {} if receiver is None else {receiver: self.receiver})

    def all_options(self) -> dict[str, Any]:
        """None: those of the entry count."""
        return {}

    def under(self, changes: Mapping[str, Any]) -> Linkable:
        """Itself."""
        return self

    def is_relative(self, other: object) -> bool:
        """Whether `other` is this one."""
        return other is self


def _changed(source: FunctionSource, name: str) -> Diagnostic:
    """That a helper stores into an argument: Python shows that to the caller, a function of the program does not."""
    return Diagnostic(
        "PCB204",
        f"the helper `{source.name}` changes its argument `{name}`, which belongs to the caller",
        source.span,
        f"this {_PART}",
        f"put @pcbatch.autobatch on `{source.name}`, let it return `{name}`, and assign that: "
        f"`{name} = {source.name}({name}, ..)`",
    )


def taken(value: Any, grants: Grants) -> Taken | None:
    """A function that is taken in, as linking knows it; None of anything else."""
    plain = value.__func__ if isinstance(value, types.MethodType) else value
    if isinstance(plain, types.FunctionType) and plain.__code__ in grants.taken:
        return Taken(value)
    return None
