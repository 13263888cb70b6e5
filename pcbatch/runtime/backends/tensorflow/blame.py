"""Errors of opaque operations, put at the line of the user's function that they come from."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

from pcbatch.diagnostics import Diagnostic, PieceRefusalError, PrimitiveError, Span
from pcbatch.ir.code import names
from pcbatch.runtime.backends.tensorflow.weak import WeakTypeError
from pcbatch.runtime.table import Piece

_NO_RULE = (
    "write it with operations that TensorFlow can batch; where there are none, compute it for the whole batch outside "
    "of the batched function and hand the result in as an argument"
)
_DTYPES = re.compile(
    r"passed to parameter|was expected to be an? \w+ tensor|conversion requested dtype|that does not match type"
)
_CAST = "nothing is cast by itself, as everywhere in TensorFlow: write tf.cast(.., ..) for one of the operands"
_MOVING_SLICE = "for a moving window write tf.gather(a, start + tf.range(k)) with a constant k"


def traced(piece: Piece, error: BaseException) -> PrimitiveError:
    """`error`, raised while `piece` was traced: PCB401, or what pcbatch itself refuses inside pieces."""
    if isinstance(error, PieceRefusalError):
        line = _line_of_traceback(piece, error)
        return PrimitiveError([_at(piece, error.code, error.message, line, error.help)])
    reason = _reason(error)
    help = _CAST if _DTYPES.search(reason) else ""
    return PrimitiveError([_at(piece, "PCB401", reason, _line_of_traceback(piece, error), help)])


def unbatched(piece: Piece, operations: Sequence[Any], error: BaseException) -> PrimitiveError:
    """PCB402: pfor failed with `error` on the last of `operations`, which runs inside the ones before it."""
    missing = re.search(r"No pfor vectorization defined for (\w+)", str(error))
    kind = missing[1] if missing else operations[-1].type
    reason = "it has no vectorisation rule" if missing else _clean(str(error))
    help = _MOVING_SLICE if kind in ("StridedSlice", "Slice") else _NO_RULE
    message = f"TensorFlow's {kind} cannot be batched: {reason}"
    return PrimitiveError([diagnostic(piece, "PCB402", message, operation=operations[0], help=help)])


def error(piece: Piece, code: str, message: str, *, name: str, help: str = "") -> PrimitiveError:
    """An error about the variable `name`, at the line of the piece that assigns it last."""
    return PrimitiveError([_at(piece, code, message, _line_that_assigns(piece, name), help)])


def diagnostic(piece: Piece, code: str, message: str, *, operation: Any, help: str = "") -> Diagnostic:
    """A diagnostic about a graph operation, at the line of the piece that made it."""
    return _at(piece, code, message, _line_of_operation(piece, operation), help)


def _at(piece: Piece, code: str, message: str, line: int | None, help: str = "") -> Diagnostic:
    return Diagnostic(code, message, _span(piece, line), help=help)


def _span(piece: Piece, line: int | None) -> Span | None:
    """The user's source of line `line` of the generated file; the piece's first where the line is unknown."""
    if line is not None:
        place = line - piece.function.__code__.co_firstlineno - 1
        if 0 <= place < len(piece.spans) and piece.spans[place] is not None:
            return piece.spans[place]
    return next((span for span in piece.spans if span is not None), None)


# -- finding the line --------------------------------------------------------------------------------------------------


def _codes(code: CodeType) -> Iterator[CodeType]:
    """`code` and the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _line_of_traceback(piece: Piece, error: BaseException) -> int | None:
    own = set(_codes(piece.function.__code__))
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in own:
            return traceback.tb_lineno
        traceback = traceback.tb_next
    return None


def _line_of_operation(piece: Piece, operation: Any) -> int | None:
    """TensorFlow keeps the Python stack of every operation."""
    code = piece.function.__code__
    first = code.co_firstlineno
    last = first + len(piece.spans) + 1
    for frame in operation.traceback:
        if frame.filename == code.co_filename and first < frame.lineno <= last:
            return int(frame.lineno)
    return None


def _line_that_assigns(piece: Piece, name: str) -> int | None:
    """Read from the generated source, which has one statement to a line; None for a value that is passed through."""
    code = piece.function.__code__
    found = None
    for line in range(code.co_firstlineno + 1, code.co_firstlineno + 1 + len(piece.spans)):
        try:
            stored = names(linecache.getline(code.co_filename, line).strip())[1]
        except SyntaxError:  # a line of a longer statement
            continue
        found = line if name in stored else found
    return found


# -- wording -----------------------------------------------------------------------------------------------------------


def _reason(error: BaseException) -> str:
    """What went wrong, in one paragraph. Our own message, where TensorFlow caught it and raised a vaguer one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, WeakTypeError):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    text = _clean(str(error))
    if type(error) in (TypeError, ValueError):
        return text or type(error).__name__
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _clean(text: str) -> str:
    """TensorFlow's message without node names and instructions."""
    text = re.sub(r"\{\{(function_)?node [^}]*\}\}\s*", "", text)
    text = re.sub(r" for '= (\w+)\[[^']*'", r" for \1", text)
    text = re.sub(r" Error: Expected .*", "", text)
    text = re.sub(r"\s*\[Op:\w+\]( name:.*)?", "", text)
    return text.strip().split("\n\n")[0].strip()
