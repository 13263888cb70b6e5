"""The schedule "earliest": the first block in source order at which a lane waits."""

from __future__ import annotations

from dataclasses import dataclass

from pcbatch.runtime.schedules.schedule_step import Memory, Trip


@dataclass(frozen=True)
class Earliest:
    """Each trip runs one block, the first in source order at which a lane waits (Radul et al., 2020, Algorithm 2).

    A lane waits as long as others have something to do in earlier blocks: until they come to its block, or end.
    """

    name: str = "earliest"

    def trip(self, trip: Trip, memory: Memory) -> Memory:
        """See `Schedule`."""
        backend, blocks = trip.backend, len(trip.blocks)
        numbers = backend.lane_numbers(blocks)
        chosen = backend.min(backend.where(trip.counted > 0, numbers, backend.constant(blocks)))
        for number in trip.flow.order:
            trip.run_block(number, chosen == number)
        return memory
