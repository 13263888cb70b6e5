"""A lane of the reference on its way, block by block: what each block did to its variables and stacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.ir import values
from pcbatch.ir.machine import Block, Program
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.strategies.lane import Lane


@dataclass(frozen=True)
class Visit:
    """One run of one block, as a lane sees it, and what the lane holds after it; structures of NumPy's values.

    `count` says the how manieth it is, from 1; 0, with no `block`, is before the first. `computed` has what the body
    has assigned, temporaries included: where the lane failed, before that. `stacks` has each variable that ever got a
    value with its entries, the top last, None for an entry without a value; `program_counters` labels, that of the
    next block last, "end" for the lane's end. `steps` are the loop turns plus calls so far.
    """

    count: int
    block: Block | None
    computed: Mapping[str, Any]
    stacks: Mapping[str, tuple[Any, ...]]
    program_counters: tuple[str, ...]
    status: LaneStatus
    steps: int


class Walk:
    """One lane that runs block by block, for those who want to look at it."""

    def __init__(self, lane: Lane, end: Callable[[Program, Backend, Sequence[Lane]], Outcome]):
        self._lane, self._end, self._last = lane, end, -1
        self.count = 0
        """The number of blocks that have run."""

    def go_on(self) -> bool:
        """Run the next block; False where there is none, the lane having returned or failed."""
        last = self._lane.next
        if not self._lane.run_next():
            return False
        self._last, self.count = last, self.count + 1
        return True

    def visit(self) -> Visit:
        """The run of the last block."""
        lane, blocks = self._lane, self._lane.program.blocks
        labels = [*(block.label for block in blocks), "end"]
        return Visit(
            self.count,
            blocks[self._last] if self.count else None,
            {name: self._plain(name, value) for name, value in lane.computed.items()},
            {
                name: tuple(self._plain(name, entry) for entry in entries)
                for name, entries in lane.variables.items()
                if any(entry is not None for entry in entries)
            },
            tuple(labels[place] for place in (*lane.calls, lane.next)),
            lane.status,
            lane.steps,
        )

    def outcome(self) -> Outcome:
        """The outcome of the lane, as a run of this lane alone; it is UNFINISHED where it could go on."""
        lane = self._lane
        if lane.status == LaneStatus.OK and lane.next != len(lane.program.blocks):
            lane.status = LaneStatus.UNFINISHED
        return self._end(lane.program, lane.backend, [lane])

    def _plain(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        type_ = self._lane.program.types[name]
        found = zip(map(np.asarray, self._lane.leaves_of(name, value)), leaves(type_), strict=True)
        return values.pack(type_, [leaf.item() if leaf_type.weak else leaf[()] for leaf, leaf_type in found])
