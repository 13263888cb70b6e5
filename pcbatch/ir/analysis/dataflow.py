"""Variables, calls and dataflow of a program of basic blocks.

Variables are told from free names (globals, closures, builtins). The call graph has the program's cycles, and the
places that calls return to. Dataflow has one worklist solver, an analysis being a value, and the analyses that passes
ask for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Generic, Literal, TypeVar

from pcbatch.ir import machine
from pcbatch.ir import program as ir
from pcbatch.ir.machine import Piece
from pcbatch.ir.program import Block, Call, Coded, Function, Program, Push, PushJump, Return, reads, successors, writes

# -- scope -------------------------------------------------------------------------------------------------------------


def variables_of(function: Function) -> tuple[str, ...]:
    """Parameters, everything that an op writes or that a Store, Call, Branch or Fault reads, and results.

    In order of first appearance. What a piece of code merely reads does not become a variable by that.
    """
    found: list[str] = list(function.parameters)
    for block in function.blocks:
        for node in (*block.ops, block.terminator):
            if not isinstance(node, Coded):
                found += reads(node)
            found += writes(node)
    return tuple(dict.fromkeys([*found, *function.results]))


def scope(program: Program, function: Function) -> frozenset[str]:
    """The names that are variables in the code of `function`: its own in "cfg", the whole program's in "stack"."""
    functions = (function,) if program.dialect == "cfg" else program.functions
    return frozenset(name for each in functions for name in variables_of(each))


# -- machine scope -----------------------------------------------------------------------------------------------------
# The names that are variables in the pieces of a machine program, in contrast to free names.


def variables_of_pieces(program: machine.Program) -> frozenset[str]:
    """Return the names that are variables in all pieces: state, temporaries, targets of assignments."""
    pieces = [item for block in program.blocks for item in block.body if isinstance(item, Piece)]
    assigned = {name for piece in pieces for statement in piece.statements for name in writes(statement.op)}
    return frozenset({*program.storage, *(program.types.keys() - {*program.shared})}) | assigned


def scope_of_piece(program: machine.Program, variables: frozenset[str], piece: Piece) -> frozenset[str]:
    """The names that are variables in `piece`: its operands, those that all lanes share among them, and `variables`.

    Captured arrays are free names of the code, though the piece is handed them as shared operands.
    """
    return variables.union(piece.reads, piece.writes, piece.shared).difference(program.externs.get(piece.scope, ()))


# -- call graph --------------------------------------------------------------------------------------------------------


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


# -- dataflow ----------------------------------------------------------------------------------------------------------

Fact = TypeVar("Fact")


@dataclass(frozen=True)
class Analysis(Generic[Fact]):
    """A dataflow problem.

    Facts of one block are those at its start (forward) or at its end (backward) before `transfer`.

    `boundary` holds by label what comes from outside the graph (at the entry, at exits); `initial` is where every
    other fact starts, the neutral element of `merge`; `transfer(block, fact)` takes a fact through a block.
    """

    direction: Literal["forward", "backward"]
    boundary: Mapping[str, Fact]
    initial: Fact
    merge: Callable[[Fact, Fact], Fact]
    transfer: Callable[[Block, Fact], Fact]


@dataclass(frozen=True)
class Facts(Generic[Fact]):
    """The facts at the start and at the end of a block, in program order whatever the direction."""

    start: Fact
    end: Fact


def solve(
    blocks: Sequence[Block], analysis: Analysis[Fact], edges: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Facts[Fact]]:
    """The least solution by label; `edges` are the successors of each block where they are not the terminators' own."""
    forward = analysis.direction == "forward"
    following = edges if edges is not None else {block.label: successors(block.terminator) for block in blocks}
    preceding: dict[str, list[str]] = {block.label: [] for block in blocks}
    for label, targets in following.items():
        for target in targets:
            preceding[target].append(label)
    sources, sinks = (preceding, following) if forward else (following, preceding)

    by_label = {block.label: block for block in blocks}
    before = {label: analysis.boundary.get(label, analysis.initial) for label in by_label}
    after = dict.fromkeys(by_label, analysis.initial)
    # An ordered set, last in first out: blocks in the order in which facts flow where there is no loop.
    work = dict.fromkeys(reversed(by_label) if forward else by_label)
    visited: set[str] = set()
    while work:
        label, _ = work.popitem()
        arriving = (after[source] for source in sources[label])
        before[label] = reduce(analysis.merge, arriving, analysis.boundary.get(label, analysis.initial))
        result = analysis.transfer(by_label[label], before[label])
        if result != after[label] or label not in visited:
            visited.add(label)
            after[label] = result
            work.update(dict.fromkeys(sinks[label]))
    starts, ends = (before, after) if forward else (after, before)
    return {label: Facts(starts[label], ends[label]) for label in by_label}


