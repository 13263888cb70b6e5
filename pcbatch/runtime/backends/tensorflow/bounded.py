"""Bounded lists: of one capacity, and of a length that differs by lane. As values of a lane, and in plain Python.

A bounded list is a record of an array that has room for all its elements and of how many there are. What lies behind
the last element is what was there before. A lane's is one of the lists whose length differs by lane (see
`reading.lengths`); in plain Python it is changed in place, as a list is.
"""

from __future__ import annotations

import copy
import dataclasses
import operator
from collections.abc import Iterator, MutableSequence, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.runtime.backends.tensorflow import stores

FULL = "append to a bounded list that is full"
EMPTY = "pop from an empty list"


@dataclasses.dataclass(eq=False)
class Bounded:
    """A list with room for a fixed number of arrays of one shape and dtype; `pcbatch.bounded` makes one.

    `items` is `[capacity, *shape]`, `length` an int32 scalar. In results of a batch both have a leading axis of lanes:
    `result.items[lane, :result.length[lane]]` are the elements of one lane.
    """

    items: Any
    length: Any

    extend, remove = MutableSequence.extend, MutableSequence.remove
    index, count, __contains__ = MutableSequence.index, MutableSequence.count, MutableSequence.__contains__
    __iadd__ = MutableSequence.__iadd__

    def append(self, value: Any) -> None:
        """Add an element at the end; IndexError where there is no room."""
        self.insert(len(self), value)

    def insert(self, index: int, value: Any) -> None:
        """Add an element before the one at `index`; IndexError where there is no room."""
        length = len(self)
        if length == self.items.shape[0]:
            raise IndexError(FULL)
        at = min(max(index + length if index < 0 else index, 0), length)
        for place in range(length, at, -1):
            self._store(place, self.items[place - 1])
        self._store(at, value)
        self._count(length + 1)

    def pop(self, index: int = -1) -> Any:
        """Take an element out, the last one unless `index` is given; IndexError where there is none."""
        if not len(self):
            raise IndexError(EMPTY)
        found = self._element(self._place(index))
        del self[index]
        return found

    def clear(self) -> None:
        """Take all elements out."""
        self._count(0)

    def reverse(self) -> None:
        """Turn the order round."""
        for place, value in enumerate([self._element(place) for place in reversed(range(len(self)))]):
            self._store(place, value)

    def copy(self) -> Bounded:
        """Another one with the same elements and as much room."""
        return self[:]

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        """Put the elements in order."""
        values = [self._element(place) for place in range(len(self))]
        for place, value in enumerate(sorted(values, key=key, reverse=reverse)):
            self._store(place, value)

    def __len__(self) -> int:
        return int(self.length)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return self.items[self._place(index)]
        found = type(self)(copy.copy(self.items), self.length * 0)
        for place in range(len(self))[index]:
            found.append(self._element(place))
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        self._store(self._place(index), value)

    def __delitem__(self, index: Any) -> None:
        for place in range(self._place(index), len(self) - 1):
            self._store(place, self.items[place + 1])
        self._count(len(self) - 1)

    def __iter__(self) -> Iterator[Any]:
        place = 0
        while place < len(self):
            yield self.items[place]
            place += 1

    def _place(self, index: Any) -> int:
        """The position of an element, from the front."""
        if tf.is_symbolic_tensor(self.length):  # a literal index, while it is traced: where it fails it is checked
            raise IndexError("which elements a bounded list has differs from lane to lane")
        at, length = operator.index(index), len(self)
        if not -length <= at < length:
            raise IndexError(f"index {at} is out of range for a bounded list of {length}")
        return at % length

    def _element(self, place: int) -> Any:
        """The element at a position, by value."""
        return self.items[place]

    def _store(self, place: int, value: Any) -> None:
        """Store an element at a position."""
        self.items = stores.store_element(self.items, place, value)

    def _count(self, length: int) -> None:
        """Set the number of elements."""
        self.length = tf.constant(length, tf.int32)


def bounded(shape: int | Sequence[int], dtype: Any, capacity: int) -> Bounded:
    """An empty list with room for `capacity` arrays of `shape` and `dtype`, the number of which may differ by lane.

        todo = pcbatch.bounded([], tf.int32, 64)
        todo.append(root)
        while len(todo) > 0:
            node = todo.pop()

    It does what a list does, and its elements are of one type that is known beforehand. A lane that appends to a full
    list, takes from an empty one or reads an element that is not there fails at that line.

    Arguments:
        shape: of one element: `[]` for numbers.
        dtype: of the elements, such as tf.float32.
        capacity: a static int, how many elements there can be.

    Returns:
        A `Bounded`: a record of `items`, `[capacity, *shape]`, and `length`, int32.

    Raises:
        UsageError: PCB554 where `capacity` is no positive int, or `shape` or `dtype` is none.
    """
    sizes = [shape] if isinstance(shape, int) else list(shape)
    try:
        room = operator.index(capacity)
        with tf.init_scope():  # a program that is read inside a graph is the same
            items, length = tf.zeros([room, *map(operator.index, sizes)], tf.as_dtype(dtype)), tf.zeros([], tf.int32)
    except (TypeError, ValueError) as error:
        raise UsageError(
            "PCB554", f"a bounded list of {shape!r}, {dtype!r} and capacity {capacity!r} cannot be made: {error}"
        ) from None
    if room < 1:
        raise UsageError("PCB554", f"the capacity of a bounded list is a positive number, not {room}")
    return Bounded(items, length)
