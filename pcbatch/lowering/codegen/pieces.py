"""Pieces: straight-line statements of the IR as the text of one pure Python function of one example."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import indent
from types import FunctionType
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir.code import Code
from pcbatch.ir.machine import Piece
from pcbatch.ir.status import LaneStatus
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.translate import translate

SiteOf = Callable[[int, LaneStatus, str], int]
"""From the number of a statement in its piece, and how and with what message a check of it fails, to the fault site."""
_numbers = itertools.count()


@dataclass(frozen=True)
class Statement:
    """One statement of a piece, and the user's source that it comes from.

    One that `opens` is the header of a `with` block, which goes on up to the statement, without code, that `closes` it.
    """

    code: Code
    span: Span | None = None
    opens: bool = False
    closes: bool = False


@dataclass(frozen=True)
class PieceText:
    """A piece before it is compiled: translated statements, what goes in and out, and the names that stay free."""

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
        texts = [statement.code.text for statement in each]
        lines = _indented([s.opens for s in each], [s.closes for s in each], texts)
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
    variables: frozenset[str],
    environment: Environment,
    site: SiteOf,
) -> PieceText:
    """The piece that runs `statements` of the user's and gives `writes`.

    `variables` are the names that are variables there; the others are free, captured arrays (`environment`) apart.
    """
    operands = {name: name for name in environment.operand_types}
    written = frozenset(name for op in statements for name in ir.writes(op))
    own = variables | written | environment.hidden_builtins

    def translated_op(number: int, op: ir.Primitive | ir.Enter | ir.Exit) -> Statement:
        if isinstance(op, ir.Exit):
            return Statement(Code(""), op.span, closes=True)
        at = partial(site, number)
        code = translate(ir.statement(op), at, operands, own, environment.equivalent, environment.may_fail)
        return Statement(code, op.span, opens=isinstance(op, ir.Enter))

    translated = tuple(translated_op(number, op) for number, op in enumerate(statements))
    read: dict[str, None] = {}
    shared: dict[str, None] = {}
    free: dict[str, None] = {}
    assigned: set[str] = set()
    for statement in translated:
        for each in statement.code.reads:
            if each in operands.values() and each not in variables:
                shared[each] = None
            elif each in variables and each not in assigned:
                read[each] = None
            elif each not in variables and each not in assigned:
                free[each] = None
        assigned |= set(statement.code.writes)
    read.update(dict.fromkeys(each for each in writes if each not in assigned))
    while name in free:  # the user's code reads something of that name
        name += "_"
    return PieceText(name, tuple(read), tuple(shared), writes, translated, tuple(free))


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


def compile_piece(
    text: PieceText,
    environment: Environment,
    sites: tuple[int, ...] = (),
    given: Mapping[str, Any] | None = None,
) -> Piece:
    """An executable piece, its free names bound to their present values, or to those `given`."""
    namespace = {**bind(text.free, environment), **(given or {})}
    execute(text.source(), namespace)
    kept = {name: environment.kept[name] for name in text.shared if name in environment.kept}
    function_, spans = namespace[text.name], text.spans()
    return Piece(function_, text.reads, text.writes, text.shared, sites, spans, kept, environment.tapes)
