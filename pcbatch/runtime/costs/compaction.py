"""When a block runs on gathered lanes: the sizes for which gathering costs less than the rows that it saves.

A block that few lanes wait at computes, masked, a row for every lane. Where a row is dear, the waiting lanes are
gathered into the smallest of a few sizes that holds them, run there, and scattered back. Every size traces the block
once more and compiles it, so only dear blocks get any, and few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Block, Piece, Program, Store
from pcbatch.runtime.costs.estimate import elements

FIXED = 4_000_000.0
"""What a half must save more than the next larger size, in the unit of `costs`: 200 us to 1 ms, many times what
gathering costs at any size (5 to 10 us), so that the second or so that it takes to compile pays within 5,000 runs."""
SMALL = 0.27
"""How much of that an eighth must save, which serves blocks that few lanes come to at a time."""
TAIL = 0.03
"""The part of a run in which few lanes are left at a block where they wait for each other (samplers: 0.03 to 0.1).

The size for 16 of 64 chains of a dear density (27 us a row) takes 1 s to compile and saves 0.15 s in 250 draws."""
SHARE = 0.02
"""How much of what the dearest block costs for all lanes a size must save: else it is lost beside that block."""
MASKED = 4.0
"""What it costs to keep an element from being written for the lanes that take no part: it is read and written, too."""
LEAF, ELEMENT = 100.0, 4.0
"""What moving one array's row there and back costs, and each element of it."""


@dataclass(frozen=True)
class Compaction:
    """Which sizes blocks get besides the whole batch: lanes / 8, / 64, .. and / 2, / 4, .. down to `floor`.

    At most `most` of them, each of which saves enough more than the next larger one, eighths before halves.
    Sizes are rounded up to a multiple of `multiple`, that of the vectors of float64 that XLA computes at once: the same
    operations on a number of rows that is none may round differently. `fixed` and `scale` weigh what gathering costs;
    with both at 0 every block is dear.
    """

    floor: int = 4
    most: int = 4
    multiple: int = 4
    fixed: float = FIXED
    scale: float = 1.0

    def sized(self, program: Program, costs: Sequence[float], lanes: int) -> Program:
        """The program, each block with the sizes at which it may run in a batch of `lanes`."""
        pairs = zip(program.blocks, self.sizes(program, costs, lanes), strict=True)
        return replace(program, blocks=tuple(replace(block, sizes=sizes) for block, sizes in pairs))

    def sizes(self, program: Program, costs: Sequence[float], lanes: int) -> list[tuple[int, ...]]:
        """For each block the sizes smaller than `lanes` that it may run at, in increasing order."""
        comes_back = any(0 in places for places in effects.successors(program))
        beside = self.scale * SHARE * max(costs) * lanes
        return [
            self._sizes(
                cost + MASKED * self.scale * _row_writes(program, block),
                self.scale * _row_moves(program, block),
                lanes,
                beside,
                waits=block.sync,
            )
            if number or comes_back
            else ()  # all lanes run the first block, at once
            for number, (block, cost) in enumerate(zip(program.blocks, costs, strict=True))
        ]

    def _sizes(
        self, cost: float, moves: float, lanes: int, beside: float = 0.0, *, waits: bool = False
    ) -> tuple[int, ...]:
        """See `sizes`; each saves `beside` at least.

        Where lanes wait for each other (`waits`), few come only as a run ends: quarters will do, and must pay then.
        """
        if waits:
            return tuple(sorted(self._parts(4, max(beside, self.fixed) / TAIL, cost, moves, lanes)[: self.most]))
        least, little = max(beside, self.fixed), max(beside, SMALL * self.fixed)
        eighths = self._parts(8, little, cost, moves, lanes)
        halves = [size for size in self._parts(2, least, cost, moves, lanes) if size not in eighths]
        return tuple(sorted([*eighths, *halves][: self.most]))

    def _parts(self, divisor: int, least: float, cost: float, moves: float, lanes: int) -> list[int]:
        """`lanes` divided again and again, as long as that saves `least`."""
        found: list[int] = []
        larger = lanes
        while (size := self._rounded(larger / divisor)) >= self.floor and size < larger:
            if (larger - size) * cost < least or (lanes - size) * cost < size * moves:
                break
            found.append(size)
            larger = size
        return found

    def _rounded(self, size: float) -> int:
        return math.ceil(size / self.multiple) * self.multiple


DEFAULT = Compaction()


def _row_moves(program: Program, block: Block) -> float:
    """What it costs to gather what one row of the block reads and to scatter what it writes."""
    read = {name for item in block.body for name in (item.reads if isinstance(item, Piece) else _read(item))}
    moved = [*(read & program.storage.keys()), *(set(effects.written(block)) & program.storage.keys())]
    return sum(LEAF + ELEMENT * elements(program.types[name]) for name in moved)


def _row_writes(program: Program, block: Block) -> int:
    """How many elements of its lane's variables a row of the block computes anew."""
    computed = {name for item in block.body if isinstance(item, Piece) for name in item.writes}
    kept = (computed | {*block.pops}) & program.storage.keys() - {*block.dead}
    return sum(elements(program.types[name]) for name in kept)


def _read(store: Store) -> tuple[str, ...]:
    """The array itself is written in place."""
    return (*store.indices, store.value)
