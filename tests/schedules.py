"""Schedules for tests only: one that chooses at random, a fuzzer of schedule independence, one that gathers everywhere.

Importing this module makes them options like the others: `f.options(schedule="random")`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from pcbatch.runtime.schedules import SCHEDULES
from pcbatch.runtime.schedules.adaptive import Adaptive
from pcbatch.runtime.schedules.schedule_step import Memory, Trip

MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407


@dataclass(frozen=True)
class Random:
    """Each trip goes through the blocks in a random order, one for all trips, and runs about every second one.

    `memory` holds a linear congruential generator for each block. The first block in the order at which lanes wait runs
    in any case. Every second block that sends lanes to itself runs until none is left.
    """

    name: str = "random"

    def trip(self, trip: Trip, memory: Memory) -> Memory:
        backend, blocks = trip.backend, len(trip.blocks)
        order = random.Random(blocks).sample(trip.blocks, blocks)
        numbers = backend.lane_numbers(blocks)
        memory = (memory + backend.cast(numbers, "int64")) * MULTIPLIER + INCREMENT
        heads = backend.unstack(memory // 2**40 % 2 == 0, blocks)
        ranks = backend.array([order.index(number) for number in trip.blocks], "int32")
        first = backend.min(backend.where(trip.counted > 0, ranks, backend.constant(blocks)))
        for rank, number in enumerate(order):
            chosen = (trip.waiting[number] > 0) & (heads[number] | (first == rank))
            trip.run_block(number, chosen, trip.onward(number), None if rank % 2 else lambda here: here > 0)
        return memory


RANDOM, GATHERING = "random", "gathering"
SCHEDULES[RANDOM] = Random()
SCHEDULES[GATHERING] = Adaptive(GATHERING, expensive=0.0)  # every block is dear
