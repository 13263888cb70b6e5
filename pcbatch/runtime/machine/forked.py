"""Whole runs of programs whose calls are forked, on as many lanes as that takes.

A run begins with some lanes for each example, or with what the runs before it could have used (`Pools`). Where lanes
find no free ones any more, or no room on their stacks, the run stops at the end of a trip, its state is enlarged
(`pool_sizing.grown`), and it goes on from there, by the program of the next size: nothing is computed twice.

Examples that are given up, as one of their lanes has failed or has taken too many steps, and those whose lanes wait
where the limit of bytes is reached, are run again by the machine without forks (`completed`), which says what
becomes of them. That machine also runs what becomes part of a caller's graph, and runs in slices. Taped runs have a
way of their own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir.analysis.parallel_call_groups import forking
from pcbatch.ir.machine import Chunks, LaneStatus, Program
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.error_translation import explaining
from pcbatch.runtime.machine.fork_segments import ForkedLegs, ForkSegmentState
from pcbatch.runtime.machine.forking import Report
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Counts, Finished, Outcome, Run, Statistics
from pcbatch.runtime.machine.pool_sizing import MOST_GROWTH, ForkFeedback, Pools, Size, grown, wanting
from pcbatch.runtime.machine.state import Layout

# -- sequential fallback -----------------------------------------------------------------------------------------------
# The completion of a run whose calls were forked: the examples left over.


def left_over(outcome: Outcome) -> np.ndarray:
    """Return the examples whose outcome is not known: int32 `[n]`."""
    return np.flatnonzero(np.asarray(outcome.status) == int(LaneStatus.UNFINISHED)).astype(np.int32)


def completed(outcome: Outcome, left: np.ndarray, machine: Machine, arrays: Sequence[Array]) -> Outcome:
    """Complete the outcome of a run on `arrays`: `machine` runs the examples that are `left`."""
    if not left.size:
        return outcome
    backend, count = machine.backend, len(machine.legs.layout.inputs)
    places = backend.array(left, "int32")
    some = [backend.load(array, [], places) for array in arrays[:count]]
    return completed_by(outcome, left, machine.run(some, arrays[count:], int(left.size)))


def completed_by(outcome: Outcome, left: np.ndarray, again: Outcome) -> Outcome:
    """Complete the outcome of a run by that of a second run of the examples that were `left`."""
    backend = outcome.backend
    places = backend.array(left, "int32")
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


def padded(counts: Counts, blocks: int) -> Counts:
    """The counts of a run in sequence as those of a program with more blocks, which it does not come to."""

    def more(array: Array) -> np.ndarray:
        found = np.asarray(array)
        return np.concatenate([found, np.zeros(blocks - found.size, found.dtype)])

    return Counts(more(counts.executions), more(counts.active), more(counts.rows), counts.trips)


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


# -- forked ------------------------------------------------------------------------------------------------------------

IN_GRAPH = "in a tf.function calls were made one after the other; called from ordinary code they are forked"
IN_SLICES = "with progress or resume calls were made one after the other; without these options they are forked"
IN_XLA = (
    "in a function compiled with jit_compile=True calls were made one after the other: nothing grows there, and nobody "
    "knows beforehand how many lanes they take; leave jit_compile=True away"
)


@dataclass(frozen=True)
class ForkSummary:
    """Statistics of a run of some `examples`: its `report`, and its successive numbers of `lanes`."""

    report: Report
    lanes: tuple[int, ...]
    examples: int
    left: int = 0

    def __str__(self) -> str:
        report, left = self.report, self.left
        before = "".join(f"{each:,}, then " for each in self.lanes[:-1])
        short = f", which were too few in {report.short:,} trips" if report.short else ""
        again = f"; {left:,} of {self.examples:,} examples ran again, their calls one after the other" if left else ""
        of = f"{report.most:,} of {before}{self.lanes[-1]:,} lanes at most"
        return f"{report.forked:,} calls were forked, on {of}{short}{again}"


class ForkedMachine:
    """Runs `program`, which has groups of calls; `machine` runs the same without, and `sequel` a few examples of it.

    `spread`, or what is `learned` already, says how many lanes there are for each example at first, or more, of `least`
    bytes in all; `limit` how many bytes they may take. A lane for each example there is in any case.
    """

    is_numpys = any_lanes = False

    def __init__(
        self,
        program: Program,
        machine: Machine,
        sequel: Machine,
        *,
        spread: int = CPU.spread,
        learned: ForkFeedback | None = None,
        limit: int = CPU.lane_bytes,
        least: int = 0,
    ):
        self.program, self.machine, self.backend = program, machine, machine.backend
        self.statistics: Statistics = machine.statistics
        sequel.programs.statistics = machine.statistics
        self._sequel = sequel
        context = machine.context
        limits = replace(context.limits, roomy=False)
        context = replace(context, layout=Layout(forking(program)), limits=limits, unguarded=False)
        self.legs = ForkedLegs(context, machine.programs, machine.jit)
        learned = ForkFeedback(spread) if learned is None else learned
        self.pools = Pools(context.layout, limits.largest_capacity, learned, limit=limit, least=least)
        self.form = "lockstep, calls forked"
        self.in_sequence: dict[str, None] = {}
        """Reasons of the runs that made their calls one after the other."""

    @property
    def notes(self) -> Sequence[tuple[Span | None, str]]:
        """The notes of the trace about places in the source, and the reasons of runs in sequence."""
        return (*self.machine.notes, *((None, why) for why in self.in_sequence))

    def because(self, why: str) -> None:
        """A run has made its calls one after the other, for this reason."""
        self.in_sequence[why] = None

    @property
    def stack_entries(self) -> int:
        """The initial number of entries of the next run's stacks."""
        return self.pools.capacity + 1

    def program_for(self, lanes: Any) -> Program:
        """Return the program executed for `lanes` examples, with the numbers of rows on which its blocks may run."""
        if not isinstance(lanes, int):
            return self.program
        trips = self.legs.trips(self.pools.to_be(lanes))
        blocks = enumerate(self.program.blocks)
        chunked = (replace(block, chunks=Chunks(trips.size(number))) for number, block in blocks)
        return replace(self.program, blocks=tuple(chunked))

    def check(self, lanes: int) -> None:
        """Compile for `lanes` examples without running; raises the errors of `run` before it runs."""
        with self.compiling():
            size = self.pools.of(lanes)
            examples = self.legs.legs.example_specs(size.pool.examples)
            specs: list[Spec] = [examples[key] for key in self.legs.legs.layout.inputs]
            specs += [*self.machine.programs.operand_specs, ("int32", ())]
            self.backend.lower(self.legs.whole(size), specs, self.machine.jit)

    def compile(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> None:
        """Compile all that a run of `lanes` examples on such arrays takes, on as many lanes as there are at first."""
        if not lanes:
            self.machine.compile(arguments, shared, lanes)
            return
        arrays = self.machine.arrays_given(arguments, shared, lanes)
        with self.compiling():
            size = self.pools.of(lanes)
            given = self.machine.extended(arrays, lanes, size.pool.examples)
            self.legs.whole(size)(*given, self.backend.constant(0))

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` examples; see `Machine.run`."""
        backend = self.backend
        if not backend.runs_now() or (isinstance(lanes, int) and not lanes):
            if not backend.runs_now():
                self.because(IN_XLA if backend.inside("fixed program") else IN_GRAPH)
            return self.machine.run(arguments, shared, lanes)
        if backend.is_watched([*arguments, *shared]):
            return self.machine.run(arguments, shared, lanes)
        return self._run_arrays(self.machine.arrays_given(arguments, shared, lanes), lanes)

    def _run_arrays(self, arrays: Sequence[Array], examples: int) -> Outcome:
        with self.compiling():
            size = self.pools.of(examples)
            given = self.machine.extended(arrays, examples, size.pool.examples)
            found = self.legs.whole(size)(*given, self.backend.constant(examples))
        now, told = self._ended(size, found, given, examples)
        return noted(*self._completed(now.returned.outcome(now.arrays, self._fewer(now, examples)), arrays, told))

    def ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        """A run of `lanes` examples on arrays like these; see `Machine.ready`."""
        if not lanes:
            return self.machine.ready(arrays, lanes)
        known: dict[Size, Callable[..., Any]] = {}
        count = self.backend.constant(lanes)

        def run(given: Sequence[Array]) -> Finished:
            size = self.pools.of(lanes)
            every = self.machine.extended(given, lanes, size.pool.examples)
            if size not in known:
                with self.compiling():
                    known[size] = self.backend.direct(self.legs.whole(size), [*every, count])
            try:
                found = known[size]([*every, count])
            except Exception:
                with explaining(self.program, self.backend, self.machine.jit):
                    raise
            now, told = self._ended(size, found, every, lanes)
            finished = now.returned.finished(now.arrays, self._fewer(now, lanes))
            if finished.values is None:
                return Finished.of(noted(*self._completed(finished.outcome(), given, told)))
            return Finished(finished.values, lambda: noted(finished.outcome(), told))

        return run

    # -- more lanes, longer stacks -------------------------------------------------------------------------------------

    def _ended(
        self, size: Size, found: Sequence[Array], given: Sequence[Array], examples: int
    ) -> tuple[ForkSegmentState, ForkSummary]:
        """Complete a run from here, on larger and larger pools if needed; return its statistics, too."""
        now = self.legs.standing(size, found)
        report, lanes_so_far, growth = now.report, [size.pool.lanes], MOST_GROWTH
        while now.report.stuck or now.report.paused:
            state = self.legs.state(now)
            lanes, stacks = (bool(each) for each in wanting(state, self.legs.trips(now.size)))
            larger = self.pools.larger(now.size, growth, lanes=lanes, stacks=stacks)
            if larger == now.size:
                break
            if larger.pool.lanes > now.size.pool.lanes:
                lanes_so_far.append(larger.pool.lanes)
                growth *= growth
            state = grown(state, self.legs.trips(now.size), larger.pool.lanes, larger.capacity)
            with self.compiling():
                now = self.legs.go_on(larger, state, self.legs.counters(now), given)
            forked, most = report.forked + now.report.forked, max(report.most, now.report.most)
            report = replace(now.report, forked=forked, most=most, short=report.short + now.report.short)
        learned = self.pools.learned
        learned.learn(lambda lesson: self.pools.after(lesson, size, now.size, report, examples))
        return now, ForkSummary(report, tuple(lanes_so_far), examples)

    def _fewer(self, now: ForkSegmentState, examples: int) -> int | None:
        """Return the number of examples; None if they fill their room."""
        return None if examples == now.size.pool.examples else examples

    def _completed(self, outcome: Outcome, arrays: Sequence[Array], told: ForkSummary) -> tuple[Outcome, ForkSummary]:
        """Complete the outcome with the examples that were left, and their statistics."""
        left = left_over(outcome)
        return completed(outcome, left, self._sequel, arrays), replace(told, left=left.size)

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """Count compilations inside, and explain their failures."""
        with self.statistics.timed(), explaining(self.program, self.backend, self.machine.jit):
            yield


def noted(outcome: Outcome, told: ForkSummary) -> Outcome:
    """Return the outcome, with the statistics of its calls."""
    return replace(outcome, notes=(*outcome.notes, (None, str(told))))
