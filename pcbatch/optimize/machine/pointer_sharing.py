"""Stacks that are pushed and popped together have one stack pointer, which is updated once."""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir.machine import Program


def share_pointers(program: Program) -> Program:
    """Give variables whose stacks move together the pointer of the first of them."""
    first: dict[tuple[tuple[int, int], ...], str] = {}
    pointers: dict[str, str] = {}
    for name, storage in program.storage.items():
        if storage in ("stack", "cached stack"):
            moves = [([push.variable for push in block.pushes], block.pops) for block in program.blocks]
            together = tuple((pushed.count(name), popped.count(name)) for pushed, popped in moves)
            leader = first.setdefault(together, name)
            if leader != name:
                pointers[name] = leader
    return replace(program, pointers=pointers)
