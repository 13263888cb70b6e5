"""Batching on the fly: every lane builds a graph of its own, and nodes of all lanes that are alike run together.

A node is a block's code, or the integers of it (`optimize.machine.nodes`). A lane goes on from block to block and only
notes nodes, until a branch needs a value that is not there: its stacks hold what nodes give, whether they have run or
not, so pushes, pops and copies cost nothing. When all lanes have come so far, what the branches need is run, and no
more; at last the results.

By depth: nodes of one signature that lie equally deep run together (Looks et al., "Deep Learning with Dynamic
Computation Graphs", ICLR 2017). By agenda: of the nodes whose operands are known, all of one signature run, that whose
nodes lie least deep on average, of two equal ones the cheap before the heavy (Neubig, Goldberg, Dyer, "On-the-fly
Operation Batching in Dynamic Computation Graphs", NIPS 2017, section 3.3). Signatures are those of that paper's
appendix: code for single components, of any shape; code that depends on the shapes; code with operands that all share,
such as a weight; and what cannot be batched, which runs node by node.

Rows are copied together by NumPy, and run by TensorFlow's own kernels.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from statistics import fmean
from typing import Any

import numpy as np

from pcbatch.ir.analysis.effects import can_fault
from pcbatch.ir.machine import Block, Branch, Piece, Program
from pcbatch.ir.types import leaves
from pcbatch.optimize.machine.nodes import Nodes, Use, of_components
from pcbatch.runtime.backends.protocol import Array, Backend, Spec
from pcbatch.runtime.costs.estimate import Prices, block_costs
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.error_translation import explaining
from pcbatch.runtime.machine.outcome import Counts, Outcome
from pcbatch.runtime.machine.segments import Legs
from pcbatch.runtime.machine.state import Layout, Limits
from pcbatch.runtime.schedules.adaptive import EXPENSIVE, expensive_blocks
from pcbatch.runtime.strategies.on_host import OnHost
from pcbatch.runtime.strategies.reference import Examples, Walker, outcome_of

AHEAD = 10_000
"""Number of checks whose outcome is not known before a lane waits for them: it might go on for ever."""

Value = tuple["Node", int]
"""A result of a node, by its number among them."""

# -- the graph ---------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Node:
    """A use of some code by one lane, in the order in which such are noted; `row` of the `results` are its own."""

    operands: Sequence[Value] = ()
    signature: Any = None
    heavy: bool = False
    use: Use = field(default_factory=Use)
    lane: Any = None
    block: int = 0
    order: int = 0
    results: Sequence[Any] | None = None
    row: int = 0

    @property
    def needs(self) -> list[Node]:
        """The nodes whose results it takes."""
        return [node for node, _ in self.operands]

    def leaves(self, place: int) -> list[np.ndarray]:
        """The leaves of one of its results."""
        assert self.results is not None, f"{self.use.writes} have not run"
        return [leaf[self.row] for leaf in self.results[place]]


class GraphLane(Walker):
    """A lane of a `batch`, whose values are results of nodes."""

    def __init__(self, batch: _Batch, inputs: Mapping[str, Value]):
        super().__init__(batch.machine.program, inputs, batch.machine.limits)
        self.batch = batch
        self.branch: tuple[Value, Branch] | None = None
        self.unchecked: list[Node] = []
        """Nodes with checks that it has not waited for."""
        self.is_faulty = False
        """True if a check has failed, perhaps not the first that does: the lane is of no account any more."""

    def go_on(self) -> list[Node]:
        """Go on as far as it can: the nodes that it needs to go on further, none if it has ended."""
        while not self.is_faulty:
            if self.branch is not None:
                (node, place), branch = self.branch
                if node.results is None:
                    return [node]
                self.next, self.branch = branch.true if node.leaves(place)[0] else branch.false, None
            if len(self.unchecked) >= AHEAD:
                waiting, self.unchecked = self.unchecked, []
                return waiting
            if not self.run_next():
                break
        return []

    def leaves(self, name: str) -> list[np.ndarray]:
        """The leaves of the top of `name`, when its node has run."""
        node, place = self.variables[name][-1]
        return node.leaves(place)

    def body(self, block: Block, now: dict[str, Any]) -> None:
        """Note the nodes of a block."""
        batch, number = self.batch, self.next
        nodes = batch.machine.nodes.blocks[number]
        for use in nodes.uses:
            operands, code = [now[value] for value in use.reads], batch.machine.codes[use.code]
            heavy = use.late and number in batch.heavy
            signature = code if code.is_batched else object()  # what nothing else has
            node = Node(operands, signature, heavy, use, self, number, next(batch.orders))
            now.update((value, (node, place)) for place, value in enumerate(use.writes))
            self.unchecked += [node] if code.can_fail else []
        now.update({name: now[value] for name, value in nodes.end.items()})

    def target(self, target: int | Branch, now: Mapping[str, Any]) -> int:
        """A block, which for a branch is not known before its condition has run."""
        if isinstance(target, Branch):
            self.branch = now[target.condition], target
            return self.next
        return target


# -- the policies ------------------------------------------------------------------------------------------------------

POLICIES: dict[str, Callable[[int, Any], Any]] = {
    "depth": lambda depth, signature: (depth, signature),
    "agenda": lambda depth, signature: signature,
}
"""By strategy a key of the nodes that run together as soon as their operands are known."""


def batches(graph: Sequence[Node], policy: Callable[[int, Any], Any]) -> Iterator[list[Node]]:
    """Nodes of one key whose operands are known; the key of the least average depth, the cheap before the heavy."""
    depths: dict[Node, int] = {}
    keys, by_key, readers = {}, defaultdict(list), defaultdict(list)
    waits_for: dict[Node, int] = {}
    for node in graph:
        needs = {each for each in node.needs if each in depths}
        waits_for[node], depths[node] = len(needs), max((depths[each] + 1 for each in needs), default=0)
        keys[node] = policy(depths[node], node.signature)
        by_key[keys[node]].append(depths[node])
        for each in needs:
            readers[each].append(node)
    average, first = {key: fmean(each) for key, each in by_key.items()}, {key: n for n, key in enumerate(by_key)}
    ready: dict[Any, list[Node]] = defaultdict(list)
    known = [node for node in graph if not waits_for[node]]
    while known or ready:
        for node in known:
            ready[keys[node]].append(node)
        best = min(ready, key=lambda key: (average[key], ready[key][0].heavy, first[key]))
        yield (batch := ready.pop(best))
        known = []
        for reader in (reader for node in batch for reader in readers[node]):
            waits_for[reader] -= 1
            known += [] if waits_for[reader] else [reader]


# -- the executor ------------------------------------------------------------------------------------------------------


class Code:
    """One code, traced for any number of rows; if it `is_flat`, rows are the components of all nodes' values."""

    def __init__(self, program: Program, backend: Backend, is_flat: bool):
        self.program, self.backend, self.is_flat = of_components(program) if is_flat else program, backend, is_flat
        self.context = Context(backend, Layout(self.program), Limits.of(None, None), True)
        self.legs = Legs(self.context)
        self.specs: list[Spec] = [*self.legs.given_specs(None), ("bool", (None,))]
        self.launch = backend.compile(self._traced, False, self.specs)
        backend.lower(self.launch, self.specs, False)
        self.can_fail = can_fault(program.blocks[0], None)
        self.is_batched = not self.context.notes  # there is one on each operation that runs lane after lane

    def run(self, rows: Sequence[Sequence[np.ndarray]], shared: Sequence[Array], count: int) -> tuple[Any, np.ndarray]:
        """The rows of each result's leaves, from those of each operand's; and fault sites plus one, of `count` rows."""
        given: list[Any] = [np.concatenate([*map(np.ravel, leaf)]) if self.is_flat else np.stack(leaf) for leaf in rows]
        every = np.ones(len(given[0]) if self.is_flat else count, bool)
        arrays = [self.backend.array(each, dtype) for each, (dtype, _) in zip(given, self.specs, strict=False)]
        found: list[Any]
        *found, faults = map(np.asarray, self.launch(*arrays, *shared, self.backend.array(every, "bool")))
        if self.is_flat:
            shapes, ends = [row.shape for row in rows[0]], np.cumsum([row.size for row in rows[0]])
            parts = (np.split(leaf, ends[:-1]) for leaf in found)
            found = [[part.reshape(shape) for part, shape in zip(each, shapes, strict=True)] for each in parts]
        remaining = iter(found)
        return [[next(remaining) for _ in self.legs.layout.leaves(name)] for name in self.program.results], faults

    def _traced(self, *arrays: Array) -> list[Array]:
        *given, every = arrays
        inputs, layout = len(self.legs.layout.inputs), self.legs.layout
        state = self.legs.once(given[:inputs], given[inputs:], self.backend.lanes_of(every))
        return [*(state[key] for name in self.program.results for key in layout.tops(name)), state["fault"]]


