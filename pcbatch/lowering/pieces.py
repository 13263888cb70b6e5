"""Python text of pieces: straight-line statements as one pure function of one example."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pcbatch.diagnostics import Span
from pcbatch.runtime.table import Piece

Statement = tuple[str, Span | None]
_numbers = itertools.count()


@dataclass(frozen=True)
class PieceText:
    """A piece before it is compiled: translated statements and what goes in and out."""

    name: str
    reads: tuple[str, ...]
    shared: tuple[str, ...]
    writes: tuple[str, ...]
    statements: tuple[Statement, ...]
    sites: tuple[int, ...] = ()

    def source(self) -> str:
        """The function definition, one statement a line, so that line k of its body belongs to statement k."""
        body = [line for code, _ in self.statements for line in code.splitlines()]
        values = ", ".join(self.writes) + ("," if len(self.writes) == 1 else "")
        lines = [f"def {self.name}({', '.join((*self.reads, *self.shared))}):", *body, f"return ({values})"]
        return "\n    ".join(lines) + "\n"

    def spans(self) -> tuple[Span | None, ...]:
        """The user's source of each line of the body."""
        return tuple(span for code, span in self.statements for _ in code.splitlines())


def execute(source: str, namespace: dict[str, Any]) -> str:
    """Run generated `source` in `namespace`, registered with linecache so that tracebacks show it; its file name."""
    file = f"<pcbatch generated {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), namespace)
    return file


def compile_piece(text: PieceText, lookup: Callable[[str], Any], names: Sequence[str]) -> Piece:
    """An executable piece whose free `names` are bound to what `lookup` gives now; names bound to nothing are left out."""
    namespace: dict[str, Any] = {}
    for name in names:
        try:
            namespace[name] = lookup(name)
        except KeyError:
            continue
    execute(text.source(), namespace)
    return Piece(namespace[text.name], text.reads, text.writes, text.shared, text.sites, text.spans())


def operands_read(code: str, operands: Mapping[str, str], loaded: Sequence[str]) -> tuple[str, ...]:
    """The operand names among the `loaded` names of translated `code`."""
    every = set(operands.values())
    return tuple(name for name in loaded if name in every)
