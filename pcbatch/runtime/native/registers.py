"""What one lane holds while native code runs it: registers, and its part of the machine's stacks.

Registers, by key: `pc` (the place of a block in the order of the code, see `Code`, or where the lane leaves it),
`fault` (the fault site plus one at which it has failed, or 0), `steps`; `top v 0` for every leaf of every variable of
the state. For every variable with a stack: `stack v 0`, its entries from 0 on; `pointer v`, how many there are; and
`under v 0`, a copy of the last of them. In programs with calls: `calls`, the stack of places to come back to, `depth`,
how many there are, and `under calls`, the last of them.

A stack is written at its free slot, whoever runs, and read once all writes of a turn are done, into `under ..`: XLA
copies an array that is read before it is written. So within a turn each stack can be popped once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Block, Program, PushJump, Return
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.costs.device import CPU

CALLS = "calls"
"""The group of the stack of places to come back to."""


@dataclass(frozen=True)
class Registers:
    """The registers of `program`, whose lanes may have `max_depth` live calls."""

    program: Program
    max_depth: int

    # -- keys ----------------------------------------------------------------------------------------------------------

    def leaves(self, name: str) -> list[TensorType]:
        """The tensor types that variable `name` is made of."""
        return list(leaves(self.program.types[name]))

    def keys(self, what: str, name: str) -> list[str]:
        """The keys of `what` of variable `name`: "top", "under" or "stack"."""
        return [f"{what} {name} {i}" for i, _ in enumerate(self.leaves(name))]

    def is_stacked(self, name: str) -> bool:
        """Whether variable `name` has a stack."""
        return self.program.storage.get(name, "register") != "register"

    def group(self, name: str) -> str:
        """The variable whose stack pointer is that of `name`, too."""
        return self.program.pointers.get(name, name)

    @cached_property
    def has_calls(self) -> bool:
        """Whether there are calls to come back from."""
        return any(isinstance(block.terminator, PushJump) for block in self.program.blocks)

    @cached_property
    def members(self) -> dict[str, list[str]]:
        """The variables with a stack, by group."""
        found: dict[str, list[str]] = {}
        for name in self.program.storage:
            if self.is_stacked(name):
                found.setdefault(self.group(name), []).append(name)
        return found

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """The variables that messages of faults show."""
        return tuple(dict.fromkeys(name for site in self.program.faults for name in site.arguments))

    # -- what is large -------------------------------------------------------------------------------------------------

    @cached_property
    def uncopied(self) -> frozenset[str]:
        """The keys of last entries that are large: they are read where a block takes them, and no register."""
        return frozenset(
            key
            for name in self.program.storage
            if self.is_stacked(name)
            for key, type_ in zip(self.keys("under", name), self.leaves(name), strict=True)
            if math.prod(type_.shape) >= CPU.native_register
        )

    # -- what blocks do with them --------------------------------------------------------------------------------------

    def popped(self, block: Block) -> list[str]:
        """The groups of which a block takes entries."""
        calls = [CALLS] if self.has_calls and isinstance(block.terminator, Return) else []
        return [*dict.fromkeys(map(self.group, block.pops)), *calls]

    def pushed(self, block: Block) -> list[str]:
        """The groups to which a block adds entries."""
        calls = [CALLS] if isinstance(block.terminator, PushJump) else []
        return [*dict.fromkeys(self.group(push.variable) for push in block.pushes), *calls]

    def touched(self, block: Block) -> set[str]:
        """The groups to which a block adds entries, or of which it takes some."""
        return {*self.popped(block), *self.pushed(block)}

    def changed(self, blocks: Iterable[Block], max_steps: int | None) -> list[str]:
        """The keys of what some of `blocks` may change."""
        found = ["pc"]
        for block in blocks:
            found += ["fault"] if effects.can_fault(block, max_steps) else []
            found += ["steps"] if effects.is_step(block) else []
            kept = (name for name in (*block.pops, *effects.written(block)) if self.is_kept(block, name))
            found += [key for name in kept for key in self.keys("top", name)]
            for group in sorted(self.touched(block)):
                found += self.under(group)
                found.append("depth" if group == CALLS else f"pointer {group}")
            for group in self.pushed(block):
                found += self.stacks_of(group)
        return [*dict.fromkeys(found)]

    def is_kept(self, block: Block, name: str) -> bool:
        """Whether what a block gives `name` is kept after it."""
        return name in self.program.storage and name not in block.dead

    def under(self, group: str) -> list[str]:
        """The keys of the copies of the last entries of a group's stacks."""
        if group == CALLS:
            return [f"under {CALLS}"]
        return [key for name in self.members[group] for key in self.keys("under", name)]

    def stacks_of(self, group: str) -> list[str]:
        """The keys of a group's stacks, in the same order."""
        if group == CALLS:
            return [CALLS]
        return [key for name in self.members[group] for key in self.keys("stack", name)]
