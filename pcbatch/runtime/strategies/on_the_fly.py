"""Batching on the fly: every lane builds a graph of its own, and nodes of all lanes that are alike run together.

A node is a block's code, or the integers of it (`optimize.machine.nodes`). A lane goes on from block to block and only
notes nodes, until a branch needs a value that is not there. When all lanes have come so far, what the branches need is
run, and no more, by depth or by agenda; at last the results. Signatures are those of DyNet's appendix: code for single
components, of any shape; code that depends on the shapes; code with operands that all share, such as a weight; and what
cannot be batched, which runs node by node.

Rows are copied together by NumPy, and run by TensorFlow's own kernels.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir.machine import Piece, Program
from pcbatch.ir.types import TensorType, leaves, with_leaves
from pcbatch.optimize.machine.nodes import Nodes
from pcbatch.runtime.backends.protocol import Array, Backend, Spec
from pcbatch.runtime.costs.estimate import Prices, block_costs
from pcbatch.runtime.machine import gc_pause
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.error_translation import explaining
from pcbatch.runtime.machine.execution import Execution
from pcbatch.runtime.machine.outcome import Counts, Outcome
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.segments import Legs
from pcbatch.runtime.machine.state import Layout, Limits
from pcbatch.runtime.machine.values import Rows
from pcbatch.runtime.schedules.adaptive import EXPENSIVE, expensive_blocks
from pcbatch.runtime.strategies.node_graphs import GraphLane, Leaves, Node, Value, by_agenda, by_depth
from pcbatch.runtime.strategies.on_host import OnHost
from pcbatch.runtime.strategies.reference import outcome_of

STRATEGIES = {"depth": by_depth, "agenda": by_agenda}


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
        return len(shapes) == 1 and self.backend.facts(item, reads, ()).together.componentwise

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


class OnTheFly(OnHost):
    """Runs one program as graphs of its `nodes`, batched by depth or by agenda."""

    any_lanes, stack_entries = True, 0

    def __init__(self, program: Program, nodes: Nodes, backend: Backend, strategy: str, **limits: int | None):
        super().__init__(program, backend, strategy, False, **limits)
        self.nodes = nodes
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

    def check(self, lanes: int) -> None:
        """Trace all code; raises what `run` would raise before it runs."""
        assert self.signatures is not None

    def compile(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> None:
        """Trace all code; no more is compiled."""
        self.check(lanes)

    def launched(self, arguments: Sequence[Array], shared: Sequence[Array], lanes: int) -> Outcome:
        """Build and run until all lanes have ended; what they leave behind."""
        return _Batch(self, arguments, shared, lanes).outcome()


class _Batch:
    """One run: its lanes, what they have built, and what was launched for them."""

    def __init__(self, machine: OnTheFly, arguments: Sequence[Array], shared: Sequence[Array], lanes: int):
        self.machine, self.shared, program, layout = machine, shared, machine.program, machine.layout
        self.heavy = expensive_blocks(Prices(machine.costs, max(lanes, 1)), EXPENSIVE)
        self.orders, self.rounds, self.executing, self.scheduling = count(1), 0, 0.0, 0.0
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
            self.lanes.append(GraphLane(program, values, machine.limits, machine.nodes, layout.shown, self._made))

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

    def _made(self, node: Node) -> None:
        """Give a node that a lane has noted its signature."""
        code, node.order = node.use.code, next(self.orders)
        signature = self.machine.signatures[code]
        node.signature = ("alone", node.order) if signature is None else signature
        node.heavy = node.use.late and code in self.heavy

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
        """Run nodes of one signature; of one code as rows of that, else all components of them as rows."""
        started, machine = time.perf_counter(), self.machine
        machine.watch(batch)
        by_code: dict[int, list[Node]] = {}
        for node in batch:
            by_code.setdefault(node.use.code, []).append(node)
        operands = [
            [leaf for each in zip(*(node.operands for node in nodes), strict=True) for leaf in _rows(each)]
            for nodes in by_code.values()
        ]
        if len(by_code) == 1:
            results, faults = machine.codes[batch[0].use.code].run(operands[0], self.shared, len(batch))
            found = [results]
            for row in np.flatnonzero(faults).tolist():
                batch[row].fail(int(faults[row]) - 1)
        else:
            together = [np.concatenate([each.reshape(-1) for each in leaf]) for leaf in zip(*operands, strict=True)]
            results, _ = machine.components[batch[0].signature].run(together, self.shared, len(together[0]))
            ends = np.cumsum([given[0].size for given in operands])
            parts = [[np.split(leaf, ends[:-1]) for leaf in each] for each in results]
            found = [
                [[leaf[number].reshape(given[0].shape) for leaf in each] for each in parts]
                for number, given in enumerate(operands)
            ]
        for nodes, own in zip(by_code.values(), found, strict=True):
            for row, node in enumerate(nodes):
                node.results, node.row, node.operands = own, row, ()
        counted = Counter(node.block for node in batch if machine.nodes.blocks[node.block].uses[-1] is node.use)
        for number, rows in counted.items():
            self.active[number] += rows
        for number, _ in counted.most_common(1):
            self.executions[number] += 1
        self.executing += time.perf_counter() - started


def _rows(values: Sequence[Value]) -> list[np.ndarray]:
    """The leaves of values of one variable, `[rows, ...]`; none of no values."""
    rows = [[leaf[node.row] for leaf in node.results[place]] for node, place in values]  # type: ignore[index]
    return [np.stack(leaf) for leaf in zip(*rows, strict=True)]
