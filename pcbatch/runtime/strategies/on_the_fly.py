"""Batching on the fly: every lane builds a graph of its own, and nodes of all lanes that are alike run together.

A node is a block's code, or the integers of it (`optimize.machine.nodes`). A lane goes on from block to block and only
notes nodes, until a branch needs a value that is not there. When all lanes have come so far, what the branches need is
run, and no more, by depth or by agenda (`batches`); at last the results. Signatures are those of DyNet's appendix: code
for single components, of any shape; code that depends on the shapes; code with operands that all share, such as a
weight; and what cannot be batched, which runs node by node.

Rows are copied together by NumPy, and run by TensorFlow's own kernels.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir.machine import Piece, Program
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import TensorType, leaves, with_leaves
from pcbatch.ir.verify.machine import validate
from pcbatch.optimize.machine.nodes import Nodes
from pcbatch.runtime.backends.protocol import Array, Backend, Spec
from pcbatch.runtime.costs.estimate import block_costs
from pcbatch.runtime.costs.prices import Prices
from pcbatch.runtime.machine import gc_pause
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.error_translation import explaining
from pcbatch.runtime.machine.execution import Execution
from pcbatch.runtime.machine.limits import Limits
from pcbatch.runtime.machine.outcome import Finished, Outcome, Run, Statistics
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.result_packing import argument_arrays, operand_arrays
from pcbatch.runtime.machine.rows import Rows
from pcbatch.runtime.machine.segments import Legs
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.schedules.adaptive import EXPENSIVE, expensive_blocks
from pcbatch.runtime.strategies.batches import Batches, by_agenda, by_depth
from pcbatch.runtime.strategies.node_graphs import Builder, Failure, Lane, Leaves, Node, Value
from pcbatch.runtime.strategies.on_host import require_host

STRATEGIES: dict[str, Batches[Any]] = {"depth": by_depth, "agenda": by_agenda}


class Code:
    """One code, traced for any number of rows."""

    def __init__(self, program: Program, backend: Backend):
        self.program, self.backend, self.layout = program, backend, Layout(program)
        self.context = Context(backend, self.layout, Limits.of(None, None), True)
        self.legs = Legs(self.context)
        specs: list[Spec] = [(held.type.dtype, (None, *held.type.shape)) for held in self.layout.inputs.values()]
        shared = [leaf for name in program.shared for leaf in leaves(program.shared_types[name])]
        self.specs = [*specs, *((leaf.dtype, leaf.shape) for leaf in shared), ("bool", (None,))]
        self.launch = backend.compile(self._traced, False, self.specs)

    @property
    def is_componentwise(self) -> bool:
        """Tell whether it is one piece that does the same to every component of arrays of one shape."""
        (item, *more), types = self.program.blocks[0].body, self.program.types
        if more or not isinstance(item, Piece) or item.shared or item.sites or item.predicate is not None:
            return False
        reads = [types[name] for name in item.reads]
        shapes = {leaf.shape for name in (*item.reads, *item.writes) for leaf in leaves(types[name])}
        return len(shapes) == 1 and self.backend.together(item, reads, ()).componentwise

    def run(self, rows: Sequence[np.ndarray], shared: Sequence[Array], count: int) -> tuple[list[Leaves], np.ndarray]:
        """The leaves of each result, and fault sites plus one, of so many rows."""
        given = [self.backend.array(each, dtype) for each, (dtype, _) in zip(rows, self.specs, strict=False)]
        *found, faults = map(np.asarray, self.launch(*given, *shared, self.backend.array(np.ones(count, bool), "bool")))
        remaining = iter(found)
        return [[next(remaining) for _ in self.layout.leaves(name)] for name in self.program.results], faults

    def _traced(self, *arrays: Array) -> list[Array]:
        *given, every = arrays
        inputs = len(self.layout.inputs)
        state = self.legs.begin(given[:inputs], Pool.of(self.backend.lanes_of(every)), 0).state
        shared, rows = self.legs.operands(given[inputs:]), Rows.everyone(self.backend, every)
        with self.backend.scope(self.program.blocks[0].label):
            execution = Execution(self.context, 0, state, shared, rows)
            execution.execute()
            state = {**state, **execution.updates()}
        return [*(state[key] for name in self.program.results for key in self.layout.tops(name)), state["fault"]]


class OnTheFly:
    """Runs one program as graphs of its `nodes`, batched by depth or by agenda."""

    is_numpys, any_lanes, stack_entries = False, True, 0

    def __init__(
        self,
        program: Program,
        nodes: Nodes,
        backend: Backend,
        strategy: str,
        *,
        max_depth: int | None = None,
        max_steps: int | None = None,
    ):
        validate(program, max_steps)
        self.program, self.nodes, self.backend, self.form = program, nodes, backend, strategy
        self.limits, self.statistics, self.layout = Limits.of(max_depth, max_steps), Statistics(), Layout(program)
        self.legs = Legs(Context(backend, self.layout, self.limits, True))
        self.codes = [Code(nodes.of_code(number), backend) for number in range(len(nodes.code.blocks))]
        self.costs = block_costs(nodes.code, backend)
        self.watch: Callable[[Sequence[Node]], None] = lambda batch: None
        """Hears of each batch before it runs."""

    @cached_property
    def signatures(self) -> list[Hashable]:
        """The signature of each code, None for what runs node by node; traces all code."""
        started = time.perf_counter()
        with gc_pause.paused(), explaining(self.program, self.backend, False):
            for code in self.codes:
                self.backend.lower(code.launch, code.specs, False)
            found = [self._signature(number, code) for number, code in enumerate(self.codes)]
            self.components = {key: self._of_components(key) for key in found if key not in (None, *range(len(found)))}
        self.statistics.compilations += len(self.codes) + len(self.components)
        self.statistics.trace_seconds += time.perf_counter() - started
        return found

    def _signature(self, number: int, code: Code) -> Hashable:
        if code.context.notes:  # an operation of it runs lane after lane
            return None
        shapeless = self.nodes.shapeless
        alike = shapeless.count(shapeless[number]) > 1 and code.is_componentwise
        return shapeless[number] if alike else number

    def _of_components(self, signature: Hashable) -> Code:
        """The code of a signature for single components."""
        program = self.nodes.of_code(self.nodes.shapeless.index(signature))
        types = {
            name: with_leaves(type_, iter([TensorType(leaf.dtype) for leaf in leaves(type_)]))
            for name, type_ in program.types.items()
        }
        code = Code(replace(program, types=types), self.backend)
        self.backend.lower(code.launch, code.specs, False)
        return code

    @property
    def notes(self) -> Sequence[tuple[Span | None, str]]:
        """Findings about places in the source, made while the program was traced."""
        return tuple(dict.fromkeys(note for code in self.codes for note in code.context.notes))

    def program_for(self, lanes: Any) -> Program:
        """The program that is executed for `lanes` lanes."""
        return self.program

    def check(self, lanes: int) -> None:
        """Trace all code; raises what `run` would raise before it runs."""
        assert self.signatures is not None

    def compile(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> None:
        """Trace all code; no more is compiled."""
        self.check(lanes)

    def ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        """A run of `lanes` lanes on arrays like these."""
        self.check(lanes)
        return lambda given: Finished.of(self._run(given, lanes))

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` lanes; see `Machine.run`. UsageError PCB536 inside a graph, where no host decides what runs."""
        require_host(self.backend, f"strategy={self.form!r}", self.program.name)
        given = argument_arrays(self.program, self.backend, arguments, lanes)
        return self._run([*given, *operand_arrays(self.program, self.backend, shared)], lanes)

    def _run(self, arrays: Sequence[Array], lanes: int) -> Outcome:
        inputs = len(self.layout.inputs)
        with explaining(self.program, self.backend, False):
            return _Batch(self, arrays[:inputs], arrays[inputs:], lanes).outcome()


