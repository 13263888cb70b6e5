"""The dependences of a block's results on those of others, along one example's way through a program.

The way is the numbers of the blocks that the example ran, in order. Nothing is computed: each variable's stack has, in
place of each value, the results of chosen blocks that it was made of. An array is one value: who reads an element of it
depends on all that was stored in it. What a branch was decided by is no dependence, as in systems that build a graph of
values first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pcbatch.ir.machine import Block, Item, Piece, Program, Store
from pcbatch.ir.program import Exit
from pcbatch.ir.types import Type, leaves

Results = frozenset[int]
"""Numbers of nodes."""
NOTHING: Results = frozenset()


@dataclass(frozen=True)
class Node:
    """One run of one of the chosen blocks; `after` are the nodes whose results it reads, by their places in a list."""

    block: int
    after: Results


def nodes(program: Program, way: Iterable[int], chosen: Collection[int]) -> list[Node]:
    """The runs of the `chosen` blocks on this way, each with those before it whose results it reads."""
    found: list[Node] = []
    stacks: dict[str, list[Results]] = {name: [NOTHING] for name in program.storage}
    for number in way:
        block = program.blocks[number]
        pops = Counter(block.pops)
        before = {name: entries[-1 - pops[name]] for name, entries in stacks.items()}
        after = _Body(program.types, block, before)
        now = after.now if number not in chosen else after.of_node(found, number)
        for name, entries in stacks.items():
            del entries[len(entries) - 1 - pops[name] :]
            pushes = [push for push in block.pushes if push.variable == name]
            entries += [before[name] if push.saved is None else now[push.saved] for push in pushes]
            entries.append(now[name])
    return found


class _Body:
    """The dependences of each name after a block's body, statement by statement."""

    def __init__(self, types: Mapping[str, Type], block: Block, before: Mapping[str, Results]):
        self.now: dict[str, Results] = dict(before)
        self._computed: set[str] = set()
        """Names computed from anything but integers in this block."""
        for reads, writes, may_stay in (each for item in block.body for each in _statements(item)):
            sources = NOTHING.union(*(self.now.get(name, NOTHING) for name in reads))
            of_floats = any(name in self._computed or _has_floats(types.get(name)) for name in reads)
            for name in writes:
                if of_floats or _has_floats(types.get(name)):
                    self._computed.add(name)
                self.now[name] = sources | self.now.get(name, NOTHING) if may_stay else sources

    def of_node(self, found: list[Node], number: int) -> dict[str, Results]:
        """The same of a chosen block, of this `number`, which is added to `found`: what it has computed is its own.

        What it makes of integers alone, as the index of a child or of the next turn, does not wait for the rest of it.
        """
        needed = NOTHING.union(*(self.now[name] for name in self._computed))
        found.append(Node(number, needed))
        return {**self.now, **dict.fromkeys(self._computed, frozenset({len(found) - 1}))}


def _has_floats(type_: Type | None) -> bool:
    return type_ is not None and any(not leaf.dtype.startswith(("int", "uint", "bool")) for leaf in leaves(type_))


def _statements(item: Item) -> Iterator[tuple[Sequence[str], Sequence[str], bool]]:
    """Yield the reads and writes of each statement, and whether the writes may leave values as they were."""
    asked = () if item.predicate is None else (item.predicate,)
    match item:
        case Store(array=array, indices=indices, value=value):
            yield (array, *indices, value, *asked), (array,), bool(asked)
        case Piece(statements=statements) if statements:
            for statement in statements:
                if not isinstance(statement.op, Exit):
                    yield (*statement.op.inputs, *asked), statement.op.outputs, bool(asked)
        case Piece(reads=reads, writes=writes):
            yield (*reads, *asked), writes, bool(asked)
