"""Graphs of lanes: every lane goes from block to block, and notes what is to run there as nodes.

A lane comes as far as a branch whose condition has not run. Its stacks hold what nodes give, whether they have run or
not; so pushes, pops and copies cost nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from pcbatch.ir.analysis.effects import is_step
from pcbatch.ir.machine import Block, Branch, Fault, Program, PushJump, Return
from pcbatch.optimize.machine.nodes import Nodes, Use
from pcbatch.runtime.machine.limits import Limits

AHEAD = 10_000
"""Number of blocks that a lane goes on while a check's outcome is not known: it might go on for ever."""

Leaves = Sequence[np.ndarray]
Value = tuple["Node", int]
"""A result of a node, by its number among them."""


@dataclass(frozen=True)
class Failure:
    """The failure of a lane: its visit, its block and part, and the values that its message shows."""

    visit: int
    part: int
    site: int
    block: int
    steps: int
    shown: Mapping[str, Value]


@dataclass(eq=False)
class Lane:
    """One example on its way: stacks of values, a variable's top the newest entry, and its calls."""

    variables: dict[str, list[Value]]
    calls: list[int]
    next: int = 0
    visit: int = 0
    steps: int = 0
    branch: tuple[Value, Branch] | None = None
    failure: Failure | None = None
    unchecked: deque[Node] = field(default_factory=deque)
    """Nodes with checks, in order, the first of which has not run when the lane goes on."""

    def value(self, name: str, now: Mapping[str, Value]) -> Value:
        """Return the value of a name at the end of a block that has made `now`."""
        return now[name] if name in now else self.variables[name][-1]

    def fail(self, failure: Failure) -> None:
        """Note a failure, unless it has failed before that."""
        known = self.failure
        if known is None or (failure.visit, failure.part) < (known.visit, known.part):
            self.failure = failure


NOTHING, NOBODY = Use(0, (), (), (), False), Lane({}, [])
"""The use and the lane of values that are known from the beginning."""


@dataclass(eq=False)
class Node:
    """A run of some code for one lane, at its `visit`th block; when it has run, `row` of `results` are its own."""

    signature: Hashable = None
    heavy: bool = False
    use: Use = NOTHING
    lane: Lane = NOBODY
    block: int = 0
    order: int = 0
    operands: Sequence[Value] = ()
    visit: int = 0
    steps: int = 0
    shown: Mapping[str, Value] = field(default_factory=dict)
    results: Sequence[Leaves] | None = None
    row: int = 0

    @property
    def needs(self) -> list[Node]:
        """The nodes whose results it takes."""
        return [node for node, _ in self.operands]

    @property
    def is_cancelled(self) -> bool:
        """Tell whether its lane has failed before it came to this block."""
        failure = self.lane.failure
        return failure is not None and failure.visit < self.visit


class Builder:
    """Builds the graphs of a program's lanes. `signatures` and `heavy` are of its codes."""

    def __init__(
        self,
        program: Program,
        nodes: Nodes,
        limits: Limits,
        shown: Sequence[str],
        signatures: Sequence[Hashable],
        heavy: frozenset[int],
    ):
        self.program, self.blocks, self.splits, self.limits = program, program.blocks, nodes.splits, limits
        self.shown, self.signatures, self.heavy, self._orders = shown, signatures, heavy, count(1)

    def build(self, lane: Lane) -> list[Node]:
        """Let a lane go on as far as it can: the nodes that it needs to go on further, none if it has ended."""
        while lane.failure is None:
            if lane.branch is not None:
                (node, place), branch = lane.branch
                if node.results is None:
                    return [node]
                lane.next, lane.branch = branch.true if node.results[place][0][node.row] else branch.false, None
            if lane.next == len(self.blocks):
                break
            while lane.unchecked and lane.unchecked[0].results is not None:
                lane.unchecked.popleft()
            if lane.unchecked and lane.visit >= lane.unchecked[0].visit + AHEAD:
                return [*lane.unchecked]
            self._visit(lane, lane.next)
        return []

    def _visit(self, lane: Lane, number: int) -> None:
        """Run a block: note its nodes, move the stacks, and leave it."""
        block, split, variables = self.blocks[number], self.splits[number], lane.variables
        lane.visit += 1
        shown = {name: variables[name][-1] for name in self.shown} if split.whole and split.whole.sites else {}
        for name in block.pops:
            variables[name].pop()
        now: dict[str, Value] = {}
        for use in (split.whole, split.integers):
            if use is not None:
                node = self._node(lane, number, use, shown)
                now.update((name, (node, place)) for place, name in enumerate(use.writes))
        now.update({name: variables[source][-1] for name, source in split.moves.items()})
        tops = {
            name: variables[name].pop() for name in {*now, *(push.variable for push in block.pushes)} & {*variables}
        }
        for push in block.pushes:
            saved = push.variable if push.saved is None else push.saved
            kept = tops if push.saved is None or saved not in now else now
            variables[push.variable].append(kept[saved] if saved in kept else variables[saved][-1])
        for name, top in tops.items():
            variables[name].append(now.get(name, top))
        self._leave(lane, number, block, now)

    def _node(self, lane: Lane, number: int, use: Use, shown: Mapping[str, Value]) -> Node:
        order, signature = next(self._orders), self.signatures[use.code]
        heavy, operands = use.late and use.code in self.heavy, [lane.variables[name][-1] for name in use.reads]
        signature = ("alone", order) if signature is None else signature
        node = Node(signature, heavy, use, lane, number, order, operands, lane.visit, lane.steps, shown)
        if use.sites:
            lane.unchecked.append(node)
        return node

    def _leave(self, lane: Lane, number: int, block: Block, now: Mapping[str, Value]) -> None:
        """Follow the terminator, which may fail the lane."""
        terminator, limits, target = block.terminator, self.limits, getattr(block.terminator, "target", None)
        failed = terminator.site if isinstance(terminator, Fault) else None
        if isinstance(terminator, PushJump) and len(lane.calls) > limits.max_depth:
            failed = terminator.site
        elif is_step(block):
            if limits.max_steps is not None and lane.steps >= limits.max_steps:
                failed = block.steps_site
            lane.steps += failed is None
        if failed is not None:
            shown = {name: lane.value(name, now) for name in self.shown}
            lane.fail(Failure(lane.visit, 2, failed, number, lane.steps, shown))
        elif isinstance(terminator, Return):
            lane.next = lane.calls.pop()
        elif isinstance(terminator, PushJump):
            lane.calls.append(terminator.back)
        if isinstance(terminator, Branch):
            target = terminator
        if isinstance(target, Branch):
            lane.branch = lane.value(target.condition, now), target
        elif target is not None:
            lane.next = target
