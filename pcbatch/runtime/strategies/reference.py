"""The slow truth: a table run lane by lane, stacks as Python lists, pieces run at once for one example.

It shares with the machine the table and nothing else: no masks, no junk lanes, no pfor, no XLA. What the machine
gives must equal what this gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir import values
from pcbatch.ir.machine import LaneStatus, Program
from pcbatch.ir.machine_verifier import validate
from pcbatch.ir.types import TensorType, Type, leaves
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.machine.outcome import Counts, Finished, Outcome, Run, Statistics
from pcbatch.runtime.machine.state import Limits
from pcbatch.runtime.strategies.lane import Lane, Walk
from pcbatch.runtime.strategies.on_host import require_host


class ReferenceMachine:
    """Runs one program as `Machine` does, by `run_reference`."""

    is_numpys, any_lanes = False, True

    def __init__(
        self, program: Program, backend: Backend, *, max_depth: int | None = None, max_steps: int | None = None
    ):
        validate(program, max_steps)
        self.program, self.backend = program, backend
        self.max_depth, self.max_steps = max_depth, max_steps
        self.statistics = Statistics()
        self.stack_entries = 0  # they are lists
        self.form = "reference"
        self.notes: Sequence[tuple[Span | None, str]] = ()

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> Outcome:
        """Run `lanes` lanes, one after the other. UsageError PCB536 inside a graph, which has no values yet."""
        require_host(self.backend, "backend='reference'", self.program.name)
        return run_reference(self.program, self.backend, arguments, shared, lanes, self.max_depth, self.max_steps)

    def walk(self, arguments: Sequence[Any], shared: Sequence[Any], lane: int) -> Walk:
        """Run `lane` alone, block by block."""
        examples = Examples(self.program, self.backend, arguments, shared, Limits.of(self.max_depth, self.max_steps))
        return Walk(examples.lane(lane), outcome_of)

    def ready(self, arrays: Sequence[Any], lanes: int) -> Run:
        """A run of `lanes` lanes on arrays like these; there is nothing to make ready."""
        count = sum(1 for name in self.program.parameters for _ in leaves(self.program.types[name]))
        return lambda given: Finished.of(self.run(given[:count], given[count:], lanes))

    def program_for(self, lanes: Any) -> Program:
        """The program that is executed for `lanes` lanes."""
        return self.program

    def check(self, lanes: int) -> None:
        """Nothing is compiled, so nothing can be refused."""

    def compile(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> None:
        """Nothing is compiled."""


def run_reference(
    program: Program,
    backend: Backend,
    arguments: Sequence[Any],
    shared: Sequence[Any],
    lanes: int,
    max_depth: int | None = None,
    max_steps: int | None = None,
) -> Outcome:
    """Run `program` for each of `lanes` lanes; see `Machine.run`. `trips` is 0: there is no loop over blocks."""
    examples = Examples(program, backend, arguments, shared, Limits.of(max_depth, max_steps))
    return outcome_of(program, backend, [*map(examples.ended, range(lanes))])


class Examples:
    """The arguments of a run, from which its lanes are made."""

    def __init__(
        self, program: Program, backend: Backend, arguments: Sequence[Any], shared: Sequence[Any], limits: Limits
    ):
        def arrays(given: Iterator[Any], type_: Type) -> list[Any]:
            return [backend.array(next(given), leaf.dtype) for leaf in leaves(type_)]

        self.program, self.backend, self.limits = program, backend, limits
        given, given_shared = iter(arguments), iter(shared)
        self.columns = {name: arrays(given, program.types[name]) for name in program.parameters}
        types = {name: program.shared_types[name] for name in program.shared}
        self.shared = {name: values.pack(type_, arrays(given_shared, type_)) for name, type_ in types.items()}

    def lane(self, number: int) -> Lane:
        """The lane of this number, before its first block."""
        types = self.program.types
        inputs = {
            name: values.pack(types[name], [leaf[number] for leaf in each]) for name, each in self.columns.items()
        }
        return Lane(self.program, self.backend, inputs, self.shared, self.limits)

    def ended(self, number: int) -> Lane:
        """The lane of this number, after its last block."""
        lane = self.lane(number)
        lane.run_to_the_end()
        return lane


def outcome_of(program: Program, backend: Backend, finished: Sequence[Any]) -> Outcome:
    """The outcome of a run of these lanes."""

    def column(name: str, failed_too: bool) -> list[Any]:
        """The leaves of the tops of `name` of all lanes; blank for failed lanes and where it never got a value."""
        type_ = program.types[name]
        rows = [lane.leaves(name) if failed_too or lane.status == LaneStatus.OK else None for lane in finished]
        stacked = []
        for place, leaf in enumerate(leaves(type_)):
            blank = _blank(backend, leaf, failed_too)
            # Of arrays, not of what NumPy makes of them: a tape that watches sees it.
            array = [blank if row is None else row[place] for row in rows] if rows else blank[None][:0]
            stacked.append(backend.cast(backend.array(array, leaf.dtype), leaf.dtype if failed_too else leaf.returned))
        return stacked

    names = dict.fromkeys(name for site in program.faults for name in site.arguments)
    executions = np.sum([lane.executions for lane in finished], axis=0, dtype=np.int64, initial=0)
    executions = np.zeros(len(program.blocks), np.int64) + executions
    return Outcome(
        values=tuple(leaf for name in program.results for leaf in column(name, failed_too=False)),
        status=np.array([lane.status for lane in finished], np.int32),
        site=np.array([lane.site for lane in finished], np.int32),
        place=np.array([lane.place for lane in finished], np.int32),
        fault_values={name: column(name, failed_too=True) for name in names},
        # Lane by lane: no row is computed for nobody.
        counting=lambda: Counts(executions, active=executions, rows=executions, trips=np.int64(0)),
        steps=np.array([lane.steps for lane in finished], np.int32),
        backend=backend,
    )


def _blank(backend: Backend, type_: TensorType, zero: bool) -> Any:
    """The value of a lane that has none: NaN for floats unless `zero`, else 0."""
    blank = np.asarray(backend.zeros(1, type_))[0]
    floating = type_.dtype.startswith(("float", "bfloat", "complex"))
    return backend.array(blank + np.asarray(np.nan, blank.dtype) if floating and not zero else blank, type_.dtype)
