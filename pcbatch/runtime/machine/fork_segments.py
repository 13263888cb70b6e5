"""The compiled programs of runs whose calls are forked: a whole run, or the part that its lanes allow, and a leg.

Both give where the run stands. A whole run has its first state from the arguments; a leg goes on from a state, which
may have been enlarged since (`pool_sizing.grown`). Most runs need no more than the one program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.compiled_programs import Programs
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.forking import OWN, Forking, Report
from pcbatch.runtime.machine.loop import Counters
from pcbatch.runtime.machine.pool_sizing import Size
from pcbatch.runtime.machine.result_packing import Returned
from pcbatch.runtime.machine.segments import Legs, Snapshot


@dataclass(frozen=True)
class ForkSegmentState:
    """The standing of a run of some `size`: its `report` and `arrays`, outputs and counters as `returned` packs them.

    And its state: first the numbers of the lanes, one kind behind the other in a vector, then the other arrays.
    """

    size: Size
    report: Report
    state: Sequence[Array]
    returned: Returned
    arrays: Sequence[Array]


class ForkedLegs:
    """The programs of one program that forks; `programs` counts them, and names them on disk."""

    def __init__(self, context: Context, programs: Programs, jit: bool):
        self.context, self.programs, self.jit = context, programs, jit
        self.backend, self.legs = context.backend, Legs(context)
        self._trips: dict[Any, Forking] = {}
        self._made: dict[Any, Any] = {}

    @property
    def program(self) -> Program:
        """The program."""
        return self.context.program

    def trips(self, size: Size) -> Forking:
        """Return the rules of a trip in a pool."""
        if size.pool not in self._trips:
            few = size.pool.examples <= CPU.forked_few and size.pool.lanes <= CPU.least_lanes
            few = few and not self.context.is_deterministic
            self._trips[size.pool] = Forking(self.context, self.legs.loop.row_costs, size.pool, few)
        return self._trips[size.pool]

    def returned(self, size: Size) -> Returned:
        """Return the packing of outputs and counters."""
        return self._once(("returned", size.pool.examples), lambda: Returned(self.legs, size.pool.examples))

    # -- what is compiled ----------------------------------------------------------------------------------------------

    def whole(self, size: Size) -> Callable[..., Any]:
        """Return the program from arguments, shared operands and number of examples (int32) to a `ForkSegmentState`."""
        count = len(self.legs.layout.inputs)

        def program(*arrays: Array) -> list[Array]:
            with self.programs.statistics.tracing(counts=True):
                *operands, examples = arrays[count:]
                inputs = dict(zip(self.legs.layout.inputs, arrays[:count], strict=True))
                state = self.trips(size).start(inputs, size.capacity, examples)
                return self._traced(size, state, self.legs.loop.start(), inputs, operands)

        return self._compiled("forked run", size, program)

    def leg(self, size: Size) -> Callable[..., Any]:
        """Return the program of state, counters, arguments, operands to a `ForkSegmentState`."""

        def program(*arrays: Array) -> list[Array]:
            with self.programs.statistics.tracing(counts=True):
                remaining = iter(arrays)
                state = {key: next(remaining) for key in self._keys}
                counters = {key: next(remaining) for key in self.legs.loop.counter_specs}
                inputs = {key: next(remaining) for key in self.legs.layout.inputs}
                return self._traced(size, state, counters, inputs, list(remaining))

        return self._compiled("forked leg", size, program)

    def _compiled(self, kind: str, size: Size, program: Callable[..., Any]) -> Callable[..., Any]:
        name = self.programs.name_of(kind, size.pool.lanes, size.pool.examples, size.capacity)
        return self._once((kind, size), lambda: self.backend.compile(program, self.jit, name=name))

    def _traced(
        self, size: Size, state: State, counters: Counters, inputs: State, operands: Sequence[Array]
    ) -> list[Array]:
        trips = self.trips(size)
        state, counters, report = trips.run(state, inputs, self.legs.operands(operands), counters)
        numbers = self.backend.joined(*(state[key] for key in self._numbers))
        packed = self.returned(size).pack(Snapshot(size.pool, state, counters, inputs, trips.outputs(state)))
        return [report, numbers, *(state[key] for key in self._others), *packed]

    # -- where a run stands --------------------------------------------------------------------------------------------

    def standing(self, size: Size, found: Sequence[Array]) -> ForkSegmentState:
        """Return the standing of a run from the results of a program of this size."""
        report, end = Report(*np.asarray(found[0]).tolist()), 2 + len(self._others)
        return ForkSegmentState(size, report, found[1:end], self.returned(size), found[end:])

    def state(self, now: ForkSegmentState) -> State:
        """The arrays of the state by key."""
        numbers, *others = now.state
        lanes, first = now.size.pool.lanes, self.backend.constant
        found = {key: self.backend.rows_at(numbers, first(i * lanes), lanes) for i, key in enumerate(self._numbers)}
        return {**found, **dict(zip(self._others, others, strict=True))}

    def counters(self, now: ForkSegmentState) -> Counters:
        """The counters by key."""
        found = now.returned.unpack(now.arrays)
        specs = self.legs.loop.counter_specs
        return {key: self.backend.array(found[key], dtype) for key, (dtype, _) in specs.items()}

    def go_on(self, size: Size, state: State, counters: Counters, given: Sequence[Array]) -> ForkSegmentState:
        """A leg more, on arguments and shared operands."""
        before = [*(state[key] for key in self._keys), *(counters[key] for key in self.legs.loop.counter_specs)]
        return self.standing(size, self.leg(size)(*before, *given))

    @cached_property
    def _numbers(self) -> list[str]:
        """The keys of the int32 scalars of each lane."""
        held = self.legs.layout.arrays
        return [k for k, h in held.items() if not h.stacked and h.type.dtype == "int32" and not h.type.shape]

    @cached_property
    def _others(self) -> list[str]:
        """The other keys of a state."""
        return [key for key in (*self.legs.layout.arrays, *OWN) if key not in self._numbers]

    @cached_property
    def _keys(self) -> list[str]:
        return [*self._numbers, *self._others]

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]
