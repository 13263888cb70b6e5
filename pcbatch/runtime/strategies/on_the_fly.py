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

from pcbatch.errors import Span
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
from pcbatch.runtime.strategies.lane import Walker
from pcbatch.runtime.strategies.on_host import OnHost
from pcbatch.runtime.strategies.reference import outcome_of

AHEAD = 10_000
"""Number of checks whose outcome is not known before a lane waits for them: it might go on for ever."""

Leaves = Sequence[Sequence[np.ndarray]]
"""The rows of each leaf of a value."""
Value = tuple["Node", int]
"""A result of a node, by its number among them."""

# -- the graph ---------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Node:
    """A use of some code by one lane, at its `visit`th block; when it has run, `row` of `results` are its own.

    `order` is that in which nodes are noted, `steps` those of the lane so far, `shown` what messages of faults show.
    """

    operands: Sequence[Value] = ()
    use: Use = field(default_factory=Use)
    lane: GraphLane | None = None
    order: int = 0
    block: int = 0
    visit: int = 0
    steps: int = 0
    shown: Mapping[str, Value] = field(default_factory=dict)
    results: Sequence[Leaves] | None = None
    row: int = 0

    @property
    def signature(self) -> Any:
        """A key of the nodes that can run together with it: they have the same."""
        code = self.lane.batch.machine.codes[self.use.code]
        return self if code.context.notes else code  # an operation with a note runs lane after lane

    @property
    def heavy(self) -> bool:
        """Tell whether it costs more than some launches."""
        return self.use.late and self.block in self.lane.batch.heavy

    @property
    def needs(self) -> list[Node]:
        """The nodes whose results it takes."""
        return [node for node, _ in self.operands]

    @property
    def is_cancelled(self) -> bool:
        """Tell whether its lane has failed before it came to this block."""
        return self.lane is not None and self.lane.failed_at is not None and self.lane.failed_at[0] < self.visit

    def leaves(self, place: int) -> list[np.ndarray]:
        """The leaves of one of its results."""
        assert self.results is not None, f"{self.use.writes} have not run"
        return [leaf[self.row] for leaf in self.results[place]]


class GraphLane(Walker):
    """A lane of a `batch`, whose values are results of nodes."""

    failed_at: tuple[int, float] | None = None
    """The visit at which the lane has failed, as far as is known, and the place among the checks of the block."""

    def __init__(self, batch: _Batch, inputs: Mapping[str, Value]):
        super().__init__(batch.machine.program, inputs, batch.machine.limits)
        self.batch, self.visit = batch, 0
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
                self.next, self.branch = branch.true if node.leaves(place)[0] else branch.false, None
            if len(self.unchecked) >= AHEAD:
                waiting, self.unchecked = self.unchecked, []
                return waiting
            self.visit += 1
            if not self.run_next():
                return []

    def leaves(self, name: str) -> list[np.ndarray]:
        """The leaves of the top of `name`, when its node has run."""
        node, place = self.variables[name][-1]
        return node.leaves(place)

    def body(self, block: Block, now: dict[str, Any]) -> None:
        """Note the nodes of a block."""
        machine = self.batch.machine
        nodes = machine.nodes.blocks[self.next]
        for use in nodes.uses:
            operands, at = [now[value] for value in use.reads], (self.next, self.visit, self.steps)
            shown = {name: self.variables[name][-1] for name in machine.layout.shown} if use.sites else {}
            node = Node(operands, use, self, next(self.batch.orders), *at, shown)
            now.update((value, (node, place)) for place, value in enumerate(use.writes))
            self.unchecked += [node] if use.sites else []
        now.update({name: now[value] for name, value in nodes.end.items()})

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

    def fail_late(self, node: Node, code_site: int) -> None:
        """Note that a check of a node has failed, unless the lane has failed before that."""
        place, site = node.use.sites[code_site]
        if self.failed_at is None or (node.visit, place) < self.failed_at:
            super().fail(node.block, site)
            self.failed_at, self.steps, self.branch = (node.visit, place), node.steps, None
            self.variables |= {name: [value] for name, value in node.shown.items()}


