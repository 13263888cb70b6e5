"""Indices of arrays of one example: where the elements of a view are in the memory that it shares, and slices.

Slices of fixed length, `a[i:i + 3]`, may leave their array: Python cuts them short, a lane fails.
Which slices are of fixed length says the way they are written, so where one is cut the line is looked at.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import operator
import textwrap
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from pcbatch.installed import OWN
from pcbatch.ir.slices import Window, length_of
from pcbatch.threads import parse

# -- shapes and places -------------------------------------------------------------------------------------------------


class Shape(tuple[int, ...]):
    """The sizes of an array: a tuple that knows what TensorFlow's shapes do."""

    __slots__ = ()

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self)

    ndims = rank

    def as_list(self) -> list[int]:
        """The sizes in a list."""
        return [*self]

    def num_elements(self) -> int:
        """Return the number of elements."""
        return int(np.prod(self))

    def is_fully_defined(self) -> bool:
        """All sizes are known."""
        return True

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Shape(found) if isinstance(found, tuple) else found


def places(view: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """For each element of a view its place in `memory`, an array without gaps that has it."""
    numbers = np.arange(memory.size)
    if view is memory:
        return numbers.reshape(memory.shape)
    size = memory.itemsize
    first = view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    if not view.size:
        return np.zeros(view.shape, np.int64)
    strides = [stride // size * numbers.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(numbers[first // size :], view.shape, strides)


def resolved(index: Any, position: Callable[[Any], Any]) -> Any:
    """An index as NumPy takes it, `position` having what stands for its numbers and arrays."""
    if not isinstance(index, tuple):
        return _part(index, position)
    return tuple(_part(part, position) for part in index)


def _part(part: Any, position: Callable[[Any], Any]) -> Any:
    if isinstance(part, slice):
        return slice(*(_bound(position(each)) for each in (part.start, part.stop, part.step)))
    if isinstance(part, list):
        return [_part(each, position) for each in part]
    return position(part)


def _bound(bound: Any) -> Any:
    return None if bound is None else operator.index(bound)


def is_basic(at: Any) -> bool:
    """Return whether an index has no array of positions, and no mask."""
    parts = at if isinstance(at, tuple) else (at,)
    return not any(isinstance(part, (list, np.ndarray, bool, np.bool_)) for part in parts)


# -- slices of fixed length --------------------------------------------------------------------------------------------


def refuse_cut(at: Any, shape: tuple[int, ...]) -> None:
    """IndexError where an index of an array of `shape` has a slice of fixed length that leaves it."""
    parts = at if isinstance(at, tuple) else (at,)
    taken = sum(part is not None and part is not ... for part in parts)
    axis = 0
    for number, part in enumerate(parts):
        if isinstance(part, slice) and axis < len(shape) and _is_cut(part, shape[axis]):
            written = _written(inspect.currentframe(), len(parts))
            if written and all(_is_fixed(each[number]) for each in written):
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


def _written(frame: FrameType | None, count: int) -> list[list[ast.expr]]:
    """The `count` parts of the index that the user's code is at.

    Before Python 3.11 only its line is known, and these are the parts of each index there.
    """
    while frame is not None and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    if frame is None:
        return []
    found = _at_place(frame) if hasattr(frame.f_code, "co_positions") else _on_line(frame)
    indices = [each.slice.elts if isinstance(each.slice, ast.Tuple) else [each.slice] for each in found]
    return [each for each in indices if len(each) == count]


def _at_place(frame: FrameType) -> list[ast.Subscript]:
    """The subscript that a frame is at, if it is at one."""
    code: Any = frame.f_code
    first, last, start, end = [*code.co_positions()][frame.f_lasti // 2]
    if None in (first, last, start, end):
        return []
    text = [line.encode() for line in linecache.getlines(code.co_filename, frame.f_globals)[first - 1 : last]]
    if not text:
        return []
    text[-1] = text[-1][:end]
    text[0] = text[0][start:]
    try:
        found = parse(b"".join(text).decode().strip(), mode="eval").body
    except SyntaxError:
        return []
    return [found] if isinstance(found, ast.Subscript) else []


def _on_line(frame: FrameType) -> list[ast.Subscript]:
    """The subscripts with slices on the line that a frame is at."""
    code, line = frame.f_code, frame.f_lineno
    try:
        lines, first = inspect.getsourcelines(code)
        tree = parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):
        return []
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and node.lineno <= line - max(first, 1) + 1 <= (node.end_lineno or node.lineno)
        and any(isinstance(each, ast.Slice) for each in ast.walk(node.slice))
    ]
