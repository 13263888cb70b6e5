"""Errors of opaque operations, put at the line of the user's function that they come from."""

from __future__ import annotations

import ast
import linecache
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import CodeType, TracebackType
from typing import Any

from pcbatch.errors import (
    Diagnostic,
    Note,
    PieceRefusalError,
    PlacedError,
    PrimitiveError,
    RefusedBeforeError,
    Span,
)
from pcbatch.installed import OWN, is_installed, is_rewritten
from pcbatch.ir import values
from pcbatch.ir.machine import Piece
from pcbatch.runtime.backends.tensorflow import operands
from pcbatch.runtime.backends.tensorflow.error_messages import (
    NO_VALUE,
    ONE_SHAPE,
    clean,
    help_for,
    plainly,
    reason,
)
from pcbatch.runtime.backends.tensorflow.structures import NotATensorError
from pcbatch.threads import parse

_NO_RULE = (
    "write it with operations that TensorFlow can batch; or say how a whole batch is computed with "
    "pcbatch.primitive(fn, batched=..); or loop over the lanes in this one call with pcbatch.fallback(fn)"
)
CALLED, LENGTH = "PCB405", "PCB130"
"""The codes of a batched call in a helper, and in a comprehension over something whose length is not known yet."""
_HELPER_OF_TENSORS = (
    "a function that is not called by its name in the batched function sees tensors that have no value yet, as in a "
    "tf.function: write `tf.sin` for `math.sin` and `np.sin`, tf.where for `if`, `a.shape[0]` for `len(a)`; or call "
    "`{}` by its name, then all of these may stay"
)
_SIZE = re.compile(r"as an index or a size")
_LANES_RANGE = (
    "a list has the same length in all lanes, unless it is `pcbatch.bounded(shape, dtype, capacity)`, to which a loop "
    "appends, `for i in range(n):`; `sum(.. for i in range(n))`, `any`, `all`, `min` and `max` are loops, too"
)
_CONSTRUCTOR = (
    "compute before what the object is given, `Account(capped(x))`; a constructor may branch or loop if its class is "
    "called by its name, and has no `__new__`, no metaclass and, as a dataclass, no `InitVar`"
)
_HANDED = (
    "a function that pcbatch's own code calls, such as a log density, is traced as one operation: write `tf.sin` for "
    "`math.sin`, tf.where for `if`, and tf.while_loop(.., maximum_iterations=n) for `while`; or decorate it with "
    "`pcbatch.autobatch`: then it may branch, loop and recurse"
)
_TENSORS = (
    "in a comprehension, a lambda and the arguments of what is not batched a lane's number is a tensor that has no "
    "value yet: write a loop, or TensorFlow's operations"
)
_NO_NUMBER = (
    "give each text a number, `START, END = 0, 1`, and call each function in the arm where it is chosen, "
    "`f(x) if flag else g(x)`"
)
_MOVING_SLICE = "for a moving window write tf.gather(a, start + tf.range(k)) with a constant k"


def failure(error: Exception, handed: bool = False) -> tuple[str, str, str]:
    """Return the code, the message and the advice for an error raised while an operation was tried.

    `handed` says that pcbatch's own code has called the user's, such as a density.
    """
    if isinstance(error, PieceRefusalError):
        return error.code, error.message, _HANDED if handed and error.code == "PCB414" else error.help
    if isinstance(error, NotATensorError):
        return "PCB401", f"{error} stands where a lane has a value, and lanes keep numbers only", _NO_NUMBER
    why = reason(error)
    help = help_for(why)
    if not help and NO_VALUE.search(why):
        help = _HANDED if handed else _TENSORS
    return "PCB401", plainly(why), help


