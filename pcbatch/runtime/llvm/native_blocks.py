"""The blocks of a program that run natively among others, and the arrays of the machine's state that they need."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Block, Piece, Program, PushJump, Return
from pcbatch.ir.types import leaves
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.llvm.stacks import Leaf
from pcbatch.runtime.llvm.types import Number, by_dtype
from pcbatch.runtime.machine.state import Layout, Limits

EXECUTIONS = "executions"
"""The key of how often each block has run, an array more than the state has: int64 `[blocks]`."""


@dataclass(frozen=True)
class Extent:
    """Blocks of a program that native code runs on a state of this `layout`; `row_costs` are those of all blocks."""

    layout: Layout
    limits: Limits
    numbers: tuple[int, ...]
    row_costs: Sequence[float]

    @classmethod
    def of(cls, layout: Layout, limits: Limits, row_costs: Sequence[float], lockstep: Collection[int]) -> Extent:
        """The blocks that lanes can come to and that are not left to `lockstep`."""
        inside = effects.reachable(layout.program) - {*lockstep}
        return cls(layout, limits, tuple(sorted(inside)), row_costs)

    @property
    def program(self) -> Program:
        """The program."""
        return self.layout.program

    @cached_property
    def blocks(self) -> list[Block]:
        """The blocks, in the order of their numbers."""
        return [self.program.blocks[number] for number in self.numbers]

    @cached_property
    def names(self) -> list[str]:
        """The variables that the blocks have to do with."""
        found = dict.fromkeys(name for block in self.blocks for name in (*effects.read(block), *effects.written(block)))
        found |= dict.fromkeys(name for block in self.blocks for name in block.pops)
        found |= dict.fromkeys(push.variable for block in self.blocks for push in block.pushes)
        return [*found]

    @cached_property
    def changed(self) -> list[str]:
        """The keys of the arrays that the blocks change, executions first."""
        found = [EXECUTIONS, "pc"]
        for block in self.blocks:
            found += ["fault"] if effects.can_fault(block, self.limits.max_steps) else []
            found += ["steps"] if effects.is_step(block) else []
            for name in (*block.pops, *effects.written(block)):
                found += self.layout.tops(name) if name in self.program.storage else []
            pushed = [push.variable for push in block.pushes]
            found += [self.layout.pointer(name) for name in (*block.pops, *pushed)]
            found += [key for name in pushed for key in self.layout.stacks(name)]
            match block.terminator:
                case PushJump():
                    found += ["depth", "calls"]
                case Return() if self.layout.has_calls:
                    found.append("depth")
        return [*dict.fromkeys(found)]

    @cached_property
    def constant(self) -> list[str]:
        """The keys of the arrays that the blocks only read."""
        found = [key for name in self.names if name in self.program.storage for key in self.layout.tops(name)]
        for block in self.blocks:
            found += [key for name in block.pops for key in self.layout.stacks(name)]
            found += ["calls"] if isinstance(block.terminator, Return) and self.layout.has_calls else []
        found += ["room"] * any(map(self.can_lack_room, self.blocks))
        return [key for key in dict.fromkeys(found) if key not in self.changed]

    @cached_property
    def shared(self) -> list[str]:
        """The shared operands that the blocks read."""
        pieces = (item for block in self.blocks for item in block.body if isinstance(item, Piece))
        return sorted({name for piece in pieces for name in piece.shared})

    @cached_property
    def shared_leaves(self) -> list[tuple[Leaf, Number, tuple[int, ...]]]:
        """The leaves of these, with their types of numbers and sizes."""
        return [
            ((name, place), by_dtype(type_.dtype), type_.shape)
            for name in self.shared
            for place, type_ in enumerate(leaves(self.program.shared_types[name]))
        ]

    def can_lack_room(self, block: Block) -> bool:
        """Return whether a lane may have to wait before a block until stacks are larger."""
        return isinstance(block.terminator, PushJump) and not self.limits.roomy

    def row_bytes(self, key: str) -> int:
        """The bytes of a lane's part of an array, of one entry if it is a stack; of executions all of them."""
        if key == EXECUTIONS:
            return 8 * len(self.program.blocks)
        type_ = self.layout.arrays[key].type
        return by_dtype(type_.dtype).bytes * math.prod(type_.shape)

    def is_stacked(self, key: str) -> bool:
        """Return whether an array has several entries for each lane."""
        return key != EXECUTIONS and self.layout.arrays[key].stacked

    def steps_of_a_visit(self, lanes: int) -> int:
        """The steps that each of so many lanes may make before the machine has its turn: few where they are expensive.

        A run can be stopped between two visits only.
        """
        return max(self.steps_of_all // lanes, CPU.native_least)

    @cached_property
    def steps_of_all(self) -> int:
        """The steps of all lanes together."""
        dearest = max((self.row_costs[number] for number in self.numbers), default=1.0)
        return min(CPU.native_visit, int(CPU.native_chunk * CPU.native_pace / max(dearest, 1.0)))
