"""The records that a taped run puts aside for each segment: its tapes, or its first state, to run it again.

A segment depends on nothing but where it begins. So one that is run again records the same tapes, to the bit, by the
same compiled program; and gradients are the same, whichever is put aside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pcbatch.runtime.adjoint.segments import Segments
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.segments import Snapshot

Run = Callable[[Sequence[Array]], Sequence[Array]]
"""A function that runs a segment from a flat snapshot and returns it packed."""
Aside = list[Array]
"""All that is put aside of the segments so far, as loops carry it."""


class ResidualStore(Protocol):
    """The passage of tapes from the forward to the backward pass, which begins at the last segment."""

    def nothing(self, first: Snapshot) -> Aside:
        """Return the empty store of a run that begins there, before its first segment."""

    def added(self, aside: Aside, number: Array, before: Snapshot, tape: Sequence[Array]) -> Aside:
        """Add the segment of this number, which began there and recorded `tape`."""

    def last(self, aside: Aside, number: Array, pool: Pool, run: Run) -> tuple[Aside, list[Array]]:
        """Take the last of the first `number` segments: return the store without it, and its tape."""


class KeepAll:
    """The tapes themselves are put aside."""

    def __init__(self, segments: Segments):
        self.backend, self.tapes = segments.backend, segments.tapes

    def nothing(self, first: Snapshot) -> Aside:
        """See `ResidualStore`."""
        return self.backend.records.none(self._specs(first.pool))

    def added(self, aside: Aside, number: Array, before: Snapshot, tape: Sequence[Array]) -> Aside:
        """See `ResidualStore`."""
        return self.backend.records.added(aside, tape)

    def last(self, aside: Aside, number: Array, pool: Pool, run: Run) -> tuple[Aside, list[Array]]:
        """See `ResidualStore`."""
        return self.backend.records.without_last(aside, self._specs(pool))

    def _specs(self, pool: Pool) -> list[Spec]:
        return [*self.tapes.specs(pool.static.lanes).values()]
