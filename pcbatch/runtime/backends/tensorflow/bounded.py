"""Bounded lists: of one capacity, and of a length that differs by lane. As values of a lane, and in plain Python.

A bounded list is a record of an array that has room for all its elements and of how many there are. What lies behind
the last element is what was there before. In plain Python it is changed in place, as a list; `changes` has what a lane
does instead.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.runtime.backends.tensorflow import scattering

FULL = "append to a bounded list that is full"
EMPTY = "pop from an empty bounded list"


@dataclasses.dataclass(eq=False)
class Bounded:
    """A list with room for a fixed number of arrays of one shape and dtype; `pcbatch.bounded` makes one.

    `items` is `[capacity, *shape]`, `length` an int32 scalar. In results of a batch both have a leading axis of lanes:
    `result.items[lane, :result.length[lane]]` are the elements of one lane.
    """

    items: Any
    length: Any

    def append(self, value: Any) -> None:
        """Add an element at the end; IndexError where there is no room."""
        at = len(self)
        if at == self.items.shape[0]:
            raise IndexError(FULL)
        self.items = scattering.store_element(self.items, at, value)
        self.length = self.length + 1

    def pop(self) -> Any:
        """Take the last element away; IndexError where there is none."""
        at = len(self) - 1
        if at < 0:
            raise IndexError(EMPTY)
        self.length = self.length - 1
        return self.items[at]

    def clear(self) -> None:
        """Take all elements away."""
        self.length = tf.zeros_like(self.length)

    def __len__(self) -> int:
        return int(self.length)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __getitem__(self, index: Any) -> Any:
        return self.items[self._place(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.items = scattering.store_element(self.items, self._place(index), value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items[: len(self)])

    def _place(self, index: Any) -> int:
        """The position of an element, from the front."""
        if tf.is_symbolic_tensor(self.length):  # a literal index, while it is traced: where it fails it is checked
            raise IndexError("which elements a bounded list has differs from lane to lane")
        at, length = operator.index(index), len(self)
        if not -length <= at < length:
            raise IndexError(f"index {at} is out of range for a bounded list of {length}")
        return at % length


def bounded(shape: int | Sequence[int], dtype: Any, capacity: int) -> Bounded:
    """An empty list with room for `capacity` arrays of `shape` and `dtype`, the number of which may differ by lane.

        todo = pcbatch.bounded([], tf.int32, 64)
        todo.append(root)
        while len(todo) > 0:
            node = todo.pop()

    It has `append`, `pop`, `clear`, `len`, elements (`todo[i]`, `todo[i] = v`, `todo[-1]`), truth, and loops go over
    it. A lane that appends to a full list, takes from an empty one or reads an element that is not there fails at
    that line. An append copies the array that holds the elements; where the cost of that matters, keep an array and a
    count: `a[n] = v`.

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
        items = tf.zeros([room, *map(operator.index, sizes)], tf.as_dtype(dtype))
    except (TypeError, ValueError) as error:
        raise UsageError(
            "PCB554", f"a bounded list of {shape!r}, {dtype!r} and capacity {capacity!r} cannot be made: {error}"
        ) from None
    if room < 1:
        raise UsageError("PCB554", f"the capacity of a bounded list is a positive number, not {room}")
    return Bounded(items, tf.zeros([], tf.int32))