# -- the policies ------------------------------------------------------------------------------------------------------


def by_depth(graph: Sequence[Node]) -> Iterator[list[Node]]:
    """Nodes of one signature at one depth."""
    together: dict[tuple[int, Any], list[Node]] = defaultdict(list)
    for node, depth in _depths(graph).items():
        together[depth, node.signature].append(node)
    for depth, signature in sorted(together, key=lambda each: each[0]):
        yield together[depth, signature]


def by_agenda(graph: Sequence[Node]) -> Iterator[list[Node]]:
    """All nodes of one signature whose operands are known; the signature of the least average depth."""
    depths: dict[Any, list[int]] = defaultdict(list)
    found, waits_for, needed_by = _depths(graph), dict.fromkeys(graph, 0), defaultdict(list)
    for node, depth in found.items():
        depths[node.signature].append(depth)
        for source in {each for each in node.needs if each in found}:
            waits_for[node] += 1
            needed_by[source].append(node)
    average = {signature: (fmean(each), number) for number, (signature, each) in enumerate(depths.items())}
    ready: dict[Any, list[Node]] = defaultdict(list)
    batch = [node for node in graph if not waits_for[node]]
    while batch or ready:
        for node in batch:
            ready[node.signature].append(node)
        best = min(ready, key=lambda each: (average[each][0], ready[each][0].heavy, average[each][1]))
        yield (run := ready.pop(best))
        batch = []
        for reader in (reader for node in run for reader in needed_by[node]):
            waits_for[reader] -= 1
            batch += [] if waits_for[reader] else [reader]


def _depths(graph: Sequence[Node]) -> dict[Node, int]:
    """The depth of each node: how many nodes lie one behind the other below it."""
    depths: dict[Node, int] = {}
    for node in graph:
        depths[node] = max((depths[each] + 1 for each in node.needs if each in depths), default=0)
    return depths


POLICIES = {"depth": by_depth, "agenda": by_agenda}

# -- the executor ------------------------------------------------------------------------------------------------------


