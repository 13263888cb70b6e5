"""The effects of a machine program's blocks, known before anything runs: failures, and successors of lanes."""

from __future__ import annotations

from collections import Counter

from pcbatch.ir.machine import (
    Block,
    Branch,
    Fault,
    Jump,
    Piece,
    Program,
    PushJump,
    Return,
    Store,
    Terminator,
    fork_of,
    targets,
)


def is_step(block: Block) -> bool:
    """Return whether leaving `block` counts as a step of the lane: a loop turn or a call."""
    match block.terminator:
        case Jump(turn=turn):
            return turn
        case PushJump():
            return True
        case Branch() | Return() | Fault():
            return False
    raise TypeError(f"not a terminator: {block.terminator!r}")


def can_fault(block: Block, max_steps: int | None) -> bool:
    """Return whether a lane can fail in `block`."""
    checked = any(
        item.site is not None if isinstance(item, Store) else bool(item.sites and not item.speculative)
        for item in block.body
    )
    limited = isinstance(block.terminator, Fault | PushJump) or (max_steps is not None and is_step(block))
    return checked or limited


def written(block: Block) -> list[str]:
    """The names that the block's body assigns, in order, temporaries included."""
    names: list[str] = []
    for item in block.body:
        match item:
            case Piece(writes=writes):
                names += writes
            case Store(array=array):
                names.append(array)
    return list(dict.fromkeys(names))


def read(block: Block) -> list[str]:
    """The names whose values the block reads, whole, in order; they may be names that it has given before."""
    names: list[str] = []
    for item in block.body:
        match item:
            case Piece(reads=reads):
                names += reads
            case Store(indices=indices, value=value):
                names += (*indices, value)
        names += [] if item.predicate is None else [item.predicate]
    names += [push.variable if push.saved is None else push.saved for push in block.pushes]
    match block.terminator:
        case Branch(condition=condition) | Jump(target=Branch(condition=condition)):
            names.append(condition)
        case PushJump(target=Branch(condition=condition)):
            names.append(condition)
    return list(dict.fromkeys(names))


def growth(block: Block) -> dict[str, int]:
    """Return the number of entries by which the block grows each variable's stack, where it grows it."""
    change = Counter(push.variable for push in block.pushes)
    change.subtract(block.pops)
    return {name: entries for name, entries in change.items() if entries > 0}


def successors(program: Program) -> list[tuple[int, ...]]:
    """Return for each block its successors; for a return, the blocks behind all calls that reach it."""
    found = [set(targets(block.terminator)) for block in program.blocks]
    for number, block in enumerate(program.blocks):
        if isinstance(block.terminator, Return | Fault):
            found[number].add(len(program.blocks))
    for caller, block in enumerate(program.blocks):
        if isinstance(block.terminator, PushJump):
            for number in calls_from(program, targets(block.terminator)):
                if isinstance(program.blocks[number].terminator, Return):
                    found[number].add(block.terminator.back)
        if (fork := fork_of(block.terminator)) is not None:
            found[caller].add(fork.join)
    return [tuple(sorted(places)) for places in found]


def onward(terminator: Terminator) -> tuple[int, ...]:
    """The blocks at which a lane goes on in the same call, when calls have come back."""
    fork = fork_of(terminator)
    places = (terminator.back,) if isinstance(terminator, PushJump) else targets(terminator)
    return places if fork is None else (*places, fork.join)


def calls_from(program: Program, entries: tuple[int, ...]) -> set[int]:
    """The blocks that a call can run that begins at one of `entries`, before it returns; not those of calls in it."""
    found: set[int] = set()
    waiting = [*entries]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += onward(program.blocks[number].terminator)
    return found


def reachable(program: Program) -> set[int]:
    """The blocks that a lane can come to."""
    following = successors(program)
    found: set[int] = set()
    waiting = [0]
    while waiting:
        number = waiting.pop()
        if number not in found and number < len(program.blocks):
            found.add(number)
            waiting += following[number]
    return found
