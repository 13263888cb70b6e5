"""Launches that batching on the fly would make of the same work: by depth, and by agenda.

Both build a graph of the whole batch first, of which the nodes are here the runs of expensive blocks. By depth: nodes
of one block that lie equally deep run together (Looks et al., "Deep Learning with Dynamic Computation Graphs", ICLR
2017).
By agenda: of the nodes whose arguments are known, all of one block run, that whose nodes lie least deep on average
(Neubig, Goldberg, Dyer, "On-the-fly Operation Batching in Dynamic Computation Graphs", NIPS 2017, section 3.3).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from pcbatch.ir.analysis.provenance import Node

Graph = Sequence[Node]
"""The nodes of one example, each behind those that it needs."""


def launches_by_depth(batch: Sequence[Graph]) -> Counter[int]:
    """Launches of each block, by its number, for a batch of examples."""
    return Counter(block for block, _ in {place for graph in batch for place in _places(graph)})


def launches_by_agenda(batch: Sequence[Graph]) -> Counter[int]:
    """Launches of each block, by its number, for a batch of examples."""
    average = _average_depths(batch)
    waiting_for = [[len(node.after) for node in graph] for graph in batch]
    needed_by: list[dict[int, list[int]]] = []
    for graph in batch:
        readers: dict[int, list[int]] = defaultdict(list)
        for place, node in enumerate(graph):
            for source in node.after:
                readers[source].append(place)
        needed_by.append(readers)
    ready: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for example, graph in enumerate(batch):
        for place, node in enumerate(graph):
            if not node.after:
                ready[node.block].append((example, place))
    launches: Counter[int] = Counter()
    while ready:
        block = min(ready, key=lambda each: (average[each], each))
        launches[block] += 1
        for example, place in ready.pop(block):
            for reader in needed_by[example][place]:
                waiting_for[example][reader] -= 1
                if not waiting_for[example][reader]:
                    ready[batch[example][reader].block].append((example, reader))
    return launches


def _places(graph: Graph) -> list[tuple[int, int]]:
    """Block and depth of each node: how many nodes lie one behind the other below it."""
    depths: list[int] = []
    for node in graph:
        depths.append(1 + max((depths[source] for source in node.after), default=-1))
    return [(node.block, depth) for node, depth in zip(graph, depths, strict=True)]


def _average_depths(batch: Sequence[Graph]) -> Mapping[int, float]:
    depths: dict[int, list[int]] = defaultdict(list)
    for graph in batch:
        for block, depth in _places(graph):
            depths[block].append(depth)
    return {block: sum(each) / len(each) for block, each in depths.items()}
