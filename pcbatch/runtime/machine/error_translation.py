"""Errors of the array library about a program, shown at the user's source."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pcbatch.errors import Diagnostic, PrimitiveError, Span
from pcbatch.ir.machine import Piece, Program
from pcbatch.runtime.backends.protocol import Backend, Explanation


@contextlib.contextmanager
def explaining(program: Program, backend: Backend, jit: bool) -> Iterator[None]:
    """Raise the array library's refusals inside as a PrimitiveError at the user's source."""
    try:
        yield
    except Exception as error:
        explained = backend.explain(error)
        if explained is None:
            raise
        raise PrimitiveError([_diagnostic(program, explained, jit)]) from error


def _diagnostic(program: Program, explained: Explanation, jit: bool) -> Diagnostic:
    span = _span(program, explained)
    if jit:
        help = "use another operation, or jit=False to run as a plain graph"
        return Diagnostic("PCB440", f"XLA cannot compile this: {explained.gist}", span, help=help)
    help = "`assert` before it what it needs; under XLA (jit=True) such operations give NaN instead"
    return Diagnostic("PCB441", f"an operation failed while it ran: {explained.gist}", span, help=help)


def _span(program: Program, explained: Explanation) -> Span | None:
    """The user's line that the error comes from, or else the block, as far as the error tells."""
    blocks = {block.label: block for block in program.blocks}
    block = next((blocks[scope] for scope in reversed(explained.scopes) if scope in blocks), None)
    if block is None:
        return None
    for piece in (item for item in block.body if isinstance(item, Piece)):
        code = piece.compiled.__code__
        for file, line in explained.frames:
            place = line - code.co_firstlineno - 1
            if file == code.co_filename and 0 <= place < len(piece.spans) and piece.spans[place] is not None:
                return piece.spans[place]
    return block.span
