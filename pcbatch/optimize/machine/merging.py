"""The cheap blocks of a loop run as one, for the lanes that wait at any of them.

    b4: ..; branch t b5 b9               b4: ..; branch t b5 b9
    b5: ..; branch u b6 b8    -->        b5: ..; branch u b6 b8          merged b4, b5, b8
    b8: ..; jump b4, turn                b8: ..; jump b4, turn

In the machine each block has a guard, which asks whether a lane waits there, and a turn of a loop of several blocks
takes a trip of its own. Blocks that are merged have one guard together. Behind it they are computed one after another,
each for the lanes that are there by then, and all again while it pays: so such a loop turns within a trip. For every
lane the blocks keep their order, their steps and their fault sites; what it takes no part in is computed all the same
and thrown away (Allen, Kennedy, Porterfield, Warren, "Conversion of control dependence to data dependence", POPL 1983).

What decides is the price (`costs.device`). Merged, a block is computed in every turn, wherever lanes are, and XLA's CPU
compiler computes anew for each variable what the variables of all blocks have in common. So it pays for few lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pcbatch.ir.analysis.nesting import Loop, Node, blocks_of, nest
from pcbatch.ir.machine import Block, Program, Store
from pcbatch.optimize.machine.compaction import Row
from pcbatch.runtime.costs.device import CPU, Device


@dataclass(frozen=True)
class Merging:
    """The blocks that are run as one; with `always` all of every loop, whatever they cost."""

    device: Device = CPU
    always: bool = False

    def merged(self, program: Program, rows: Sequence[Row], lanes: int | None) -> Program:
        """The program with the blocks that are merged in a batch of `lanes`, None if not known; `rows` are its rows."""

        def chosen(nodes: Iterable[Node]) -> Iterator[tuple[int, ...]]:
            for loop in nodes:
                if isinstance(loop, Loop):
                    members = tuple(blocks_of(loop.nodes))
                    if len(members) > 1 and self._pays(program, rows, loop, members, lanes):
                        yield members
                    else:
                        yield from chosen(loop.nodes)

        return replace(program, merged=tuple(chosen(nest(program))))

    def _pays(
        self, program: Program, rows: Sequence[Row], loop: Loop, members: Sequence[int], lanes: int | None
    ) -> bool:
        blocks, device = [program.blocks[number] for number in members], self.device
        if not all(map(is_mergeable, blocks)):
            return False
        if self.always:
            return True
        work = sum(rows[number].cost for number in members)
        if lanes is None or len(blocks) > device.merged_blocks or work > device.merged_work:
            return False
        is_innermost = all(isinstance(node, int) for node in loop.nodes)
        stores = any(isinstance(item, Store) for block in blocks for item in block.body)
        return lanes <= (device.merged_storing if stores and is_innermost else device.merged_lanes)


MERGING = Merging()


def is_mergeable(block: Block) -> bool:
    """Return whether lanes of a block need not wait for others, and it computes a row for every lane."""
    return block.chunks is None and not block.sync
