"""A taped run that forks, between two segments: on more lanes, on longer stacks, also in a caller's graph.

As in `machine.pool_sizing`, of which this is the form in which nothing is known but the shapes of arrays.
"""

from __future__ import annotations

from typing import Any

from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.forking import GIVEN_UP, Forking
from pcbatch.runtime.machine.worklists import LENGTHS, LISTS, Worklists


def wanting(state: State, trips: Forking) -> tuple[Array, Array]:
    """Return whether lanes wait at blocks, and whether some lack room on stacks, of examples that are not given up.

    Two scalar bools.
    """
    backend, lists = trips.backend, trips.lists
    places = backend.lane_numbers(lists.count * lists.lanes)
    number = places // lists.lanes
    listed = places - number * lists.lanes < backend.take(state[LENGTHS], number)
    examples = backend.take(state["example"], state[LISTS])
    wants = listed & backend.equal(backend.take(state[GIVEN_UP], examples), 0)
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
            now, lanes, backend.where(inside, backend.take(now["pc"], lanes), backend.constant(lists.nowhere))
        )
        return [now[LISTS], now[LENGTHS]]

    def are_left(carried: list[Array]) -> Array:
        return carried[1][lists.paused] > 0

    after = backend.while_loop(are_left, turn, [state[LISTS], state[LENGTHS]])
    return {**state, LISTS: after[0], LENGTHS: after[1]}
