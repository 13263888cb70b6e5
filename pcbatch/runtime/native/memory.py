"""Where the arrays lie that are too large for registers: stacks, and arrays of which lanes store elements.

Lanes stop on the way, so each has its own: an array is `[lanes, ...]`, and which lane runs is the first index into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pcbatch.runtime.backends.protocol import Array, Backend, State


@dataclass(frozen=True)
class Memory:
    """The arrays of the lane that runs, `lane`; keys as in `Registers`.

    What would be in registers of the keys `in_place` lies here, too; nobody changes those that are `constant`. The
    arrays `bytes` hold bools as bytes.
    """

    backend: Backend
    lane: Array
    in_place: frozenset[str]
    constant: frozenset[str]
    bytes: frozenset[str]
    zero: Array | None = None

    def load(self, state: State, key: str, indices: Sequence[Array]) -> Array:
        """`array[indices..]`, as the lane wrote it."""
        element = self.backend.element(state[key], self._indices(indices))
        return self.backend.cast(element, "bool") if key in self.bytes else element

    def stored(self, state: State, key: str, indices: Sequence[Array], value: Array) -> Array:
        """The array with `array[indices..] = value`."""
        value = self.backend.cast(value, "uint8") if key in self.bytes else value
        first, *rest = self._indices(indices)
        first = first if self.zero is None else self.backend.add(first, self.zero)
        return self.backend.with_element(state[key], [first, *rest], value)

    def after(self, zero: Array) -> Memory:
        """The same, of which nothing is written before `zero`, an int32 that is zero, is known."""
        return replace(self, zero=zero if self.zero is None else self.backend.add(self.zero, zero))

    def _indices(self, indices: Sequence[Array]) -> list[Array]:
        return [self.lane, *indices]
