"""The schedule "sweep": all blocks in an order that suits the program, each for whoever waits there by then."""

from __future__ import annotations

from dataclasses import dataclass

from pcbatch.runtime.schedules.schedule_step import Memory, Trip


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
