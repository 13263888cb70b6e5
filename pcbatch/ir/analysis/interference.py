"""The interference of variables: two may be merged unless one is written, not by a copy, while the other is live.

Chaitin, "Register allocation and spilling via graph coloring" (1982).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import Facts, Variables, live_after_each_op


class Interference:
    """Conflicts among some variables of a program, while more and more of these become one."""

    def __init__(self, names: Collection[str]):
        self._known = frozenset(names)
        self._apart: dict[str, set[str]] = defaultdict(set)
        self.now = {name: name for name in names}
        """The present name of each variable."""

    def meet(self, written: Iterable[str], others: Iterable[str]) -> None:
        """Note that variables are written where the values of others are needed, or written with them."""
        for name in self._known.intersection(written):
            for other in self._known.intersection(others) - {name}:
                self._apart[name].add(other)
                self._apart[other].add(name)

    def meet_in(self, function: ir.Function, live: Mapping[str, Facts[Variables]]) -> None:
        """Note all conflicts in the blocks of a function."""
        for block in function.blocks:
            returns = isinstance(block.terminator, ir.Return)
            end = live[block.label].end | (set(function.results) if returns else set())
            for op, after in zip(block.ops, live_after_each_op(block, end), strict=True):
                source = set(ir.reads(op)) if isinstance(op, ir.Primitive | ir.Update) and ir.is_copy(op) else set()
                self.meet(ir.writes(op), {*after, *ir.writes(op)} - source)

    def are_apart(self, one: str, other: str) -> bool:
        """Return whether two variables must stay two."""
        return self.now[other] in self._apart[self.now[one]]

    def merge(self, kept: str, merged: str) -> None:
        """Make two variables one, which goes by the name of the first."""
        kept, merged = self.now[kept], self.now[merged]
        for other in self._apart.pop(merged, set()):
            self._apart[other].discard(merged)
            self._apart[other].add(kept)
            self._apart[kept].add(other)
        self.now = {name: kept if now == merged else now for name, now in self.now.items()}

    @property
    def changed(self) -> dict[str, str]:
        """The variables that go by other names now, with these."""
        return {name: now for name, now in self.now.items() if name != now}


def copies(blocks: Iterable[ir.Block]) -> Iterator[tuple[str, str]]:
    """The source and the target of each copy in some blocks."""
    for block in blocks:
        for op in block.ops:
            if isinstance(op, ir.Primitive | ir.Update) and ir.is_copy(op):
                yield op.inputs[0], op.outputs[0]
