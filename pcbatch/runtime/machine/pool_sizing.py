"""The numbers of lanes and the stack sizes of runs whose calls are forked: few, as each size is compiled anew.

A run begins with some lanes for each example, and goes on with more where these are too few, up to a limit of bytes;
the next run begins with what the last one could have used (`learned`). Lanes that nobody needs cost next to nothing,
as blocks run for lists of lanes: so a room (`rooms`) may be larger than the number of examples.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakValueDictionary

from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.forking import GIVEN_UP, Forking, Report
from pcbatch.runtime.machine.pool import BatchBuckets, Pool, bucket
from pcbatch.runtime.machine.state import GROWTH, Layout
from pcbatch.runtime.machine.worklists import LENGTHS, LISTS, Worklists

# -- fork feedback -----------------------------------------------------------------------------------------------------
# Feedback from runs whose calls are forked to all later runs of the program.
#
# Plain runs and taped ones, those by whatever is differentiated and those under other options: as far as they fork the
# same calls, each begins with what the last one that was short of something could have used.

FIRST_CAPACITY = 2
"""Initial room on a lane's stacks, in live calls: lanes that fork have one or two."""


@dataclass(frozen=True)
class ForkStatistics:
    """The beginning of a run: its lanes for each example, and room on their stacks for `capacity` live calls.

    Tapes have room for so many `rows` of a block for each example, where taped runs have had more than was guessed.
    """

    spread: int
    capacity: int = FIRST_CAPACITY
    rows: float | None = None
    is_known: bool = False
    """True if some run has reported it."""


class ForkFeedback:
    """The lesson of now, always a whole one, whatever other threads learn."""

    def __init__(self, spread: int):
        self.now = ForkStatistics(spread)
        self._lock = threading.Lock()

    def learn(self, after: Callable[[ForkStatistics], ForkStatistics]) -> bool:
        """Set the beginning of the next run to `after` of the present one; return whether it changed."""
        with self._lock:
            before, self.now = self.now, after(self.now)
            return self.now != before


@dataclass(eq=False)
class FeedbackHistory:
    """The feedback of one program under all options: separate by forked calls."""

    _known: dict[Any, ForkFeedback] = field(default_factory=dict)

    def of(self, blocks: tuple[int, ...]) -> ForkFeedback:
        """Return the feedback of runs that fork groups of calls at these blocks."""
        return self._known.setdefault(blocks, ForkFeedback(CPU.spread))


class FeedbackCache:
    """The feedback of one function's programs, as long as one of these programs exists."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Any, FeedbackHistory] = WeakValueDictionary()
        self._lock = threading.Lock()

    def of(self, key: Any) -> FeedbackHistory:
        """Return the feedback of the program with this key."""
        with self._lock:
            return self._known.setdefault(key, FeedbackHistory())


# -- pool sizing -------------------------------------------------------------------------------------------------------

MOST_GROWTH = 8
"""Maximal factor by which a run's number of lanes grows when it grows first; and from run to run."""


@dataclass(frozen=True)
class Size:
    """A pool, and how many live calls the stacks of its lanes have room for."""

    pool: Pool
    capacity: int


