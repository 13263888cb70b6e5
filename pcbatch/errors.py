"""Diagnostics: spans in the user's source, coded messages drawn with carets, and the exceptions that carry them.

A leaf module: everything in pcbatch may use it, it uses nothing of pcbatch.
"""

from __future__ import annotations

import linecache
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, order=True)
class Span:
    """A stretch of source text: 1-based lines, 0-based character columns, the end exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def of_line(cls, file: str, line: int) -> Span:
        """A whole line, without its indentation."""
        text = linecache.getline(file, line).rstrip()
        return cls(file, line, len(text) - len(text.lstrip()), line, max(1, len(text)))

    def __str__(self) -> str:
        """`file:line:column`, the column counted from 1 as editors do."""
        return f"{self.file}:{self.line}:{self.column + 1}"

    @property
    def text(self) -> str:
        """The source line on which the span starts, without its line ending."""
        return linecache.getline(self.file, self.line).rstrip("\r\n")


@dataclass(frozen=True)
class Note:
    """A second place that a diagnostic points at, such as the other assignment of a type conflict."""

    span: Span
    label: str


@dataclass(frozen=True)
class Diagnostic:
    """One fault found in a user's program: a code, where it is, what is wrong and what to write instead."""

    code: str
    message: str
    span: Span | None
    label: str = ""
    help: str = ""
    notes: tuple[Note, ...] = ()

    def render(self) -> str:
        """Draw the diagnostic: header, source line with carets, notes and the help line."""
        lines = [f"{self.code}: {self.message}"]
        if self.span is not None:
            lines += _excerpt(self.span, self.label)
        for note in self.notes:
            lines += _excerpt(note.span, note.label)
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


def _excerpt(span: Span, label: str) -> list[str]:
    """Draw the location, the source line and a line of carets as wide as the span."""
    text = span.text
    where = f"  --> {span}"
    if not text:
        return [where + (f": {label}" if label else "")]
    end = span.end_column if span.end_line == span.line else len(text)
    margin = " " * len(str(span.line))
    indent = _under(text[: span.column], " ")
    carets = _under(text[span.column : end], "^")
    return [
        where,
        f"   {margin} |",
        f"   {span.line} | {text}",
        f"   {margin} | {indent}{carets if '^' in carets else '^'}" + (f" {label}" if label else ""),
    ]


def _under(text: str, mark: str) -> str:
    """`mark` for each column that `text` takes up on a screen: two for a wide character, none for a combining one.

    A tab stays a tab, since how wide it is depends on where it stands.
    """
    return "".join("\t" if character == "\t" else mark * _columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


class PcbatchError(Exception):
    """Base of every error that pcbatch raises on purpose."""

    ag_pass_through = True
    """Attribute that makes TensorFlow's AutoGraph leave the error's class alone when it is raised inside a
    tf.function."""


SHARED_ARGUMENT = "an argument that all lanes share, as a table, is named so: `@pcbatch.autobatch(in_axes=(0, None))`"
"""Help for a user who forgot it: each lane has a row of the table then, or a number."""


class PieceRefusalError(PcbatchError):
    """Raised inside a piece; whoever traces the piece raises it anew at the user's line."""

    def __init__(self, code: str, message: str, help: str):
        self.code, self.message, self.help = code, message, help
        super().__init__(f"{code}: {message}\n  help: {help}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.message, self.help)


class PlacedError(PcbatchError, ValueError):
    """Raised for a function that was handed in: reported at its own place, `span`, not at the line that calls it."""

    def __init__(self, message: str, span: Span):
        self.message, self.span = message, span
        super().__init__(f"{message}\n  --> {span}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.span)


class RefusedBeforeError(PieceRefusalError):
    """A refusal that an earlier piece makes of the same value, so that it need not be told twice."""


class CompileError(PcbatchError):
    """A program was refused before anything ran; `diagnostics` lists every fault found."""

    def __init__(self, diagnostics: Iterable[Diagnostic]):
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n\n".join(diagnostic.render() for diagnostic in self.diagnostics))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostics,)


class UnsupportedSyntaxError(CompileError, SyntaxError):
    """PCB1xx: the source uses a construct that pcbatch does not translate.

    As with any SyntaxError `filename`, `lineno` and `offset` say where; without them IPython names `<string>`.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]):
        super().__init__(diagnostics)
        span = next((each.span for each in self.diagnostics if each.span is not None), None)
        if span is not None:
            self.filename, self.lineno, self.offset = span.file, span.line, span.column + 1
            self.end_lineno, self.end_offset = span.end_line, span.end_column + 1

    def __str__(self) -> str:
        return str(self.args[0])  # which names the place, so that Python need not add it


class NameResolutionError(CompileError, NameError):
    """PCB2xx: a name is unbound on some path, unknown, or bound to something that cannot be used here."""


class BatchTypeError(CompileError, TypeError):
    """PCB3xx: dtypes, shapes or structures do not agree."""


class PrimitiveError(CompileError, ValueError):
    """PCB4xx: an opaque operation failed while it was traced, or has no batched rule."""


class UsageError(PcbatchError, ValueError):
    """PCB5xx: an option, an argument or a combination of them makes no sense."""

    def __init__(self, code: str, message: str, span: Span | None = None):
        self.code, self.message, self.span = code, message, span
        place = "" if span is None else f"\n  --> {span}\n   | {span.text.strip()}"
        super().__init__(f"{code}: {message}{place}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.message, self.span)


class MissingError(UsageError):
    """PCB580: a part of the array library that is needed now is not there."""


@contextmanager
def needed(what: str, extra: str = "nuts") -> Iterator[None]:
    """Import a package that comes with an extra; PCB564 where it is not installed, `what` it is for."""
    try:
        yield
    except ModuleNotFoundError as error:
        why = f"{what}, which is not installed ({error}): pip install 'pcbatch[{extra}]'"
        raise UsageError("PCB564", why) from None


class GradientError(PcbatchError, NotImplementedError):
    """PCB6xx: a gradient was asked through a batched call where there is none."""


def in_gradient(error: CompileError, help: str) -> GradientError:
    """PCB603: the refusal of a program whose gradient is taken, or of the gradient; `help` is another way."""
    text = [
        replace(
            each,
            code="PCB603",
            message=f"in the gradient, {each.message}",
            help="; or ".join(filter(None, (each.help, help))),
        ).render()
        for each in error.diagnostics
    ]
    return GradientError("\n\n".join(text))


_FAMILIES: dict[str, type[CompileError]] = {
    "PCB1": UnsupportedSyntaxError,
    "PCB2": NameResolutionError,
    "PCB3": BatchTypeError,
    "PCB4": PrimitiveError,
}


def raise_all(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise one error with all of `diagnostics`, sorted by place, of the class of the first; do nothing for none."""
    found = sorted(dict.fromkeys(diagnostics), key=lambda d: ((d.span is None), d.span or 0, d.code))
    if found:
        raise _FAMILIES.get(found[0].code[:4], CompileError)(found)
