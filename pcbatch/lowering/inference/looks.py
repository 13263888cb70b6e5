"""Looks at what the statements of a piece change, while it is traced for its types; see `in_place` and `inside`.

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
from pcbatch.lowering.inference import in_place, inside


class Looks:
    """The looks of one trace, and what they `found`."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
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

    @property
    def helpers(self) -> Mapping[str, Any]:
        """What a piece with such looks is given."""
        return {
            in_place.LOOK: partial(self._look, in_place.look),
            inside.LOOK: partial(self._look, inside.look),
        }

    def _look(self, look: Callable[..., None], number: int, *args: Any, **options: Any) -> None:
        try:
            look(*args, **options)
        except InPlaceError as error:
            if error.method in in_place.AUGMENTED:
                raise
            want = InPlace(self._spans[number], error.method)
            self._found.setdefault(want, Diagnostic(error.code, error.message, want.span, help=error.help, wants=want))
