"""The schedule "busiest": the block at which most lanes wait."""

from __future__ import annotations

from dataclasses import dataclass

from pcbatch.ir.types import TensorType
from pcbatch.runtime.schedules.schedule_step import Memory, Trip

AGEING = 16
"""The number of trips of waiting that weigh as much as a lane."""


@dataclass(frozen=True)
class Busiest:
    """Each trip runs one block, that at which most lanes wait, the first of these if there are several.

    Trips for which a block's lanes have waited count as further lanes, 16 trips as one: of `n` lanes one that has
    waited for `16 n` trips goes before all that have not, so none waits longer than about that for each block of the
    program.
    """

    name: str = "busiest"

    def trip(self, trip: Trip, memory: Memory) -> Memory:
        """See `Schedule`. `memory` is the number of trips that each block's lanes have waited."""
        backend, blocks = trip.backend, len(trip.blocks)
        some = trip.counted > 0
        nothing = backend.zeros(blocks, TensorType("int64"))
        weight = backend.where(some, AGEING * backend.cast(trip.counted, "int64") + memory, nothing)
        numbers = backend.lane_numbers(blocks)
        heaviest = weight >= backend.max(weight)
        chosen = backend.min(backend.where(heaviest, numbers, backend.constant(blocks)))
        for number in trip.flow.order:
            trip.run_block(number, chosen == number)
        return backend.where(some & (numbers != chosen), memory + 1, nothing)
