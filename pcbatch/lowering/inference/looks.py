"""Looks at what the statements of a piece change and call, while it is traced for its types.

See `in_place`, `inside` and `called`.

What they find is asked for, and the program is built anew. What it does is the same then, unless an augmented
assignment changes an object: so the trace goes on behind all others, and what it finds is asked for at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pcbatch.errors import Diagnostic, InPlace, InPlaceError, Span
from pcbatch.ir.code import Code
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.pieces import Statement
from pcbatch.lowering.inference import called, in_place, inside
from pcbatch.runtime.backends.protocol import Backend


class Looks:
    """The looks of one trace, and what they `found`."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._known: dict[int, list[str]] = {}
        self._found: dict[InPlace, Diagnostic] = {}

    @property
    def found(self) -> tuple[Diagnostic, ...]:
        return tuple(self._found.values())

    def before(self, each: Statement, environment: Environment, variables: frozenset[str]) -> Iterator[Statement]:
        """What stands before a statement that may change something, or give a part of it."""
        if each.span is None or each.opens:
            return
        number = len(self._spans)
        self._spans.append(each.span)
        for target, method in in_place.asked(each.code, each.span, environment, variables):
            yield Statement(Code(f"{in_place.LOOK}({number}, {target}, {method!r})"), each.span)
        for arguments in inside.asked(each.code, each.span, environment):
            yield Statement(Code(f"{inside.LOOK}({number}, {arguments})"), each.span)

    def in_calls(self, each: Statement, environment: Environment, variables: frozenset[str]) -> Code:
        """The code of a statement, in which is looked at what it calls."""
        if each.span is None:
            return each.code
        number = len(self._spans)
        self._spans.append(each.span)
        self._known[number] = [text for place, text in environment.in_place if place == each.span]
        return called.noted(each.code, variables, number)

    def helpers(self, backend: Backend) -> Mapping[str, Any]:
        """What a piece with such looks is given."""

        def look(number: int, text: str, whole: Any, *method: str) -> Any:
            self._look(partial(called.look, backend, self._known[number]), number, text, whole, *method)
            return whole

        return {
            in_place.LOOK: partial(self._look, in_place.look),
            inside.LOOK: partial(self._look, inside.look),
            called.LOOK: look,
        }

    def _look(self, look: Callable[..., None], number: int, *args: Any, **options: Any) -> None:
        try:
            look(*args, **options)
        except InPlaceError as error:
            if error.method in in_place.AUGMENTED:
                raise
            want = InPlace(self._spans[number], error.method)
            self._found.setdefault(want, Diagnostic(error.code, error.message, want.span, help=error.help, wants=want))
