"""Loops and their turns: whether the calls of several turns could be made at the same time.

    for k in range(3):
        child = children[node, k]
        total += f(child)           # needs nothing of the turn before
        if child > 0:               # nor does whether this is called
            total += f(child - 1)
        state = f(state)            # needs what the turn before gave

Then they are written out, so that the calls follow each other (`optimize.machine.forks` makes a group of these).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import gast

from pcbatch.ir import program as ir
from pcbatch.reading.core import RefusedError
from pcbatch.reading.emitter import LoopNote, OpenBlock
from pcbatch.reading.meeting import End
from pcbatch.reading.values import Frame, Value

TURNS = "this loop's turns make their calls one after the other"
BRANCHES = "other statements than assignments, conditions and loops are in its turns"
DEPENDS = "a call is given what another one gives, or what the turn before has left"
CHOSEN = "a call is an operand of `and` or `or`, or in a condition"
ASKS = "whether a call is made depends on what another one gives, or on what the turn before has left"
DIFFERS = "lanes may make different numbers of turns"


@dataclass(frozen=True)
class Turn:
    """The blocks of one turn of a loop, which begins at `start`; by the loop's test it goes to one of `exits`.

    `notes` say what has become of the loops in it.
    """

    blocks: Sequence[OpenBlock]
    notes: Sequence[LoopNote]
    start: str
    exits: frozenset[str]

    @property
    def has_calls(self) -> bool:
        """Tell whether functions of the program are called in it."""
        return any(isinstance(op, ir.Call) for block in self.blocks for op in block.ops)

    def obstacle(self) -> str | None:
        """The reason why the calls of several turns cannot be made at the same time; None where they can."""
        if self._has_other_ways:
            return BRANCHES
        tainted, controlled = self._tainted
        for block in self.blocks:
            for op in block.ops:
                if not isinstance(op, ir.Call):
                    continue
                if block.label in controlled:
                    return ASKS
                if not tainted.isdisjoint(op.arguments):
                    return DEPENDS
        for block in self.blocks:
            is_call = any(isinstance(op, ir.Call) for op in block.ops) and block.label in self._in_arms
            if is_call and isinstance(block.end, ir.Branch) and block.end.condition in tainted:
                return CHOSEN
        return None

    @cached_property
    def _onward(self) -> Mapping[str, tuple[str, ...]]:
        """The blocks of the turn behind each."""
        inside = {block.label for block in self.blocks}
        return {
            block.label: tuple(
                label
                for label in (() if block.end is None else ir.successors(block.end))
                if label in inside and label != self.start
            )
            for block in self.blocks
        }

    @property
    def _has_other_ways(self) -> bool:
        """Tell whether a turn may leave the loop otherwise than by the loop's test, fail, or loop."""
        inside = {block.label for block in self.blocks} | self.exits
        for block in self.blocks:
            if block.label in self.exits:
                continue
            if block.end is None or isinstance(block.end, ir.Fault | ir.Return):
                return True
            if not inside.issuperset(ir.successors(block.end)):
                return True
        return any(block.label in self._reached(self._onward[block.label]) for block in self.blocks)

    def _reached(self, labels: Sequence[str]) -> set[str]:
        found: set[str] = set()
        waiting = [*labels]
        while waiting:
            label = waiting.pop()
            if label not in found:
                found.add(label)
                waiting += self._onward.get(label, ())
        return found

    def _arms(self) -> Iterator[tuple[str, set[str]]]:
        """For each branch its condition, and the blocks that only one of its ways leads to."""
        for block in self.blocks:
            if isinstance(block.end, ir.Branch):
                true, false = self._reached([block.end.true]), self._reached([block.end.false])
                yield block.end.condition, (true ^ false) - self.exits

    @cached_property
    def _in_arms(self) -> set[str]:
        return {label for _, labels in self._arms() for label in labels}

    @cached_property
    def _tainted(self) -> tuple[set[str], set[str]]:
        """The variables that depend on what a call gives, and the blocks of which that says whether they are run."""
        tainted: set[str] = set()
        controlled: set[str] = set()
        arms = list(self._arms())
        while True:
            before = len(tainted), len(controlled)
            for block in self.blocks:
                for op in block.ops:
                    is_one = isinstance(op, ir.Call) or not tainted.isdisjoint(ir.reads(op))
                    if is_one or block.label in controlled:
                        tainted.update(ir.writes(op))
            controlled.update(label for condition, labels in arms if condition in tainted for label in labels)
            if before == (len(tainted), len(controlled)):
                return tainted, controlled


@dataclass(eq=False)
class Loop:
    """A loop that is interpreted: the blocks that leave a turn, or all of them, early."""

    node: Any
    frame: Frame
    breaks: list[End] = field(default_factory=list)
    continues: list[End] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Turns:
    """The work of a loop in each turn: it binds an item, then runs a body; behind the last one comes `orelse`."""

    node: Any
    bind: Callable[[Value], None]
    body: Callable[[], None]
    orelse: Sequence[Any] = ()


def comes_later(one: RefusedError, other: RefusedError) -> bool:
    """Tell whether one refusal stands behind the other: the reading that it ended has come past that."""
    here, there = one.diagnostic.span, other.diagnostic.span
    return here is not None and there is not None and here.file == there.file and there < here


def is_counted(node: Any, is_known: bool) -> bool:
    """Return whether turns count as steps: those of statements, and of comprehensions of unknown length.

    Those of maps never do.
    """
    return isinstance(node, gast.For | gast.While) or (isinstance(node, gast.comprehension) and not is_known)
