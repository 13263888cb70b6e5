"""Loops that count: their turns, and iterables that a counter goes over.

The calls of several turns can be made at the same time if no turn needs what the calls of another give.

    for k in range(3):
        child = children[node, k]
        total += f(child)           # needs nothing of the turn before
        if child > 0:               # nor does whether this is called
            total += f(child - 1)
        state = f(state)            # needs what the turn before gave

Then the turns are written out, so that the calls follow each other (`optimize.machine.forks` makes a group of these).

A counter goes over ranges, arrays, and `zip`, `enumerate` and `reversed` of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import gast

from pcbatch.ir import program as ir
from pcbatch.ir.types import TensorType
from pcbatch.reading.core import RefusedError
from pcbatch.reading.emitter import LoopNote, OpenBlock
from pcbatch.reading.expressions import Expressions
from pcbatch.reading.meeting import End
from pcbatch.reading.operations import builtin
from pcbatch.reading.values import Frame, Host, Lane, Lazy, Range, Tuple, Value

# -- turns -------------------------------------------------------------------------------------------------------------
# Loops and their turns: whether the calls of several turns could be made at the same time.


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


# -- counters ----------------------------------------------------------------------------------------------------------


COUNTER = TensorType("int32", (), True)


@dataclass(frozen=True, eq=False)
class Counted:
    """The counter of a loop: where it starts, stops and how it steps, the item at each, and how many turns there are.

    `turns` is None where that differs by lane; `grows` is what is gone over if that may get longer meanwhile.
    """

    start: Value
    stop: Value
    step: Value
    item: Callable[[Value], Value]
    turns: int | None
    grows: Callable[[], Value] | None = None

    @property
    def numbers(self) -> list[Value]:
        """The counter in each turn, where it is known how many there are."""
        assert isinstance(self.start, Host) and isinstance(self.step, Host) and self.turns is not None
        return [Host(self.start.value + turn * self.step.value) for turn in range(self.turns)]


class Counters(Expressions):
    """Items at a counter."""

    def counted(self, whole: Value) -> Counted | None:
        """The counter of a loop over `whole`; None for what is written out: lists, tuples, dicts."""
        whole = self.known(whole)
        if isinstance(whole, Host) and isinstance(whole.value, range):
            own = whole.value
            return Counted(Host(own.start), Host(own.stop), Host(own.step), lambda index: index, len(own))
        if isinstance(whole, Range):
            return Counted(whole.start, whole.stop, whole.step, lambda index: index, None)
        type_ = self.type_of(whole)
        is_array = type_ is not None and bool(type_.shape)
        if not (is_array or isinstance(whole, Lazy) or self.differs_in_length(whole)):
            return None
        length = self.lazy_length(whole)
        if length is None:
            return None
        may_grow = self._may_grow(whole)
        turns = length.value if isinstance(length, Host) and not may_grow else None
        slot = (self.frame.number, f" over {self.number()}")
        self.state.names[slot] = whole
        return Counted(
            Host(0),
            length,
            Host(1),
            lambda index: self.lazy_item(self.state.names[slot], index),
            turns,
            (lambda: self.lazy_length(self.state.names[slot]) or length) if may_grow else None,
        )

    def _may_grow(self, whole: Value) -> bool:
        """Tell whether something is gone over that may get longer meanwhile."""
        whole = self.known(whole)
        if isinstance(whole, Lazy) and whole.kind != "reversed":
            return any(map(self._may_grow, whole.parts))
        return self.differs_in_length(whole)

    def row_of(self, array: Value, index: Value) -> Value:
        """A row of an array at a counter, which is in range."""
        return self.element(array, index)

    def lazy_length(self, whole: Value) -> Value | None:
        """Return the number of items that a loop takes from this; None where they are written out."""
        match whole:
            case Lazy("zip", parts):
                lengths = [self.lazy_length(each) for each in parts]
                if None in lengths:
                    return None
                known = [each.value for each in lengths if isinstance(each, Host)]
                lanes = [each for each in lengths if not isinstance(each, Host)]
                if not lanes or 0 in known:
                    return Host(min(known))
                every = [*lanes, *([Host(min(known))] if known else [])]
                found = every[0]
                for each in every[1:]:
                    found = self.emit(builtin("min"), [self.pattern(found), self.pattern(each)])  # type: ignore[arg-type]
                return found
            case Lazy("enumerate" | "reversed", parts):
                return self.lazy_length(parts[0])
            case Lazy():
                return None
            case Range():
                return self.range_length(whole)
            case Host(value) if isinstance(value, range):
                return Host(len(value))
            case Tuple(items):
                return Host(len(items))
        if self.differs_in_length(whole):
            return self.length(whole)
        type_ = self.type_of(whole)
        return Host(type_.shape[0]) if type_ is not None and type_.shape else None

    def lazy_item(self, whole: Value, index: Value) -> Value:
        """The item at a counter of what a loop goes over."""
        match whole:
            case Lazy("zip", parts):
                return Tuple(tuple(self.lazy_item(each, index) for each in parts))
            case Lazy("enumerate", (part, start)):
                number = index if _is_zero(start) else self.binary(gast.Add, index, start)
                return Tuple((number, self.lazy_item(part, index)))
            case Lazy("reversed", (part,)):
                length = self.lazy_length(part)
                assert length is not None
                last = self.binary(gast.Sub, length, Host(1))
                return self.lazy_item(part, self.binary(gast.Sub, last, index))
            case Range(start, _, step):
                return self.binary(gast.Add, start, self.binary(gast.Mult, index, step))
            case Host(value) if isinstance(value, range):
                if isinstance(index, Host):
                    return Host(value[index.value])
                scaled = index if value.step == 1 else self.binary(gast.Mult, index, Host(value.step))
                return scaled if value.start == 0 else self.binary(gast.Add, Host(value.start), scaled)
        return self.item(whole, index) if self.type_of(whole) is None else self.row_of(whole, index)

    def range_length(self, value: Range) -> Value:
        """Return the length of a range."""
        span = self.binary(gast.Sub, value.stop, value.start)
        if not (isinstance(value.step, Host) and value.step.value == 1):
            is_up = self.truth(self.compare(gast.Gt, value.step, Host(0)))
            if isinstance(is_up, Host):
                sign: Value = Host(1 if is_up.value else -1)
            else:
                sign = self.choose(is_up, lambda: Host(1), lambda: Host(-1))
            shifted = self.binary(gast.Add, span, self.binary(gast.Sub, value.step, sign))
            span = self.binary(gast.FloorDiv, shifted, value.step)
        return self.emit(builtin("max"), [self.pattern(span), 0])

    def is_before(self, index: Value, stop: Value, step: Value) -> Host | Lane:
        """Return whether a counter has not reached the end of its range."""
        if isinstance(step, Host):
            return self.truth(self.compare(gast.Lt if step.value > 0 else gast.Gt, index, stop))
        up, down = (
            self.both(self.truth(self.compare(op, step, Host(0))), self.truth(self.compare(op, stop, index)))
            for op in (gast.Gt, gast.Lt)
        )
        return self.either(up, down)


def _is_zero(value: Value) -> bool:
    """Tell whether a number is the int 0."""
    return isinstance(value, Host) and type(value.value) is int and value.value == 0
