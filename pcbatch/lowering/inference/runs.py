"""Runs of primitives as type inference traces them, what they give, and why they do not run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from pcbatch.errors import CompileError, Diagnostic, Span
from pcbatch.lowering.codegen.pieces import PieceText
from pcbatch.lowering.inference.constants import Candidates
from pcbatch.lowering.inference.static import Known


@dataclass(frozen=True, eq=False)
class Run:
    """A maximal run of primitives in a block: its piece and the spans of its outputs' last assignments.

    `users` has the user's names of variables that have another, `made` are those of the compiler's own. `wanted` are
    those of its outputs whose values should be found if they are static, `candidates` the variables of the function
    that may be constants. `written(spans)` is the piece with the statements at `spans` written leniently, for a piece
    that fails.
    """

    function: str
    users: Mapping[str, str]
    text: PieceText
    spans: Mapping[str, Span | None]
    wanted: frozenset[str]
    candidates: Candidates
    written: Callable[[Collection[Span | None]], PieceText]
    made: Collection[str] = ()

    @property
    def sought(self) -> tuple[str, ...]:
        """The outputs whose values should be found, for whatever reason."""
        return tuple(name for name in self.text.writes if name in self.wanted or name in self.candidates.names)

    def place(self, name: str) -> Span | None:
        """The first statement that reads `name`."""
        return next((each.span for each in self.text.statements if name in each.code.reads), None)

    def without(self, span: Span) -> Run:
        """The run without the statement at `span`, and without all that depends on it."""
        written = self.written
        return replace(self, text=_without(self.text, span), written=lambda spans: _without(written(spans), span))


@dataclass(frozen=True)
class Outcome:
    """What a run gives: the types or values of its outputs.

    `bound` are the variables that it reads as constants. `sized` are those of the others on which the shape of
    something depends that lanes compute. `asked` is what must be known of its methods (`looks`).
    """

    known: tuple[Known, ...]
    bound: frozenset[str] = frozenset()
    sized: frozenset[str] = frozenset()
    asked: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Failure:
    """Why a run does not run, and the variables on which shapes depend in it, see `Outcome`; and what is `asked`."""

    error: CompileError
    sized: frozenset[str] = frozenset()
    asked: tuple[Diagnostic, ...] = ()

    @property
    def is_final(self) -> bool:
        """Whether nothing else is to be tried."""
        return any(each.trait == "final" for each in self.error.diagnostics)

    @property
    def place(self) -> Span | None:
        """The statement that fails; None where the program is to be built in another way for that, or not at all."""
        found = self.error.diagnostics
        return found[0].span if found and not self.is_final and not any(each.wants for each in found) else None


def _without(text: PieceText, span: Span) -> PieceText:
    """`text` without the statements at `span` and those that read what these, or others left out, write.

    Nothing is left of one with a `with` block.
    """
    lost: set[str] = set()
    kept = []
    for each in text.statements:
        if each.span == span or not lost.isdisjoint((*each.code.reads, *each.code.writes)):
            lost.update(each.code.writes)
        else:
            kept.append(each)
    if any(each.opens for each in text.statements):
        kept = []
    return replace(text, statements=tuple(kept), writes=tuple(name for name in text.writes if name not in lost))
