"""One run of one block in a program that forks."""

from __future__ import annotations

from typing import Any

from pcbatch.ir.analysis.forks import Group
from pcbatch.ir.machine import PushJump
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.machine.execution import Execution


class ForkedExecution(Execution):
    """One run of one block in a program that forks."""

    def execute(self) -> None:
        """Run the block; a lane whose calls have come back takes over their steps."""
        if (group := self.layout.joins.get(self.number)) is None:
            super().execute()
            return
        steps = self.old("steps") + (len(group.members) - 1 + group.turns)
        for slot in range(len(group.members)):
            steps = steps + self.backend.load(self.state["steps"], [], self.old(f"child {slot}"))
        self.taken["steps"] = steps
        if self.limits.max_steps is not None:
            self.moving = self.moving & (steps <= self.limits.max_steps)
        self.written["steps"] = (self.entered, steps)
        super().execute()

    def called(self, target: Any, back: int) -> Array:
        """Where a call leads: one that forks to the join block, when all of the group have come back."""
        end = self.block.terminator
        assert isinstance(end, PushJump)
        if end.fork is None:
            return super().called(target, back)
        if self.forkable is not None:
            self.moving = self.moving & self.forkable
        return self.backend.constant(end.fork.join)

    def waits(self, mask: Array) -> None:
        """Have the lanes of rows that lack room say where they wait."""
        entered, target = self.written["pc"]
        here = self.backend.constant(self.number)
        self.written["pc"] = (entered | mask, self.backend.where(mask, here, target))

    def arguments(self, group: Group) -> dict[str, dict[int, Array]]:
        """By key of a top what the calls that are given one are given, by their places."""
        found: dict[str, dict[int, Array]] = {}
        for slot, member in enumerate(group.members):
            for variable, name in member.call.given:
                for top, value in zip(self.layout.tops(variable), self.read(name), strict=True):
                    found.setdefault(top, {})[slot] = self.backend.where(self.entered, value, value)
        return found
