"""A run that forks, between two legs: on more lanes, on longer stacks.

Nothing is computed again for that. Lanes that have found no free ones wait on the lists of their blocks, and go on
there. Those that lack room on their stacks have a list of their own, and go back to their blocks.
"""

from __future__ import annotations

import numpy as np

from pcbatch.runtime.backends.protocol import Backend, State
from pcbatch.runtime.machine.forking import GIVEN_UP, Forking
from pcbatch.runtime.machine.worklists import LENGTHS, LISTS


def wanting(state: State, trips: Forking) -> tuple[bool, bool]:
    """Return whether examples that are not given up need more lanes, and whether they need longer stacks.

    No lane can run.
    """
    lists = trips.lists
    every, lengths = np.asarray(state[LISTS]).reshape(lists.count, lists.lanes), np.asarray(state[LENGTHS])
    example, given_up = np.asarray(state["example"]), np.asarray(state[GIVEN_UP])

    def some(number: int) -> bool:
        return bool((given_up[example[every[number, : lengths[number]]]] == 0).any())

    return any(map(some, range(len(trips.blocks)))), some(lists.paused)


def grown(state: State, before: Forking, after: Forking, capacity: int) -> State:
    """`state` on the lanes of `after`, as many as before or more, whose stacks have room for `capacity` live calls."""
    backend, layout, lanes = before.backend, before.layout, before.lists.lanes
    new = {key: state[key] for key in layout.arrays}
    if layout.capacity(backend, state) < capacity:
        new = layout.grown(backend, new, capacity)
    if after.lists.lanes > lanes:
        fresh, first = after.new_lanes(after.lists.lanes, capacity), backend.constant(0)
        new = {key: backend.with_rows(fresh[key], first, new[key]) for key in new}
    return {**new, **_lists(state, before, after, backend), GIVEN_UP: state[GIVEN_UP]}


def _lists(state: State, before: Forking, after: Forking, backend: Backend) -> State:
    """The lists of more lanes, nobody paused any more."""
    old, new, pc = before.lists, after.lists, np.asarray(state["pc"])
    lists = np.zeros((new.count, new.lanes), np.int32)
    lists[:, : old.lanes] = np.asarray(state[LISTS]).reshape(old.count, old.lanes)
    lengths = np.array(state[LENGTHS])

    def put(number: int, lanes: np.ndarray) -> None:
        lists[number, lengths[number] : lengths[number] + lanes.size] = lanes
        lengths[number] += lanes.size

    put(new.free, np.arange(new.lanes - 1, old.lanes - 1, -1, dtype=np.int32))
    paused = lists[new.paused, : lengths[new.paused]].copy()
    lengths[new.paused] = 0
    for lane in paused:
        put(int(pc[lane]), lane[None])
    return {LISTS: backend.array(lists.reshape(-1), "int32"), LENGTHS: backend.array(lengths, "int32")}
