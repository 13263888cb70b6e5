"""Shapes, indices and places: where the elements of a view are in the memory that it shares."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np


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
