"""Slices of fixed length, `a[i:i + 3]`, that leave their array: Python cuts them short, a lane fails.

Which slices are of fixed length says the way they are written, so where one is cut the line is looked at.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from types import FrameType
from typing import Any

from pcbatch.installed import OWN
from pcbatch.ir.slices import Window, length_of
from pcbatch.syntax import parse


def refuse_cut(at: Any, shape: tuple[int, ...]) -> None:
    """IndexError where an index of an array of `shape` has a slice of fixed length that leaves it."""
    parts = at if isinstance(at, tuple) else (at,)
    taken = sum(part is not None and part is not ... for part in parts)
    axis = 0
    for number, part in enumerate(parts):
        if isinstance(part, slice) and axis < len(shape) and _is_cut(part, shape[axis]):
            written = _written(inspect.currentframe())
            if written is not None and number < len(written) and _is_fixed(written[number]):
                window = Window(part.start, part.stop, part.step or 1, part.stop - part.start)
                window.resolve(shape[axis])
        axis += len(shape) - taken if part is ... else part is not None


def _is_cut(part: slice, size: int) -> bool:
    start, stop, step = part.start, part.stop, part.step or 1
    if start is None or stop is None:
        return False
    return len(range(*part.indices(size))) != len(range(0, stop - start, step))


def _is_fixed(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and length_of(node.lower, node.upper) is not None


def _written(frame: FrameType | None) -> list[ast.expr] | None:
    """The parts of the index that the user's code is at."""
    while frame is not None and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    if frame is None or not hasattr(frame.f_code, "co_positions"):
        return None
    first, last, start, end = [*frame.f_code.co_positions()][frame.f_lasti // 2]
    if None in (first, last, start, end):
        return None
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)[first - 1 : last]  # type: ignore[operator]
    text = [line.encode() for line in lines]
    if not text:
        return None
    text[-1] = text[-1][:end]
    text[0] = text[0][start:]
    try:
        found = parse(b"".join(text).decode().strip(), mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(found, ast.Subscript):
        return None
    return found.slice.elts if isinstance(found.slice, ast.Tuple) else [found.slice]
