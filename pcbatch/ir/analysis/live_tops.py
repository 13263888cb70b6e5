"""Liveness of a machine program's variables: those that may still be read at the beginning and end of blocks."""

from __future__ import annotations

from pcbatch.ir.analysis.effects import calls_from, successors
from pcbatch.ir.machine import Block, Branch, Fault, Item, Jump, Piece, Program, PushJump, Return, Store, fork_of

Variables = frozenset[str]


def live_at_end(program: Program) -> list[Variables]:
    """Return for each block the variables whose tops may be read behind it, or results where the program may end.

    A saved value lies below the top of its stack: it is not what is live, and comes back by a pop.
    """
    return _solved(program)[1]


def live_at_start(program: Program) -> list[Variables]:
    """Return for each block the variables whose tops may be read in it or behind it."""
    return _solved(program)[0]


def _solved(program: Program) -> tuple[list[Variables], list[Variables]]:
    """Return the variables that may be read where blocks start, and where they end."""
    edges = successors(program)
    ending = {number for number in calls_from(program, (0,)) if isinstance(program.blocks[number].terminator, Return)}
    ends = [frozenset(program.results) if number in ending else Variables() for number in range(len(program.blocks))]
    starts = [Variables() for _ in program.blocks]
    arriving: list[list[int]] = [[] for _ in program.blocks]
    for number, places in enumerate(edges):
        for place in places:
            if place < len(program.blocks):
                arriving[place].append(number)
    work = dict.fromkeys(range(len(program.blocks)))
    while work:
        number, _ = work.popitem()
        following = (starts[place] for place in edges[number] if place < len(program.blocks))
        ends[number] = ends[number].union(*following)
        start = _before(program, program.blocks[number], ends[number])
        if start != starts[number]:
            starts[number] = start
            work.update(dict.fromkeys(arriving[number]))
    return starts, ends


def read_at_end(program: Program, block: Block) -> Variables:
    """The variables that the terminator of a block reads; those that a fault's message shows."""
    fork = fork_of(block.terminator)
    given = {name for call in fork.calls for _, name in call.given} if fork is not None else set()
    conditions = {call.condition for call in fork.calls if call.condition is not None} if fork is not None else set()
    return _read_to_leave(program, block) | given | conditions


def _read_to_leave(program: Program, block: Block) -> Variables:
    match block.terminator:
        case Branch(condition=asked) | Jump(target=Branch(condition=asked)) | PushJump(target=Branch(condition=asked)):
            return frozenset((asked,))
        case Fault(site=site):
            return frozenset(program.faults[site].arguments)
    return frozenset()


def _before(program: Program, block: Block, live: Variables) -> Variables:
    live = live | read_at_end(program, block) | {push.saved for push in block.pushes if push.saved is not None}
    for item in reversed(block.body):
        live = _before_item(item, live)
    return (live | {push.variable for push in block.pushes if push.saved is None}).difference(block.pops)


def _before_item(item: Item, live: Variables) -> Variables:
    asked = () if item.predicate is None else (item.predicate,)
    match item:
        case Piece(reads=reads, writes=writes, predicate=predicate):
            return (live.difference(writes) if predicate is None else live).union(reads, asked)
        case Store(array=array, indices=indices, value=value):
            return live.union((array, *indices, value), asked)