def traced(piece: Piece, error: BaseException) -> PrimitiveError:
    """Return the error for `error`, raised while `piece` was traced: PCB401, or pcbatch's own refusal.

    It has no diagnostics where an earlier piece has refused the same.
    """
    if isinstance(error, RefusedBeforeError):
        return PrimitiveError([])
    if isinstance(error, PieceRefusalError):
        line, notes = _line_of_traceback(piece, error), _notes(_helper(piece, error))
        found = _at(piece, error.code, error.message, line, error.help, notes)
        if notes and found.span is not None and found.span.file.startswith(OWN):
            help = _HANDED if error.code == "PCB414" else error.help
            return PrimitiveError([replace(found, span=notes[0].span, notes=(), help=help)])
        return PrimitiveError([found])
    if isinstance(error, PlacedError):
        return PrimitiveError([Diagnostic("PCB401", error.message, error.span)])
    if isinstance(error, NotATensorError):
        why = f"{error} stands where a lane has a value, and lanes keep numbers only"
        return PrimitiveError([_at(piece, "PCB401", why, _line_of_traceback(piece, error), _NO_NUMBER)])
    why = reason(error)
    helper = _helper(piece, error)
    help = help_for(why)
    if not help and NO_VALUE.search(why):
        code = None if helper is None else helper.tb_frame.f_code
        is_constructor = code is not None and code.co_name in values.CONSTRUCTORS
        of_helper = _CONSTRUCTOR if is_constructor else _HELPER_OF_TENSORS
        help = _TENSORS if code is None else of_helper.format(code.co_name)
    line = _line_of_traceback(piece, error)
    place = _innermost(piece, error) if helper is None else helper
    product = operands.product(place) if NO_VALUE.search(why) else None
    if product is not None:
        why, help = product, operands.PRODUCT
    mixed = operands.mixed(why, place, _span(piece, line) if helper is None else None)
    if mixed is not None:
        why, help = mixed
    notes = _notes(helper)
    span = _span(piece, line)
    if notes and span is not None and span.file.startswith(OWN):  # pcbatch's own code calls what it was handed
        help = _HANDED if help.startswith(_HELPER_OF_TENSORS[:20]) else help
        return PrimitiveError([Diagnostic("PCB401", plainly(why), notes[0].span, help=help)])
    found = _at(piece, "PCB401", plainly(why), line, help, notes)
    at = found.span
    if not help and at is not None and at.text[at.column :].startswith("range(") and _SIZE.search(why):
        found = replace(found, help=_LANES_RANGE)
    return PrimitiveError([found])


def unbatched(piece: Piece, operations: Sequence[Any], error: BaseException) -> PrimitiveError:
    """PCB402: pfor failed with `error` on the last of `operations`, which runs inside the ones before it.

    What a rule of pcbatch's own refuses has a code of its own.
    """
    if isinstance(error, PieceRefusalError):
        found = diagnostic(piece, error.code, error.message, operation=operations[0], help=error.help)
        return PrimitiveError([_of_handed(found, operations[0])])
    missing = re.search(r"No pfor vectorization defined for (\w+)", str(error))
    kind = missing[1] if missing else operations[-1].type
    why = "it has no vectorisation rule" if missing else clean(str(error))
    help = {"StridedSlice": _MOVING_SLICE, "Slice": _MOVING_SLICE, "Range": ONE_SHAPE}.get(kind, _NO_RULE)
    message = f"TensorFlow's {kind} cannot be batched: {why}"
    return PrimitiveError(
        [_of_handed(diagnostic(piece, "PCB402", message, operation=operations[0], help=help), operations[0])]
    )


def _of_handed(found: Diagnostic, operation: Any) -> Diagnostic:
    """Return a diagnostic about an operation, moved from pcbatch's own code to the line of its operands."""
    if found.span is None or not found.span.file.startswith(OWN):
        return found
    return replace(
        found, span=_made_at(operation) or found.span, help=_HANDED if found.code == "PCB414" else found.help
    )


def _made_at(operation: Any) -> Span | None:
    """Return the line of the user's code that made an operation, or its inputs: a gradient has no line."""
    pending, seen = deque([operation]), {operation.name}
    while pending:
        each = pending.popleft()
        for frame in reversed(each.traceback or ()):
            if not is_installed(frame.filename) and not frame.filename.startswith((OWN, "<")):
                return Span.of_line(frame.filename, frame.lineno)
        made = [tensor.op for tensor in each.inputs if tensor.op.name not in seen]
        seen.update(operation.name for operation in made)
        pending.extend(made)
    return None


def error(piece: Piece, code: str, message: str, *, name: str, help: str = "") -> PrimitiveError:
    """An error about the variable `name`, at the line of the piece that assigns it last."""
    return PrimitiveError([_at(piece, code, message, _line_that_assigns(piece, name), help)])


def diagnostic(piece: Piece, code: str, message: str, *, operation: Any, help: str = "") -> Diagnostic:
    """A diagnostic about a graph operation, at the line of the piece that made it."""
    return _at(piece, code, message, _line_of_operation(piece, operation), help)


