"""What is known of a program's blocks before anything runs: what they change, need, and whom they can send lanes to.

A guard `cond(someone waits, block, identity)` may only carry what its block writes, for XLA copies what else passes
through; so the machine must know each block's writes beforehand.
"""

from __future__ import annotations

from collections import Counter

from pcbatch.ir.machine import Block, Branch, Fault, Jump, Piece, Program, PushJump, Return, Store, targets
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.schedules.flow import Flow


def is_step(block: Block) -> bool:
    """Whether leaving `block` counts as a step of the lane: a loop turn or a call."""
    match block.terminator:
        case Jump(turn=turn):
            return turn
        case PushJump():
            return True
        case Branch() | Return() | Fault():
            return False
    raise TypeError(f"not a terminator: {block.terminator!r}")


def can_fault(block: Block, max_steps: int | None) -> bool:
    """Whether a lane can fail in `block`."""
    checked = any(isinstance(item, Store) or bool(item.sites) for item in block.body)
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


def changes(layout: Layout, block: Block, max_steps: int | None) -> tuple[str, ...]:
    """The keys of the state that `block` may change, sorted."""
    keys = {"pc"}
    if can_fault(block, max_steps):
        keys.add("fault")
    if is_step(block):
        keys.add("steps")
    match block.terminator:
        case PushJump():
            keys |= {"depth", "calls"}
        case Return() if layout.has_calls:
            keys.add("depth")
    pushed = {push.variable for push in block.pushes}
    for name in {*block.pops, *pushed}:
        keys.add(layout.pointer(name))
    for name in {*block.pops, *written(block)}:
        if layout.storage(name) is not None and name not in block.dead:
            keys.update(layout.tops(name))
    for name in pushed:
        keys.update(layout.stacks(name))
    for name in written(block):
        if layout.storage(name) == "stack":
            keys.update(layout.stacks(name))
    return tuple(sorted(keys))


def in_place(layout: Layout, block: Block) -> set[str]:
    """The keys of the state of which `block` writes elements at most, however long the arrays are."""
    pushed = {push.variable for push in block.pushes}
    pieces = [item for item in block.body if isinstance(item, Piece)]
    computed = {*block.pops, *pushed, *(name for piece in pieces for name in piece.writes)}
    stored = set(written(block)) - computed
    return {*layout.all_stacks, *(key for name in stored if layout.storage(name) for key in layout.tops(name))}


def growth(block: Block) -> dict[str, int]:
    """By how many entries the block makes each variable's stack longer, for those that it makes longer at all."""
    change = Counter(push.variable for push in block.pushes)
    change.subtract(block.pops)
    return {name: entries for name, entries in change.items() if entries > 0}


def flow(program: Program) -> Flow:
    """Where lanes go in `program`."""
    return Flow(successors(program), [number for number, block in enumerate(program.blocks) if block.sync])


def successors(program: Program) -> list[tuple[int, ...]]:
    """For each block the places to which it can send a lane; for a return, those behind all calls that reach it."""
    onward = [set(targets(block.terminator)) for block in program.blocks]
    for number, block in enumerate(program.blocks):
        if isinstance(block.terminator, Return | Fault):
            onward[number].add(len(program.blocks))
    for block in program.blocks:
        if isinstance(block.terminator, PushJump):
            for number in _same_call(program, targets(block.terminator)):
                if isinstance(program.blocks[number].terminator, Return):
                    onward[number].add(block.terminator.back)
    return [tuple(sorted(places)) for places in onward]


def _same_call(program: Program, entries: tuple[int, ...]) -> set[int]:
    """The blocks that a call can run that begins at one of `entries`, before it returns; not those of calls in it."""
    found: set[int] = set()
    waiting = [*entries]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            terminator = program.blocks[number].terminator
            waiting += [terminator.back] if isinstance(terminator, PushJump) else targets(terminator)
    return found
