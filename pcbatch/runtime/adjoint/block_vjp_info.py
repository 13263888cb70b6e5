"""The use of active variables by blocks, and the keys of the gradients by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pcbatch.ir.machine import Block, Piece, Push, Store
from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.tape import BlockTape, Tapes, child_field

OWN = ("register", "cached stack", "stack")
"""Storage kinds of variables of which each lane has its own."""


@dataclass(frozen=True)
class Names:
    """The use of active variables by one block."""

    tapes: Tapes
    tape: BlockTape

    @property
    def block(self) -> Block:
        """The block."""
        return self.tapes.program.blocks[self.tape.number]

    @cached_property
    def pushes(self) -> list[Push]:
        """Its pushes on active variables."""
        return [push for push in self.block.pushes if push.variable in self.tapes.activity.variables]

    @cached_property
    def popped(self) -> Counter[str]:
        """The number of pops of each active variable."""
        return Counter(name for name in self.block.pops if name in self.tapes.activity.variables)

    @cached_property
    def stores(self) -> dict[int, Store]:
        """Its stores to active arrays, by their places in the body."""
        active = self.tapes.activity.variables
        items = enumerate(self.block.body)
        return {n: item for n, item in items if isinstance(item, Store) and item.array in active}

    @cached_property
    def given(self) -> list[tuple[int, str, str]]:
        """The arguments of calls that it forks: the place of the call, the callee's active variable, the name."""
        group = next((each for each in self.tapes.layout.groups if each.block == self.tape.number), None)
        members = enumerate(group.members if group else ())
        pairs = ((slot, *pair) for slot, member in members for pair in member.call.given)
        return [each for each in pairs if each[1] in self.tapes.activity.variables]

    @cached_property
    def conditional(self) -> frozenset[str]:
        """The fields of calls that it forks or joins that are made by some lanes only."""
        layout, number = self.tapes.layout, self.tape.number
        found = [("forked", group) for group in layout.groups if group.block == number]
        found += [("joined", group) for group in layout.groups if group.join == number]
        return frozenset(
            child_field(what, slot)
            for what, group in found
            for slot, member in enumerate(group.members)
            if member.call.condition is not None
        )

    @cached_property
    def handed(self) -> list[tuple[int, str, str]]:
        """The results of calls that it joins: the place of the call, the callee's variable, the active name."""
        group = self.tapes.layout.joins.get(self.tape.number)
        members = enumerate(group.members if group else ())
        pairs = ((slot, variable, name) for slot, member in members for name, variable in member.call.results)
        return [each for each in pairs if each[2] in self.tapes.activity.variables]

    @cached_property
    def _whole(self) -> set[str]:
        """The names of which it uses more than elements."""
        found = {*self.popped, *(push.variable for push in self.pushes)}
        found |= {push.saved for push in self.pushes if push.saved is not None}
        found |= {store.value for store in self.stores.values()}
        found |= {name for _, _, name in self.given}
        for place, item in enumerate(self.block.body):
            if isinstance(item, Piece):
                found |= {*item.writes, *self.read_whole(place, item)}
        return found & self.tapes.activity.variables

    @cached_property
    def whole(self) -> list[str]:
        """The variables of lanes of which it uses more than elements, sorted."""
        return sorted(name for name in self._whole if self.tapes.layout.storage(name) in OWN)

    @cached_property
    def of_example(self) -> list[str]:
        """The variables by example of which it reads more than elements, sorted."""
        return sorted(name for name in self._whole if self.tapes.layout.storage(name) == "example")

    def read_whole(self, place: int, piece: Piece) -> list[str]:
        """Return the active variables that the piece at `place` reads, but for arrays read by elements alone."""
        if (linear := self.tape.linear.get(place)) is None:
            return []
        return [name for n, name in enumerate(piece.reads) if all(each.read != n for each in linear.elements)]

    @cached_property
    def by_element(self) -> list[str]:
        """The arrays of which it only stores and reads elements, sorted."""
        found = {store.array for store in self.stores.values()}
        for place, linear in self.tape.linear.items():
            piece = self.block.body[place]
            assert isinstance(piece, Piece)
            found |= {piece.reads[each.read] for each in linear.elements}
        kinds = (*OWN, "example")
        return sorted(name for name in found.difference(self._whole) if self.tapes.layout.storage(name) in kinds)

    @cached_property
    def keys(self) -> list[str]:
        """The keys of the gradients that undoing a run of it changes, sorted."""
        names = {*self.whole, *self.of_example, *self.by_element}
        names |= {variable for _, variable, _ in (*self.given, *self.handed)}
        return sorted(key for name in names for key, _ in keys(self.tapes, name))


def keys(tapes: Tapes, name: str) -> Iterator[tuple[str, TensorType]]:
    """Yield the keys of the gradients by variable `name`, with their contents for a lane or a stack's entry.

    For an example, where it lies by example.
    """
    if tapes.layout.storage(name) == "example":
        pairs = zip(tapes.layout.keys("input", name), tapes.floats(name), strict=True)
        yield from ((key, leaf) for key, leaf in pairs if leaf is not None)
        return
    for tops_or_stacks in (tapes.layout.tops(name), tapes.layout.stacks(name)):
        for key, leaf in zip(tops_or_stacks, tapes.floats(name), strict=False):  # a "stack" has no tops
            if leaf is not None:
                yield key, leaf
