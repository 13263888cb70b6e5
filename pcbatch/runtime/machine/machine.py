"""The machine: program-counter autobatching of a table of blocks (Radul et al., MLSys 2020, Algorithm 2).

One loop; in each trip the schedule picks blocks, and each picked block runs for all lanes that wait at it and have
room for what it pushes, whatever their depth of recursion. The loop ends when no lane can run: a leg of the run is
over. If lanes are paused for want of room, their stacks are enlarged and the next leg goes on from there.

Where all stacks have their full size at once (no calls, or few allowed) a whole run is one compiled program. Else it is
a plain graph that calls the compiled leg once, and again as often as stacks grow. The leg is traced once, for stacks
of any size, and XLA compiles it for the sizes that occur.

A whole run has a lane for each example (a `whole` pool), unless there are to be fewer, and perhaps some idle ones
behind these (`rooms`); a run leg by leg may have any pool of lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pcbatch.errors import Span, UsageError
from pcbatch.ir.machine import Program
from pcbatch.ir.machine_verifier import validate
from pcbatch.optimize.machine.compaction import DEFAULT, Compaction
from pcbatch.runtime.backends.protocol import Array, Backend, Spec
from pcbatch.runtime.machine.compiled_programs import NO_BUDGET, Programs, Sizes
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.error_translation import explaining
from pcbatch.runtime.machine.outcome import Finished, Outcome, Run, Standing, Statistics
from pcbatch.runtime.machine.pool import BatchBuckets, Pool, spare_lanes
from pcbatch.runtime.machine.result_packing import argument_arrays, operand_arrays
from pcbatch.runtime.machine.segments import Legs, SegmentResult, Snapshot
from pcbatch.runtime.machine.state import Layout, Limits
from pcbatch.runtime.schedules import schedule_named
from pcbatch.threads import once


class Machine:
    """Runs one program. Compiled once for each pool of lanes and size of stacks, then reused.

    `compaction` says which blocks may run on gathered lanes; with None every block computes a row for every lane.
    `trace` is the number of trips of which is recorded what the schedule chose. With `max_lanes` there are never more
    lanes, however many examples. `digest()` tells the program and all that is said here from others in every process,
    None if it cannot: by this a cache on disk knows it.
    """

    is_numpys = any_lanes = False

    def __init__(
        self,
        program: Program,
        backend: Backend,
        *,
        schedule: str = "auto",
        jit: bool = True,
        max_depth: int | None = None,
        max_steps: int | None = None,
        compaction: Compaction | None = DEFAULT,
        trace: int = 0,
        max_lanes: int | None = None,
        digest: Callable[[], str | None] = lambda: None,
    ):
        validate(program, max_steps)
        self.program, self.backend, self.jit, self.max_lanes = program, backend, jit, max_lanes
        self.form = "lockstep"
        self.says_depth = max_depth is not None
        layout, limits = Layout(program), Limits.of(max_depth, max_steps)
        if not layout.all_stacks:
            limits = replace(limits, roomy=True)
        if schedule == "switch" and compaction is not None and not compaction.always:
            compaction = None  # masks alone, as in the paper
        # A schedule that is asked for by name chooses among blocks, and a record shows what it chose.
        chooses = schedule != "auto" or bool(trace) or not jit
        self.context = Context(
            backend,
            layout,
            limits,
            not jit,
            schedule_named(schedule),
            compaction,
            unguarded=not chooses,
            trace=trace,
        )
        self.legs = Legs(self.context)
        self.programs = Programs(self.context, jit, digest)
        self.sizes = Sizes(limits)

    @property
    def statistics(self) -> Statistics:
        """The cost of compilation so far."""
        return self.programs.statistics

    @property
    def notes(self) -> Sequence[tuple[Span | None, str]]:
        """The notes of the trace about places in the source."""
        return tuple(self.context.notes)

    @property
    def stack_entries(self) -> int:
        """The initial number of entries of the next run's stacks; 0 if there are none."""
        return self.sizes.capacity + 1 if self.legs.layout.all_stacks else 0

    def because(self, why: str) -> Machine:
        """Note the reason why this machine runs the program rather than a native function; return it."""
        self.form = f"lockstep: {why}"
        return self

    # -- a whole run ---------------------------------------------------------------------------------------------------

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` examples (an int, or an int32 scalar where it is not known before the run).

        `arguments` are the `[lanes, ...]` leaves of all parameters, `shared` the leaves of all shared operands. Raises
        UsageError PCB531 for shapes that do not fit, PCB540 where a caller's XLA program holds a recursion of unknown
        depth, PrimitiveError PCB440/PCB441 where an operation cannot be compiled or, in graph mode, fails, PCB537 where
        a caller vectorises a switch.
        """
        if self.context.schedule.name == "switch" and self.backend.inside("vectorised function"):
            raise UsageError(
                "PCB537",
                f"schedule='switch' runs one conditional of many arms in each trip, which "
                f"{self.backend.spelling('vectorized_map')} cannot vectorise; call {self.program.name} outside, with "
                f"all examples in one batch, or leave schedule='auto'",
            )
        return self._run_arrays(self.arrays_given(arguments, shared, lanes), lanes)

    def _run_arrays(
        self,
        arrays: Sequence[Array],
        lanes: Any,
        idle: bool = False,
    ) -> Outcome:
        """Run as a whole on stacks of the final capacity of earlier runs.

        In an `idle` run no lane has an example: it ends at once.
        """
        capacity, legs = self.sizes.capacity, self._roomy if self._must_be_roomy() else self.legs
        pool, flat = self.pool_for(lanes), self._with_room(arrays, lanes)
        if not legs.limits.roomy:
            flat.append(self.backend.constant(capacity))
        flat.append(self._count(0 if idle else lanes))
        returned = self.programs.returned(legs, pool)
        sealed = self.backend.forbid_gradients(self.programs.whole_run(legs, pool, returned), self.program.name)
        with self.statistics.timed(), explaining(self.program, self.backend, self.jit):
            outcome = returned.outcome(found := list(sealed(*flat)), _fewer(lanes, pool.examples))
            if not legs.limits.roomy and self.backend.is_concrete(outcome.status):
                self._grew(pool, capacity, int(found[0]), outcome)
        return replace(outcome, standing=partial(self._standing, arrays, lanes)) if self.context.trace else outcome

    def _standing(self, arrays: Sequence[Array], lanes: int, trips: int) -> Standing:
        """The lanes after so many trips of a run on these arrays."""
        count = len(self.legs.layout.inputs)
        snapshot, done = self.begin(arrays[:count], lanes), 0
        while done < trips:
            arrived, _ = self.leg(snapshot, arrays[count:], trips - done)
            snapshot, done = arrived.snapshot, int(arrived.snapshot.counters["trips"])
            larger = self.grown(snapshot) if bool(arrived.paused) else None
            if larger is None:
                break
            snapshot = larger
        return Standing(done, self.legs.layout, snapshot.state)

    def pool_for(self, lanes: Any) -> Pool:
        """The pool in which so many examples run at once."""
        if self.max_lanes is not None:
            return Pool.at_most(self.max_lanes, lanes)
        # A program in a graph is traced for one number, which is known there, or for none.
        return Pool.of(self.rooms.of(lanes) if isinstance(lanes, int) and self.backend.runs_now() else lanes)

    @once
    def rooms(self) -> BatchBuckets:
        """The numbers of lanes for which programs of whole runs are compiled."""
        return BatchBuckets(lambda: spare_lanes(self.legs.loop.row_costs, self.legs.layout.elements))

    def _count(self, lanes: Any) -> Array:
        return self.backend.constant(lanes) if isinstance(lanes, int) else lanes

    def _with_room(self, arrays: Sequence[Array], lanes: Any) -> list[Array]:
        """`arrays`, of arguments and shared operands, those by example with the room that the pool's have."""
        return self.extended(arrays, lanes, self.pool_for(lanes).examples)

    def extended(self, arrays: Sequence[Array], lanes: Any, room: Any) -> list[Array]:
        """`arrays`, of arguments and shared operands, those of `lanes` examples with room for more."""
        count = len(self.legs.layout.inputs)
        if not isinstance(room, int) or room == lanes:
            return [*arrays]
        return [*(self.backend.extended(array, room) for array in arrays[:count]), *arrays[count:]]

    def ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        """Return a run of `lanes` lanes on arrays like these, from `arrays_given`, with all preparations made.

        To be run only where the backend `runs_unseen`.
        """
        pool, legs = self.pool_for(lanes), self.legs
        if self.context.trace or not (legs.limits.roomy and pool.whole):
            return lambda given: Finished.of(self._run_arrays(given, lanes))
        returned, room, count = self.programs.returned(legs, pool), pool.examples, self._count(lanes)
        whole_run = self.programs.whole_run(legs, pool, returned)
        direct = self.backend.direct(whole_run, [*self.extended(arrays, lanes, room), count])
        examples = _fewer(lanes, room)

        def run(given: Sequence[Array]) -> Finished:
            try:
                return returned.finished(direct([*self.extended(given, lanes, room), count]), examples)
            except Exception:
                with explaining(self.program, self.backend, self.jit):
                    raise

        return run

    def program_for(self, lanes: Any) -> Program:
        """Return the program executed for `lanes` lanes, with the numbers of rows on which its blocks may run."""
        loop = self.legs.loop
        if self.max_lanes is None and isinstance(lanes, int):
            return loop.chunked(self.rooms.to_be(lanes))
        return loop.chunked(self.pool_for(lanes).lanes)

    def compile(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> None:
        """Compile all that a run of `lanes` lanes on such arrays takes, on stacks of the size that they have now."""
        self._run_arrays(self.arrays_given(arguments, shared, lanes), lanes, idle=True)

    def check(self, lanes: int) -> None:
        """Compile for `lanes` lanes without running; raises the errors of `run` before it runs."""
        with self.statistics.timed(), explaining(self.program, self.backend, self.jit):
            pool, legs = self.pool_for(lanes), self.legs
            if legs.limits.roomy:
                examples = legs.example_specs(pool.examples)
                specs: list[Spec] = [examples[key] for key in legs.layout.inputs]
                whole = self.programs.whole_run(legs, pool, self.programs.returned(legs, pool))
                self.backend.lower(whole, [*specs, *self.programs.operand_specs, ("int32", ())], self.jit)
            else:
                specs = legs.specs(pool, self.sizes.capacity)
                self.backend.lower(
                    self.programs.leg(legs, pool), [*specs, *self.programs.operand_specs, ("int64", ())], self.jit
                )

    @property
    def function_specs(self) -> list[Spec]:
        """Return the dtypes and shapes of the arguments of `as_function`."""
        examples = self.legs.example_specs(None)
        inputs = (examples[key] for key in self.legs.layout.inputs)
        return [("bool", (None,)), *inputs, *self.programs.operand_specs]

    def as_function(self) -> Callable[..., list[Array]]:
        """A whole run as one function, on stacks of their full size, which the caller compiles.

        It takes a mask of the lanes that have an example, bool `[lanes]`, those first, then the leaves of arguments,
        `[lanes, ..]`, and of shared operands; it gives `Outcome.arrays`.
        """
        legs, backend = self._roomy, self.backend
        count = len(legs.layout.inputs)

        def whole(present: Array, *arrays: Array) -> list[Array]:
            lanes = backend.lanes_of(present)
            pool = Pool(lanes, lanes, whole=True)
            until = backend.array(NO_BUDGET, "int64")
            begun = legs.begin(arrays[:count], pool, legs.limits.largest_capacity, backend.sum(present))
            last = legs.leg(begun, arrays[count:], until).snapshot
            return legs.outcome(last.counters, last.outputs, 0).arrays

        return whole

    # -- a run leg by leg ----------------------------------------------------------------------------------------------

    def begin(self, arguments: Sequence[Any], examples: int, lanes: int | None = None) -> Snapshot:
        """A run of `examples` examples that has not begun; nothing is compiled.

        It has a lane for each of them, or as many as this machine has at most, or so many `lanes`.
        """
        given = self._arguments(arguments, examples)
        if lanes is not None:
            return self.legs.begin(given, Pool.of(examples, lanes), self.sizes.capacity)
        if self.max_lanes is None:
            return self.legs.begin(given, Pool.of(examples), self.sizes.capacity)
        return self.legs.begin(self._with_room(given, examples), self.pool_for(examples), self.sizes.capacity, examples)

    def leg(self, snapshot: Snapshot, shared: Sequence[Any], trips: int | None = None) -> tuple[SegmentResult, Outcome]:
        """Go on from `snapshot` for at most `trips` trips, on stacks of the size that they have.

        `snapshot` may hold arrays of the backend or NumPy's. If lanes are `paused` at the end, go on from
        `grown(arrived.snapshot)`.
        """
        pool = snapshot.pool
        done = int(snapshot.counters["trips"])
        until = self.backend.array(NO_BUDGET if trips is None else done + trips, "int64")
        capacity = int(self.legs.capacity(snapshot))
        sealed = self.backend.forbid_gradients(self.programs.leg(self.legs, pool), self.program.name)
        specs = self.legs.specs(pool, capacity)
        given = [self.backend.array(a, dtype) for a, (dtype, _) in zip(self.legs.flat(snapshot), specs, strict=True)]
        with self.statistics.timed(), explaining(self.program, self.backend, self.jit):
            arrived = self.legs.unpack(list(sealed(*given, *self._operands(shared), until)), snapshot)
            examples = None if pool.whole else int(arrived.snapshot.examples)
            outcome = self.legs.outcome(arrived.snapshot.counters, arrived.snapshot.outputs, capacity, examples)
            self._grew(pool, capacity, capacity, outcome, direct=True)
        return arrived, outcome

    def grown(self, snapshot: Snapshot) -> Snapshot | None:
        """The same run on the next larger stacks; None if they are as large as they get."""
        if int(self.legs.capacity(snapshot)) >= self.legs.limits.largest_capacity:
            return None
        return self.legs.grown(snapshot)

    @once
    def _roomy(self) -> Legs:
        """Legs on stacks that have their full size at once, which a caller's XLA program needs."""
        return Legs(replace(self.context, limits=replace(self.context.limits, roomy=True)))

    def _must_be_roomy(self) -> bool:
        """Return whether this is traced into a caller's XLA program, where no run can pause: PCB540 without a depth."""
        if self.legs.limits.roomy or not self.backend.inside("fixed program"):
            return False
        if not self.says_depth:
            raise UsageError(
                "PCB540",
                f"{self.program.name} calls batched functions, and in a function compiled with jit_compile=True its "
                "stacks cannot grow; say how many live calls they must have room for with max_depth=..",
            )
        return True

    def _grew(self, pool: Pool, first: int, last: int, outcome: Outcome, direct: bool = False) -> None:
        """Note that the stacks of a run grew from capacity `first` to `last`; see `Sizes`."""
        self.sizes.learn(last, outcome)
        compiled = self.sizes.compiled(pool, first, last, direct=direct)
        self.statistics.compilations += compiled if self.jit else 0

    # -- what is given -------------------------------------------------------------------------------------------------

    def arrays_given(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> list[Array]:
        """The leaves of arguments and shared operands as arrays; UsageError PCB531 for shapes that do not fit."""
        return self._arguments(arguments, lanes) + self._operands(shared)

    def _arguments(self, arguments: Sequence[Any], lanes: Any) -> list[Array]:
        return argument_arrays(self.program, self.backend, arguments, lanes)

    def _operands(self, shared: Sequence[Any]) -> list[Array]:
        return operand_arrays(self.program, self.backend, shared)


def _fewer(examples: Any, room: Any) -> Any:
    """`examples`, None if they fill a room of so many."""
    return None if room is examples or (isinstance(examples, int) and room == examples) else examples
