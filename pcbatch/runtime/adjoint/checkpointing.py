"""Segments that are run again: of a run, however long, it is put aside where a bounded number of segments began.

Where there is no room for another beginning, every second one goes, and from then on only those of every second segment
are put aside that were so far. On the way back the segments from the last beginning on are run again, and beginnings
that are passed take the room of those that are done with; where there is not enough, half the way is run first, then
half of what is left: so each segment is run about log2 of their distance more often, and as many beginnings more are
kept. (Checkpointing of loops of unknown length: Wang, Moin and Iaccarino, "Minimal repetition dynamic checkpointing
algorithm for unsteady adjoint calculation", SISC 2009.)

A segment depends on nothing but where it begins. So one that is run again records the same tapes, to the bit, by the
same compiled program; and gradients are the same, whichever is put aside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

from pcbatch.runtime.adjoint.segments import Segments
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.segments import Snapshot

# -- records of segments -----------------------------------------------------------------------------------------------
# What a taped run puts aside for each segment: its tapes, or its first state, to run it again.


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


# -- checkpoints -------------------------------------------------------------------------------------------------------


NUMBER: Spec = ("int32", ())
"""The number of a segment stands before the arrays of where it begins."""


class Checkpoints:
    """Beginnings are put aside: of the arrays of a snapshot those that a segment changes.

    What loops carry is how many there is room for, how many there are, how many segments lie between two of them, the
    arrays that never change, and the lists of the others.
    """

    def __init__(self, segments: Segments):
        self.segments, self.backend, self.layout = segments, segments.backend, segments.layout

    # -- what is kept of one -------------------------------------------------------------------------------------------

    @cached_property
    def changing(self) -> list[bool]:
        """True for each array of a flat snapshot that a segment, or the growth of stacks before it, may change."""
        segments, changed = self.segments, self.segments.changed
        return [*(key in changed for key in segments.keys), *(True for _ in segments.legs.loop.counter_specs)]

    def specs(self, pool: Pool) -> list[Spec]:
        """The dtypes and shapes of a beginning's arrays."""
        return [NUMBER, *self._split(self.segments.legs.specs(pool, None))[0]]

    def _split(self, every: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Split arrays into those that change and those that never do."""
        pairs = [*zip(every, self.changing, strict=True)]
        return [each for each, changes in pairs if changes], [each for each, changes in pairs if not changes]

    def _merged(self, changed: Sequence[Array], same: Sequence[Array]) -> list[Array]:
        """The inverse of `_split`."""
        others, remaining = iter(same), iter(changed)
        return [next(remaining if changes else others) for changes in self.changing]

    def _room(self, first: Snapshot) -> Array:
        """Return the number of beginnings for which there is room: even."""
        backend, sizes, held = self.backend, self.segments.tapes.sizes, self.segments.held
        tops, entry = (sum(each.type.bytes for each in held if each.stacked is stacked) for stacked in (False, True))
        of_lane = backend.constant(tops) + entry * (self.segments.legs.capacity(first) + 1)
        lanes = self.segments.lanes(first)
        fits = backend.constant(sizes.bytes) // of_lane // (lanes + 1) // 2 * 2  # there may be no lanes
        least, most = backend.constant(sizes.beginnings), backend.constant(CPU.tape_beginnings_most)
        fits = backend.where(fits < least, least, fits)
        return backend.where(fits > most, most, fits)

    def _parts(self, aside: Aside) -> tuple[Array, Array, Array, list[Array], list[Array]]:
        """Room, count, distance, the arrays that never change, lists: see the class."""
        end = 3 + self.changing.count(False)
        room, count, apart = aside[:3]
        return room, count, apart, aside[3:end], aside[end:]

    # -- forward -------------------------------------------------------------------------------------------------------

    def nothing(self, first: Snapshot) -> Aside:
        """See `PutAside`."""
        constant, flat = self.backend.constant, self.segments.legs.flat(first)
        records = self.backend.records.none(self.specs(first.pool))
        return [self._room(first), constant(0), constant(1), *self._split(flat)[1], *records]

    def added(self, aside: Aside, number: Array, before: Snapshot, tape: Sequence[Array]) -> Aside:
        """See `PutAside`."""
        backend, (room, count, apart, _, _) = self.backend, self._parts(aside)
        wanted = backend.equal(number % apart, 0)
        is_full = wanted & (count >= room)  # then the number is one of every second of them, too
        aside = self._thinned(aside, before.pool, is_full)

        def one_more() -> Aside:
            room, count, apart, same, records = self._parts(aside)
            entry = [number, *self._split(self.segments.legs.flat(before))[0]]
            return [room, count + 1, apart, *same, *backend.records.added(records, entry)]

        return backend.cond(wanted, one_more, aside)

    def _thinned(self, aside: Aside, pool: Pool, is_full: Array) -> Aside:
        """The first of each two, of an even number, if `is_full`: in loops of no turns else.

        In a conditional TensorFlow's optimiser of graphs would leave these loops in a form that it cannot read again.
        """
        backend, specs = self.backend, self.specs(pool)
        room, count, apart, same, records = self._parts(aside)

        def halved(carried: Any) -> Any:
            left, records, kept = carried
            records, _ = backend.records.without_last(records, specs)
            records, entry = backend.records.without_last(records, specs)
            return left - 2, records, backend.records.added(kept, entry)

        def turned(carried: Any) -> Any:
            left, records, kept = carried
            records, entry = backend.records.without_last(records, specs)
            return left - 1, records, backend.records.added(kept, entry)

        def are_left(carried: Any) -> Array:
            return carried[0] > 0

        none, half = backend.constant(0), count // 2
        moved = backend.where(is_full, count, none), records, backend.records.none(specs)
        _, rest, backwards = backend.while_loop(are_left, halved, moved)
        moved = backend.where(is_full, half, none), backwards, rest
        _, _, found = backend.while_loop(are_left, turned, moved)
        count, apart = backend.where(is_full, half, count), backend.where(is_full, apart * 2, apart)
        return [room, count, apart, *same, *found]

    # -- back ----------------------------------------------------------------------------------------------------------

    def last(self, aside: Aside, number: Array, pool: Pool, run: Run) -> tuple[Aside, list[Array]]:
        """See `PutAside`."""
        backend, segments, specs = self.backend, self.segments, self.specs(pool)
        room, count, apart, same, records = self._parts(aside)
        records, entry = backend.records.without_last(records, specs)
        aim = number - 1

        def next_one(carried: Any) -> Any:
            place, changed = carried
            after = segments.unpack(run(self._merged(changed, same)), pool)
            flat = segments.legs.flat(segments.grown(after.snapshot, after.lacking))
            return place + 1, self._split(flat)[0]

        def nearer(carried: Any) -> Any:
            count, records, place, changed = carried
            records, count = backend.records.added(records, [place, *changed]), count + 1
            way = aim - place
            # A beginning before each segment, if there is room; else in the middle.
            target = place + backend.where(way <= room - count, way * 0 + 1, (way + 1) // 2)
            place, changed = backend.while_loop(lambda now: now[0] < target, next_one, (place, changed))
            return count, records, place, changed

        start = count - 1, records, entry[0], entry[1:]
        count, records, _, changed = backend.while_loop(lambda now: now[2] < aim, nearer, start)
        tape = segments.unpack(run(self._merged(changed, same)), pool).tape
        return [room, count, apart, *same, *records], [*tape.values()]
