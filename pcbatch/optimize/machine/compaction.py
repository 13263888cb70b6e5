"""Chunks: whether a block runs on gathered lanes, and on how many rows at a time.

A block that few lanes wait at computes, masked, a row for every lane. Where a row is expensive, the waiting lanes are
listed instead, and computed in chunks of so many rows, as often as it takes; where most lanes wait, all rows at once.
So a block is compiled twice at most, whatever the batch:

    b4:                             b4:
      piece (h, c) -> h, c:           rows 8, all from 52
                                      piece (h, c) -> h, c:

Rows of a chunk are computed by the same code whoever they are of, so their bits are the same. Where that is to hold for
all bits of a lane, in any batch, `always` runs every block that rounds in chunks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Block, Chunks, Item, Piece, Program, Store
from pcbatch.ir.types import elements
from pcbatch.runtime.costs.device import CPU, Device


@dataclass(frozen=True)
class Row:
    """Properties of a row of a block.

    `cost` is its work (`costs.estimate`). `shares`: it is multiplied by something that all lanes share, which is
    cheaper for several rows at once. `rounds`: how its floats are rounded may depend on the number of rows.
    """

    cost: float
    shares: bool = False
    rounds: bool = True


@dataclass(frozen=True)
class Compaction:
    """The blocks that run in chunks, and their numbers of rows: the best, as measured on `device`.

    With `always` every block that rounds does, and never for all lanes at once. With `every` all blocks are expensive,
    and chunks have `rows` rows, if that is given. With `pairs` expensive rows run in pairs of chunks: not where what is
    kept of a run must not depend on how many rows it has.
    """

    always: bool = False
    every: bool = False
    rows: int | None = None
    device: Device = CPU
    pairs: bool = False

    def chunked(self, program: Program, rows: Sequence[Row], lanes: int | None) -> Program:
        """The program, each block with the chunks in which it runs in a batch of `lanes`, of which `rows` are known.

        None stands for a number that is not known; blocks then keep the chunks that they have, if any are to be chosen
        by it.
        """
        costs = zip(program.blocks, rows, strict=True)
        blocks = [b if b.deferred is None else replace(b, chunks=self._turns(row, lanes)) for b, row in costs]
        program = replace(program, blocks=tuple(blocks))
        if lanes is None and not self.always:
            return program
        # No lanes have no rows that a chunk could be filled up with.
        none: list[Chunks | None] = [None] * len(rows)
        chunks = none if lanes == 0 else self.chunks(program, rows, lanes or 0)
        pairs = zip(program.blocks, chunks, strict=True)
        blocks = [block if block.deferred is not None else replace(block, chunks=each) for block, each in pairs]
        return replace(program, blocks=tuple(blocks))

    def _turns(self, row: Row, lanes: int | None) -> Chunks:
        """The chunks in which turns are run that are put off: of many rows, if these are cheap or lanes are many."""
        device = self.device
        size = device.deferred_least
        if self.always or lanes is None:
            return Chunks(size)
        while size < min(device.deferred_most, 8 * lanes) and size * row.cost < device.deferred_work:
            size *= 2
        return Chunks(size)

    def chunks(self, program: Program, rows: Sequence[Row], lanes: int) -> list[Chunks | None]:
        """The chunks of each block in a batch of `lanes`; None where it computes a row for every lane."""
        if self.always:
            return [Chunks(self.size(row)) if row.rounds else None for row in rows]
        comes_back = any(0 in places for places in effects.successors(program))
        beside = self.device.gathered_share * max(row.cost for row in rows) * lanes
        return [
            self._chunks(program, block, row, lanes, beside) if number or comes_back else None
            for number, (block, row) in enumerate(zip(program.blocks, rows, strict=True))
        ]  # all lanes run the first block, at once

    def _chunks(self, program: Program, block: Block, row: Row, lanes: int, beside: float) -> Chunks | None:
        """See `chunks`. Whole batches stand beside: what gathering saves must not be lost beside `beside`."""
        size = self.size(row)
        while self.rows is None and size > self.device.chunk_least and 2 * size > lanes:
            size //= 2
        if size >= lanes:
            return None
        cost = row.cost + self.device.masked_element * _row_writes(program, block)
        saved = (lanes - size) * cost - size * self._row_moves(program, block)
        if not self.every and saved < self._least(block, beside):
            return None
        if row.shares and size * row.cost >= self.device.chunk_work and 4 * size <= lanes:
            return Chunks(size, pairs=self.pairs)  # all lanes at once would gain nothing, and be compiled, too
        return Chunks(size, math.ceil(self.device.chunk_share * lanes))

    def _least(self, block: Block, beside: float) -> float:
        """The cost that a chunk must save in a run for a single lane.

        Where lanes wait for each other, few come only as a run ends: it must pay then.
        """
        if block.sync:
            return max(beside, self.device.gathered_sync) / self.device.gathered_tail
        return max(beside, self.device.gathered)

    def size(self, row: Row) -> int:
        """Return the number of rows of a chunk: a power of two."""
        if self.rows is not None:
            return self.rows
        least = self.device.chunk_shared if row.shares else self.device.chunk_least
        size = least
        while size < self.device.chunk_most and size * row.cost < self.device.chunk_work:
            size *= 2
        return size

    def _row_moves(self, program: Program, block: Block) -> float:
        """Return the cost of gathering the reads of one row of the block, and of scattering its writes."""
        array, element = self.device.moved_array, self.device.moved_element
        return sum(array + element * elements(program.types[name]) for name in _moved(program, block))


DEFAULT = Compaction()
PAIRED = Compaction(pairs=True)
"""The choice for runs of which nothing is kept."""
DETERMINISTIC = Compaction(always=True)
"""A lane's bits are the same in every batch."""


def _moved(program: Program, block: Block) -> list[str]:
    """The variables that one row of the block reads or writes; twice, if both."""
    read = {name for item in block.body for name in _read(item)}
    return [*(read & program.storage.keys()), *(set(effects.written(block)) & program.storage.keys())]


def _row_writes(program: Program, block: Block) -> int:
    """The number of elements of its lane's variables that a row of the block computes anew."""
    computed = {name for item in block.body if isinstance(item, Piece) for name in item.writes}
    kept = (computed | {*block.pops}) & program.storage.keys() - {*block.dead}
    return sum(elements(program.types[name]) for name in kept)


def _read(item: Item) -> tuple[str, ...]:
    """The variables of a lane that an item reads. A store writes in place; under a predicate old values may stay."""
    asked = () if item.predicate is None else (item.predicate,)
    match item:
        case Piece(reads=reads, writes=writes):
            return (*reads, *asked, *(writes if asked else ()))
        case Store(indices=indices, value=value):
            return (*indices, value, *asked)
