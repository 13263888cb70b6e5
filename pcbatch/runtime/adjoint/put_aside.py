"""What a taped run puts aside at each segment for the way back: its tapes, or where it began, to be run again.

A segment depends on nothing but where it begins. So one that is run again records the same tapes, to the bit, by the
same compiled program; and gradients are the same, whichever is put aside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

from pcbatch.runtime.adjoint.segments import Segments
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.machine.pool import Pool

Run = Callable[[Sequence[Array]], Sequence[Array]]
"""Runs a segment from a flat snapshot: what it gives, packed."""


class PutAside(Protocol):
    """How a segment's tapes come from the way forward to the way back."""

    def specs(self, lanes: int | None) -> list[Spec]:
        """The dtypes and shapes of what is put aside of a segment."""

    def of_segment(self, before: Sequence[Array], tape: Sequence[Array]) -> list[Array]:
        """That of a segment that began at the flat snapshot `before`."""

    def always(self, first: Sequence[Array]) -> list[Array]:
        """What is the same for all segments of a run that begins at the flat snapshot `first`."""

    def tape(self, entry: Sequence[Array], always: Sequence[Array], pool: Pool, run: Run) -> list[Array]:
        """The tape of a segment."""


class Tape:
    """The tapes themselves are put aside."""

    def __init__(self, segments: Segments):
        self.segments = segments

    def specs(self, lanes: int | None) -> list[Spec]:
        """See `PutAside`."""
        return [*self.segments.tapes.specs(lanes).values()]

    def of_segment(self, before: Sequence[Array], tape: Sequence[Array]) -> list[Array]:
        """See `PutAside`."""
        return [*tape]

    def always(self, first: Sequence[Array]) -> list[Array]:
        """See `PutAside`."""
        return []

    def tape(self, entry: Sequence[Array], always: Sequence[Array], pool: Pool, run: Run) -> list[Array]:
        """See `PutAside`."""
        return [*entry]


class Beginning:
    """Of each segment it is put aside where it begins: of the arrays of a snapshot those that a segment changes."""

    def __init__(self, segments: Segments):
        self.segments = segments

    @cached_property
    def changing(self) -> list[bool]:
        """Whether a segment may change each array of a flat snapshot, or stacks that grow between two segments."""
        legs, layout = self.segments.legs, self.segments.layout
        changed = {"pc", "room", *layout.all_stacks}.union(*legs.loop.guarded.changes)
        return [*(key in changed for key in layout.carried), *(True for _ in legs.loop.counter_specs)]

    def specs(self, lanes: int | None) -> list[Spec]:
        """See `PutAside`."""
        pool = Pool(lanes, lanes, whole=True)
        return self._changing(self.segments.legs.specs(pool, None))

    def of_segment(self, before: Sequence[Array], tape: Sequence[Array]) -> list[Array]:
        """See `PutAside`."""
        return self._changing(before)

    def always(self, first: Sequence[Array]) -> list[Array]:
        """See `PutAside`."""
        return [array for array, changes in zip(first, self.changing, strict=True) if not changes]

    def tape(self, entry: Sequence[Array], always: Sequence[Array], pool: Pool, run: Run) -> list[Array]:
        """See `PutAside`."""
        changed, same = iter(entry), iter(always)
        flat = [next(changed if changes else same) for changes in self.changing]
        return [*self.segments.unpack(run(flat), pool).tape.values()]

    def _changing(self, every: Sequence[Any]) -> list[Any]:
        return [each for each, changes in zip(every, self.changing, strict=True) if changes]


POLICIES: dict[str, type[Tape] | type[Beginning]] = {"keep": Tape, "replay": Beginning}
"""By the option `tape`."""
