"""The effects of a machine program's blocks, known before anything runs: failures, successors of lanes, and loops.

Calls and returns are no edges here: a lane that calls or returns leaves all loops that it is in, and comes back to one
in the middle if it has to. So a loop may be entered at several blocks. (Strongly connected components, and again those
of what is left of one without the edges to its first block: Havlak, "Nesting of Reducible and Irreducible Loops", ACM
TOPLAS 1997, in a simpler form.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pcbatch.ir.analysis.dataflow import components
from pcbatch.ir.machine import (
    Block,
    Branch,
    Fault,
    Fork,
    Item,
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

# -- effects -----------------------------------------------------------------------------------------------------------


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


# -- live tops ---------------------------------------------------------------------------------------------------------
# Liveness of a machine program's variables: those that may still be read at the beginning and end of blocks.

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


# -- stack bounds ------------------------------------------------------------------------------------------------------
# The number of stack entries that a live call holds, which bounds the length of stacks.


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


# -- loops -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loop:
    """Blocks and loops that a lane can go round in; all jumps but those to the first block go forward.

    `is_entered_first` says that a lane comes in at the first block only.
    """

    nodes: tuple[Node, ...]
    is_entered_first: bool


Node = int | Loop
"""The number of a block, or a loop."""


def blocks_of(nodes: Iterable[Node]) -> Iterator[int]:
    """The numbers of the blocks in some nodes, in order."""
    for node in nodes:
        if isinstance(node, Loop):
            yield from blocks_of(node.nodes)
        else:
            yield node


def nest(program: Program, left_out: Collection[int] = ()) -> tuple[Node, ...]:
    """The blocks that a lane can come to and their loops, in an order in which jumps outside of loops go forward.

    Of blocks that are `left_out` a lane may come to any of the others.
    """
    reached = sorted(reachable(program))
    terminators = {number: program.blocks[number].terminator for number in reached}
    calls = [each for each in terminators.values() if isinstance(each, PushJump)]
    entries = {0, *(place for call in calls for place in (call.back, *targets(call)))}
    entries.update(place for number in {*left_out} & {*reached} for place in targets(terminators[number]))
    jumps = {n: () if isinstance(each, PushJump) else targets(each) for n, each in terminators.items()}
    kept = [number for number in reached if number not in left_out]
    return _nodes(kept, jumps, entries)


def nest_with_calls(program: Program) -> tuple[Node, ...]:
    """The same, where lanes go on into callees and from there to wherever a call of them comes back.

    That a lane comes back to the place of its own call is not seen: blocks may seem to be in a loop that are in none.
    """
    reached, places = sorted(reachable(program)), successors(program)
    return _nodes(reached, {n: [to for to in places[n] if to < len(program.blocks)] for n in reached}, {0})


def _nodes(
    blocks: Sequence[int], jumps: Mapping[int, Collection[int]], entries: Collection[int], head: int | None = None
) -> tuple[Node, ...]:
    """`blocks` as nodes in topological order, jumps to `head` left out; others may come to `entries` from elsewhere."""
    within = set(blocks) - {head}
    onward = {number: [place for place in jumps[number] if place in within] for number in blocks}
    found: list[Node] = []
    for members in reversed(components({number: onward[number] for number in reversed(blocks)})):
        if len(members) == 1 and members[0] not in onward[members[0]]:
            found.append(members[0])
            continue
        outside = [place for number in blocks if number not in members for place in jumps[number]]
        entered = sorted({*entries, *outside} & set(members))
        first = min(entered)
        rest = sorted(set(members) - {first})
        found.append(Loop(_nodes([first, *rest], jumps, entered, first), entered == [first]))
    return tuple(found)
