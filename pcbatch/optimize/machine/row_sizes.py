"""When a block runs on gathered lanes: the sizes for which gathering costs less than the rows that it saves.

A block that few lanes wait at computes, masked, a row for every lane. Where a row is expensive, the waiting lanes are
gathered into the smallest of a few sizes that holds them, run there, and scattered back. Every size traces the block
once more and compiles it, so only expensive blocks get any, and few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Block, Item, Piece, Program, Store
from pcbatch.ir.types import elements
from pcbatch.runtime.costs.device import CPU, Device


@dataclass(frozen=True)
class Compaction:
    """Which sizes blocks get besides the whole batch: lanes / 8, / 64, .. and / 2, / 4, .. down to `floor`.

    At most `most` of them, each of which saves enough more than the next larger one, eighths before halves.
    Sizes are rounded up to a multiple of `multiple`, that of the vectors of float64 that XLA computes at once: the same
    operations on a number of rows that is none may round differently. What gathering costs was measured on `device`; of
    that `fixed` stands in for `gathered_size`, and all else is taken `scale` times: with both at 0 every block is
    expensive.
    """

    floor: int = 4
    most: int = 4
    multiple: int = 4
    fixed: float = CPU.gathered_size
    scale: float = 1.0
    device: Device = CPU

    def sized(self, program: Program, costs: Sequence[float], lanes: int) -> Program:
        """The program, each block with the sizes at which it may run in a batch of `lanes`."""
        pairs = zip(program.blocks, self.sizes(program, costs, lanes), strict=True)
        return replace(program, blocks=tuple(replace(block, sizes=sizes) for block, sizes in pairs))

    def sizes(self, program: Program, costs: Sequence[float], lanes: int) -> list[tuple[int, ...]]:
        """For each block the sizes smaller than `lanes` that it may run at, in increasing order."""
        comes_back = any(0 in places for places in effects.successors(program))
        beside = self.scale * self.device.gathered_share * max(costs) * lanes
        return [
            self._sizes(
                cost + self.device.masked_element * self.scale * _row_writes(program, block),
                self.scale * self._row_moves(program, block),
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
            parts = self._parts(4, max(beside, self.fixed) / self.device.gathered_tail, cost, moves, lanes)
            return tuple(sorted(parts[: self.most]))
        least, little = max(beside, self.fixed), max(beside, self.device.gathered_eighth * self.fixed)
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

    def _row_moves(self, program: Program, block: Block) -> float:
        """What it costs to gather what one row of the block reads and to scatter what it writes."""
        array, element = self.device.moved_array, self.device.moved_element
        return sum(array + element * elements(program.types[name]) for name in _moved(program, block))


DEFAULT = Compaction()


def _moved(program: Program, block: Block) -> list[str]:
    """The variables that one row of the block reads or writes; twice, if both."""
    read = {name for item in block.body for name in _read(item)}
    return [*(read & program.storage.keys()), *(set(effects.written(block)) & program.storage.keys())]


def _row_writes(program: Program, block: Block) -> int:
    """How many elements of its lane's variables a row of the block computes anew."""
    computed = {name for item in block.body if isinstance(item, Piece) for name in item.writes}
    kept = (computed | {*block.pops}) & program.storage.keys() - {*block.dead}
    return sum(elements(program.types[name]) for name in kept)


def _read(item: Item) -> tuple[str, ...]:
    """What an item reads of a lane. The array of a store is written in place; under a predicate old values may stay."""
    asked = () if item.predicate is None else (item.predicate,)
    match item:
        case Piece(reads=reads, writes=writes):
            return (*reads, *asked, *(writes if asked else ()))
        case Store(indices=indices, value=value):
            return (*indices, value, *asked)