# -- liveness ----------------------------------------------------------------------------------------------------------

Variables = frozenset[str]


def liveness(node: Function | Program, *, comes_back: bool = False) -> dict[str, Facts[Variables]]:
    """The variables live at the start and at the end of every block: those whose values may still be read.

    At the end of a block that returns, the results are live. A "cfg" program is analysed function by function. In a
    "stack" program it is tops that are live: control goes from a PushJump into the function and from its Returns to
    all places where calls of it come back; a Push keeps the old top alive, a Pop ends the life of the top that it
    removes. With `comes_back`, what is read behind a call counts as live before the call as well, though the called
    function may never return or may always write it: such variables stay assigned.
    """
    match node:
        case Program(dialect="cfg", functions=functions):
            return {label: facts for function in functions for label, facts in liveness(function).items()}
        case Program(functions=functions):
            leaving = [function for function in functions if None in return_sites(node)[function.name]]
            exits = _exits([block for function in leaving for block in function.blocks], node.entry.results)
            edges = interprocedural_edges(node)
            if comes_back:
                edges = {b.label: (*edges[b.label], *successors(b.terminator)) for b in node.blocks()}
            return _solve_liveness(list(node.blocks()), exits, edges)
        case Function(blocks=blocks):
            if any(isinstance(block.terminator, PushJump) for block in blocks):
                raise ValueError(f"function {node.name} is in the stack dialect: ask for the whole program's liveness")
            return _solve_liveness(blocks, _exits(blocks, node.results))
    raise TypeError(f"neither a function nor a program: {node!r}")


def _exits(blocks: Sequence[Block], results: Sequence[str]) -> dict[str, Variables]:
    """Return the variables live behind those of `blocks` that return."""
    return {block.label: frozenset(results) for block in blocks if isinstance(block.terminator, Return)}


def _solve_liveness(
    blocks: Sequence[Block], exits: Mapping[str, Variables], edges: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Facts[Variables]]:
    return solve(blocks, Analysis("backward", exits, frozenset(), frozenset.union, _live_before), edges)


def _live_before(block: Block, live_out: Variables) -> Variables:
    """Return the variables live before `block`."""
    live = {*live_out, *reads(block.terminator)}
    for op in reversed(block.ops):
        _step_back(op, live)
    return frozenset(live)


def _step_back(op: ir.Op, live: set[str]) -> None:
    """Make the variables live behind an op those live before it."""
    if isinstance(op, Push):  # puts a value above the old one, which a Pop will bring back: the old one lives on
        live.update(writes(op))
    else:
        live.difference_update(writes(op))
    live.update(reads(op))


def live_after_each_op(block: Block, live_out: Variables) -> tuple[Variables, ...]:
    """Return the variables live after each op of `block`, given those live at its end (`liveness(..)[label].end`)."""
    live = {*live_out, *reads(block.terminator)}
    facts = []
    for op in reversed(block.ops):
        facts.append(frozenset(live))
        _step_back(op, live)
    return tuple(reversed(facts))


# -- definite assignment -----------------------------------------------------------------------------------------------


def definitely_assigned(function: Function) -> dict[str, Facts[Variables]]:
    """The variables assigned on every path from the entry of a "cfg" function to the start and the end of each block.

    In blocks that cannot be reached that is every variable.
    """
    everything = frozenset(function.parameters).union(*(writes(op) for block in function.blocks for op in block.ops))

    def transfer(block: Block, assigned: Variables) -> Variables:
        return assigned.union(*(writes(op) for op in block.ops))

    entry = {function.entry: frozenset(function.parameters)}
    return solve(function.blocks, Analysis("forward", entry, everything, frozenset.intersection, transfer))


# -- interference ------------------------------------------------------------------------------------------------------
# The interference of variables: two may be merged unless one is written, not by a copy, while the other is live.
#
# Chaitin, "Register allocation and spilling via graph coloring" (1982).


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