class Pools:
    """The sizes of the runs of one program.

    What is `learned` says how many lanes there are for each example at first, or more, of `least` bytes in all; `limit`
    how many bytes they may take. A lane for each example there is in any case.
    """

    def __init__(
        self,
        layout: Layout,
        largest_capacity: int,
        learned: ForkFeedback,
        *,
        limit: int,
        least: int = 0,
    ):
        self.layout, self.largest_capacity, self.learned = layout, largest_capacity, learned
        self.limit, self.least = limit, least
        self.rooms = BatchBuckets(lambda: CPU.idle_least)
        self._bytes: dict[int, int] = {}

    @property
    def capacity(self) -> int:
        """The initial capacity of a run's stacks, in live calls."""
        return min(self.learned.now.capacity, self.largest_capacity)

    def of(self, examples: int) -> Size:
        """The size in which a run of so many examples begins."""
        return self._size(self.rooms.of(examples))

    def to_be(self, examples: int) -> Size:
        """The size in which a run of so many examples would begin, which is not made by this."""
        return self._size(self.rooms.to_be(examples))

    def exactly(self, examples: int) -> Size:
        """The size of a run in a room for so many examples that others have chosen."""
        return self._size(examples)

    def _size(self, room: int) -> Size:
        now = self.learned.now
        capacity = min(now.capacity, self.largest_capacity)
        fewest = min(self.least // self.bytes(capacity), CPU.least_lanes)
        fewest = 2 ** (fewest.bit_length() - 1) if fewest else 0
        lanes = min(max(room * now.spread, fewest), self._lanes(capacity))
        return Size(Pool(max(room, lanes), room), capacity)

    def larger(self, size: Size, growth: int, *, lanes: bool, stacks: bool) -> Size:
        """The next size, of `growth` times as many lanes, or of longer stacks; the same where there is none."""
        capacity, pool = size.capacity, size.pool
        longer = min(capacity * GROWTH, self.largest_capacity)
        if stacks and pool.lanes <= max(pool.examples, self._lanes(longer)):
            capacity = longer
        if lanes:
            pool = Pool(max(pool.lanes, min(pool.lanes * growth, self._lanes(capacity))), pool.examples)
        return Size(pool, capacity)

    def after(self, now: ForkStatistics, first: Size, last: Size, report: Report, examples: int) -> ForkStatistics:
        """Return the lesson of a run, which began with one size and ended with another: the size that it needed.

        One that was short of lanes would have needed one for each call at most; where that is hardly more than it had,
        the next one has as many.
        """
        pool, spread, room = first.pool, now.spread, first.pool.examples
        wanted = -(-(examples + report.forked) // examples)
        enough = CPU.enough_lanes if last.pool.lanes == pool.lanes else 1.0
        if report.short and wanted * room > enough * pool.lanes >= enough * room * spread:
            spread = min(bucket(wanted), max(spread * MOST_GROWTH, last.pool.lanes // room))
        return replace(now, spread=spread, capacity=max(now.capacity, last.capacity), is_known=True)

    def _lanes(self, capacity: int) -> int:
        """Return the maximal number of lanes."""
        return self.limit // self.bytes(capacity)

    def bytes(self, capacity: int) -> int:
        """The bytes of a lane whose stacks have room for so many live calls."""
        if capacity not in self._bytes:
            lists = 4 * (len(self.layout.program.blocks) + 3)
            self._bytes[capacity] = lists + sum(
                (capacity + 1 if held.stacked else 1) * math.prod(held.type.shape) * _element(held.type.dtype)
                for held in self.layout.arrays.values()
            )
        return self._bytes[capacity]


def _element(dtype: str) -> int:
    """The bytes of an element."""
    bits = "".join(filter(str.isdigit, dtype))
    return int(bits) // 8 if bits else 1


# -- pool growth -------------------------------------------------------------------------------------------------------
# A run that forks, between two legs: on more lanes, on longer stacks. Of taped runs this is a part of a graph, in which
# nothing is known but the shapes of arrays.
#
# Nothing is computed again for that. Lanes that have found no free ones wait on the lists of their blocks, and go on
# there. Those that lack room on their stacks have a list of their own, and go back to their blocks.


def wanting(state: State, trips: Forking) -> tuple[Array, Array]:
    """Return whether lanes wait at blocks, and whether some lack room on stacks, of examples that are not given up.

    Two scalar bools.
    """
    backend, lists = trips.backend, trips.lists
    places = backend.lane_numbers(lists.count * lists.lanes)
    number = places // lists.lanes
    listed = places - number * lists.lanes < backend.load(state[LENGTHS], [], number)
    examples = backend.load(state["example"], [], state[LISTS])
    wants = listed & backend.equal(backend.load(state[GIVEN_UP], [], examples), 0)
    waits, paused = wants & (number < lists.blocks), wants & backend.equal(number, lists.paused)
    return backend.any(waits), backend.any(paused)


def grown(state: State, trips: Forking, lanes: Array, capacity: Array) -> State:
    """`state` on so many lanes, as many as before or more, whose stacks have room for `capacity` live calls."""
    backend, layout, before = trips.backend, trips.layout, trips.lists
    longer = layout.grown(backend, state, capacity) if layout.all_stacks else state
    fresh, first = trips.new_lanes(lanes, capacity), backend.constant(0)
    arrays = {key: backend.with_rows(fresh[key], first, longer[key]) for key in layout.arrays}
    after = Worklists(backend, before.blocks, lanes)
    return _back_at_blocks({**state, **arrays, **_lists(state, before, after)}, after)


def _lists(state: State, before: Worklists, after: Worklists) -> State:
    """The lists of more lanes, the new ones free."""
    backend, nobody = before.backend, before.backend.constant(0)
    places = backend.lane_numbers(before.count * before.lanes)
    number = places // before.lanes
    moved = places + number * (after.lanes - before.lanes)
    lists = backend.lane_numbers(after.count * after.lanes) * 0
    lists = backend.masked_store(lists, [], places >= 0, state[LISTS], moved)
    fresh: Any = after.lanes - before.lanes
    more = backend.lane_numbers(fresh)
    free = after.free * after.lanes + state[LENGTHS][before.free] + more
    lists = backend.masked_store(lists, [], more >= 0, after.lanes - 1 - more, free)
    return after.changed({LISTS: lists, LENGTHS: state[LENGTHS]}, {after.free: nobody + fresh})


def _back_at_blocks(state: State, lists: Worklists) -> State:
    """Return lanes that have lacked room to their blocks."""
    backend, size = lists.backend, CPU.cheap_chunk

    def turn(carried: list[Array]) -> list[Array]:
        now = {**state, LISTS: carried[0], LENGTHS: carried[1]}
        todo, places = lists.length(now, lists.paused), backend.lane_numbers(size)
        count = backend.where(todo < size, todo, backend.constant(size))
        lanes, inside = lists.last(now, lists.paused, count, places), places < count
        now = lists.changed(now, {lists.paused: 0 - count})
        now = lists.spread(
            now, lanes, backend.where(inside, backend.load(now["pc"], [], lanes), backend.constant(lists.nowhere))
        )
        return [now[LISTS], now[LENGTHS]]

    def are_left(carried: list[Array]) -> Array:
        return carried[1][lists.paused] > 0

    after = backend.while_loop(are_left, turn, [state[LISTS], state[LENGTHS]])
    return {**state, LISTS: after[0], LENGTHS: after[1]}
