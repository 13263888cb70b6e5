"""Running one basic block for the lanes that wait at it, the other lanes left out or masked away.

A block computes a row for every lane, or, where it is expensive and few wait, a row for each of a few gathered lanes
(`Rows`). Rows that take no part still flow through the arithmetic as junk: what is computed for them is dropped when
tops are written and when stacks are (one scatter that leaves them out, never a `where` over a whole stack, which would
cost its depth).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Block, PushJump
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.machine import state
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.execution import Execution
from pcbatch.runtime.machine.values import Rows


@dataclass(frozen=True)
class BlockRunner:
    """Runs block `number` of a program on the machine's state."""

    context: Context
    number: int

    @property
    def block(self) -> Block:
        """The block that this runs."""
        return self.context.program.blocks[self.number]

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """The keys of the state that a run may change, sorted."""
        return state.changes(self.context.layout, self.number, self.context.limits.max_steps)

    @property
    def in_place(self) -> set[str]:
        """The keys of the state of which a run writes elements at most."""
        return state.in_place(self.context.layout, self.block)

    def execution(self, state: State, shared: Mapping[str, Leaves], rows: Rows) -> Execution:
        """Return a run of the block."""
        return Execution(self.context, self.number, state, shared, rows)

    @property
    def can_lack_room(self) -> bool:
        """True if a lane that waits at the block can lack room for its pushes."""
        return bool(self._tested_stacks) or self._tests_depth

    @property
    def _tests_depth(self) -> bool:
        """True if the stack of program counters can be full."""
        return isinstance(self.block.terminator, PushJump) and not self.context.limits.roomy

    @property
    def _tested_stacks(self) -> dict[str, int]:
        """The pushed variables whose stacks can be full though that of program counters is not, with their pushes."""
        is_call = isinstance(self.block.terminator, PushJump)
        return {} if is_call and self.context.layout.is_framed else effects.growth(self.block)

    def room(self, state: State) -> Array:
        """Return a bool per lane: whether it has room for the block's pushes; meaningful where it waits at the block.

        A call beyond `max_depth` pushes nothing (the lane fails there), so there is always room for it.
        """
        pushed = self._tested_stacks
        tests = [state[self.context.layout.pointer(name)] <= state["room"] - pushed[name] for name in sorted(pushed)]
        if self._tests_depth:
            tests.append(state["depth"] <= state["room"])
        room = functools.reduce(operator.and_, tests)
        is_call = isinstance(self.block.terminator, PushJump)
        return room | (state["depth"] > self.context.limits.max_depth) if is_call else room

    def ready(self, state: State, chosen: Array) -> Array:
        """Return the lanes that wait at the block and have room for its pushes: bool `[lanes]`.

        `chosen` is the scalar that guards this run, so it holds. That the mask reads it is what makes XLA update the
        state in place: where the two arms of a conditional get the very same operands, it copies all of them in both.
        """
        backend = self.context.backend
        mask = backend.both(backend.equal(state["pc"], self.number), chosen)
        return mask & self.room(state) if self.can_lack_room else mask

    def run(self, state: State, shared: Mapping[str, Leaves], rows: Rows) -> tuple[State, Array]:
        """The changed part of the state after the block has run for `rows`, and which of these went on (bool)."""
        with self.context.backend.scope(self.block.label):
            execution = self.execution(state, shared, rows)
            execution.execute()
            return execution.updates(), execution.moving
