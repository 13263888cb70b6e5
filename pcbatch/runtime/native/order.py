"""The order of reads and stores of an array, told to a compiler that only heeds the flow of data.

Where an array is read by one expression and stored into by another, and neither needs what the other gives, XLA copies
the whole array in every turn, to be free in what it runs first. So what is read is *held*: it goes through a loop that
runs no turn, of which the compiler cannot know that, and so is computed once, before what comes after the loop. A
number that comes out of the same loop, zero, is added to the index of the next store, which then waits for it.

Insertion sort of 64 arrays of 128, 512 and 2,048 numbers takes 0.7, 0.5 and 0.1 of the time that it takes without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pcbatch.runtime.backends.protocol import Array, Backend


class Order:
    """What has been read of some `arrays`, in one turn, since elements of them were stored.

    `never` is a scalar bool that does not hold, of which the compiler does not know it.
    """

    def __init__(self, backend: Backend, never: Array, arrays: Collection[str]):
        self.backend, self.never, self.arrays = backend, never, arrays
        self._zeros: dict[str, Array] = {}  # known after the reads of an array
        self._stored: set[str] = set()  # arrays that have not been held since elements were stored

    def read(self, names: Iterable[str], found: Sequence[Array]) -> list[Array]:
        """`found`, which was computed from the variables `names`: it will not be computed from them a second time."""
        arrays = [name for name in names if name in self.arrays]
        if not arrays:
            return list(found)
        *held, zero = self.held([*found, self.backend.constant(0)])
        for name in arrays:
            self._add(name, zero)
        return held

    def stored(self, name: str) -> None:
        """An element of an array is stored."""
        if name in self.arrays:
            self._stored.add(name)

    def before_read(self, name: str, array: Array) -> Array | None:
        """An array of which elements were stored and which is to be read: held, or else its reader stores them, too.

        None where it may be read as it is.
        """
        if name not in self._stored:
            return None
        self._stored.remove(name)
        return self.held([array])[0]

    def held(self, values: list[Array]) -> list[Array]:
        """The same values, computed before what comes after this."""
        return self.backend.repeated(self.never, self._another, values)

    def _another(self, go: Array, values: list[Array]) -> tuple[Array, list[Array]]:
        """Other values: a compiler takes what a loop does not change out of it."""
        return go & False, [self.backend.other_than(value) for value in values]

    def read_until(self, names: Iterable[str], number: Array) -> None:
        """Some variables have been read in a loop that gives `number`, an int32."""
        for name in names:
            if name in self.arrays:
                self._add(name, self.backend.choose(self.never, number, self.backend.constant(0)))

    def _add(self, name: str, zero: Array) -> None:
        known = self._zeros.get(name)
        self._zeros[name] = zero if known is None else self.backend.add(known, zero)

    def after_reads(self, names: Iterable[str], number: Array) -> Array:
        """`number`, an int32, once all is read that is read of some variables before elements of them are stored."""
        for name in names:
            zero = self._zeros.pop(name, None)
            number = number if zero is None else self.backend.add(number, zero)
        return number
