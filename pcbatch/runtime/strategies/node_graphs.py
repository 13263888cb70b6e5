"""Graphs of lanes, and batches of their nodes: every lane goes from block to block, and notes what is to run as nodes.

A lane comes as far as a branch whose condition has not run. Its stacks hold what nodes give, whether they have run or
not; so pushes, pops and copies cost nothing.

By depth: nodes of one signature that lie equally deep run together (Looks et al., "Deep Learning with Dynamic
Computation Graphs", ICLR 2017). By agenda: of the nodes whose operands are known, all of one signature run, that whose
nodes lie least deep on average, of two equal ones the cheap before the heavy (Neubig, Goldberg, Dyer, "On-the-fly
Operation Batching in Dynamic Computation Graphs", NIPS 2017, section 3.3).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pcbatch.ir.machine import Block, Branch, Program
from pcbatch.optimize.machine.nodes import Nodes, Use
from pcbatch.runtime.machine.state import Limits
from pcbatch.runtime.strategies.lane import Walker

AHEAD = 10_000
"""Number of checks whose outcome is not known before a lane waits for them: it might go on for ever."""

Leaves = Sequence[np.ndarray]
Value = tuple["Node", int]
"""A result of a node, by its number among them."""


@dataclass(eq=False)
class Node:
    """A use of some code by one lane, at its `visit`th block; when it has run, `row` of `results` are its own."""

    operands: Sequence[Value] = ()
    results: Sequence[Leaves] | None = None
    row: int = 0
    order: int = 0
    use: Use = field(default_factory=lambda: Use(0, (), (), {}, False))
    signature: Hashable = None
    heavy: bool = False
    lane: GraphLane | None = None
    block: int = 0
    visit: int = 0
    steps: int = 0
    shown: Mapping[str, Value] = field(default_factory=dict)

    @property
    def needs(self) -> list[Node]:
        """The nodes whose results it takes."""
        return [node for node, _ in self.operands]

    def fail(self, site: int) -> None:
        """Let the check of its code at `site` fail its lane."""
        assert self.lane is not None
        self.lane.fail_late(self, site)

    @property
    def is_cancelled(self) -> bool:
        """Tell whether its lane has failed before it came to this block."""
        return self.lane is not None and self.lane.failed_at is not None and self.lane.failed_at[0] < self.visit


class GraphLane(Walker):
    """A lane whose values are results of nodes; `made` hears of each, and the values of `shown` are in messages."""

    failed_at: tuple[int, float] | None = None
    """The visit at which the lane has failed, as far as is known, and the place among the checks of the block."""

    def __init__(
        self,
        program: Program,
        inputs: Mapping[str, Value],
        limits: Limits,
        nodes: Nodes,
        shown: Sequence[str],
        made: Callable[[Node], None],
    ):
        super().__init__(program, inputs, limits)
        self.nodes, self.shown, self.made = nodes, shown, made
        self.visit = 0
        self.branch: tuple[Value, Branch] | None = None
        self.unchecked: list[Node] = []
        """Nodes with checks that it has not waited for."""

    def go_on(self) -> list[Node]:
        """Go on as far as it can: the nodes that it needs to go on further, none if it has ended."""
        while True:
            if self.branch is not None:
                (node, place), branch = self.branch
                if node.results is None:
                    return [node]
                self.next, self.branch = branch.true if node.results[place][0][node.row] else branch.false, None
            if len(self.unchecked) >= AHEAD:
                waiting, self.unchecked = self.unchecked, []
                return waiting
            self.visit += 1
            if not self.run_next():
                return []

    def leaves(self, name: str) -> Leaves:
        """The leaves of the top of `name`, when its node has run."""
        node, place = self.variables[name][-1]
        assert node.results is not None, f"{name} has not run"
        return [leaf[node.row] for leaf in node.results[place]]

    def body(self, block: Block, now: dict[str, Any]) -> None:
        """Note the nodes of a block."""
        number = self.next
        nodes = self.nodes.blocks[number]
        for use in nodes.uses:
            operands = [now[name] for name in use.reads]
            shown = {name: self.variables[name][-1] for name in self.shown} if use.sites else {}
            node = Node(operands, use=use, lane=self, block=number, visit=self.visit, steps=self.steps, shown=shown)
            self.made(node)
            now.update((name, (node, place)) for place, name in enumerate(use.writes))
            self.unchecked += [node] if use.sites else []
        now.update({name: now[other] for name, other in nodes.end.items()})

    def target(self, target: int | Branch, now: Mapping[str, Any]) -> int:
        """A block, which for a branch is not known before its condition has run."""
        if isinstance(target, Branch):
            self.branch = now[target.condition], target
            return self.next
        return target

    def fail(self, place: int, site: int) -> None:
        """Note that the lane fails when it leaves a block."""
        super().fail(place, site)
        self.failed_at = self.visit, np.inf

    def fail_late(self, node: Node, site: int) -> None:
        """Note that a check of a node has failed, unless the lane has failed before that."""
        place, own = node.use.sites[site]
        if self.failed_at is None or (node.visit, place) < self.failed_at:
            super().fail(node.block, own)
            self.failed_at, self.steps, self.branch = (node.visit, place), node.steps, None
            self.variables |= {name: [value] for name, value in node.shown.items()}


def by_depth(graph: Sequence[Node]) -> Iterator[list[Node]]:
    """Nodes of one signature at one depth."""
    together: dict[tuple[int, Hashable], list[Node]] = defaultdict(list)
    for node, depth in zip(graph, _depths(graph), strict=True):
        together[depth, node.signature].append(node)
    for depth, signature in sorted(together, key=lambda each: each[0]):
        yield together[depth, signature]


def by_agenda(graph: Sequence[Node]) -> Iterator[list[Node]]:
    """All nodes of one signature whose operands are known; the signature of the least average depth."""
    place, waits_for = {id(node): place for place, node in enumerate(graph)}, [0] * len(graph)
    depths: dict[Hashable, list[int]] = defaultdict(list)
    for node, depth in zip(graph, _depths(graph), strict=True):
        depths[node.signature].append(depth)
    average = {signature: sum(each) / len(each) for signature, each in depths.items()}
    first = {signature: number for number, signature in enumerate(average)}
    needed_by: list[list[int]] = [[] for _ in graph]
    for number, node in enumerate(graph):
        for source in {place[id(each)] for each in node.needs if id(each) in place}:
            waits_for[number] += 1
            needed_by[source].append(number)
    ready: dict[Hashable, list[int]] = defaultdict(list)
    for number, node in enumerate(graph):
        if not waits_for[number]:
            ready[node.signature].append(number)
    while ready:
        best = min(ready, key=lambda each: (average[each], graph[ready[each][0]].heavy, first[each]))
        batch = ready.pop(best)
        yield [graph[number] for number in batch]
        for reader in (reader for number in batch for reader in needed_by[number]):
            waits_for[reader] -= 1
            if not waits_for[reader]:
                ready[graph[reader].signature].append(reader)


def _depths(graph: Sequence[Node]) -> list[int]:
    """The depth of each node: how many nodes lie one behind the other below it."""
    depths: dict[int, int] = {}
    for node in graph:
        depths[id(node)] = max((depths[id(each)] + 1 for each in node.needs if id(each) in depths), default=0)
    return list(depths.values())