class Code:
    """One code, traced for any number of rows; if it `is_flat`, rows are the components of all nodes' values."""

    def __init__(self, program: Program, backend: Backend, is_flat: bool):
        self.program, self.backend, self.is_flat = program, backend, is_flat
        self.context = Context(backend, Layout(program), Limits.of(None, None), True)
        self.legs = Legs(self.context)
        specs: list[Spec] = [(held.type.dtype, (None, *held.type.shape)) for held in self.legs.layout.inputs.values()]
        shared = [leaf for name in program.shared for leaf in leaves(program.shared_types[name])]
        self.specs = [*specs, *((leaf.dtype, leaf.shape) for leaf in shared), ("bool", (None,))]
        self.launch = backend.compile(self._traced, False, self.specs)
        backend.lower(self.launch, self.specs, False)

    def run(self, rows: Sequence[Sequence[np.ndarray]], shared: Sequence[Array], count: int) -> tuple[Any, np.ndarray]:
        """The rows of each result's leaves, from those of each operand's; and fault sites plus one, of `count` rows."""
        given = [np.concatenate([*map(np.ravel, leaf)]) if self.is_flat else np.stack(leaf) for leaf in rows]
        every = np.ones(len(given[0]) if self.is_flat else count, bool)
        arrays = [self.backend.array(each, dtype) for each, (dtype, _) in zip(given, self.specs, strict=False)]
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
        keys = []
        for number, (code, shapeless) in enumerate(zip(self.nodes.codes, self.nodes.shapeless, strict=True)):
            is_flat = self.nodes.shapeless.count(shapeless) > 1 and _is_componentwise(code, self.backend)
            keys.append(shapeless if is_flat else number)
            if keys[-1] not in made:
                with self.statistics.tracing(counts=True), explaining(self.program, self.backend, False):
                    made[keys[-1]] = Code(of_components(code) if is_flat else code, self.backend, is_flat)
        return [made[key] for key in keys]

    @property
    def notes(self) -> Sequence[tuple[Span | None, str]]:
        """Findings about places in the source, made while the program was traced."""
        return tuple(dict.fromkeys(note for code in self.codes for note in code.context.notes))

    def check(self, lanes: int) -> None:
        """Trace all code; raises what `run` would raise before it runs."""
        assert self.codes is not None

    def compile(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> None:
        """Trace all code; no more is compiled."""
        self.check(lanes)

    def launched(self, arguments: Sequence[Array], shared: Sequence[Array], lanes: int) -> Outcome:
        """Build and run until all lanes have ended; what they leave behind."""
        self.check(lanes)
        return _Batch(self, arguments, shared, lanes).outcome()


def _is_componentwise(code: Program, backend: Backend) -> bool:
    """Tell whether code is one piece that does the same to every component of arrays of one shape."""
    (item, *more), types = code.blocks[0].body, code.types
    if more or not isinstance(item, Piece) or item.shared or item.sites:
        return False
    reads = [types[name] for name in item.reads]
    shapes = {leaf.shape for name in (*item.reads, *item.writes) for leaf in leaves(types[name])}
    return len(shapes) == 1 and backend.facts(item, reads, ()).together.componentwise


class _Batch:
    """One run: its lanes, what they have noted, and what was launched for them."""

    def __init__(self, machine: OnTheFly, arguments: Sequence[Array], shared: Sequence[Array], lanes: int):
        self.machine, self.shared, program, layout = machine, shared, machine.program, machine.layout
        self.heavy = expensive_blocks(Prices(machine.costs, max(lanes, 1)), EXPENSIVE)
        self.orders, self.rounds, self.executing, self.scheduling = count(), 0, 0.0, 0.0
        self.executions, self.active = (np.zeros(len(program.blocks), np.int64) for _ in range(2))
        given = iter(arguments)
        inputs = [[np.asarray(next(given)) for _ in layout.leaves(name)] for name in program.parameters]
        zeros = [[machine.backend.zeros(1, leaf) for leaf in layout.leaves(name)] for name in program.storage]
        blank = Node(results=[[*map(np.asarray, each)] for each in zeros])
        values: dict[str, Value] = {name: (blank, place) for place, name in enumerate(program.storage)}
        self.lanes = []
        for row in range(lanes):
            entry = Node(results=inputs, row=row)
            values |= {name: (entry, place) for place, name in enumerate(program.parameters)}
            self.lanes.append(GraphLane(self, values))

    def outcome(self) -> Outcome:
        """Build and run until all lanes have ended; what they leave behind."""
        started, running, wanted = time.perf_counter(), self.lanes, self.machine.program.results
        while running:
            waiting = [(lane, lane.go_on()) for lane in running]
            running = [lane for lane, nodes in waiting if nodes]
            self._execute([node for _, nodes in waiting for node in nodes])
        self._execute([node for lane in self.lanes for node in lane.unchecked if not node.is_cancelled])
        shown = self.machine.layout.shown
        ends = [(lane, shown if lane.failed_at else (*wanted, *shown)) for lane in self.lanes]
        self._execute([lane.variables[name][-1][0] for lane, names in ends for name in names])
        outcome = outcome_of(self.machine.program, self.machine.backend, self.lanes)
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
        for batch in POLICIES[self.machine.form](sorted(graph, key=lambda node: node.order)):
            going = [node for node in batch if not node.is_cancelled]
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
            batch[row].lane.fail_late(batch[row], int(faults[row]) - 1)
        counted = Counter(node.block for node in batch if machine.nodes.blocks[node.block].uses[-1] is node.use)
        for number, active in counted.items():
            self.active[number] += active
        for number, _ in counted.most_common(1):
            self.executions[number] += 1
        self.executing += time.perf_counter() - started
