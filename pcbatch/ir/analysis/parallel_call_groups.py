"""Groups of calls that may be forked, with the blocks that make them; and programs without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap

from pcbatch.ir.analysis.effects import live_at_start, read, written
from pcbatch.ir.machine import Block, Branch, Fork, ForkedCall, Jump, Piece, Program, PushJump, fork_of, targets


@dataclass(frozen=True)
class Step:
    """A block on the way of a lane from call to call, and, if any, in which arm of the branch of which block it is."""

    number: int
    under: tuple[int, bool] | None = None


@dataclass(frozen=True)
class Member:
    """A call of a group: by block number `block`, of the function that begins at `entry`, coming back to `back`."""

    call: ForkedCall
    block: int
    entry: int
    back: int


@dataclass(frozen=True)
class Group:
    """A group of calls, which begins at the end of block number `block`."""

    block: int
    members: tuple[Member, ...]
    join: int
    """The block at which the lane goes on."""
    turns: int = 0
    """The number of turns of written-out loops that begin between the calls."""
    between: frozenset[int] = frozenset()
    """The blocks from the first to that which makes the last call: who goes on from these does so as they say."""

    @property
    def is_conditional(self) -> bool:
        """True if only some lanes make some of its calls."""
        return any(member.call.condition is not None for member in self.members)

    @property
    def steps(self) -> int:
        """The number of steps of a waiting lane, but for those in the calls and for conditional calls.

        Where the first block makes the first call it has counted that.
        """
        always = sum(member.call.condition is None for member in self.members)
        return always + self.turns - (self.members[0].block == self.block)


def groups(program: Program) -> list[Group]:
    """All groups, in the order of their first blocks; ValueError for one whose calls do not follow each other."""
    found = ((n, fork_of(block.terminator)) for n, block in enumerate(program.blocks))
    return [_group(program, number, fork) for number, fork in found if fork is not None]


def _group(program: Program, number: int, fork: Fork) -> Group:
    steps = list(course(program, number))
    made: list[tuple[int, PushJump]] = []
    for place, step in enumerate(steps):
        end = program.blocks[step.number].terminator
        if isinstance(end, PushJump) and isinstance(end.target, int):
            made.append((place, end))
    calls = list(zip(fork.calls, made, strict=False))
    if len(calls) < len(fork.calls):
        raise ValueError(f"{program.blocks[number].label} comes to fewer calls than it could fork")
    members = []
    for call, (place, end) in calls:
        if (call.condition is None) != (steps[place].under is None):
            raise ValueError(f"{program.blocks[steps[place].number].label} makes a call in an arm, or in none")
        assert isinstance(end.target, int)
        members.append(Member(call, steps[place].number, end.target, end.back))
    last = steps[calls[-1][1][0]]
    inside = [step for step in steps if step is last or (step.under is not None and _is_beside(step, last))]
    through = steps[: steps.index(inside[-1]) + 1]
    turns = sum(_turns(program, [step.number]) for step in through if step.under is None or step.under[1])
    return Group(number, tuple(members), fork.join, turns, frozenset(step.number for step in through))


def _is_beside(step: Step, other: Step) -> bool:
    """Return whether two steps are in the two arms of one branch."""
    return step.under is not None and other.under is not None and step.under[0] == other.under[0]


def _turns(program: Program, numbers: Sequence[int]) -> int:
    """Count the blocks, of these numbers, that end with a turn."""
    ends = (program.blocks[number].terminator for number in numbers)
    return sum(isinstance(end, Jump) and end.turn for end in ends)


def course(program: Program, first: int) -> Iterator[Step]:
    """The blocks that a lane goes through from block `first` on, calls coming back, while it is known which these are.

    They lead from call to call, from turn to turn of loops that are written out, and through both arms of branches that
    come together again.
    """
    seen: set[int] = set()
    number = first
    while number not in seen:
        seen.add(number)
        yield Step(number)
        match program.blocks[number].terminator:
            case PushJump(target=int(), back=back):
                number = back
            case Jump(target=int(target), turn=True):
                number = target
            case Branch() as branch:
                found = arms(program, branch)
                if found is None:
                    return
                for holds, arm in zip((True, False), found[:2], strict=True):
                    if not seen.isdisjoint(arm):
                        return
                    seen.update(arm)
                    yield from (Step(each, (number, holds)) for each in arm)
                number = found[2]
            case _:
                return


def arms(program: Program, branch: Branch) -> tuple[list[int], list[int], int] | None:
    """The blocks of both arms of a branch, and that at which they come together.

    None if they are no straight lines to it, or one counts more turns than the other.
    """
    true, false = (_straight(program, number) for number in (branch.true, branch.false))
    merge = next((number for number in true if number in false), None)
    if merge is None:
        return None
    true, false = true[: true.index(merge)], false[: false.index(merge)]
    return (true, false, merge) if _turns(program, true) == _turns(program, false) else None


def _straight(program: Program, number: int) -> list[int]:
    """The blocks that a lane comes to from one on, up to the first that has a choice."""
    found: list[int] = []
    while number not in found:
        found.append(number)
        match program.blocks[number].terminator:
            case PushJump(target=int(), back=back):
                number = back
            case Jump(target=int(target)):
                number = target
            case _:
                break
    return found


def without_forks(program: Program) -> Program:
    """The same program, its calls made one after the other."""
    if not groups(program):
        return program
    joins, forkable = first_join(program), Branch | PushJump

    def sequential(block: Block) -> Block:
        body = tuple(item for item in block.body if not (isinstance(item, Piece) and item.speculative))
        end = block.terminator
        return replace(block, body=body, terminator=replace(end, fork=None) if isinstance(end, forkable) else end)

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
    made = (fork_of(block.terminator) for block in program.blocks)
    return min((fork.join for fork in made if fork is not None), default=len(program.blocks))


def _names(block: Block) -> Iterator[str]:
    """The variables that a block has to do with."""
    yield from (*read(block), *written(block), *block.pops)
    yield from (push.variable for push in block.pushes)


def forking(program: Program) -> Program:
    """The form of a program in which all groups fork: no lane runs the blocks between their calls in sequence.

    Blocks keep their numbers; `order` has those that lanes come to. First blocks push nothing, but for what join blocks
    push that fork in turn, and variables that do not outlive a block any more are temporaries.
    """
    joins = first_join(program)

    def forked(number: int, block: Block) -> Block:
        forks = fork_of(block.terminator) is not None
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
    if (fork := fork_of(end)) is not None:
        return [*entries[number], fork.join]
    return [*targets(end), *([end.back] if isinstance(end, PushJump) else [])]


def _handed(group: Group) -> Iterator[str]:
    """Yield the variables that a group passes to calls, and those that it gets from them."""
    for member in group.members:
        yield from (variable for variable, _ in member.call.given)
        yield from (name for pair in member.call.results for name in pair)
