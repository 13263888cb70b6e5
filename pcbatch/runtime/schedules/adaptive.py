"""The schedule "adaptive": cheap blocks are swept, at dear ones lanes gather."""

from __future__ import annotations

from dataclasses import dataclass

from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.schedules.prices import Prices
from pcbatch.runtime.schedules.trip import Memory, Trip

DEAR = 2.0
"""A block is dear if running its rows costs more than this many trips in which nothing runs: less than that is lost
when it runs for few lanes, and gathering lanes takes trips."""
SHARE = 0.25
"""How much of the time that other dear blocks take counts as time that a dear block has waited. With all of it two dear
arms take turns half full; with none of it lanes at one could wait for ever for lanes that loop through the other."""


@dataclass(frozen=True)
class Adaptive:
    """Each trip sweeps the cheap blocks as "sweep" does, and runs a dear block when that is the best there is to do.

    When its turn in the sweep comes, a dear block runs if its waiting lanes, divided by what it costs to run, are more
    than those of any other dear block and than what another trip through the cheap blocks offers: all lanes that wait
    there, divided by that trip's cost. So lanes come through cheap blocks first and meet at the dear one, unless too
    few are still on their way to be worth the trips. (A simulated sampler of 64 lanes, its gradient at 500 times the
    price of the rest: 290 gradients, "sweep" 902; the lane that needs most needs 282.)

    A dear block also runs once its lanes have waited for as long as it takes to run it: as one who rents skis until the
    rents would have bought them, it never loses more than that by waiting (Karlin et al., "Competitive snoopy caching",
    1988). That is also what keeps lanes from starving: those at a cheap block run in every trip, those at a dear one
    after trips through cheap blocks that cost as much as the block, or `1 / SHARE` times as much spent in other dear
    ones.

    Where no block is dear this is "sweep". Programs simulated for choosing the two constants, 30 of them on 16, 64 and
    512 lanes: costs against the best rule known for each 1.01 to 1.02 in the geometric mean and 1.27 at worst; "sweep"
    1.6 and 21, "earliest" 2.2 and 11.
    """

    name: str = "adaptive"
    dear: float = DEAR

    def trip(self, trip: Trip, memory: Memory) -> Memory:
        """See `Schedule`. `memory` is what has been spent while lanes waited at each dear block."""
        dear = dear_blocks(trip.prices, self.dear)
        waited = trip.backend.unstack(trip.backend.cast(memory, "float32"), len(trip.blocks))
        for number in trip.blocks:
            some = trip.waiting[number] > 0
            if number in dear:
                some = some & (_is_best(trip, number, dear) | (waited[number] >= trip.prices.executions[number]))
            onward = trip.onward(number)
            trip.run(number, some, onward if dear else [place for place in onward if place > number])
        return _waited(trip, dear, memory) if dear else memory


def dear_blocks(prices: Prices, trips: float) -> list[int]:
    """The blocks at which lanes gather: those whose rows cost more than so many empty trips."""
    return [number for number, rows in enumerate(prices.rows) if rows > trips * prices.trip]


def _is_best(trip: Trip, number: int, dear: list[int]) -> Array:
    """Whether nothing offers more lanes for its cost than block `number` now."""
    backend, prices = trip.backend, trip.prices
    waiting = backend.cast(backend.stack(trip.waiting), "float32")
    cheap = [float(other not in dear) for other in trip.blocks]
    per_cost = [float(other in dear) / price for other, price in enumerate(prices.executions)]
    offers = waiting * backend.array(per_cost, "float32")
    mine = backend.unstack(offers, len(trip.blocks))[number]
    swept = backend.weighted(waiting, cheap)
    sweep = prices.trip + backend.weighted(waiting > 0, _products(cheap, prices.executions))
    return ~backend.any(offers > mine) & (mine * sweep >= swept)


def _waited(trip: Trip, dear: list[int], memory: Memory) -> Memory:
    """What has been spent while lanes waited, after this trip: at blocks that ran, or where nobody waits, nothing."""
    backend, prices = trip.backend, trip.prices
    ran, waiting = backend.stack(trip.ran), backend.stack(trip.waiting)
    counts = [SHARE if number in dear else 1.0 for number in trip.blocks]
    spent = prices.trip + backend.weighted(ran > 0, _products(counts, prices.executions))
    nothing = backend.zeros(len(trip.blocks), TensorType("int64"))
    return backend.where((waiting > 0) & (ran == 0), memory + backend.cast(spent, "int64"), nothing)


def _products(factors: list[float], prices: list[float]) -> list[float]:
    return [factor * price for factor, price in zip(factors, prices, strict=True)]
