"""The sizes that a machine's stacks have reached: the start of the next run, and its compilation."""

from __future__ import annotations

from pcbatch.ir.status import LaneStatus
from pcbatch.runtime.machine.limits import Limits
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.machine.pool import Pool


class Sizes:
    """The sizes of stacks that have occurred; `capacity`, of live calls, is that with which the next run starts."""

    def __init__(self, limits: Limits):
        self.capacity = limits.first_capacity
        self._limits = limits
        self._compiled: dict[tuple[tuple[Pool, bool], bool], set[int]] = {}

    def learn(self, last: int, outcome: Outcome) -> None:
        """Remember that stacks have grown to a capacity of `last`: the next run starts there.

        What lanes needed that failed with MAX_DEPTH, maybe in a recursion without end, no other run is to pay for; nor
        what lanes need of which that is not known yet.
        """
        if last > self.capacity:
            untold = (outcome.status == LaneStatus.MAX_DEPTH) | (outcome.status == LaneStatus.UNFINISHED)
            if not bool(outcome.backend.any(untold)):
                self.capacity = last

    def compiled(self, pool: Pool, counts: bool, first: int, last: int, *, direct: bool) -> int:
        """Return the number of sizes compiled by a run whose stacks grew from capacity `first` to `last`.

        XLA has compiled the leg for each size on the way, the first one when the leg was traced; and it compiles anew
        what is called `direct`ly, as slices are, rather than from the graph of a whole run.
        """
        key = (pool.static, counts)
        seen = self._compiled.setdefault((key, direct), set() if (key, not direct) in self._compiled else {first})
        new = {first, *self._limits.sizes(first, last)} - seen
        seen |= new
        return len(new)
