"""Checks that the numbers of a saved state fit each other: they are indices, and must lead to something.

A file's checksum says that it is whole, not that a run has written it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pcbatch.ir.status import LaneStatus
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.resume import headers

Arrays = Mapping[str, np.ndarray]


def wrong(
    layout: Layout, state: Arrays, examples: Arrays, counters: Arrays, queue: Arrays, capacity: int
) -> str | None:
    """A fault of the arrays of a run, of the right dtypes and shapes, on stacks of this `capacity`; None if none."""
    named = {f"state/{key}": array for key, array in state.items()}
    named |= {f"example/{key}": array for key, array in examples.items()}
    named |= {f"counter/{key}": array for key, array in counters.items()}
    named |= {f"queue/{key}": array for key, array in queue.items()}
    for name, (first, last) in _ranges(layout, len(examples["status"]), capacity).items():
        array = named.get(name)
        if array is not None and array.size and not first <= array.min() <= array.max() <= last:
            return f"its array {name!r} has numbers beyond {first} to {last}"
    return next((why for holds, why in _relations(layout, state, examples, queue) if not holds), None)


def _ranges(layout: Layout, examples: int, capacity: int) -> dict[str, tuple[int, int]]:
    """The least and the greatest number that an array may have."""
    faults, largest = len(layout.program.faults), 2**31 - 1
    ends = {"pc": layout.failed(layout.start - 1), "example": examples - 1, "fault": faults, "steps": largest}
    ends |= {
        "calls": layout.finish,
        "depth": capacity + 1,
        "room": capacity,
        **dict.fromkeys(layout.pointers, capacity),
    }
    found = {f"state/{key}": (0, end) for key, end in ends.items()}
    found |= {"example/site": (-1, faults - 1), "example/place": (-1, layout.start - 1), "example/steps": (0, largest)}
    found |= {"queue/examples": (0, examples), "queue/begun": (0, examples)}
    return found | {f"counter/{key}": (0, headers.LARGEST) for key in ("trips", "executions", "active", "rows")}


def _relations(layout: Layout, state: Arrays, examples: Arrays, queue: Arrays) -> Iterator[tuple[bool, str]]:
    """Conditions on the numbers, each with the fault where it does not hold."""
    pc, held = state["pc"], state["example"][state["pc"] != layout.free]
    yield len(np.unique(held)) == len(held), "two lanes hold the same example"
    is_right = (pc == layout.free) | ((pc > layout.free) == (state["fault"] > 0))
    yield bool(is_right.all()), "lanes have failed in it for no reason, or go on after they have failed"
    if layout.has_calls:
        yield _leads_back(layout, state), "its stacks of program counters do not lead back to the end"
    status, site, place = examples["status"], examples["site"], examples["place"]
    statuses = np.array([LaneStatus.OK, *(fault.status for fault in layout.program.faults)], np.int32)
    is_open = (status == LaneStatus.UNFINISHED) & (site < 0)
    is_right = (is_open | (status == statuses[site + 1])) & ((site < 0) == (place < 0))
    yield bool(is_right.all()), "the status of an example is not that of its fault"
    running = state["example"][pc <= layout.start]
    yield bool((status[running] == LaneStatus.UNFINISHED).all()), "lanes run examples that have ended"
    begun = int(queue["begun"])
    yield begun <= int(queue["examples"]), "more examples have begun than there are"
    yield bool((held < begun).all()), "lanes hold examples that are still to begin"
    yield bool((status[begun:] == LaneStatus.UNFINISHED).all()), "examples have ended that are still to begin"


def _leads_back(layout: Layout, state: Arrays) -> bool:
    """Return whether each running lane has FINISH at the bottom of its stack of program counters, and blocks above."""
    calls, depth, runs = state["calls"], state["depth"], state["pc"] < layout.start
    entries = np.arange(calls.shape[1])
    above = runs[:, None] & (entries > 0) & (entries < depth[:, None])
    return bool(
        (calls[:, 0] == layout.finish).all() and (depth[runs] > 0).all() and (calls[above] < layout.start).all()
    )
