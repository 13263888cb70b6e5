"""The interface between the machine's loop and its schedules: a trip, and what a schedule may do with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.schedules.prices import Prices
from pcbatch.runtime.state import State

Guarded = Callable[[int, Array, Array, State, Sequence[int]], tuple[State, list[Array]]]
"""`guarded(number, predicate, lanes, state, followed) -> (state, arrivals)`.

Runs block `number` where `predicate` holds for the `lanes` lanes (a scalar) that wait there; `arrivals[i]` is how
many of them then wait, able to run, at block `followed[i]`.
"""

Memory = Any
"""What a schedule carries from trip to trip: int64 `[blocks]`, zeros before the first."""


class Trip:
    """One trip: the state on its way through guarded blocks, and the numbers of lanes that wait.

    `waiting[b]` is the number (an int32 scalar) of lanes that wait at block `b` and are able to run it: at the start of
    the trip (`counted`: int32 `[blocks]`) and, as far as `run` was told to follow lanes, from then on; `recount` makes
    all of them true again. At a block where lanes wait for others (`pcbatch.sync()`) none are counted unless it is
    their turn.
    """

    def __init__(
        self,
        backend: Backend,
        state: State,
        waiting: Array,
        count: Callable[[State], Array],
        guarded: Guarded,
        successors: Sequence[Sequence[int]],
        prices: Callable[[], Prices],
    ):
        self.backend, self.state = backend, state
        self.blocks = range(len(successors))
        self.counted = waiting
        self.waiting = backend.unstack(waiting, len(successors))
        self._count, self._guarded, self._successors, self._prices = count, guarded, successors, prices
        self._ran: dict[int, tuple[Array, Array]] = {}

    @property
    def prices(self) -> Prices:
        """What blocks cost; estimated when it is first asked for."""
        return self._prices()

    @property
    def ran(self) -> Array:
        """How many lanes have run each block in this trip: int32 `[blocks]`."""
        backend = self.backend
        nobody, never = backend.constant(0), backend.constant(0) > 0
        ran = [self._ran.get(number, (never, nobody)) for number in self.blocks]
        # Vectors at once: scalar by scalar XLA would compile a kernel for every block.
        return backend.where(
            backend.stack([chosen for chosen, _ in ran]), backend.stack([lanes for _, lanes in ran]), nobody
        )

    def recount(self) -> Array:
        """Count afresh how many lanes wait at each block: int32 `[blocks]`. It costs a pass over the lanes."""
        counted = self._count(self.state)
        self.waiting = self.backend.unstack(counted, len(self.blocks))
        return counted

    def onward(self, number: int) -> list[int]:
        """The blocks to which `number` can send lanes and at which they do not wait for others."""
        return [place for place in self._successors[number] if place in self.blocks]

    def run(self, number: int, predicate: Array, follow: Sequence[int] = ()) -> None:
        """Run block `number`, where the bool scalar `predicate` holds, for the lanes that wait there.

        Where it holds, lanes must wait there. The lanes that then wait at the blocks `follow` are counted there; that
        costs a block that runs a reduction over the lanes for each. All of `onward(number)` that may run later in the
        trip must be among them, unless there is a `recount` before they run, or lanes would run uncounted. A block runs
        once in a trip.
        """
        backend, lanes = self.backend, self.waiting[number]
        self.state, arrivals = self._guarded(number, predicate, lanes, self.state, follow)
        self._ran[number] = (predicate, lanes)
        self.waiting[number] = backend.where(predicate, backend.constant(0), lanes)
        for place, count in zip(follow, arrivals, strict=True):
            self.waiting[place] = self.waiting[place] + count


class Schedule(Protocol):
    """A rule that chooses blocks."""

    @property
    def name(self) -> str:
        """The name by which options choose it."""

    def trip(self, trip: Trip, memory: Memory) -> Memory:
        """Ask `trip` to run blocks, at least one of those at which lanes wait; what is to be remembered."""
