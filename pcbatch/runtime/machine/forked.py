"""Whole runs of programs whose calls are forked, on as many lanes as that takes, and what is left of them in sequence.

A run begins with some lanes for each example, or with what the last run could have used, up to a limit of bytes. Where
there are fewer, lanes that find no free ones wait for others to come back.

Examples that were given up, as one of their lanes has failed or has taken too many steps, those whose lanes wait for
each other's, and those that lack room on their stacks are run again by the machine without forks, which says what
becomes of them. That machine also runs what is not run at once from ordinary code: what becomes part of a caller's
graph, runs under a tape, and runs in slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir.analysis.forks import forking
from pcbatch.ir.machine import Chunks, Program
from pcbatch.ir.status import LaneStatus
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.explaining import explaining
from pcbatch.runtime.machine.forking import MOST_GROWTH, Forking, Needs
from pcbatch.runtime.machine.legs import Legs, Snapshot
from pcbatch.runtime.machine.limits import GROWTH
from pcbatch.runtime.machine.machine import Machine
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
        sequel.programs.statistics = machine.statistics
        self.spread, self.limit, self._sequel = spread, limit, sequel
        context = machine.context
        limits = replace(context.limits, roomy=False)
        self._context = replace(context, layout=Layout(forking(program)), limits=limits, merging=None)
        self._legs = Legs(self._context)
        self.capacity = min(FIRST_CAPACITY, limits.largest_capacity)
        self.form = "lockstep, calls forked"
        self._sizes: dict[int, int] = {}
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
        trips = self._trips(self._pool(lanes))
        blocks = enumerate(self.program.blocks)
        chunked = (replace(block, chunks=Chunks(trips.size(number))) for number, block in blocks)
        return replace(self.program, blocks=tuple(chunked))

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
        known: dict[Any, tuple[Callable[..., Any], Returned]] = {}

        def run(given: Sequence[Array]) -> Finished:
            pool = self._pool(lanes)
            key = (pool, self.capacity)
            if key not in known:
                program, returned = self._whole_run(pool)
                with self.machine.statistics.timed(), explaining(self.program, self.backend, self.machine.jit):
                    known[key] = (self.backend.direct(program, given), returned)
            direct, returned = known[key]
            try:
                needs, *found = direct(given)
            except Exception:
                with explaining(self.program, self.backend, self.machine.jit):
                    raise
            seen = Needs(*np.asarray(needs).tolist())
            self._learn(pool, seen)
            finished = returned.finished(found)
            if finished.values is None:
                return Finished.of(self._completed(finished.outcome(), given, seen, pool))
            return Finished(finished.values, lambda: self._completed(finished.outcome(), given, seen, pool))

        return run

    def _run_arrays(self, arrays: Sequence[Array], examples: int) -> Outcome:
        with self.machine.statistics.timed(), explaining(self.program, self.backend, self.machine.jit):
            pool = self._pool(examples)
            program, returned = self._whole_run(pool)
            needs, *found = program(*arrays)
            known = Needs(*np.asarray(needs).tolist())
            self._learn(pool, known)
            return self._completed(returned.outcome(found), arrays, known, pool)

    # -- how large -----------------------------------------------------------------------------------------------------

    def _pool(self, examples: int) -> Pool:
        lanes = min(examples * self.spread, self.limit // self._bytes(self.capacity), self.machine.max_lanes or 2**30)
        return Pool(max(examples, lanes), examples)

    def _learn(self, pool: Pool, needs: Needs) -> None:
        """Have the next run begin with what this one could have used."""
        if needs.lanes > pool.lanes and pool.lanes == pool.examples * self.spread:
            self.spread = min(-(-needs.lanes // pool.examples), self.spread * MOST_GROWTH)
        if needs.paused:
            self.capacity = min(self.capacity * GROWTH, self._context.limits.largest_capacity)

    def _bytes(self, capacity: int) -> int:
        """The bytes of a lane whose stacks have room for so many live calls."""
        if capacity not in self._sizes:
            lists = 4 * (len(self.program.blocks) + 3)
            self._sizes[capacity] = lists + sum(
                (capacity + 1 if held.stacked else 1) * math.prod(held.type.shape) * _size(held.type.dtype)
                for held in self._context.layout.arrays.values()
            )
        return self._sizes[capacity]

    # -- what is compiled ----------------------------------------------------------------------------------------------

    def _trips(self, pool: Pool) -> Forking:
        return Forking(self._context, self._legs.loop.row_costs, pool.lanes, pool.examples)

    def _whole_run(self, pool: Pool) -> tuple[Callable[..., Any], Returned]:
        """The program of a whole run in a pool, and how it comes back: behind what the run needed."""
        key = (pool, self.capacity)
        if key in self._made:
            return self._made[key]
        legs, capacity, trips = self._legs, self.capacity, self._trips(pool)
        returned, count = Returned(legs, pool.examples), len(legs.layout.inputs)

        def program(*arrays: Array) -> list[Array]:
            with self.machine.statistics.tracing(counts=True):
                inputs = dict(zip(legs.layout.inputs, arrays[:count], strict=True))
                state = trips.start(inputs, capacity)
                state, counters, needs = trips.run(state, inputs, legs.operands(arrays[count:]), legs.loop.start())
                outputs = trips.outputs(state)
                return [needs, *returned.pack(Snapshot(pool, state, counters, inputs, outputs))]

        name = self.machine.programs.name_of("forked", pool.lanes, pool.examples, capacity)
        self._made[key] = (self.backend.compile(program, self.machine.jit, name=name), returned)
        return self._made[key]

    # -- what is left --------------------------------------------------------------------------------------------------

    def _completed(self, outcome: Outcome, arrays: Sequence[Array], needs: Needs, pool: Pool) -> Outcome:
        """The outcome with what becomes, in sequence, of examples that have been given up or lack room."""
        status = np.asarray(outcome.status)
        left = np.flatnonzero(status == LaneStatus.UNFINISHED).astype(np.int32)
        outcome = replace(outcome, notes=(*outcome.notes, (None, _told(needs, pool, left.size))))
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


def _told(needs: Needs, pool: Pool, left: int) -> str:
    """What a run has forked, as a note."""
    short = f", which were too few in {needs.short:,} trips" if needs.short else ""
    again = f"; {left:,} of {pool.examples:,} examples ran again, their calls one after the other" if left else ""
    return f"{needs.forked:,} calls were forked, on {needs.most:,} of {pool.lanes:,} lanes at most{short}{again}"


def _size(dtype: str) -> int:
    """The bytes of an element."""
    bits = "".join(filter(str.isdigit, dtype))
    return int(bits) // 8 if bits else 1


def _sum(one: Counts, other: Counts) -> Counts:
    names = ("executions", "active", "rows", "trips")
    found = []
    for name in names:
        total, more = np.array(getattr(one, name)), np.asarray(getattr(other, name))
        if more.shape:
            total[: more.size] += more  # join blocks, which come last, are the forked program's alone
        else:
            total += more
        found.append(total)
    return Counts(*found)
