"""A region in parts, which a compiler works on side by side: it compiles one function on one core.

Lanes come to the parts one after another: from no part does a jump, a call or a return lead back to one before it,
unless by way of a block that is left to the machine. So a lane gets as far in one trip as in a region of one piece.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate, chain, combinations, pairwise

from pcbatch.ir.analysis import effects
from pcbatch.ir.analysis.callgraph import components
from pcbatch.ir.machine import Piece, Program
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.elsewhere import Elsewhere
from pcbatch.runtime.machine.limits import Limits
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.native.fitness import signature_of
from pcbatch.runtime.native.region import Region


class Parts:
    """Some regions of a program, one after another; together they have all blocks but those of `lockstep`."""

    def __init__(self, backend: Backend, regions: Sequence[Region], lockstep: Collection[int]):
        self.backend, self.regions, self.lockstep = backend, tuple(regions), sorted(lockstep)

    def run(self, state: State, shared: Mapping[str, Leaves], executions: Array) -> tuple[State, Array, Array]:
        """See `Elsewhere`."""
        witness = self.backend.constant(0)
        for region in self.regions:
            state, executions, found = region.run(state, shared, executions)
            witness = self.backend.add(witness, found)
        return state, executions, witness


def region_of(
    backend: Backend, layout: Layout, limits: Limits, row_costs: Sequence[float], lockstep: frozenset[int]
) -> Elsewhere:
    """The blocks of a program that are not of `lockstep` as native code, in parts where there is much of it."""
    program = layout.program
    every = frozenset(range(len(program.blocks)))
    parts = divided(program, lockstep, sizes(program, backend, every - lockstep))
    regions = [Region(backend, layout, limits, row_costs, every - part) for part in parts]
    return regions[0] if len(regions) == 1 else Parts(backend, regions, lockstep)


def sizes(program: Program, backend: Backend, numbers: Iterable[int]) -> dict[int, int]:
    """How much code some blocks are: the operations of their pieces, and what these write."""
    found: dict[int, int] = {}
    for number in numbers:
        block = program.blocks[number]
        pieces = [item for item in block.body if isinstance(item, Piece)]
        with backend.scope(block.label):  # what is traced here may be what runs
            signatures = [(piece, signature_of(program, piece)) for piece in pieces]
            made = sum(backend.operations(piece, each.reads, each.shared) for piece, each in signatures)
        found[number] = made + sum(len(piece.writes) for piece in pieces) + 1
    return found


def divided(program: Program, lockstep: Collection[int], size: Mapping[int, int]) -> list[frozenset[int]]:
    """The blocks that are not of `lockstep`, in the parts in which they are compiled, in order.

    As many as are worth it, and about equally large: the sum of the squares of their sizes is as small as can be.
    """
    inside, places = effects.reachable(program) - {*lockstep}, effects.successors(program)
    onward = {number: [to for to in places[number] if to in inside] for number in sorted(inside)}
    groups = components(onward)[::-1]
    before = [0, *accumulate(sum(size[number] for number in group) for group in groups)]
    count = min(CPU.native_parts, before[-1] // CPU.native_part, len(groups))
    choices = ((0, *cuts, len(groups)) for cuts in combinations(range(1, len(groups)), max(count, 1) - 1))
    best = min(choices, key=lambda cuts: sum((before[stop] - before[start]) ** 2 for start, stop in pairwise(cuts)))
    return [frozenset(chain(*groups[start:stop])) for start, stop in pairwise(best)]