class OnTheFly(OnHost):
    """Runs one program as graphs of its `nodes`, batched by depth or by agenda."""

    any_lanes, stack_entries = True, 0

    def __init__(self, program: Program, nodes: Nodes, backend: Backend, strategy: str, **limits: int | None):
        super().__init__(program, backend, strategy, False, **limits)
        self.nodes, self.costs = nodes, block_costs(program, backend)
        self.watch: Callable[[Sequence[Node]], None] = lambda batch: None
        """Hears of each batch before it runs."""

    @cached_property
    def codes(self) -> list[Code]:
        """The code that runs each of the nodes' codes: its own, or one for components of any shape. Traces all."""
        made: dict[Any, Code] = {}
        keys = [
            shapeless if _is_componentwise(code, self.backend) else number
            for number, (code, shapeless) in enumerate(zip(self.nodes.codes, self.nodes.shapeless, strict=True))
        ]
        for key, code in zip(keys, self.nodes.codes, strict=True):
            if key not in made:
                with self.statistics.tracing(counts=True), explaining(self.program, self.backend, False):
                    made[key] = Code(code, self.backend, is_flat=isinstance(key, str))
                self.context.notes.update(made[key].context.notes)
        return [made[key] for key in keys]

    def check(self, lanes: int) -> None:
        """Trace all code; raises what `run` would raise before it runs."""
        assert self.codes is not None

    def launched(self, arguments: Sequence[Array], shared: Sequence[Array], lanes: int) -> Outcome:
        """Build and run until all lanes have ended; what they leave behind."""
        self.check(lanes)
        return _Batch(self, arguments, shared, lanes).outcome()