class _Batch:
    """One run: its lanes, what they have built, and what was launched for them."""

    def __init__(self, machine: OnTheFly, arguments: Sequence[Array], shared: Sequence[Array], lanes: int):
        self.machine, self.shared = machine, shared
        self.program, self.blocks, self.backend = machine.program, machine.program.blocks, machine.backend
        heavy = frozenset(expensive_blocks(Prices(machine.costs, max(lanes, 1)), EXPENSIVE))
        shown = machine.layout.shown
        self.builder = Builder(machine.program, machine.nodes, machine.limits, shown, machine.signatures, heavy)
        self.rounds, self.executing, self.scheduling = 0, 0.0, 0.0
        self.executions, self.active = np.zeros(len(self.blocks), np.int64), np.zeros(len(self.blocks), np.int64)
        layout, given = machine.layout, iter(arguments)
        inputs = [[np.asarray(next(given)) for _ in layout.leaves(name)] for name in self.program.parameters]
        self.blank = Node(results=[[self._zeros(1, leaf) for leaf in layout.leaves(name)] for name in self._names])
        self.lanes = []
        for row in range(lanes):
            entry = Node(results=inputs, row=row)
            tops: dict[str, list[Value]] = {name: [self._blank(name)] for name in self.program.storage}
            tops |= {name: [(entry, place)] for place, name in enumerate(self.program.parameters)}
            self.lanes.append(Lane(tops, [len(self.blocks)]))

    def outcome(self) -> Outcome:
        """Build and run until all lanes have ended; what they leave behind."""
        started, running = time.perf_counter(), self.lanes
        while running:
            self._execute([node for lane in running for node in self.builder.build(lane)])
            running = [lane for lane in running if lane.failure is None and lane.next < len(self.blocks)]
        self._execute([node for lane in self.lanes for node in lane.unchecked if not node.is_cancelled])
        ends = [self._end(lane) for lane in self.lanes]
        self._execute([node for end in ends for node, _ in end.values()])
        outcome = self._outcome(ends)
        building = time.perf_counter() - started - self.executing - self.scheduling
        phases = {"building": building, "scheduling": self.scheduling, "executing": self.executing}
        return replace(outcome, stack_entries=0, phases=phases)

    # -- running -------------------------------------------------------------------------------------------------------

    def _execute(self, wanted: Sequence[Node]) -> None:
        """Run nodes, and those that they need, batch by batch."""
        started, executing = time.perf_counter(), self.executing
        graph, waiting = {}, [*wanted]
        while waiting:
            node = waiting.pop()
            if node.results is None and node.order not in graph:
                graph[node.order] = node
                waiting += node.needs
        for batch in STRATEGIES[self.machine.form]([graph[order] for order in sorted(graph)]):
            going = [node for node in batch if not node.is_cancelled]
            if going:
                self._launch(going)
        self.rounds += bool(graph)
        self.scheduling += time.perf_counter() - started - (self.executing - executing)

    def _launch(self, batch: Sequence[Node]) -> None:
        """Run nodes of one signature; those of the same code together, or components of them all."""
        started = time.perf_counter()
        self.machine.watch(batch)
        by_code: dict[int, list[Node]] = {}
        for node in batch:
            by_code.setdefault(node.use.code, []).append(node)
        if len(by_code) > 1:
            self._of_components(by_code)
        else:
            code, operands = self.machine.codes[batch[0].use.code], [*zip(*(n.operands for n in batch), strict=True)]
            results, faults = code.run([leaf for each in operands for leaf in _rows(each)], self.shared, len(batch))
            for row, node in enumerate(batch):
                node.results, node.row, node.operands = results, row, ()
            for row in np.flatnonzero(faults).tolist():
                self._fail(batch[row], int(faults[row]) - 1)
        counted = Counter(node.block for node in batch if self.machine.nodes.splits[node.block].whole is node.use)
        for number, rows in counted.items():
            self.active[number] += rows
        for number, _ in counted.most_common(1):
            self.executions[number] += 1
        self.executing += time.perf_counter() - started

    def _of_components(self, by_code: Mapping[int, Sequence[Node]]) -> None:
        """Run nodes of codes that differ in shapes alone, all components at once."""
        groups = [*by_code.values()]
        rows = [
            [leaf for each in zip(*(n.operands for n in nodes), strict=True) for leaf in _rows(each)]
            for nodes in groups
        ]
        together = [np.concatenate([each.reshape(-1) for each in leaf]) for leaf in zip(*rows, strict=True)]
        results, _ = self.machine.components[groups[0][0].signature].run(together, self.shared, len(together[0]))
        first = 0
        for nodes, given in zip(groups, rows, strict=True):
            shape, last = given[0].shape, first + given[0].size
            own = [[leaf[first:last].reshape(shape) for leaf in each] for each in results]
            for row, node in enumerate(nodes):
                node.results, node.row, node.operands = own, row, ()
            first = last

    def _fail(self, node: Node, place: int) -> None:
        """Let a check of a node fail its lane: that of the whole block says which is the first."""
        part = int(self.machine.nodes.splits[node.block].whole is not node.use)
        site = node.use.sites[place]
        node.lane.fail(Failure(node.visit, part, site, node.block, node.steps, node.shown))

    # -- the end -------------------------------------------------------------------------------------------------------

    @cached_property
    def _names(self) -> dict[str, int]:
        """The variables whose values are wanted in the end, or are zeros in the beginning, by place."""
        return {
            name: place
            for place, name in enumerate({**self.program.storage, **dict.fromkeys(self.machine.layout.shown)})
        }

    def _zeros(self, rows: int, type_: TensorType) -> np.ndarray:
        return np.asarray(self.backend.zeros(rows, type_))

    def _blank(self, name: str) -> Value:
        return self.blank, self._names[name]

    def _end(self, lane: Lane) -> dict[str, Value]:
        """Return the values wanted of a lane that has ended: its results, or those that its message shows."""
        shown, results = self.machine.layout.shown, self.program.results
        if lane.failure is not None:
            return {f"shown {name}": value for name, value in lane.failure.shown.items()}
        tops = [*((f"shown {name}", name) for name in shown), *((f"result {name}", name) for name in results)]
        return {key: lane.variables[name][-1] for key, name in tops}

    def _outcome(self, ends: Sequence[Mapping[str, Value]]) -> Outcome:
        layout, backend, failures = self.machine.layout, self.backend, [lane.failure for lane in self.lanes]
        numbers = {
            "status": [LaneStatus.OK if each is None else self.program.faults[each.site].status for each in failures],
            "site": [-1 if each is None else each.site for each in failures],
            "place": [-1 if each is None else each.block for each in failures],
            "steps": [(each or lane).steps for each, lane in zip(failures, self.lanes, strict=True)],
        }
        outputs = {key: np.array(each, np.int32) for key, each in numbers.items()}
        for what, names in (("result", self.program.results), ("shown", layout.shown)):
            for name in names:
                rows = _rows([end.get(f"{what} {name}", self._blank(name)) for end in ends])
                rows = rows or [self._zeros(0, leaf) for leaf in layout.leaves(name)]
                for key, leaf, row in zip(layout.keys(what, name), layout.leaves(name), rows, strict=True):
                    array = backend.array(row, leaf.dtype)
                    outputs[key] = backend.cast(array, leaf.returned) if what == "result" else array
        counters = {"executions": self.executions, "active": self.active, "rows": self.active, "trips": self.rounds}
        return self.machine.legs.outcome(counters, outputs, 0)


def _rows(values: Sequence[Value]) -> list[np.ndarray]:
    """The leaves of values of one variable, `[rows, ...]`; none of no values."""
    sources: dict[int, tuple[Leaves, list[int], list[int]]] = {}
    for at, (node, place) in enumerate(values):
        leaf_rows = node.results[place]  # type: ignore[index]
        _, rows, places = sources.setdefault(id(leaf_rows), (leaf_rows, [], []))
        rows.append(node.row)
        places.append(at)
    if not sources:
        return []
    order = np.argsort([at for _, _, places in sources.values() for at in places])
    every = [[leaf[rows] for leaf in each] for each, rows, _ in sources.values()]
    return [np.concatenate(parts)[order] if len(parts) > 1 else parts[0] for parts in zip(*every, strict=True)]
