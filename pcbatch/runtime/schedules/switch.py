"""The schedule "switch": a multi-way conditional over the blocks, as the paper's Figure 5 writes the machine."""

from __future__ import annotations

from dataclasses import dataclass

from pcbatch.runtime.schedules.schedule_step import Memory, Trip


@dataclass(frozen=True)
class Switch:
    """Each trip is one `switch_case` over all blocks, the first in source order at which a lane waits (ibid.).

    The choice is that of "earliest", and so is how long a lane waits. Every block takes and gives the whole state,
    which XLA copies: 60 times slower than guards at stack depth 1024. It is here to be compared with.
    """

    name: str = "switch"

    def trip(self, trip: Trip, memory: Memory) -> Memory:
        """See `Schedule`."""
        backend, blocks = trip.backend, len(trip.blocks)
        numbers = backend.lane_numbers(blocks)
        trip.switch_to(backend.min(backend.where(trip.counted > 0, numbers, backend.constant(blocks))))
        return memory
