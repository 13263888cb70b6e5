"""Runs whose calls are forked, leg by leg, as a run in slices wants them: budgets, files, Ctrl-C.

A snapshot of such a run has the state of all lanes with their lists, and so goes on to the bit as if it had not
stopped. Where nobody can go on, `grown` gives it more lanes or longer stacks. If that is not to be, and some examples
are left, it becomes a snapshot of a run in sequence, in which all others have ended: that is what a file holds then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pcbatch.ir.machine import Program
from pcbatch.ir.status import LaneStatus
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.machine import admission
from pcbatch.runtime.machine.argument_arrays import argument_arrays, operand_arrays
from pcbatch.runtime.machine.array_specs import to_stored
from pcbatch.runtime.machine.compiled_programs import NO_BUDGET
from pcbatch.runtime.machine.forked import ForkedMachine
from pcbatch.runtime.machine.forking import GIVEN_UP
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.pool_growth import grown, wanting
from pcbatch.runtime.machine.pool_sizing import MOST_GROWTH, Size
from pcbatch.runtime.machine.segments import QUEUE, Legs, SegmentResult, Snapshot
from pcbatch.runtime.machine.sequential_fallback import padded


class ForkedSlices:
    """The legs of a machine that forks; as `Machine` has them."""

    def __init__(self, machine: ForkedMachine):
        self._machine = machine
        self.plain = machine.machine
        self.forked = machine.legs

    @property
    def program(self) -> Program:
        """The program."""
        return self._machine.program

    @property
    def backend(self) -> Backend:
        """The library of its arrays."""
        return self._machine.backend

    @property
    def legs(self) -> Legs:
        """The legs of the run in sequence."""
        return self.plain.legs

    def begin(self, arguments: Sequence[Any], examples: int) -> Snapshot:
        """A run that has not begun: in sequence, if not all examples can run at once."""
        if not examples or self._machine.pools.at_once(examples) < examples:
            return self.plain.begin(arguments, examples)
        backend, layout = self.backend, self.forked.legs.layout
        given = argument_arrays(self.program, backend, arguments, examples)
        inputs = dict(zip(layout.inputs, given, strict=True))
        size = self._machine.pools.exactly(examples)
        state = self.forked.trips(size).start(inputs, size.capacity, examples)
        outputs = admission.blank_outputs(backend, layout, examples)
        queue = dict.fromkeys(QUEUE, backend.constant(examples))
        return Snapshot(size.pool, state, self.forked.legs.loop.start(), inputs, outputs, queue)

    def leg(self, snapshot: Snapshot, shared: Sequence[Any], trips: int | None = None) -> tuple[SegmentResult, Outcome]:
        """Go on from `snapshot` for at most `trips` trips; `paused` lanes need `grown(arrived.snapshot)` to go on."""
        if not is_forked(snapshot):
            arrived, outcome = self.plain.leg(snapshot, shared, trips)
            blocks = len(self.program.blocks)
            return arrived, replace(outcome, counting=lambda: padded(outcome.counts, blocks))
        backend, legs = self.backend, self.forked.legs
        until = NO_BUDGET if trips is None else int(snapshot.counters["trips"]) + trips
        given = [backend.array(snapshot.inputs[key], held.value.dtype) for key, held in legs.layout.inputs.items()]
        given += operand_arrays(self.program, backend, shared)
        with self._machine.compiling():
            now = self.forked.go_on(self._size(snapshot), snapshot.state, snapshot.counters, given, until)
        outputs = {key: now.returned.unpack(now.arrays)[key] for key in legs.layout.outputs}
        after = replace(snapshot, state=self.forked.state(now), counters=self.forked.counters(now), outputs=outputs)
        can_run = now.report.can_run > 0
        left = not can_run and bool((np.asarray(outputs["status"]) == LaneStatus.UNFINISHED).any())
        return SegmentResult(after, np.bool_(can_run), np.bool_(left)), now.returned.outcome(now.arrays)

    def grown(self, snapshot: Snapshot) -> Snapshot | None:
        """The same run on more lanes or longer stacks, or in sequence; None if that cannot be."""
        if not is_forked(snapshot):
            return self.plain.grown(snapshot)
        before = self._size(snapshot)
        lanes, stacks = wanting(snapshot.state, self.forked.trips(before))
        after = self._machine.pools.larger(before, MOST_GROWTH, lanes=lanes, stacks=stacks)
        if after == before:
            return self._in_sequence(snapshot)
        state = grown(snapshot.state, self.forked.trips(before), self.forked.trips(after), after.capacity)
        return replace(snapshot, pool=after.pool, state=state)

    def _size(self, snapshot: Snapshot) -> Size:
        return Size(snapshot.pool, int(self.forked.legs.capacity(snapshot)))

    def _in_sequence(self, snapshot: Snapshot) -> Snapshot:
        """The rest of a run, in sequence: examples that are left begin anew, the others are at their ends."""
        backend, layout, outputs = self.backend, self.legs.layout, snapshot.outputs
        examples = snapshot.pool.examples
        arguments = [snapshot.inputs[key] for key in layout.inputs]
        new = self.legs.begin(arguments, Pool.of(examples), self.plain.sizes.capacity)
        done = backend.array(np.asarray(outputs["status"]) == LaneStatus.OK, "bool")
        state = dict(new.state)

        def have(key: str, value: Array) -> None:
            state[key] = backend.where(done, value, state[key])

        have("pc", backend.constant(layout.finish))
        have("steps", backend.array(outputs["steps"], "int32"))
        for name in self.program.results:
            self._put(state, name, done, outputs)
        blocks = len(layout.program.blocks)
        # What join blocks have done, which come last, no run in sequence can count.
        counters = {key: array[..., :blocks] if len(array.shape) else array for key, array in snapshot.counters.items()}
        return replace(new, state=state, counters=counters, outputs=outputs)

    def _put(self, state: State, name: str, done: Array, outputs: State) -> None:
        """Store the result `name` in lanes that are `done`."""
        backend, layout = self.backend, self.legs.layout
        keys, types = layout.keys("result", name), layout.leaves(name)
        values = [backend.cast(outputs[key], type_.dtype) for key, type_ in zip(keys, types, strict=True)]
        if layout.storage(name) == "stack":
            first = state["pc"] * 0
            for key, type_, value in zip(layout.stacks(name), types, values, strict=True):
                state[key] = backend.masked_store(state[key], [first], done, to_stored(backend, value, type_))
        else:
            for key, value in zip(layout.tops(name), values, strict=True):
                state[key] = backend.where(done, value, state[key])


def is_forked(snapshot: Snapshot) -> bool:
    """Return whether calls are forked in this run, at this point."""
    return GIVEN_UP in snapshot.state
