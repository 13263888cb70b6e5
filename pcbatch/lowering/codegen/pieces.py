"""Pieces: straight-line statements of the IR as the text of one pure Python function of one example."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from textwrap import indent
from types import FunctionType
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir.expressions import renamed_free
from pcbatch.ir.machine import LaneStatus, Piece
from pcbatch.ir.payload import Compute, pattern_of
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.translate import Translation

SiteOf = Callable[[int, LaneStatus, str], int]
"""A function from a statement's number in its piece, a check's status and its message, to the fault site."""
_numbers = itertools.count()


@dataclass(frozen=True)
class Statement:
    """One statement of a piece: an op whose expression is translated; None for the end of a `with` block."""

    op: ir.Coded | None
    span: Span | None = None

    @property
    def text(self) -> str:
        """Its text; a `with` block has an empty body."""
        return "" if self.op is None else ir.statement(self.op)

    @property
    def opens(self) -> bool:
        """True for the header of a `with` block, which extends to the statement that closes it."""
        return isinstance(self.op, ir.Enter)

    def renamed(self, names: Mapping[str, str]) -> Statement:
        """The statement with other free names."""
        if self.op is None or not isinstance(self.op.code, Compute):
            return self
        code = replace(self.op.code, expression=renamed_free(self.op.code.expression, names))
        return replace(self, op=replace(self.op, code=code))


@dataclass(frozen=True)
class PieceText:
    """A piece before it is compiled: translated statements, inputs and outputs, and the names that stay free."""

    name: str
    reads: tuple[str, ...]
    shared: tuple[str, ...]
    writes: tuple[str, ...]
    statements: tuple[Statement, ...]
    free: tuple[str, ...]

    def source(self) -> str:
        """The function definition; its body has one line for each line of the statements."""
        body = [line for line, _ in self._lines()]
        values = ", ".join(self.writes) + ("," if len(self.writes) == 1 else "")
        parameters = ", ".join((*self.reads, *self.shared))
        return "\n    ".join([f"def {self.name}({parameters}):", *body, f"return ({values})"]) + "\n"

    def spans(self) -> tuple[Span | None, ...]:
        """The user's source of each line of the body."""
        return tuple(span for _, span in self._lines())

    def _lines(self) -> list[tuple[str, Span | None]]:
        """The lines of the body, those inside `with` blocks indented, each with the user's source."""
        each = self.statements
        texts = [statement.text for statement in each]
        lines = _indented([s.opens for s in each], [s.op is None for s in each], texts)
        return [(line, statement.span) for statement, own in zip(each, lines, strict=True) for line in own]


def _indented(opens: Sequence[bool], closes: Sequence[bool], texts: Sequence[str]) -> list[list[str]]:
    """The lines of each statement, where some are headers that open a `with` block and some, without text, close one.

    A header is a `with` statement whose body is `pass`, which stays where the block is empty.
    """
    found: list[list[str]] = []
    depth = 0
    for place, (opening, closing, text) in enumerate(zip(opens, closes, texts, strict=True)):
        depth -= closing
        is_empty = opening and closes[place + 1]
        header = text.removesuffix("\n    pass") if opening and not is_empty else text
        found.append(indent(header, "    " * depth).splitlines())
        depth += opening
    return found


def write_piece(
    name: str,
    statements: Sequence[ir.Primitive | ir.Enter | ir.Exit],
    writes: tuple[str, ...],
    environment: Environment,
    site: SiteOf,
) -> PieceText:
    """The piece that runs `statements` of the user's and gives `writes`.

    Of their free names, those of captured arrays (`environment`) are shared operands.
    """
    operands = environment.operand_types.keys()
    hidden = environment.hidden_builtins
    translated: list[Statement] = []
    read: dict[str, None] = {}
    shared: dict[str, None] = {}
    free: dict[str, None] = {}
    assigned: set[str] = set()
    for number, op in enumerate(statements):
        if isinstance(op, ir.Exit):
            translated.append(Statement(None, op.span))
            continue
        translation = Translation(partial(site, number), operands, hidden, environment.equivalent, environment.may_fail)
        found = translated_op(op, translation)
        translated.append(Statement(found, op.span))
        for each in op.inputs:
            if each not in assigned:
                read[each] = None
        for each in ir.free(found):
            (shared if each in operands else free)[each] = None
        assigned |= set(op.outputs)
    read.update(dict.fromkeys(each for each in writes if each not in assigned))
    while name in free:  # the user's code reads something of that name
        name += "_"
    return PieceText(name, tuple(read), tuple(shared), writes, tuple(translated), tuple(free))


def translated_op(op: ir.Primitive | ir.Enter, translation: Translation) -> ir.Primitive | ir.Enter:
    """An op whose expression is of calls of `ops`."""
    expression, pattern = ir.expression(op), pattern_of(op.code)
    if pattern is None or isinstance(op, ir.Enter):
        return replace(op, code=Compute(translation.of(expression), pattern))
    return replace(op, code=Compute(translation.taken_apart(expression, pattern), pattern))


def execute(source: str, namespace: dict[str, Any]) -> None:
    """Run generated `source` in `namespace`, registered with linecache so that tracebacks show it.

    As long as its functions live, which they do together, having each other as globals.
    """
    file = f"<pcbatch generated {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), namespace)
    for made in namespace.values():
        if isinstance(made, FunctionType) and made.__code__.co_filename == file:
            weakref.finalize(made, linecache.cache.pop, file, None).atexit = False
            break


def bind(free: Sequence[str], environment: Environment) -> dict[str, Any]:
    """The present values of `free` names; names bound to nothing are left out."""
    bound: dict[str, Any] = {}
    for name in free:
        try:
            bound[name] = environment.lookup(name)
        except KeyError:
            continue
    return bound


def compile_piece(text: PieceText, environment: Environment, sites: tuple[int, ...] = ()) -> Piece:
    """An executable piece, its free names bound to their present values."""
    namespace = {**bind(text.free, environment)}
    execute(text.source(), namespace)
    kept = {name: environment.kept[name] for name in text.shared if name in environment.kept}
    function_, spans = namespace[text.name], text.spans()
    return Piece(function_, text.reads, text.writes, text.shared, sites, spans, kept, environment.tapes)
