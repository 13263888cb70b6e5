"""Groups of calls that may be forked, with the blocks that make them; and programs without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap

from pcbatch.ir.analysis.effects import read, written
from pcbatch.ir.analysis.live_tops import live_at_start
from pcbatch.ir.machine import Block, Fork, ForkedCall, Jump, Piece, Program, PushJump, targets


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
    join: int
    """The block at which the lane goes on."""
    turns: int = 0
    """How many turns of loops, which are written out, begin between the calls."""


def groups(program: Program) -> list[Group]:
    """All groups, in the order of their first blocks; ValueError for one whose calls do not follow each other."""
    found = ((n, block.terminator) for n, block in enumerate(program.blocks))
    return [
        _group(program, number, end.fork) for number, end in found if isinstance(end, PushJump) and end.fork is not None
    ]


def _group(program: Program, number: int, fork: Fork) -> Group:
    members = tuple(_members(program, number, fork))
    turns = sum(len(blocks_between(program, member.back)) - 1 for member in members[:-1])
    return Group(number, members, fork.join, turns)


def blocks_between(program: Program, back: int) -> list[int]:
    """The blocks from that to which a call comes back to the one that makes the next call, that included.

    They lead from turn to turn of loops that are written out. Where they do not come to a call, `back` alone.
    """
    found = [back]
    while isinstance(end := program.blocks[found[-1]].terminator, Jump) and end.turn and end.target not in found:
        if not isinstance(end.target, int):
            break
        found.append(end.target)
    return found if isinstance(program.blocks[found[-1]].terminator, PushJump) else [back]


def _members(program: Program, number: int, fork: Fork) -> Iterator[Member]:
    for call in fork.calls:
        end = program.blocks[number].terminator
        if not isinstance(end, PushJump) or not isinstance(end.target, int):
            raise ValueError(f"{program.blocks[number].label} makes no call that could be forked")
        yield Member(call, number, end.target, end.back)
        number = blocks_between(program, end.back)[-1]


def without_forks(program: Program) -> Program:
    """The same program, its calls made one after the other."""
    if not groups(program):
        return program
    joins = first_join(program)

    def sequential(block: Block) -> Block:
        body = tuple(item for item in block.body if not (isinstance(item, Piece) and item.speculative))
        end = block.terminator
        return replace(block, body=body, terminator=replace(end, fork=None) if isinstance(end, PushJump) else end)

    blocks = tuple(map(sequential, program.blocks[:joins]))
    used = {name for block in blocks for name in _names(block)} | {*program.parameters, *program.results}
    return replace(
        program,
        blocks=blocks,
        storage={
            name: "register" if kind == "example" else kind for name, kind in program.storage.items() if name in used
        },
        order=tuple(number for number in program.order if number < joins),
    )


def first_join(program: Program) -> int:
    """The number of the first join block: these come last. That of no block, where there are no groups."""
    ends = (block.terminator for block in program.blocks)
    joins = [end.fork.join for end in ends if isinstance(end, PushJump) and end.fork is not None]
    return min(joins, default=len(program.blocks))


def _names(block: Block) -> Iterator[str]:
    """The variables that a block has to do with."""
    yield from (*read(block), *written(block), *block.pops)
    yield from (push.variable for push in block.pushes)


def forking(program: Program) -> Program:
    """The form of a program in which all groups fork: no lane comes to what is done between their calls in sequence.

    Blocks keep their numbers; `order` has those that lanes come to. First blocks push nothing, but for what join blocks
    push that fork in turn, and variables that do not outlive a block any more are temporaries.
    """
    joins = first_join(program)

    def forked(number: int, block: Block) -> Block:
        end = block.terminator
        forks = isinstance(end, PushJump) and end.fork is not None
        return replace(block, pushes=()) if forks and number < joins else block

    program = replace(program, blocks=tuple(starmap(forked, enumerate(program.blocks))))
    order = tuple(number for number in program.order or range(len(program.blocks)) if number in _reached(program))
    blocks = [program.blocks[number] for number in order]
    starts = live_at_start(program)
    outlives = {name for number in order for name in starts[number]}
    outlives |= {name for block in blocks for name in (*block.pops, *(push.variable for push in block.pushes))}
    outlives |= {*program.parameters, *program.results, *(name for site in program.faults for name in site.arguments)}
    outlives |= {name for group in groups(program) for name in _handed(group)}
    storage = {name: kind for name, kind in program.storage.items() if name in outlives}
    return replace(program, order=order, storage=storage)


def _reached(program: Program) -> set[int]:
    """The blocks that lanes come to where all groups fork."""
    entries = {group.block: [member.entry for member in group.members] for group in groups(program)}
    found: set[int] = set()
    waiting = [0]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += onward_forking(program, number, entries)
    return found


def onward_forking(program: Program, number: int, entries: Mapping[int, Sequence[int]]) -> list[int]:
    """The blocks to which a block sends lanes, or other lanes, where groups fork: `entries` has those of their calls.

    Those to which a return leads are not among them.
    """
    end = program.blocks[number].terminator
    if isinstance(end, PushJump) and end.fork is not None:
        return [*entries[number], end.fork.join]
    return [*targets(end), *([end.back] if isinstance(end, PushJump) else [])]


def _handed(group: Group) -> Iterator[str]:
    """What a group gives to calls, and what these give."""
    for member in group.members:
        yield from (variable for variable, _ in member.call.given)
        yield from (name for pair in member.call.results for name in pair)
