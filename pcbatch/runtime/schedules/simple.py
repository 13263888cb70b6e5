"""Schedules that estimate no costs: "busiest", "earliest", "sweep" and "switch"."""

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


@dataclass(frozen=True)
class Sweep:
    """Each trip goes through all blocks (`Flow.order`) and runs those at which a lane waits at that moment.

    All blocks' lanes are counted once per trip; a block that runs counts the lanes that it sends further down, so
    that a guard only compares a scalar (0.6 to 1.3 us per block, against 3.5 to 5 with a reduction of its own).
    No lane waits longer than a trip.
    """

    name: str = "sweep"

    def trip(self, trip: Trip, memory: Memory) -> Memory:
        """See `Schedule`."""
        for number in trip.flow.order:
            trip.run_block(number, None, trip.ahead(number))
        return memory


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
