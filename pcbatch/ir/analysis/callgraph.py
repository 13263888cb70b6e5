"""The call graph of a program in either dialect, its cycles, and the places that calls return to."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

from pcbatch.ir.program import Call, Program, PushJump, Return, successors

Node = TypeVar("Node", bound=Hashable)
CallGraph = Mapping[str, tuple[str, ...]]
"""The callees of each function by name, in order of first appearance; every function is a key."""


def call_graph(program: Program) -> CallGraph:
    """The call graph of `program`; in "stack" a jump into another function is a (tail) call as well."""
    callees: dict[str, dict[str, None]] = {function.name: {} for function in program.functions}
    owner = owners(program)
    for function in program.functions:
        for block in function.blocks:
            called = [op.function for op in block.ops if isinstance(op, Call)]
            if isinstance(block.terminator, PushJump):
                called.append(owner[block.terminator.target])
            else:
                called += [owner[t] for t in successors(block.terminator) if owner[t] != function.name]
            callees[function.name].update(dict.fromkeys(called))
    return {name: tuple(called) for name, called in callees.items()}


def owners(program: Program) -> dict[str, str]:
    """The name of the function that each block belongs to, by label."""
    return {block.label: function.name for function in program.functions for block in function.blocks}


def components(graph: Mapping[Node, Collection[Node]]) -> tuple[tuple[Node, ...], ...]:
    """The strongly connected components of `graph`, callees before callers; members in the order of `graph`.

    Tarjan, "Depth-First Search and Linear Graph Algorithms", SIAM J. Comput. 1972, with an explicit stack.
    """
    order: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    path: dict[Node, None] = {}  # nodes whose component is not closed yet, in the order in which they were reached
    found: list[tuple[Node, ...]] = []
    position = {name: index for index, name in enumerate(graph)}
    for root in graph:
        if root in order:
            continue
        work = [(root, iter(graph[root]))]
        order[root] = lowest[root] = len(order)
        path[root] = None
        while work:
            node, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    caller = work[-1][0]
                    lowest[caller] = min(lowest[caller], lowest[node])
                if lowest[node] == order[node]:
                    members = []
                    while node in path:
                        members.append(path.popitem()[0])
                    found.append(tuple(sorted(members, key=position.__getitem__)))
            elif target not in order:
                order[target] = lowest[target] = len(order)
                path[target] = None
                work.append((target, iter(graph[target])))
            elif target in path:
                lowest[node] = min(lowest[node], order[target])
    return tuple(found)


# -- calls and returns of the stack dialect ----------------------------------------------------------------------------


def return_sites(program: Program) -> dict[str, frozenset[str | None]]:
    """Return the places that each function of a "stack" program may return to, by name: labels, None for the end.

    A function that another one jumps to (a tail call) returns to where that one does.
    """
    owner = owners(program)
    sites: dict[str, frozenset[str | None]] = {function.name: frozenset() for function in program.functions}
    sites[program.entry.name] |= {None}
    tail_calls: set[tuple[str, str]] = set()
    for block in program.blocks():
        if isinstance(block.terminator, PushJump):
            sites[owner[block.terminator.target]] |= {block.terminator.back}
        else:
            tail_calls |= {(owner[block.label], owner[target]) for target in successors(block.terminator)}
    while any(not sites[caller] <= sites[callee] for caller, callee in tail_calls):
        for caller, callee in tail_calls:
            sites[callee] |= sites[caller]
    return sites


def interprocedural_edges(program: Program) -> dict[str, tuple[str, ...]]:
    """The successors of every "stack" block: a PushJump goes to its target, a Return to all its return sites."""
    owner, sites = owners(program), return_sites(program)
    edges: dict[str, tuple[str, ...]] = {}
    for block in program.blocks():
        match block.terminator:
            case PushJump(target=target):
                edges[block.label] = (target,)
            case Return():
                edges[block.label] = tuple(sorted(site for site in sites[owner[block.label]] if site is not None))
            case terminator:
                edges[block.label] = successors(terminator)
    return edges
