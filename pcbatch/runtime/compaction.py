"""When a block runs on gathered lanes: the sizes for which gathering costs less than the rows that it saves.

A block that few lanes wait at computes, masked, a row for every lane. Where a row is dear, the waiting lanes are
gathered into the smallest of a few sizes that holds them, run there, and scattered back. Every size traces the block
once more and compiles it, so only dear blocks get any, and few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pcbatch.runtime import effects
from pcbatch.runtime.costs import elements
from pcbatch.runtime.table import Block, Piece, Program, Store

FIXED = 1_100_000.0
"""What a size must save more than the next larger one, in the unit of `costs`: 50 to 250 us, many times what gathering
costs at any size (5 to 10 us), so that the second or so that it takes to compile pays within some 5,000 runs."""
LEAF, ELEMENT = 100.0, 4.0
"""What moving one array's row there and back costs, and each element of it."""


@dataclass(frozen=True)
class Compaction:
    """Which sizes blocks get besides the whole batch: lanes / 2, / 4, .. down to `floor`, at most `most` of them.

    A size that does not save enough is passed over; where no smaller one does, there are no more. Sizes are rounded up
    to a multiple of `multiple`, that of the vectors of float64 that XLA computes at once: the same operations on a
    number of rows that is none may round differently. `fixed` and `scale` weigh what gathering costs; with both at 0
    every block is dear.
    """

    floor: int = 4
    most: int = 4
    multiple: int = 4
    fixed: float = FIXED
    scale: float = 1.0

    def sizes(self, program: Program, costs: Sequence[float], lanes: int) -> list[tuple[int, ...]]:
        """For each block the sizes smaller than `lanes` that it may run at, in increasing order."""
        return [
            self._sizes(cost, self.scale * _row_moves(program, block), lanes)
            for block, cost in zip(program.blocks, costs, strict=True)
        ]

    def _sizes(self, cost: float, moves: float, lanes: int) -> tuple[int, ...]:
        found: list[int] = []
        larger = size = lanes
        while len(found) < self.most:
            before, size = size, math.ceil(size / 2 / self.multiple) * self.multiple
            if size < self.floor or size == before:
                break
            if (larger - size) * cost >= self.fixed and (lanes - size) * cost >= size * moves:
                found.append(size)
                larger = size
        return tuple(reversed(found))


DEFAULT = Compaction()


def _row_moves(program: Program, block: Block) -> float:
    """What it costs to gather what one row of the block reads and to scatter what it writes."""
    read = {name for item in block.body for name in (item.reads if isinstance(item, Piece) else _read(item))}
    moved = [*(read & program.storage.keys()), *(set(effects.written(block)) & program.storage.keys())]
    return sum(LEAF + ELEMENT * elements(program.types[name]) for name in moved)


def _read(store: Store) -> tuple[str, ...]:
    """The array itself is written in place."""
    return (*store.indices, store.value)
