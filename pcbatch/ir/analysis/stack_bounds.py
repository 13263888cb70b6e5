"""The number of stack entries that a live call holds, which bounds the length of stacks."""

from __future__ import annotations

from collections import Counter

from pcbatch.ir.machine import Branch, Fork, Program, PushJump, Return, targets


def is_framed(program: Program) -> bool:
    """Return whether every live call holds at most one entry of each variable's stack, popped before it returns.

    Then a lane's stacks are never longer than its stack of program counters, so that room there is room everywhere.
    """
    calls = [block.terminator for block in program.blocks if isinstance(block.terminator, PushJump)]
    return all(_frame_is_small(program, entry) for entry in {0, *(place for call in calls for place in targets(call))})


def _frame_is_small(program: Program, entry: int) -> bool:
    """Return whether a call of `entry` keeps to at most one entry of each variable, and none in the end."""
    held_at: dict[int, frozenset[str]] = {}
    waiting = [(entry, frozenset[str]())]
    while waiting:
        number, held = waiting.pop()
        if number in held_at:
            if held_at[number] != held:
                return False
            continue
        held_at[number] = held
        block = program.blocks[number]
        count = Counter(held)
        count.subtract(block.pops)
        count.update(push.variable for push in block.pushes)
        if not set(count.values()) <= {0, 1}:
            return False
        held = frozenset(name for name, entries in count.items() if entries)
        match block.terminator:
            case (
                PushJump(fork=Fork(join=join)) | Branch(fork=Fork(join=join))
            ):  # a lane that forks pushes nothing, and goes on there
                waiting.append((join, held))
            case PushJump(back=back):
                waiting.append((back, held))
            case Return():
                if held:
                    return False
            case other:
                waiting += [(place, held) for place in targets(other)]
    return True
