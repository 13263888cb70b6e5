"""Groups of calls that may be forked, with the blocks that make them; and programs without them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import starmap

from pcbatch.ir.machine import Block, Fork, ForkedCall, Piece, Program, PushJump


@dataclass(frozen=True)
class Member:
    """A call of a group: by block number `block`, of the function that begins at `entry`, coming back to `back`."""

    call: ForkedCall
    block: int
    entry: int
    back: int


@dataclass(frozen=True)
class Group:
    """A group of calls, the first of which block number `block` makes."""

    block: int
    members: tuple[Member, ...]


def groups(program: Program) -> list[Group]:
    """All groups, in the order of their first blocks; ValueError for one whose calls do not follow each other."""
    found = ((n, block.terminator) for n, block in enumerate(program.blocks))
    return [
        Group(number, tuple(_members(program, number, end.fork)))
        for number, end in found
        if isinstance(end, PushJump) and end.fork is not None
    ]


def _members(program: Program, number: int, fork: Fork) -> Iterator[Member]:
    for call in fork.calls:
        end = program.blocks[number].terminator
        if not isinstance(end, PushJump) or not isinstance(end.target, int):
            raise ValueError(f"{program.blocks[number].label} makes no call that could be forked")
        yield Member(call, number, end.target, end.back)
        number = end.back


def without_forks(program: Program, kept: Collection[int] = ()) -> Program:
    """The same program, its calls made one after the other, but for groups that begin in the blocks `kept`."""
    if not groups(program):
        return program

    def sequential(number: int, block: Block) -> Block:
        if number in kept:
            return block
        body = tuple(item for item in block.body if not (isinstance(item, Piece) and item.speculative))
        end = block.terminator
        return replace(block, body=body, terminator=replace(end, fork=None) if isinstance(end, PushJump) else end)

    storage = dict(program.storage)
    if not kept:
        storage = {name: "register" if kind == "example" else kind for name, kind in storage.items()}
    return replace(program, blocks=tuple(starmap(sequential, enumerate(program.blocks))), storage=storage)
