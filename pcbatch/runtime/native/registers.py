"""What one lane holds while it runs in the native form: registers, and stacks that it leaves to the next lane.

Registers, by key: `pc` (the place of a block in the order of the code, see `Code`, or behind all of them: the lane has
ended), `fault` (a number that says at which fault site and in which block it has failed, or 0), `steps`;
`top v 0` for every leaf of every variable of the state. For every variable with a stack: `stack v 0`, its entries from
0 on; `pointer v`, how many there are; and `under v 0`, a copy of the last of them. In programs with calls: `calls`, the
stack of places to come back to, `depth`, how many there are, and `under calls`, the last of them.

A stack is written at its free slot, whoever runs, and read once all writes of a turn are done, into `under ..`: XLA
copies an array that is read before it is written. So within a turn each stack can be popped once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Block, Program, PushJump, Return
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.costs.device import CPU

NUMBER = TensorType("int32")
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

    # -- types ---------------------------------------------------------------------------------------------------------

    @cached_property
    def entries(self) -> int:
        """How many entries stacks have room for: the most that can be, and what is written beyond by who does not."""
        pushes = (Counter(push.variable for push in block.pushes) for block in self.program.blocks)
        return self.max_depth + 2 + max((max(each.values(), default=0) for each in pushes), default=0)

    @cached_property
    def types(self) -> dict[str, TensorType]:
        """What every register holds, by key, stacks left out."""
        found = dict.fromkeys(("pc", "fault", "steps"), NUMBER)
        if self.has_calls:
            found |= dict.fromkeys(("depth", f"under {CALLS}"), NUMBER)
        for name in self.program.storage:
            found.update(zip(self.keys("top", name), self.leaves(name), strict=True))
            if self.is_stacked(name):
                found[f"pointer {self.group(name)}"] = NUMBER
                found.update(zip(self.keys("under", name), self.leaves(name), strict=True))
        return {key: type_ for key, type_ in found.items() if key not in self.uncopied}

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

    @cached_property
    def stacks(self) -> dict[str, TensorType]:
        """What the entries of every stack hold, by key."""
        found = {CALLS: NUMBER} if self.has_calls else {}
        for name in self.program.storage:
            if self.is_stacked(name):
                found.update(zip(self.keys("stack", name), self.leaves(name), strict=True))
        return found

    # -- failures ------------------------------------------------------------------------------------------------------

    def failure(self, number: int, code: int) -> int:
        """What stands for a failure in a block by its number; `code` is the fault site plus one."""
        return number * (len(self.program.faults) + 1) + code

    def sites_and_blocks(self, failures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The fault sites and the numbers of the blocks that some `failures` stand for; -1 for 0."""
        blocks, codes = np.divmod(failures, len(self.program.faults) + 1)
        return codes - 1, np.where(codes > 0, blocks, -1).astype(failures.dtype)

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
