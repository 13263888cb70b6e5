"""A program with native code among its expensive blocks: an executable in which lanes meet at these alone.

Whole runs are made so, of lanes whose number is known, from ordinary code. Runs in slices and runs in a caller's
graph are the machine's affair, in lockstep throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir.machine import Program
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.machine.explaining import explaining
from pcbatch.runtime.machine.legs import Legs
from pcbatch.runtime.machine.limits import GROWTH
from pcbatch.runtime.machine.machine import NO_BUDGET, Machine
from pcbatch.runtime.machine.outcome import Finished, Outcome, Run, Statistics
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.returned import Returned
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.native.region import Region

SHOWN = 4
"""So many blocks in lockstep are called by name, if they are not more."""


class MixedProgram:
    """Runs the program of a machine: blocks of `lockstep` for all lanes together, the others natively.

    `why` says why not all are.
    """

    def __init__(self, machine: Machine, lockstep: frozenset[int], why: str):
        self.machine, self.program, self.backend = machine, machine.program, machine.backend
        self.statistics: Statistics = machine.statistics
        labels = [self.program.blocks[number].label for number in sorted(lockstep)]
        shown = ", ".join(labels) if len(labels) <= SHOWN else f"{len(labels)} of {len(self.program.blocks)} blocks"
        self.form = f"mixed: {shown} in lockstep, the rest native: {why}"
        context, limits = machine.context, machine.context.limits
        layout = Layout(_cached(self.program))
        region = Region(self.backend, layout, limits, machine.legs.loop.row_costs, lockstep)
        self.legs = Legs(replace(context, layout=layout, elsewhere=region, merging=None))
        self.capacity = limits.first_capacity
        self._compiled: dict[tuple[int, int], Callable[..., Any]] = {}
        self._returned: dict[int, Returned] = {}

    @property
    def notes(self) -> Sequence[tuple[Span | None, str]]:
        """What was found out about the program while it was traced."""
        return self.machine.notes

    @property
    def stack_entries(self) -> int:
        """How many entries the stacks of the next run have at first; 0 if there are none."""
        return self.capacity + 1 if self.legs.layout.all_stacks else 0

    def program_for(self, lanes: Any) -> Program:
        """What is executed for `lanes` lanes."""
        return self.legs.loop.chunked(lanes)

    def check(self, lanes: int) -> None:
        """Compile for `lanes` lanes without running; raises what `run` would raise before it runs."""
        if lanes == 0:
            self.machine.check(lanes)
            return
        given = [leaf for name in self.program.parameters for leaf in leaves(self.program.types[name])]
        shared = [leaf for name in self.program.shared for leaf in leaves(self.program.shared_types[name])]
        specs: list[Spec] = [(leaf.dtype, (lanes, *leaf.shape)) for leaf in given]
        specs += [(leaf.dtype, leaf.shape) for leaf in shared]
        with self.machine.timed(), explaining(self.program, self.backend, jit=True):
            self.backend.lower(self._whole(lanes), specs, jit=True)

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` lanes; see `Machine.run`."""
        if not (isinstance(lanes, int) and lanes and self.backend.runs_now()):
            return self.machine.run(arguments, shared, lanes)
        return self._run_arrays(self.machine.arrays_given(arguments, shared, lanes), lanes)

    def ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        """A run of `lanes` lanes on arrays like these; see `Machine.ready`."""
        if lanes == 0:
            return self.machine.ready(arrays, lanes)
        if not self.legs.limits.roomy:
            return lambda given: Finished.of(self._run_arrays(given, lanes))
        returned, direct = self._returned_of(lanes), self.backend.direct(self._whole(lanes), arrays)

        def run(given: Sequence[Array]) -> Finished:
            try:
                return returned.finished(direct(given)[:-1])
            except Exception:
                with explaining(self.program, self.backend, jit=True):
                    raise

        return run

    def _run_arrays(self, arrays: Sequence[Array], lanes: int) -> Outcome:
        """A whole run; where a lane lacks room, one more on larger stacks, on which the next one begins."""
        returned, limits, first = self._returned_of(lanes), self.legs.limits, self.capacity
        while True:
            sealed = self.backend.forbid_gradients(self._whole(lanes), self.program.name)
            with self.machine.timed(), explaining(self.program, self.backend, jit=True):
                *found, paused = sealed(*arrays)
                if limits.roomy or not bool(paused) or self.capacity >= limits.largest_capacity:
                    outcome = returned.outcome(found)
                    break
            self.capacity = min(self.capacity * GROWTH, limits.largest_capacity)
        if self.capacity > first and np.any(np.asarray(outcome.status) == LaneStatus.MAX_DEPTH):
            self.capacity = first  # maybe of a recursion without end, for which no other run is to pay
        return outcome

    def _returned_of(self, lanes: int) -> Returned:
        if lanes not in self._returned:
            self._returned[lanes] = Returned(self.legs, lanes)
        return self._returned[lanes]

    def _whole(self, lanes: int) -> Callable[..., Any]:
        """The program of a whole run on stacks of the present capacity; its last result: whether a lane lacks room."""
        legs, returned, capacity = self.legs, self._returned_of(lanes), self.capacity
        count = len(legs.layout.inputs)

        def program(*arrays: Array) -> list[Array]:
            with self.machine.tracing(counts=True):
                snapshot = legs.begin(arrays[:count], Pool.of(lanes), capacity)
                arrived = legs.leg(snapshot, arrays[count:], self.backend.array(NO_BUDGET, "int64"))
                return [*returned.pack(arrived.snapshot), arrived.paused]

        key = (lanes, capacity)
        if key not in self._compiled:
            name = self.machine.name_of("mixed", *key)
            self._compiled[key] = self.backend.compile(program, jit=True, name=name)
        return self._compiled[key]


def _cached(program: Program) -> Program:
    """`program` with the tops of all stacks apart."""
    storage = {name: "register" if kind == "register" else "cached stack" for name, kind in program.storage.items()}
    return replace(program, storage=storage)
