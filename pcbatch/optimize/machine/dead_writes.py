"""Tops that nobody reads once their block is over are not kept.

    b3: pop n, left                         b3: pop n, left
        r = left + r                -->         r = left + r
        return                                  return, dead n, left

What a call has taken back from its stacks, say, is often read in that block for the last time.
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir.analysis.effects import live_at_end, read_at_end, written
from pcbatch.ir.machine import Block, Program, Store


def mark_dead_writes(program: Program) -> Program:
    """Name for each block the variables that it pops or writes and whose tops nobody reads afterwards."""

    def dead(block: Block, live: frozenset[str]) -> tuple[str, ...]:
        kept = live | read_at_end(program, block) | {item.array for item in block.body if isinstance(item, Store)}
        given = dict.fromkeys((*block.pops, *written(block), *(push.variable for push in block.pushes)))
        return tuple(name for name in given if name in program.storage and name not in kept)

    pairs = zip(program.blocks, live_at_end(program), strict=True)
    return replace(program, blocks=tuple(replace(block, dead=dead(block, live)) for block, live in pairs))
