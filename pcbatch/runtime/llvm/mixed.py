"""A program with native code among its expensive blocks: an executable in which lanes meet at these alone.

Whole runs are made so, of lanes whose number is known, from ordinary code. Runs in slices and runs in a caller's
graph are the machine's affair, in lockstep throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from pcbatch.ir.machine import LaneStatus, Program
from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.llvm.region_handler import NativeBlocks, native_blocks, with_tops_apart
from pcbatch.runtime.machine.compiled_programs import NO_BUDGET
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.native_executable import NativeExecutable
from pcbatch.runtime.machine.outcome import Finished, Outcome, Run
from pcbatch.runtime.machine.pool import BatchBuckets, Pool
from pcbatch.runtime.machine.result_packing import Returned
from pcbatch.runtime.machine.segments import Legs
from pcbatch.runtime.machine.state import GROWTH, Layout
from pcbatch.threads import once

SHOWN = 4
"""Maximal number of blocks in lockstep that are called by name."""


class MixedProgram(NativeExecutable):
    """Runs the program of a machine: blocks of `lockstep` for all lanes together, the others natively.

    `why` says why not all are; pieces are traced within `tracing`.
    """

    def __init__(
        self,
        machine: Machine,
        lockstep: frozenset[int],
        why: str,
        tracing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ):
        super().__init__(machine)
        self._wanted, self._why, self._tracing = lockstep, why, tracing
        self._limits = machine.context.limits
        self.capacity = self._limits.first_capacity
        self._compiled: dict[tuple[int, int], Callable[..., Any]] = {}
        self._returned: dict[int, Returned] = {}

    @once
    def _native(self) -> NativeBlocks:
        """The native blocks, made when a run or a question needs them: what is taped in a graph does not."""
        machine, layout = self.machine, Layout(with_tops_apart(self.program))
        with self._tracing(), self._timed():
            costs, name_of = machine.legs.loop.row_costs, machine.programs.name_of
            return native_blocks(self.backend, layout, self._limits, costs, self._wanted, name_of)

    @property
    def _lockstep(self) -> frozenset[int]:
        return frozenset(self._native.lockstep)

    @once
    def form(self) -> str:
        """The form in `f.stats()`."""
        labels = [self.program.blocks[number].label for number in sorted(self._lockstep)]
        shown = ", ".join(labels) if len(labels) <= SHOWN else f"{len(labels)} of {len(self.program.blocks)} blocks"
        return f"mixed: {shown} in lockstep, the rest native: {self._why}"

    @once
    def legs(self) -> Legs:
        """The legs of a run, with native code among them."""
        native, context = self._native, self.machine.context
        return Legs(replace(context, layout=native.extent.layout, elsewhere=native))

    @property
    def stack_entries(self) -> int:
        return self.capacity + 1 if self.legs.layout.all_stacks else 0

    def program_for(self, lanes: Any) -> Program:
        chunked = self.legs.loop.chunked(self.rooms.to_be(lanes))
        native = (number for number in range(len(chunked.blocks)) if number not in self._lockstep)
        return replace(chunked, native=tuple(native))

    @property
    def rooms(self) -> BatchBuckets:
        return self.machine.rooms

    def _check(self, lanes: int) -> None:
        given = [leaf for name in self.program.parameters for leaf in leaves(self.program.types[name])]
        shared = [leaf for name in self.program.shared for leaf in leaves(self.program.shared_types[name])]
        specs: list[Spec] = [(leaf.dtype, (self._room(lanes), *leaf.shape)) for leaf in given]
        specs += [(leaf.dtype, leaf.shape) for leaf in shared]
        with self._timed():
            self.backend.lower(self._whole(self._room(lanes)), [*specs, ("int32", ())], jit=True)

    def _ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        if not self.legs.limits.roomy:
            return lambda given: Finished.of(self._run_arrays(given, lanes))
        room, extended, count = self._room(lanes), self.machine.extended, self.backend.constant(lanes)
        returned = self._returned_of(room)
        direct = self.backend.direct(self._whole(room), [*extended(arrays, lanes, room), count])
        examples = None if room == lanes else lanes
        return self._explained(
            lambda given: returned.finished(direct([*extended(given, lanes, room), count])[:-1], examples)
        )

    def _compile(self, arrays: Sequence[Array], lanes: int) -> None:
        self._run_arrays(arrays, lanes, idle=True)

    def _run_arrays(self, arrays: Sequence[Array], lanes: int, idle: bool = False) -> Outcome:
        """A whole run; where a lane lacks room, one more on larger stacks, on which the next one begins.

        In an `idle` one no lane has an example: it ends at once.
        """
        room = self._room(lanes)
        returned, limits, first = self._returned_of(room), self.legs.limits, self.capacity
        flat = [*self.machine.extended(arrays, lanes, room), self.backend.constant(0 if idle else lanes)]
        while True:
            sealed = self.backend.forbid_gradients(self._whole(room), self.program.name)
            with self._timed():
                *found, paused = sealed(*flat)
                if limits.roomy or not bool(paused) or self.capacity >= limits.largest_capacity:
                    outcome = returned.outcome(found, None if room == lanes else lanes)
                    break
            self.capacity = min(self.capacity * GROWTH, limits.largest_capacity)
        if self.capacity > first and np.any(np.asarray(outcome.status) == LaneStatus.MAX_DEPTH):
            self.capacity = first  # maybe of a recursion without end, for which no other run is to pay
        return outcome

    def _returned_of(self, room: int) -> Returned:
        if room not in self._returned:
            self._returned[room] = Returned(self.legs, room)
        return self._returned[room]

    def _whole(self, room: int) -> Callable[..., Any]:
        """The program of a whole run on stacks of the present capacity; its last result: whether a lane lacks room.

        It takes the leaves of arguments and shared operands, and how many examples there are.
        """
        legs, returned, capacity = self.legs, self._returned_of(room), self.capacity
        count = len(legs.layout.inputs)

        def program(*arrays: Array) -> list[Array]:
            with self.machine.statistics.tracing(counts=True):
                *shared, examples = arrays[count:]
                snapshot = legs.begin(arrays[:count], Pool.of(room), capacity, examples)
                arrived = legs.leg(snapshot, shared, self.backend.array(NO_BUDGET, "int64"))
                return [*returned.pack(arrived.snapshot), arrived.paused]

        key = (room, capacity)
        if key not in self._compiled:
            name = self.machine.programs.name_of("mixed", *key)
            self._compiled[key] = self.backend.compile(program, jit=True, name=name)
        return self._compiled[key]
