"""What the program counter of a lane means while native code runs it: the place of a block in the code, or an end."""

from __future__ import annotations

from collections.abc import Iterable

from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.machine.state import Layout


class RegionPlaces:
    """The places of some blocks of a program, by number; a lane may leave them for any program counter.

    Those of the machine (`Layout`) lie behind the places, in their order.
    """

    def __init__(self, numbers: Iterable[int], backend: Backend, layout: Layout):
        self.of = {number: place for place, number in enumerate(numbers)}
        self.backend, self.layout, self.count = backend, layout, len(self.of)
        self.ended = self.outside(layout.finish)
        self._places = backend.array([self.place(counter) for counter in range(layout.finish + 1)], "int32")
        self._numbers = backend.array([*self.of], "int32")

    def outside(self, counter: int) -> int:
        """Where a lane is that is to leave the code with this program counter."""
        return self.count + counter

    def counter(self, place: Array) -> Array:
        """The program counter of a lane that leaves the code at this place."""
        inside = self.backend.element(self._numbers, [place])
        return self.backend.choose(place < self.count, inside, place - self.count)

    def place(self, number: int) -> int:
        """Where block `number` is."""
        return self.of[number] if number in self.of else self.outside(number)

    def failed(self, number: int) -> int:
        """Where a lane is that has failed in block `number`."""
        return self.outside(self.layout.failed(number))

    def found(self, kept: Array) -> Array:
        """The place of a program counter that a call has kept; of all behind FINISH that of FINISH."""
        return self.backend.element(self._places, [kept])