def _at(
    piece: Piece, code: str, message: str, line: int | None, help: str = "", notes: tuple[Note, ...] = ()
) -> Diagnostic:
    return Diagnostic(code, message, _span(piece, line), help=help, notes=notes)


def _span(piece: Piece, line: int | None) -> Span | None:
    """The user's source of line `line` of the generated file; the piece's first where the line is unknown."""
    if line is not None:
        place = _place(piece, line)
        if 0 <= place < len(piece.spans) and piece.spans[place] is not None:
            return piece.spans[place]
    return next((span for span in piece.spans if span is not None), None)


def _place(piece: Piece, line: int) -> int:
    """Return the line of the piece's body, if any, for line `line` of the generated file."""
    return line - piece.compiled.__code__.co_firstlineno - 1


def line_of_body(piece: Piece, operation: Any) -> int | None:
    """Return the line of the piece's body that made a graph operation; None for the return, or if unknown."""
    line = _line_of_operation(piece, operation)
    return None if line is None or _place(piece, line) >= len(piece.spans) else _place(piece, line)


def span_of(piece: Piece, operation: Any) -> Span | None:
    """The user's statement that made a graph operation; the first one of the piece where that is unknown."""
    place = None if operation is None else line_of_body(piece, operation)
    known = [span for span in (piece.spans if place is None else piece.spans[place:]) if span is not None]
    return known[0] if known else None


# -- finding the line --------------------------------------------------------------------------------------------------


def _codes(code: CodeType) -> Iterator[CodeType]:
    """`code` and the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _own(piece: Piece, error: BaseException) -> TracebackType | None:
    """Return the innermost traceback entry of `error` that lies in the piece."""
    own = set(_codes(piece.compiled.__code__))
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code not in own:
        traceback = traceback.tb_next
    return traceback


def _innermost(piece: Piece, error: BaseException) -> TracebackType | None:
    """The last place in the piece that it had come to when `error` was raised: in an arm of a conditional, say."""
    own = set(_codes(piece.compiled.__code__))
    traceback, found = error.__traceback__, None
    while traceback is not None:
        found = traceback if traceback.tb_frame.f_code in own else found
        traceback = traceback.tb_next
    return found


def _line_of_traceback(piece: Piece, error: BaseException) -> int | None:
    traceback = _own(piece, error)
    return None if traceback is None else traceback.tb_lineno


def _helper(piece: Piece, error: BaseException) -> TracebackType | None:
    """The last place in the user's own code that the piece had come to when `error` was raised, if not in the piece."""
    own = set(_codes(piece.compiled.__code__))
    traceback, inside, found = error.__traceback__, False, None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        inside = inside or code in own
        if inside and code not in own and not is_installed(code.co_filename) and not code.co_filename.startswith(OWN):
            found = traceback
        traceback = traceback.tb_next
    return found


def _notes(traceback: TracebackType | None) -> tuple[Note, ...]:
    """The line of a helper, where it is one that the user wrote."""
    code = None if traceback is None else traceback.tb_frame.f_code
    if traceback is None or code is None or is_rewritten(code.co_filename):
        return ()
    span = Span.of_line(code.co_filename, traceback.tb_lineno)
    return (Note(span, f"this is in the helper `{code.co_name}`"),)


def _line_of_operation(piece: Piece, operation: Any) -> int | None:
    """TensorFlow keeps the Python stack of every operation."""
    code = piece.compiled.__code__
    first = code.co_firstlineno
    last = first + len(piece.spans) + 1
    for frame in operation.traceback or ():
        if frame.filename == code.co_filename and first < frame.lineno <= last:
            return int(frame.lineno)
    return None


def _line_that_assigns(piece: Piece, name: str) -> int | None:
    """Read from the generated source, which has one statement to a line; None for a value that is passed through."""
    code = piece.compiled.__code__
    found = None
    for line in range(code.co_firstlineno + 1, code.co_firstlineno + 1 + len(piece.spans)):
        try:
            stored = _assigned(linecache.getline(code.co_filename, line).strip())
        except SyntaxError:  # a line of a longer statement, or the header of a `with` block
            continue
        found = line if name in stored else found
    return found


def _assigned(text: str) -> set[str]:
    names = (node for node in ast.walk(parse(text)) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}
