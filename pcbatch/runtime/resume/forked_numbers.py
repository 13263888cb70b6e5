"""Checks that the numbers of a saved state with forked calls fit each other: see `numbers`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pcbatch.runtime.machine.forking import GIVEN_UP
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.machine.worklists import LENGTHS, LISTS
from pcbatch.runtime.resume import headers
from pcbatch.runtime.resume.numbers import Arrays


def wrong(
    layout: Layout, state: Arrays, examples: Arrays, counters: Arrays, queue: Arrays, capacity: int
) -> str | None:
    """A fault of the arrays of a run, of the right dtypes and shapes, on stacks of this `capacity`; None if none."""
    count, lanes = len(examples["status"]), len(state["pc"])
    for key, (first, last) in _ranges(layout, count, lanes, capacity).items():
        if key in state and state[key].size and not first <= state[key].min() <= state[key].max() <= last:
            return f"its array 'state/{key}' has numbers beyond {first} to {last}"
    for key in ("trips", "executions", "active", "rows"):
        if counters[key].size and not 0 <= counters[key].min() <= counters[key].max() <= headers.LARGEST:
            return f"its array 'counter/{key}' has numbers beyond 0 to {headers.LARGEST}"
    return next((why for holds, why in _relations(layout, state, count) if not holds), None)


def _ranges(layout: Layout, examples: int, lanes: int, capacity: int) -> dict[str, tuple[int, int]]:
    """The least and the greatest number that an array by lane, or of lists, may have."""
    largest = 2**31 - 1
    found = {
        "pc": (layout.handed, layout.failed(layout.start - 1)),
        "example": (0, examples - 1),
        "fault": (0, len(layout.program.faults)),
        "steps": (0, largest),
        "calls": (layout.handed, layout.finish),
        "depth": (0, capacity + 1),
        "room": (capacity, capacity),
        "parent": (-1, lanes - 1),
        "slot": (0, layout.slots - 1),
        "base": (0, largest),
        LISTS: (0, lanes - 1),
        LENGTHS: (0, lanes),
        GIVEN_UP: (0, 1),
    }
    found |= dict.fromkeys(layout.pointers, (0, capacity))
    found |= {f"child {slot}": (0, lanes - 1) for slot in range(layout.slots)}
    return found | {f"arrived {slot}": (0, 1) for slot in range(layout.slots)}


def _relations(layout: Layout, state: Arrays, examples: int) -> Iterator[tuple[bool, str]]:
    """Conditions on the numbers, each with the fault where it does not hold."""
    lengths, lanes = state[LENGTHS], len(state["pc"])
    yield lanes >= examples, "it has fewer lanes than examples"
    roots = (state["example"][:examples] == np.arange(examples)) & (state["parent"][:examples] < 0)
    yield bool(roots.all()), "its first lanes do not hold its examples"
    lists = state[LISTS].reshape(len(lengths), lanes)
    listed = np.concatenate([row[:length] for row, length in zip(lists, lengths, strict=True)])
    yield len(np.unique(listed)) == len(listed), "a lane is on two lists"
    calls, depth = state["calls"], state["depth"]
    above = (np.arange(calls.shape[1]) > 0) & (np.arange(calls.shape[1]) < depth[:, None])
    inside = (calls[above] >= 0) & (calls[above] < layout.start)
    bottoms = np.isin(calls[:, 0], (layout.handed, layout.finish)).all()
    yield bool(inside.all() and bottoms), "its stacks of program counters do not lead back to the end"
    paused = lists[-1, : lengths[-1]]
    yield bool((state["pc"][paused] >= 0).all() and (state["pc"][paused] < layout.start).all()), "lanes wait nowhere"