def _is_componentwise(code: Program, backend: Backend) -> bool:
    """Tell whether code is one piece that does the same to every component of arrays of one shape."""
    (item, *more), types = code.blocks[0].body, code.types
    if more or not isinstance(item, Piece) or not item.reads or item.shared or item.sites:
        return False
    shapes = {leaf.shape for name in (*item.reads, *item.writes) for leaf in leaves(types[name])}
    reads = [types[name] for name in item.reads]
    return len(shapes) == 1 and backend.facts(item, reads, ()).together.componentwise


class _Batch:
    """One run: its lanes, what they have noted, and what was launched for them."""

    def __init__(self, machine: OnTheFly, arguments: Sequence[Array], shared: Sequence[Array], lanes: int):
        self.machine, self.shared, program, layout = machine, shared, machine.program, machine.layout
        self.heavy = expensive_blocks(Prices(machine.costs, max(lanes, 1)), EXPENSIVE)
        self.orders, self.rounds, self.executing, self.scheduling = count(), 0, 0.0, 0.0
        self.executions, self.active = (np.zeros(len(program.blocks), np.int64) for _ in range(2))
        self.singly = Examples(program, machine.backend, arguments, shared, machine.limits)
        zeros = {name: [machine.backend.zeros(lanes, leaf) for leaf in layout.leaves(name)] for name in program.storage}
        values = {**zeros, **self.singly.columns}
        inputs = [[*map(np.asarray, each)] for each in values.values()]
        entries = [Node(results=inputs, row=row) for row in range(lanes)]
        self.lanes = [GraphLane(self, {name: (each, n) for n, name in enumerate(values)}) for each in entries]

    def outcome(self) -> Outcome:
        """Build and run until all lanes have ended; what they leave behind."""
        started, running, wanted = time.perf_counter(), self.lanes, self.machine.program.results
        while running:
            waiting = [(lane, lane.go_on()) for lane in running]
            running = [lane for lane, nodes in waiting if nodes]
            self._execute([node for _, nodes in waiting for node in nodes])
        self._execute([node for lane in self.lanes for node in lane.unchecked])
        shown = self.machine.layout.shown
        ends = [(lane, shown if lane.status else (*wanted, *shown)) for lane in self.lanes if not lane.is_faulty]
        self._execute([lane.variables[name][-1][0] for lane, names in ends for name in names])
        # The reference finds out which check is the first that fails.
        lanes = [self.singly.ended(row) if lane.is_faulty else lane for row, lane in enumerate(self.lanes)]
        outcome = outcome_of(self.machine.program, self.machine.backend, lanes)
        building = time.perf_counter() - started - self.executing - self.scheduling
        phases = {"building": building, "scheduling": self.scheduling, "executing": self.executing}
        counts = Counts(self.executions, self.active, rows=self.active, trips=np.int64(self.rounds))
        return replace(outcome, counting=lambda: counts, phases=phases)

    def _execute(self, wanted: Sequence[Node]) -> None:
        """Run nodes, and those that they need, batch by batch."""
        started, executing = time.perf_counter(), self.executing
        graph, waiting = set[Node](), [*wanted]
        while waiting:
            node = waiting.pop()
            if node.results is None and node not in graph:
                graph.add(node)
                waiting += node.needs
        for batch in batches(sorted(graph, key=lambda node: node.order), POLICIES[self.machine.form]):
            going = [node for node in batch if not node.lane.is_faulty]
            if going:
                self._launch(going)
        self.rounds += bool(graph)
        self.scheduling += time.perf_counter() - started - (self.executing - executing)

    def _launch(self, batch: Sequence[Node]) -> None:
        """Run nodes of one signature."""
        started, machine = time.perf_counter(), self.machine
        machine.watch(batch)
        operands = zip(*([node.leaves(place) for node, place in each.operands] for each in batch), strict=True)
        rows = [leaf for each in operands for leaf in zip(*each, strict=True)]
        results, faults = machine.codes[batch[0].use.code].run(rows, self.shared, len(batch))
        for row, node in enumerate(batch):
            node.results, node.row, node.operands = results, row, ()
        for row in np.flatnonzero(faults).tolist():
            batch[row].lane.is_faulty = True
        counted = Counter(node.block for node in batch if machine.nodes.blocks[node.block].uses[-1] is node.use)
        for number, active in counted.items():
            self.active[number] += active
        for number, _ in counted.most_common(1):
            self.executions[number] += 1
        self.executing += time.perf_counter() - started
