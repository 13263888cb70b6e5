"""Joins of paths through a program: one state of several, and the copies on each path before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcbatch.reading.meeting import End, ValueJoin
from pcbatch.reading.several import Several


class Joins(Several):
    """Joins of states."""

    def join(self, ends: Sequence[End], span_node: Any = None) -> None:
        """Go on where all `ends` meet; nowhere if there are none."""
        if not ends:
            self.emitter.enter(None)
            return
        if len(ends) == 1:
            block, self.state = ends[0]
            self.emitter.enter(block)
            return
        meeting = self.meeting(ends)
        state = meeting.state()
        target = self.emitter.block()
        for place, (block, own) in enumerate(ends):
            self.emitter.enter(block)
            self.state = own
            for lane, values in meeting.copies:
                self.refuse_taped([values[place]])
                self.give(lane.name, values[place], lane.type)
            self.emitter.jump(target, self.span())
        self.emitter.enter(target)
        self.state = state

    def meeting(self, ends: Sequence[End]) -> ValueJoin:
        """Return what finds the state in which `ends` meet."""
        return ValueJoin(self, ends)
