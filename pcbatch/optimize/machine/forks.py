"""Successive calls that do not need each other's results may be run by lanes of their own.

    b2: push node; node = left[node]            b2: push node; node_1 = node; node = left[node]
        pushjump b0, back to b3           -->       node_2 = right[node_1]   (speculative)
    b3: pop node; h1 = r; node = right[node]        pushjump b0, .., fork (node = node) -> s = r;
        push h1                                         (node = node_2) -> t = r; join b5
        pushjump b0, back to b4                 b3: ..  (as before)
    b4: pop h1; r = W @ [h1, r]; return         b4: ..  (as before)
                                                b5: what b3 and b4 do, of s and t (`join_blocks`)

What a later call is given is computed early, where the group begins: a slice of the statements in between, followed
back through stacks and copies. If one of these depends on what an earlier call gives, the group ends before it. So the
program in sequence stays as it is, but for what a later call needs that was saved before the group, which its first
block takes off the stack and saves again (`hoist_saved_values`); a lane that forks computes a few cheap statements
twice. Statements that call what nothing is known of are not computed early, as they might be expensive. Calls in the
arms of branches that come together again are of the group, too: a lane forks those to which its conditions lead, which
are computed early.

The idea is that of Cilk's `spawn` and `sync` (Blumofe et al., PPoPP 1995), of futures (Halstead, TOPLAS 1985), and of
the batches that TensorFlow Fold and DyNet find in graphs (Looks et al., ICLR 2017; Neubig et al., NIPS 2017).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pcbatch.ir.analysis.dataflow import components
from pcbatch.ir.analysis.effects import successors
from pcbatch.ir.analysis.parallel_call_groups import Group
from pcbatch.ir.machine import Program
from pcbatch.optimize.machine.call_groups import Finder, called_blocks


def find_forks(program: Program, only: Collection[int] | None = None) -> Program:
    """Mark each group of independent calls that may be forked; values that nothing writes then lie by example.

    Where it is said, `only` of groups that begin in some blocks.
    """
    finder = Finder(program)
    found = finder.found(range(len(program.blocks)) if only is None else sorted(only))
    if not found:
        return program
    program = finder.program
    storage = {name: "example" if name in finder.fixed else kind for name, kind in program.storage.items()}
    blocks, types = list(program.blocks), dict(program.types)
    for place, (number, group) in enumerate(found.items()):
        blocks[number] = group.rewritten(program.blocks[number], len(program.blocks) + place)
    for place, group in enumerate(found.values()):
        blocks.append(group.join(blocks, f"b{_last_number(program) + 1 + place}"))
        storage |= group.storage
        types |= group.types
    return replace(program, blocks=tuple(blocks), types=types, storage=storage)


def _last_number(program: Program) -> int:
    """The largest number in a label of a block; they are `b0`, `b1` and so on."""
    return max(int(block.label.removeprefix("b")) for block in program.blocks)


def apart(program: Program) -> dict[int, str]:
    """Reasons why calls right behind another one are not in its group, by block."""
    finder = Finder(program)
    finder.found(range(len(program.blocks)))
    return finder.apart


RECURSES_NOT = "what is called neither recurses nor loops on the way to something expensive"
CHEAP = "what is called comes to nothing expensive, so nothing is won by doing it for more lanes at once"


def loss(program: Program, group: Group, expensive: Collection[int]) -> str | None:
    """The reason why forking a group does not pay; None where a call recurses or loops, and comes to `expensive` code.

    To fork a call costs half a microsecond of bookkeeping, to make it in sequence a third: what is won is that
    expensive blocks run for more lanes at once.
    """
    edges, comes = successors(program), False
    for member in group.members:
        blocks = called_blocks(program, member.entry)
        graph = {number: [place for place in edges[number] if place in blocks] for number in blocks}
        repeats = any(len(each) > 1 or each[0] in graph[each[0]] for each in components(graph))
        if not blocks.isdisjoint(expensive):
            comes = True
            if repeats:
                return None
    return RECURSES_NOT if comes else CHEAP
