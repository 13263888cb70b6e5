"""The schedule "adaptive": cheap blocks are swept, at expensive ones lanes gather."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.costs.estimate import Prices
from pcbatch.runtime.schedules.schedule_step import Memory, Trip

EXPENSIVE = 2.0
"""Number of trips, in which nothing runs, beyond whose cost a block's rows are expensive. Less than that is lost when
it runs for few lanes, and gathering lanes takes trips."""
SHARE = 0.25
"""Share of the time of other expensive blocks that counts as time that an expensive block has waited. With all of it
two expensive arms take turns half full; with none of it lanes at one could wait for ever for lanes that loop through
the other."""
PATIENCE = 8
"""Factor by which lanes wait longer at an expensive block for others that are still to come through an expensive one
before. These are on their way, and what is waited for is run in any case. A block that runs so rarely for a few lanes
adds 3% to what runs before it."""


@dataclass(frozen=True)
class Adaptive:
    """Each trip sweeps the cheap blocks as "sweep" does, and runs an expensive one when nothing better is to be done.

    When its turn in the sweep comes, an expensive block runs if its waiting lanes, divided by what it costs to run, are
    more than those of any other expensive block and than what another trip through the cheap blocks offers: all lanes
    that wait there, divided by that trip's cost. So lanes come through cheap blocks first and meet at the expensive
    one, unless too few are still on their way to be worth the trips. (A simulated sampler of 64 lanes, its gradient at
    500 times the price of the rest: 290 gradients, "sweep" 902; the lane that needs most needs 282.)

    An expensive block also runs once its lanes have waited for as long as it takes to run it: as one who rents skis
    until the rents would have bought them, it never loses more than that by waiting (Karlin et al., "Competitive snoopy
    caching", 1988). That is also what keeps lanes from starving: those at a cheap block run in every trip, those at an
    expensive one after trips through cheap blocks that cost as much as the block, or `1 / SHARE` times as much spent in
    other expensive ones.

    Where an expensive block lies behind another one, as in a loop behind a loop, it first waits for all lanes that are
    to come through that: else lanes come to it one by one, as they leave the first loop, and each goes through the
    second on its own. (The second cell of a tagger for sentences of 1 to 63 words, 64 of them: 64 runs, 160 without;
    the longest sentence needs 63.) Not where examples come in while others run: they would never all have come.
    What turns have deferred waits for all of them, however long that takes: it is cheap beside the loop.

    A block that sends lanes to itself, as the innermost loop of a program or the way down a recursion, runs again in
    the same trip while that moves more lanes for its price than the rest of the trip would. One that costs more than
    all the rest does not: it would save next to nothing, and a run can be stopped between trips only.

    Where lanes wait for each other (`pcbatch.sync()`), that is where they gather: all other blocks are swept, and one
    that sends lanes to itself runs until none is left, for the others would only wait for these.

    Programs simulated for choosing the two constants, 30 of them on 16, 64 and 512 lanes: costs against the best rule
    known for each 1.01 to 1.02 in the geometric mean and 1.27 at worst; "sweep" 1.6 and 21, "earliest" 2.2 and 11.
    """

    name: str = "adaptive"
    expensive: float = EXPENSIVE

    def trip(self, trip: Trip, memory: Memory) -> Memory:
        """See `Schedule`. `memory` is what has been spent since each block ran, which is nothing if nobody waits."""
        backend = trip.backend
        expensive = [] if trip.flow.meetings else expensive_blocks(trip.prices, self.expensive)
        if expensive:
            nothing = backend.zeros(len(trip.blocks), TensorType("int64"))
            memory = backend.where(trip.counted > 0, memory, nothing)
        gathering = {} if trip.refills else trip.flow.gathering(expensive)
        everybody = backend.sum(trip.counted)
        for number in trip.flow.order:
            turns = number not in expensive or trip.prices.executions[number] <= _rest(trip, number)
            again = partial(_again, trip, number, everybody) if turns else None
            if number in expensive:
                # Lanes come to an expensive block from all sides: to count them once is cheaper than to follow them.
                waiting = trip.recount()
                price = int(trip.prices.executions[number])
                if number in trip.flow.deferred and (places := _awaited(gathering, number)):
                    coming = backend.sum(waiting, [float(other in places) for other in trip.blocks])
                    here = backend.unstack(waiting, len(trip.blocks))[number]
                    trip.run_block(number, (here > 0) & ~(coming > 0.0), trip.ahead(number))
                    continue
                held = _held(trip, waiting, gathering)
                best = _best(trip, waiting, expensive, held)
                some = (waiting > 0) & (best | _are_overdue(backend, memory, price, held))
                trip.run_block(number, backend.unstack(some, len(trip.blocks))[number], trip.ahead(number), again)
            else:
                trip.run_block(number, None, trip.ahead(number), again)
        return _spent(trip, expensive, memory) if expensive else memory


def _again(trip: Trip, number: int, everybody: Array, here: Array) -> Array:
    """Return whether a block that has just run runs again for the `here` lanes that are still there.

    Else they wait for the next trip, in which all other blocks are taken to run. `everybody` is how many lanes waited
    when the trip began.
    """
    backend, prices = trip.backend, trip.prices
    if trip.flow.meetings:
        return here > 0
    others = everybody - here
    worth = _rest(trip, number) / prices.executions[number]
    return backend.cast(here, "float32") * worth >= backend.cast(others, "float32")


def _rest(trip: Trip, number: int) -> float:
    """The cost of a trip in which all blocks but this one run."""
    prices = trip.prices
    return prices.trip + sum(prices.executions[other] for other in trip.flow.order if other != number)


def expensive_blocks(prices: Prices, trips: float) -> list[int]:
    """The blocks at which lanes gather: those whose rows cost more than so many empty trips."""
    return [number for number, rows in enumerate(prices.rows) if rows > trips * prices.trip]


def _awaited(gathering: Mapping[frozenset[int], list[int]], number: int) -> frozenset[int]:
    """Return the places whose lanes a block waits for; none if it waits for no others."""
    return next((places for places, numbers in gathering.items() if number in numbers), frozenset())


def _held(trip: Trip, waiting: Array, gathering: Mapping[frozenset[int], list[int]]) -> Array | None:
    """A mask of the blocks that wait for lanes that are still to come: bool `[blocks]`; None where none ever does.

    `waiting` lanes are at each block now; for `gathering` see `Flow`.
    """
    backend, found = trip.backend, []
    for places, numbers in gathering.items():
        coming = backend.sum(waiting, [float(other in places) for other in trip.blocks])
        found.append(backend.array([number in numbers for number in trip.blocks], "bool") & (coming > 0.0))
    return functools.reduce(operator.or_, found) if found else None


def _are_overdue(backend: Backend, memory: Memory, price: int, held: Array | None) -> Array:
    """A mask of the blocks whose lanes, if a block cost `price`, have waited as long as they may: bool `[blocks]`."""
    if held is None:
        return memory >= price
    return memory >= backend.where(held, backend.array(PATIENCE * price, "int64"), backend.array(price, "int64"))


def _best(trip: Trip, waiting: Array, expensive: list[int], held: Array | None) -> Array:
    """A mask of the blocks than which, were they expensive, nothing offers more lanes for its cost: bool `[blocks]`.

    `waiting` lanes are at each block now; those that are `held` offer nothing.
    """
    backend, prices = trip.backend, trip.prices
    lanes = backend.cast(waiting, "float32")
    cheap = [float(other not in expensive) for other in trip.blocks]
    per_cost = [float(other in expensive) / price for other, price in enumerate(prices.executions)]
    offers = lanes * backend.array(per_cost, "float32")
    if held is not None:
        offers = backend.where(held, offers * 0.0 - 1.0, offers)
    swept = backend.sum(lanes, cheap)
    sweep = prices.trip + backend.sum(lanes > 0, _products(cheap, prices.executions))
    return (offers >= backend.max(offers)) & (offers * sweep >= swept)


def _spent(trip: Trip, expensive: list[int], memory: Memory) -> Memory:
    """The cost that has been spent since each block ran, after this trip."""
    backend, prices = trip.backend, trip.prices
    counts = [SHARE if number in expensive else 1.0 for number in trip.blocks]
    times = trip.times
    spent = prices.trip + backend.sum(times, _products(counts, prices.executions))
    nothing = backend.zeros(len(trip.blocks), TensorType("int64"))
    return backend.where(times > 0, nothing, memory + backend.cast(spent, "int64"))


def _products(factors: list[float], prices: list[float]) -> list[float]:
    return [factor * price for factor, price in zip(factors, prices, strict=True)]
