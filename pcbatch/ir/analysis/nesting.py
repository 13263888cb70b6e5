"""The loops of a machine program, one within another, and an order of its blocks in which all else goes forward.

Calls and returns are no edges here: a lane that calls or returns leaves all loops that it is in, and comes back to one
in the middle if it has to. So a loop may be entered at several blocks. (Strongly connected components, and again those
of what is left of one without the edges to its first block: Havlak, "Nesting of Reducible and Irreducible Loops", ACM
TOPLAS 1997, in a simpler form.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pcbatch.ir.analysis import effects
from pcbatch.ir.analysis.callgraph import components
from pcbatch.ir.machine import Program, PushJump, targets


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
    reached = sorted(effects.reachable(program))
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
    reached, places = sorted(effects.reachable(program)), effects.successors(program)
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
