"""Which loops are written out, turn by turn, and how many turns they make, as far as that is known.

A loop stays a loop unless something in it cannot be done that way. Then the program is built anew with the innermost
loop around that place written out, and then the next one: `failed` has the places, with how many loops around each.
A loop of which it is not known whether all lanes make equally many turns has a question in front, `__turns__`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gast

from pcbatch.errors import Diagnostic, Note, Span
from pcbatch.frontend.source.iteration import Place, are_nested, key_of
from pcbatch.frontend.source.nodes import walk
from pcbatch.ir.called import is_of_call
from pcbatch.ir.types import Type

MOST_TURNS = 64
"""So many turns are written out, those of loops in loops multiplied. Measured on a busy CPU, as CPU time up to
the first result, for a list that grows by an append in each turn: 32 turns 2.5 s, 64 turns 6.3 s (22 s while each turn
was a piece of its own); with a branch in each turn 8 turns 1.4 s, 16 turns 4.0 s. That is more than in proportion: the
list is longer in each turn."""
STORES = "__setitem__"
"""The method by which an element store changes what is no array."""
Turns = tuple[int, ...]
"""The turns of the written-out loops around a place."""


@dataclass(frozen=True)
class MethodCall:
    """That calls of `.name` in the statement at `span` are calls of the function `label` of the program.

    A property `is_property`. What `gives_back` its object gives a pair: its value, and the object as it is then. Calls
    that are `left_out` are of objects of other classes.
    """

    span: Span
    name: str
    label: str
    is_property: bool
    gives_back: bool
    left_out: frozenset[Span] = frozenset()
    owner: str = ""
    """The class, see `called`."""


@dataclass(frozen=True)
class Unrolling:
    """What a program is built with, see above, and what is found out while it is.

    `lengths` are the numbers of turns that are known, None where lanes differ.
    """

    lengths: Mapping[tuple[Span, Turns], int | None] = field(default_factory=dict)
    failed: Mapping[Span, int] = field(default_factory=dict)
    in_place: frozenset[tuple[Span, str]] = frozenset()
    """The augmented assignments and element stores that are known to change an object by these methods."""
    takings: frozenset[tuple[Span, str]] = frozenset()
    """Places, and the variables that methods change there which are called for their value."""
    forking: bool = False
    """Whether calls are to be made at the same time: loops whose turns make independent ones are written out."""
    methods: tuple[MethodCall, ...] = ()
    """The calls of methods of values that are calls of functions of the program."""
    mapped: Mapping[tuple[Span, Turns], tuple[int, Type]] = field(default_factory=dict)
    """Over how many elements a `pcbatch.map` goes that is a loop, and what its calls give."""
    augmented: dict[Span, str] = field(default_factory=dict, init=False)
    """The other augmented assignments, with the methods that they would call of such."""
    suspects: set[Span] = field(default_factory=set, init=False)
    """The element stores of which it must be known whether they are into lists; see `aliasing`."""
    readers: set[Span] = field(default_factory=set, init=False)
    """The statements of which it must be known whether their attributes are properties that give parts of objects."""
    asked: list[Span] = field(default_factory=list, init=False)
    """The lines of the loops that have a question in front."""
    apart: dict[Span, str] = field(default_factory=dict, init=False)
    """The headers of loops whose turns make calls one after the other though `forking`, and why."""
    partly: dict[Span, str] = field(default_factory=dict, init=False)
    """The places whose calls are not all made at the same time though `forking`, and why."""
    for_calls: list[Span] = field(default_factory=list, init=False)
    """The headers of loops that are written out for that."""
    long: list[tuple[Span, Span, int]] = field(default_factory=list, init=False)
    """Loops that make too many turns: their lines, their headers and how many, those of loops around it multiplied."""

    @property
    def called(self) -> frozenset[tuple[Span, str]]:
        """The calls that are known to be of objects."""
        return frozenset((span, text) for span, text in self.in_place if is_of_call(text))

    def length(self, span: Span, turns: Turns) -> int | None:
        """How many turns or elements there are, None where that is not known, or differs."""
        return self.lengths.get((span, turns))

    def is_known(self, span: Span, turns: Turns) -> bool:
        """Whether the question has been answered."""
        return (span, turns) in self.lengths

    def wants(self, loop: Any, file: str) -> bool:
        """Whether `loop`, a For node of `file`, is to be written out, if that can be."""
        if hasattr(loop, "of_comprehension"):
            return any(depth > 1 and are_nested(span, _place(loop)) for span, depth in self._failed_in(file))
        every = [each for node in loop.body for each in walk(node)]
        inner = [_lines(each, file) for each in every if isinstance(each, gast.For)]
        comprehensions = [_place(each) for each in every if _may_be_loop(each)]

        def around(span: Span) -> int:
            """How much else could be written out."""
            loops = sum(is_inside(span, each) for each in inner)
            return loops + 2 * any(are_nested(span, each) for each in comprehensions)

        return any(
            is_inside(span, _lines(loop, file)) and around(span) < depth for span, depth in self._failed_in(file)
        )

    def wants_comprehension(self, node: Any, file: str) -> bool:
        """Whether a comprehension cannot be traced as it stands."""
        return any(are_nested(span, _place(node)) for span, _ in self._failed_in(file))

    def _failed_in(self, file: str) -> Iterator[tuple[Span, int]]:
        return ((span, depth) for span, depth in self.failed.items() if span.file == file)

    def is_long(self, loop: Any, header: Span, count: int) -> bool:
        """Whether `count` turns are too many; noted if so."""
        if count > MOST_TURNS:
            self.long.append((_lines(loop, header.file), header, count))
        return count > MOST_TURNS

    def ask(self, loop: Any, file: str) -> None:
        """Note that `loop` has a question in front: the program will not run as it is built now."""
        self.asked.append(_lines(loop, file))

    def left_open(self, found: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
        """Those of the diagnostics that are no matter of loops about which something is asked."""
        for each in found:
            if not any(is_inside(span, lines) for span in places(each) for lines in self.asked):
                yield each

    def told(self, diagnostic: Diagnostic) -> Diagnostic:
        """`diagnostic`, and that the innermost loop around it would be written out if it made fewer turns."""
        inside = (
            (header, count)
            for lines, header, count in self.long
            if any(is_inside(each, lines) for each in places(diagnostic))
        )
        header, count = max(inside, default=(None, 0))
        if header is None:
            return diagnostic
        label = f"this makes {count} turns, more than the {MOST_TURNS} that can be written out one by one"
        return replace(diagnostic, notes=(*diagnostic.notes, Note(header, label)))


def _may_be_loop(node: Any) -> bool:
    """Whether `node` is a comprehension, or a `max(.., key=..)`: a loop in it comes before the one around it."""
    return isinstance(node, gast.ListComp | gast.GeneratorExp) or (
        isinstance(node, gast.Call) and key_of(node) is not None
    )


def _place(node: Any) -> Place:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _lines(loop: Any, file: str) -> Span:
    """The lines of a loop, without its `else`."""
    return Span(file, loop.lineno, 0, loop.body[-1].end_lineno, 0)


def is_inside(span: Span, lines: Span) -> bool:
    """Whether a place is in these lines."""
    return span.file == lines.file and lines.line <= span.line <= span.end_line <= lines.end_line


def places(diagnostic: Diagnostic) -> tuple[Span, ...]:
    """All places that a diagnostic shows."""
    notes = (note.span for note in diagnostic.notes)
    return (*notes, diagnostic.span) if diagnostic.span is not None else tuple(notes)
