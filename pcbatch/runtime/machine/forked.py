"""Whole runs of programs whose calls are forked, on as many lanes as that takes, and what is left of them in sequence.

A run begins with some lanes for each example. If forks want more, or stacks have no room, it is over at once, and
begins anew on a larger pool or stacks; the next run begins with these. Past a limit of bytes lanes that find no others
make their calls one after the other.

Examples that were given up, as one of their lanes has failed or has taken too many steps, are run again by the machine
without forks, which says what becomes of them. That machine also runs what is not run at once from ordinary code: what
becomes part of a caller's graph, runs under a tape, and runs in slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir.machine import Program
from pcbatch.ir.status import LaneStatus
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.explaining import explaining
from pcbatch.runtime.machine.legs import Legs
from pcbatch.runtime.machine.limits import GROWTH
from pcbatch.runtime.machine.machine import NO_BUDGET, Machine
from pcbatch.runtime.machine.outcome import Counts, Finished, Outcome, Run, Statistics
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.returned import Returned
from pcbatch.runtime.machine.state import Layout

FIRST_CAPACITY = 2
"""How many live calls the stacks of a lane have room for at first: lanes that fork have one or two."""


class ForkedMachine:
    """Runs `program`, which has groups of calls; `machine` runs the same without, and `sequel` a few examples of it.

    `spread` says how many lanes there are for each example at first, `limit` how many bytes they may take in all; a
    lane for each example there is in any case.
    """

    def __init__(
        self,
        program: Program,
        machine: Machine,
        sequel: Machine,
        *,
        spread: int = CPU.spread,
        limit: int = CPU.lane_bytes,
    ):
        self.program, self.machine, self.backend = program, machine, machine.backend
        self.statistics: Statistics = machine.statistics
        sequel.statistics = machine.statistics
        self.spread, self.limit, self._sequel = spread, limit, sequel
        context = machine.context
        limits = replace(context.limits, roomy=False)
        context = replace(context, layout=Layout(program), limits=limits, merging=None)
        self._legs = {grows: Legs(replace(context, grows=grows)) for grows in (True, False)}
        self.capacity = min(FIRST_CAPACITY, limits.largest_capacity)
        self.form = "lockstep, calls forked"
        self._made: dict[Any, tuple[Callable[..., Any], Returned]] = {}

    @property
    def notes(self) -> Sequence[tuple[Span | None, str]]:
        """What was found out about places in the source while the program was traced."""
        return self.machine.notes

    @property
    def stack_entries(self) -> int:
        """How many entries the stacks of the next run have at first."""
        return self.capacity + 1

    def program_for(self, lanes: Any) -> Program:
        """What is executed for `lanes` examples: the program, and on how many rows its blocks may run."""
        if not isinstance(lanes, int):
            return self.program
        return self._legs[True].loop.chunked(self._pool(lanes).lanes)

    def check(self, lanes: int) -> None:
        """Compile what runs in sequence, without running; raises what `run` would raise before it runs."""
        self.machine.check(lanes)

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` examples; see `Machine.run`."""
        if not (isinstance(lanes, int) and lanes and self.backend.runs_unseen()):
            return self.machine.run(arguments, shared, lanes)
        return self._run_arrays(self.machine.arrays_given(arguments, shared, lanes), lanes)

    def ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        """A run of `lanes` examples on arrays like these; see `Machine.ready`."""
        if not lanes:
            return self.machine.ready(arrays, lanes)
        return lambda given: Finished.of(self._run_arrays(given, lanes))

    def _run_arrays(self, arrays: Sequence[Array], examples: int) -> Outcome:
        with self.machine.timed(), explaining(self.program, self.backend, self.machine.jit):
            while True:
                pool = self._pool(examples)
                program, returned = self._whole_run(pool)
                wants, *found = program(*arrays)
                lacks_lanes, lacks_room = np.asarray(wants).tolist()
                if lacks_lanes:
                    self.spread *= GROWTH
                elif not (lacks_room and self._grow(pool)):
                    return self._completed(returned.outcome(found), arrays, examples)

    # -- how large -----------------------------------------------------------------------------------------------------

    def _pool(self, examples: int) -> Pool:
        return Pool(min(examples * self.spread, self._most(examples, self.capacity)), examples)

    def _most(self, examples: int, capacity: int) -> int:
        """How many lanes there may be for so many examples, on stacks with room for `capacity` live calls."""
        most = self.machine.max_lanes
        return max(min(examples, most or examples), min(self.limit // self._bytes(capacity), most or 2**30))

    def _grow(self, pool: Pool) -> bool:
        """Let stacks be larger from now on, if they can be, and as many lanes have room."""
        larger = min(self.capacity * GROWTH, self.machine.context.limits.largest_capacity)
        if larger == self.capacity or self._most(pool.examples, larger) < pool.lanes:
            return False
        self.capacity = larger
        return True

    def _bytes(self, capacity: int) -> int:
        """The bytes of a lane."""
        arrays = self._legs[True].layout.arrays.values()
        return sum(
            (capacity + 1 if held.stacked else 1) * math.prod(held.type.shape) * _size(held.type.dtype)
            for held in arrays
        )

    # -- what is compiled ----------------------------------------------------------------------------------------------

    def _whole_run(self, pool: Pool) -> tuple[Callable[..., Any], Returned]:
        """The program of a whole run in a pool, and how it comes back: behind two numbers, whether it lacks what."""
        grows = pool.lanes < self._most(pool.examples, self.capacity)
        legs, capacity, key = self._legs[grows], self.capacity, (pool, grows, self.capacity)
        if key in self._made:
            return self._made[key]
        returned, backend = Returned(legs, pool.examples), self.backend
        count, forking = len(legs.layout.inputs), legs.forking
        assert forking is not None, "the program has groups of calls"

        def program(*arrays: Array) -> list[Array]:
            with self.machine.tracing(counts=True):
                snapshot = legs.begin(arrays[:count], pool, capacity)
                arrived = legs.leg(snapshot, arrays[count:], backend.array(NO_BUDGET, "int64"))
                lacks = [forking.lacks_lanes(arrived.snapshot.state), arrived.paused]
                wants = backend.stack([backend.cast(each, "int32") for each in lacks])
                return [wants, *returned.pack(arrived.snapshot)]

        name = self.machine.name_of("forked", pool.lanes, pool.examples, grows, capacity)
        self._made[key] = (backend.compile(program, self.machine.jit, name=name), returned)
        return self._made[key]

    # -- what is left --------------------------------------------------------------------------------------------------

    def _completed(self, outcome: Outcome, arrays: Sequence[Array], examples: int) -> Outcome:
        """The outcome with what becomes, in sequence, of examples that have been given up or lack room."""
        status = np.asarray(outcome.status)
        left = np.flatnonzero(status == LaneStatus.UNFINISHED).astype(np.int32)
        if not left.size:
            return outcome
        backend, count = self.backend, len(self.machine.legs.layout.inputs)
        places = backend.array(left, "int32")
        some = [backend.take(array, places) for array in arrays[:count]]
        again = self._sequel.run(some, arrays[count:], int(left.size))
        every = places >= 0

        def put(before: Array, after: Array) -> Array:
            return backend.masked_store(before, [], every, after, places)

        def numbers(name: str) -> np.ndarray:
            found = np.array(getattr(outcome, name))
            found[left] = np.asarray(getattr(again, name))
            return found

        shown = {
            name: [put(*each) for each in zip(leaves, again.fault_values[name], strict=True)]
            for name, leaves in outcome.fault_values.items()
        }
        return replace(
            outcome,
            values=tuple(put(*each) for each in zip(outcome.values, again.values, strict=True)),
            fault_values=shown,
            counting=lambda: _sum(outcome.counts, again.counts),
            status=numbers("status"),
            site=numbers("site"),
            place=numbers("place"),
            steps=numbers("steps"),
        )


def _size(dtype: str) -> int:
    """The bytes of an element."""
    bits = "".join(filter(str.isdigit, dtype))
    return int(bits) // 8 if bits else 1


def _sum(one: Counts, other: Counts) -> Counts:
    names = ("executions", "active", "rows", "trips")
    return Counts(*(np.asarray(getattr(one, name)) + np.asarray(getattr(other, name)) for name in names))
