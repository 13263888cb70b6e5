"""One run of one block in a program that forks."""

from __future__ import annotations

import functools
import operator
from typing import Any

from pcbatch.ir.analysis.parallel_call_groups import Group
from pcbatch.ir.machine import Branch, Fork, ForkedCall, fork_of
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.machine.execution import Execution


class ForkedExecution(Execution):
    """One run of one block in a program that forks."""

    def execute(self) -> None:
        """Run the block; a lane whose calls have come back takes over their steps."""
        if (group := self.layout.joins.get(self.number)) is None:
            super().execute()
            return
        steps = self.old("steps") + group.steps
        for slot, member in enumerate(group.members):
            more = self.backend.load(self.state["steps"], [], self.old(f"child {slot}"))
            if member.call.condition is not None:
                more = self.backend.where(self.made(slot), more + 1, more * 0)
            steps = steps + more
        self.taken["steps"] = steps
        if self.limits.max_steps is not None:
            self.moving = self.moving & (steps <= self.limits.max_steps)
        self.written["steps"] = (self.entered, steps)
        super().execute()

    @property
    def lanes(self) -> Array:
        """The lanes of the rows."""
        assert self.rows.lanes is not None, "rows are gathered where calls are forked"
        return self.rows.lanes

    def made(self, slot: int) -> Array:
        """Return for each lane that waited whether it has made a call of the group: otherwise it is its own child."""
        return self.old(f"child {slot}") != self.lanes

    def children(self, group: Group) -> list[tuple[Array, Array | None]]:
        """The lanes that have run the calls of a group, each with where that call was made, None for everywhere."""
        slots = range(len(group.members))
        always = [member.call.condition is None for member in group.members]
        return [(self.old(f"child {slot}"), None if always[slot] else self.made(slot)) for slot in slots]

    def made_calls(self, group: Group) -> list[Array]:
        """Return for each call of the forked group which rows make it: a bool array."""
        return [self.moving & self.condition(member.call) for member in group.members]

    def called(self, target: Any, back: int) -> Array:
        """Return the block that a call jumps to: of a forking one the join block, run when all calls have returned."""
        fork = fork_of(self.block.terminator)
        return super().called(target, back) if fork is None else self._forked(fork)

    def place(self, target: int | Branch) -> Array:
        """The number of the block that `target` means for every row; of a branch that forks, the join block."""
        fork = fork_of(target) if target is self.block.terminator else None
        if fork is None:
            return super().place(target)
        some = functools.reduce(operator.or_, (self.condition(call) for call in fork.calls))
        depth = self.old("depth") + self.old("base")
        self.moving = self.moving & ~(some & (depth > self.limits.max_depth))
        return self._forked(fork)

    def _forked(self, fork: Fork) -> Array:
        if self.forkable is not None:
            self.moving = self.moving & self.forkable
        return self.backend.constant(fork.join)

    def condition(self, call: ForkedCall) -> Array:
        """Return which rows make a call of the forked group: a bool array."""
        if call.condition is None:
            return self.entered
        (holds,) = self.read(call.condition)
        return self.entered & holds

    def waits(self, mask: Array) -> None:
        """Make the rows that lack room wait where they are."""
        entered, target = self.written["pc"]
        here = self.backend.constant(self.number)
        self.written["pc"] = (entered | mask, self.backend.where(mask, here, target))

    def arguments(self, group: Group) -> dict[str, dict[int, Array]]:
        """Return, by the key of a top, the arguments of the calls, by their places."""
        found: dict[str, dict[int, Array]] = {}
        for slot, member in enumerate(group.members):
            for variable, name in member.call.given:
                for top, value in zip(self.layout.tops(variable), self.read(name), strict=True):
                    found.setdefault(top, {})[slot] = self.backend.where(self.entered, value, value)
        return found
