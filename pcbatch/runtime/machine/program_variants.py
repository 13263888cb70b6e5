"""The versions of a program's legs: some count block runs, some do not, some have stacks of their full size."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from pcbatch.ir.machine import Program
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.segments import Legs
from pcbatch.runtime.machine.state import Layout


class Versions:
    """The legs of one program; the `counting` ones are also those of runs leg by leg.

    `counts` says whether whole runs are to count from the beginning, too.
    """

    def __init__(self, context: Context, *, counts: bool):
        self.counting = Legs(context)
        self.counts = counts
        self._roomy: dict[bool, Legs] = {}

    @property
    def usual(self) -> Legs:
        """Legs that do not count block runs, where that takes time and nobody is likely to ask.

        It takes up to a seventh of the time where all blocks are cheap, else next to none. Who has asked once asks
        again, and who has chosen a schedule does, too.
        """
        return self.counting if self.counts or not self._is_cheap else self._quiet

    @cached_property
    def _is_cheap(self) -> bool:
        return not self.counting.loop.sync and max(self.counting.loop.row_costs) <= CPU.native_work

    @cached_property
    def _quiet(self) -> Legs:
        # Their states do not leave the machine, so that stacks may lie in them as they like.
        context = self.counting.loop.context
        return Legs(replace(context, counts=False, layout=Layout(self.predicated(context.program), packs=True)))

    def predicated(self, program: Program) -> Program:
        """Return the program executed where nobody counts, of this program or of one with the same blocks."""
        predication = self.counting.loop.context.predication
        if predication is None or self.counts or not self._is_cheap or self.counting.loop.context.is_deterministic:
            return program
        return predication.converted(program, self.counting.loop.row_costs)

    def roomy(self, legs: Legs) -> Legs:
        """`legs` on stacks that have their full size at once, which a caller's XLA program needs."""
        if legs.counts not in self._roomy:
            limits = replace(legs.limits, roomy=True)
            self._roomy[legs.counts] = Legs(replace(legs.loop.context, limits=limits))
        return self._roomy[legs.counts]
