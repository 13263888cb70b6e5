"""Batches of a graph's nodes that run together: by depth, and by agenda.

By depth: nodes of one signature that lie equally deep run together (Looks et al., "Deep Learning with Dynamic
Computation Graphs", ICLR 2017). By agenda: of the nodes whose operands are known, all of one signature run, that whose
nodes lie least deep on average, of two equal ones the cheap before the heavy (Neubig, Goldberg, Dyer, "On-the-fly
Operation Batching in Dynamic Computation Graphs", NIPS 2017, section 3.3).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar


class Node(Protocol):
    """A node: its signature, the nodes that it needs, and whether it is heavy."""

    @property
    def signature(self) -> Hashable:
        """Nodes of equal signatures can run together."""

    @property
    def needs(self) -> Sequence[Node]:
        """The nodes whose results it takes; of those that are not in the graph the results are known."""

    @property
    def heavy(self) -> bool:
        """Tell whether it is expensive."""


NodeT = TypeVar("NodeT", bound=Node)
Batches = Callable[[Sequence[NodeT]], Iterator[list[NodeT]]]
"""From the nodes of a graph, each behind those that it needs, to what runs together, one after the other."""


def by_depth(graph: Sequence[NodeT]) -> Iterator[list[NodeT]]:
    """Nodes of one signature at one depth."""
    together: dict[tuple[int, Hashable], list[NodeT]] = defaultdict(list)
    for node, depth in zip(graph, _depths(graph), strict=True):
        together[depth, node.signature].append(node)
    for depth, signature in sorted(together, key=lambda each: each[0]):
        yield together[depth, signature]


def by_agenda(graph: Sequence[NodeT]) -> Iterator[list[NodeT]]:
    """All nodes of one signature whose operands are known; the signature of the least average depth."""
    average, place = _average_depths(graph), {id(node): place for place, node in enumerate(graph)}
    first = {signature: number for number, signature in enumerate(average)}
    waits_for = [0] * len(graph)
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


def _depths(graph: Sequence[NodeT]) -> list[int]:
    """The depth of each node: how many nodes lie one behind the other below it."""
    depths: dict[int, int] = {}
    for node in graph:
        depths[id(node)] = max((depths[id(each)] + 1 for each in node.needs if id(each) in depths), default=0)
    return list(depths.values())


def _average_depths(graph: Sequence[NodeT]) -> Mapping[Hashable, float]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for node, depth in zip(graph, _depths(graph), strict=True):
        found[node.signature].append(depth)
    return {signature: sum(depths) / len(depths) for signature, depths in found.items()}
