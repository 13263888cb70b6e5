"""How a lane gets from block to block within a turn: which of them are known to follow from those before them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from pcbatch.ir.analysis.nesting import Loop, Node, blocks_of
from pcbatch.ir.machine import Program, PushJump, targets
from pcbatch.runtime.native.registers import Registers

DOUBLED = 4
"""So many blocks of a loop are written twice at most."""


@dataclass(frozen=True)
class Course:
    """The jumps among the blocks `numbers` of a program; of those `left_out` a lane may come to any of them.

    Some blocks are `expensive`, and jumped over; those that stand `apart` are not written twice.
    """

    registers: Registers
    numbers: frozenset[int]
    left_out: frozenset[int]
    expensive: Sequence[bool]
    apart: Collection[int]

    @property
    def program(self) -> Program:
        """The program."""
        return self.registers.program

    def followed(self, nodes: Sequence[Node]) -> frozenset[int]:
        """The blocks among the nodes of a turn to which a lane comes only from blocks before them in the same turn.

        After an expensive block, which is jumped over, it is the program counter that tells; and a block that takes
        from a stack of which another one has taken before may have to wait for the next turn.
        """
        found: set[int] = set()
        before: set[int] = set()
        emptied: set[str] = set()
        for node in nodes:
            if isinstance(node, Loop):
                found.update(self.ahead(node, before))
                emptied |= {
                    g for number in blocks_of([node]) for g in self.registers.popped(self.program.blocks[number])
                }
                continue
            popped = {*self.registers.popped(self.program.blocks[node])}
            sources = self.jumps_to.get(node, set())
            if node not in self.entries and sources and sources <= before and not popped & emptied:
                found.add(node)
            emptied |= popped
            if not self.expensive[node]:
                before.add(node)
        return frozenset(found)

    @cached_property
    def entries(self) -> set[int]:
        """The blocks that a lane comes to otherwise than by a jump."""
        calls = [block.terminator for block in self.program.blocks if isinstance(block.terminator, PushJump)]
        found = {0, *(place for call in calls for place in (call.back, *targets(call)))}
        found.update(place for n in self.left_out for place in targets(self.program.blocks[n].terminator))
        return found

    @cached_property
    def jumps_to(self) -> dict[int, set[int]]:
        """The blocks from which a lane may jump to each."""
        found: dict[int, set[int]] = {}
        for number in self.numbers:
            terminator = self.program.blocks[number].terminator
            for target in () if isinstance(terminator, PushJump) else targets(terminator):
                found.setdefault(target, set()).add(number)
        return found

    def ahead(self, loop: Loop, before: Collection[int]) -> tuple[int, ...]:
        """The blocks of a loop that are run in front of it as well, for lanes that come to it in the middle.

        That is where calls in the loop come back: what a turn still has to do then is done in front of the loop, which
        is entered at its first block only, so that no turn asks for the way. All who jump to the middle are to be among
        the blocks `before` it in the same turn; else, or where such blocks had better not be written twice, there are
        none. N-queens takes 0.87 of the time so.
        """
        if loop.is_entered_first or any(isinstance(node, Loop) for node in loop.nodes):
            return ()
        numbers = [*blocks_of(loop.nodes)]
        found: list[int] = []
        for number in numbers[1:]:
            outside = self.jumps_to.get(number, set()) - {*numbers}
            if number in self.entries or not outside <= {*before}:
                return ()
            if outside or self.jumps_to.get(number, set()) & {*found}:
                found.append(number)
        touched = any(self.registers.touched(self.program.blocks[number]) for number in found)
        is_fit = len(found) <= DOUBLED and not touched and not {*found}.intersection(self.apart)
        return tuple(found) if is_fit else ()
