"""The machine's loop: trips through guarded blocks until no lane can run."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Chunks, Program
from pcbatch.ir.types import TensorType
from pcbatch.optimize.machine.compaction import Row
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.costs.estimate import USUAL_LANES, Prices, block_costs, block_rows, dear_pieces
from pcbatch.runtime.machine.blocks import BlockRunner
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.guarded import MOST_TURNS, BlockInvocation, GuardedBlocks, MakeRunner
from pcbatch.runtime.schedules.schedule_step import Again, BlockCounts, BlockGraph, Trip
from pcbatch.runtime.schedules.text import written

# -- recording ---------------------------------------------------------------------------------------------------------
# The schedule of a run, recorded in the machine's loop; `runtime.report.trace` reads it.
#
# The record is an array for a fixed number of trips and one more, which stands for all others. A row has what is known
# in the loop anyway, as to compute anything there costs as much as a cheap block: how often each block had run after
# the trip, and for how many lanes, all trips together and modulo 2**32; for how many lanes it ran in this trip at
# first; and numbers whose sum is how many lanes had not ended before the trip. It travels with the machine's counters.


def recorded(
    backend: Backend, record: Array, trips: Array, counters: Mapping[str, Array], first: Array, live: Array
) -> Array:
    """`record`, int32 `[trips + 1, 4, blocks]`, with the row of a trip, before which there were `trips` (int64).

    `counters` are those after it. `first` is for how many lanes each block ran in it at first, and `live` adds up to
    how many lanes had not ended before it: int32 `[blocks]`.
    """
    last = backend.cast(backend.lanes_of(record) + backend.constant(-1), "int64")
    place = backend.cast(backend.where(trips < last, trips, last), "int32")
    totals = [backend.cast(counters[name], "int32") for name in ("executions", "active")]
    return backend.with_rows(record, place, backend.stack([backend.stack([*totals, first, live])]))


# -- loop --------------------------------------------------------------------------------------------------------------

Counters = dict[str, Array]
"""Counters, int64. `executions`, `active` and `rows`, `[blocks]`, count runs of each block, their lanes and their rows;
`trips` is a scalar; `memory`, `[blocks]`, is what the schedule remembers from trip to trip.
Where trips are recorded, `trace` as well: see `runtime.trace`."""

COUNTED = ("executions", "active", "rows")

Carried = dict[str, Any]
"""The state that the loop carries from trip to trip. It has `state`, `waiting` (the lanes that wait at each block),
`counters` and `arrivals`, one for each block that counts arrivals: see `guarded.BlockInvocation`."""

INT32_MAX = 2**31 - 1

TRIPS = "trips"
"""The scope of the loop over trips, by which `tools.gpu_thunks` finds it in compiled programs."""


class Loop:
    """The loop of one program under one schedule; `run` may be traced for any number of lanes."""

    def __init__(self, context: Context, runner: MakeRunner = BlockRunner):
        self.context = context
        self.layout, self.backend, self.trace = context.layout, context.backend, context.trace
        self.blocks = context.program.blocks
        self.sync = [number for number, block in enumerate(self.blocks) if block.sync or block.deferred is not None]
        self.flow = BlockGraph.of(context.program)
        if context.elsewhere is not None:
            lockstep = context.elsewhere.lockstep
            if len(lockstep) == 1:  # there all lanes are that can run
                self.sync = []
            order = [number for number in self.flow.order if number in lockstep]
            self.flow = replace(self.flow, order=order, sync=self.sync)
        self.can_fail = any(effects.can_fault(block, context.limits.max_steps) for block in self.blocks)
        self._runner = runner

    @cached_property
    def guarded(self) -> GuardedBlocks:
        """The blocks under guards."""
        return GuardedBlocks(self.context, self.flow, self._runner)

    @cached_property
    def row_costs(self) -> tuple[float, ...]:
        """The estimated work of one row of each block."""
        return block_costs(self.layout.program, self.backend)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The properties of one row of each block."""
        return block_rows(self.layout.program, self.row_costs, self.backend)

    def prices(self, lanes: int) -> Prices:
        """Return the estimated costs of trips and blocks for so many lanes."""
        return Prices(self.row_costs, lanes, self.context.device)

    @property
    def counter_specs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Dtypes and shapes of the counters, in the order in which they are passed on."""
        per_block = ("int64", (len(self.blocks),))
        counted = dict.fromkeys(COUNTED, per_block)
        trace = {"trace": ("int32", (self.trace + 1, 4, len(self.blocks)))} if self.trace else {}
        return {**counted, "trips": ("int64", ()), "memory": per_block, **trace}

    def start(self) -> Counters:
        """The counters of a run that has not begun."""
        zero = self.backend.cast(self.backend.constant(0), "int64")
        return {
            name: self.backend.zeros(shape[0], TensorType(dtype, shape[1:])) if shape else zero
            for name, (dtype, shape) in self.counter_specs.items()
        }

    def run_trips(
        self,
        state: State,
        counters: Counters,
        shared: Mapping[str, Leaves],
        until: Array,
        stop: Callable[[State], Array] | None = None,
        examples: Array | None = None,
    ) -> tuple[State, Counters, Array]:
        """Trips until no lane can run, or until there have been `until` trips (an int64 scalar) in all.

        Given `stop`, a scalar bool of the state, also until that holds after a trip. Where all lanes run at once a row
        is counted for each of the `examples`, if that is given (an int32 scalar), else for each lane. Gives the state,
        the counters, and whether a lane could go on: a scalar bool.
        """
        backend = self.backend
        every = backend.lanes_of(state["pc"])
        counted = every if examples is None else examples
        if together := self.trips_together(every):
            return self._without_guards(state, counters, shared, until, stop, counted, together)
        flow, chunks = self.flow, [block.chunks for block in self.chunked(every).blocks]
        prices = functools.partial(self.prices, every if isinstance(every, int) else USUAL_LANES)

        def turn(carried: Carried) -> tuple[Carried, Array]:
            before, arrival_counters = carried["counters"], dict(carried["arrivals"])

            def guarded(
                number: int, predicate: Array, lanes: Array, state: State, followed: Sequence[int], again: Again | None
            ) -> tuple[State, list[Array], BlockCounts, Array]:
                counter = arrival_counters.get(number) if followed == flow.ahead[number] else None
                visit = BlockInvocation(number, lanes, followed, shared, chunks[number], counter)
                if chunks[number] is not None and self.blocks[number].deferred is not None:
                    return self._deferred(visit, predicate, state, counted)
                if again is not None:
                    return self.guarded.repeated(visit, predicate, state, again, counted)
                state, arrivals, after = self.guarded.once(visit, predicate, state)
                if counter is not None:
                    arrival_counters[number] = after
                return state, arrivals, BlockCounts(lanes), backend.constant(0)

            def switched(number: Array, state: State) -> State:
                return self.guarded.switched(number, state, shared, chunks)

            trip = Trip(
                backend,
                carried["state"],
                carried["waiting"],
                self._counted,
                guarded,
                flow,
                prices,
                switched,
                refills=stop is not None,
            )
            memory = self.context.schedule.trip(trip, before["memory"])
            counters = {**self._after(before, trip, chunks, counted), "trips": before["trips"] + 1, "memory": memory}
            after, counters = self._elsewhere(trip.state, counters, shared)
            waiting = self._counted(after)
            if stop is not None:
                carried = {**carried, "stop": stop(after)}
            return {
                **carried,
                "state": after,
                "waiting": waiting,
                "counters": counters,
                "arrivals": arrival_counters,
            }, trip.ran

        def recording(carried: Carried) -> Carried:
            counters = dict(carried["counters"])
            record = counters.pop("trace")
            after, first = turn({**carried, "counters": counters})
            record = recorded(backend, record, counters["trips"], after["counters"], first, self._live(carried))
            return {**after, "counters": {**after["counters"], "trace": record}}

        def ready(carried: Carried) -> Array:
            return backend.any(carried["waiting"] > 0)

        def goes_on(carried: Carried) -> Array:
            goes = ready(carried) & (carried["counters"]["trips"] < until)
            return goes if stop is None else goes & ~carried["stop"]

        arrival_counters = {
            number: backend.zeros(len(places), TensorType("int32"))
            for number, places in enumerate(flow.ahead)
            if self.guarded.counts(number, places)
        }
        start = {"state": state, "waiting": self._counted(state), "counters": counters, "arrivals": arrival_counters}
        if stop is not None:
            start["stop"] = until < until
        one = recording if self.trace else lambda carried: turn(carried)[0]
        with backend.scope(TRIPS):
            end = backend.while_loop(goes_on, one, start, stops=True)
        if not any(chunks):  # every run of a block computed a row for every lane
            ran = end["counters"]["executions"] - counters["executions"]
            end["counters"]["rows"] = counters["rows"] + ran * backend.cast(counted, "int64")
        return end["state"], self._of_one_lane(end["counters"]), ready(end)

    def _deferred(
        self, visit: BlockInvocation, predicate: Array, state: State, every: Array | int
    ) -> tuple[State, list[Array], BlockCounts, Array]:
        """See `schedules.schedule_step.Guarded`: a deferred block, which runs for all turns of its lanes at once."""
        backend, number = self.backend, visit.number
        ready = self.guarded.runners[number].ready(state, predicate)
        turns = backend.sum(self.guarded.turns(number, state, ready))
        state, arrivals, _ = self.guarded.once(visit, predicate, state)
        made = BlockCounts(visit.lanes, lanes=turns, rows=self.guarded.rows(turns, visit.chunks, every))
        return state, arrivals, made, backend.constant(0)

    def _without_guards(
        self,
        state: State,
        counters: Counters,
        shared: Mapping[str, Leaves],
        until: Array,
        stop: Callable[[State], Array] | None,
        lanes: Array | int,
        together: int,
    ) -> tuple[State, Counters, Array]:
        """`run_trips` where every block runs in every trip, whoever waits: nobody is counted to decide about blocks.

        Whether there is a further trip is asked once for so many `together`; those that find no lane change nothing.
        Lanes do not wait for each other at sync blocks.
        """
        backend = self.backend
        every = backend.lanes_of(state["pc"])
        chunks = [block.chunks for block in self.chunked(every).blocks]
        dear = self.dear(every)

        def trip(carried: tuple[Array, State, Counters]) -> tuple[Array, State, Counters]:
            made, now, counts = carried
            go, masks = counts["trips"] < until, {}
            for number in self.flow.order:
                visit = BlockInvocation(number, backend.constant(0), (), shared, chunks[number])
                now, masks[number] = self.guarded.unguarded(visit, now, go, dear[number])
            now, counts = self._elsewhere(now, self._with_trip(counts, masks, go, lanes, chunks), shared)
            return made + 1, now, counts

        def look(carried: Carried) -> Carried:
            turned = (backend.constant(0), carried["state"], carried["counters"])
            with backend.scope(f"{TRIPS}_{together}"):
                _, now, counts = backend.while_loop(lambda each: each[0] < together, trip, turned)
            found = {"state": now, "counters": counts, "ready": ready(now)}
            return found if stop is None else {**found, "stop": stop(now)}

        def ready(now: State) -> Array:
            return backend.any(self.guarded.waiting(now, range(len(self.blocks))) < self.layout.start)

        def goes_on(carried: Carried) -> Array:
            goes = carried["ready"] & (carried["counters"]["trips"] < until)
            return goes if stop is None else goes & ~carried["stop"]

        start = {"state": state, "counters": counters, "ready": ready(state)}
        if stop is not None:
            start["stop"] = until < until
        with backend.scope(TRIPS):
            end = backend.while_loop(goes_on, look, start, stops=True)
        return end["state"], self._of_one_lane(end["counters"]), end["ready"]

    def _with_trip(
        self,
        before: Counters,
        masks: Mapping[int, Array],
        go: Array,
        lanes: Array | int,
        chunks: Sequence[Chunks | None],
    ) -> Counters:
        """The counters after a trip without guards, in which blocks have run for the lanes of `masks`, by number."""
        backend = self.backend
        nobody = go & False
        every = [masks.get(number, masks[self.flow.order[0]] & nobody) for number in range(len(self.blocks))]
        active = backend.sum_rows(backend.cast(backend.stack(every, -1), "int32"), every[0] == every[0])
        moved = backend.any(active > 0)
        rows = backend.cast(moved, "int64") * backend.cast(backend.constant(0) + lanes, "int64")
        if any(chunks):
            size = backend.array([each.rows if each else 1 for each in chunks], "int32")
            gathers = backend.array([each is not None for each in chunks], "bool")
            gathered = (active + size - 1) // size * size
            rows = backend.where(gathers, backend.cast(gathered, "int64"), rows)
        return {
            **before,
            "trips": before["trips"] + backend.cast(moved, "int64"),
            "executions": before["executions"] + backend.cast(active > 0, "int64"),
            "active": before["active"] + backend.cast(active, "int64"),
            "rows": before["rows"] + rows,
        }

    def trips_together(self, lanes: Array | int) -> int:
        """The number of trips between two looks whether there is to be another; 0 where blocks are guarded."""
        is_guarded = not self.context.unguarded or any(block.deferred is not None for block in self.blocks)
        return 0 if is_guarded or not isinstance(lanes, int) else self.context.device.trips_together

    def dear(self, lanes: int) -> list[frozenset[int]]:
        """The pieces of each block, by their places in its body, that so many lanes do not compute for nobody.

        It is asked for where blocks have no guards.
        """
        prices, program = self.prices(lanes), self.layout.program
        return [dear_pieces(program, number, prices, self.backend) for number in range(len(self.blocks))]

    def _elsewhere(self, state: State, counters: Counters, shared: Mapping[str, Leaves]) -> tuple[State, Counters]:
        """Run the blocks that are not run here."""
        if self.context.elsewhere is None:
            return state, counters
        state, executions = self.context.elsewhere.run(state, shared, counters["executions"])
        return state, {**counters, "executions": executions}

    def _of_one_lane(self, counters: Counters) -> Counters:
        """Correct `counters` for blocks that run elsewhere, for one lane at a time, one row each."""
        if self.context.elsewhere is None:
            return counters
        backend, lockstep = self.backend, self.context.elsewhere.lockstep
        here = backend.array([number in lockstep for number in range(len(self.blocks))], "bool")
        return {
            **counters,
            **{name: backend.where(here, counters[name], counters["executions"]) for name in ("active", "rows")},
        }

    def chunked(self, lanes: Array | int) -> Program:
        """The program with the chunks in which its blocks run for `lanes` lanes, perhaps not known when tracing."""
        compaction, program = self.context.compaction, self.layout.program
        known = lanes if isinstance(lanes, int) else None
        return program if compaction is None else compaction.chunked(program, self.rows, known)

    def text(self, lanes: int) -> str:
        """The loop for so many lanes as text; see `schedules.text`."""
        prices = functools.partial(self.prices, lanes)
        behind = () if self.context.elsewhere is None else ("state = natively(state)  # all other blocks",)
        return written(self.layout.program.name, self.context.schedule, self.flow, prices, MOST_TURNS, behind)

    def _after(self, before: Counters, trip: Trip, chunks: Sequence[Chunks | None], lanes: Array | int) -> Counters:
        """Return the counters of blocks after a trip."""
        return {
            "executions": before["executions"] + self.backend.cast(trip.times, "int64"),
            "active": before["active"] + self.backend.cast(trip.lanes, "int64"),
            "rows": self._rows(before["rows"], trip, chunks, lanes),
        }

    def _rows(self, before: Array, trip: Trip, chunks: Sequence[Chunks | None], lanes: Array | int) -> Array:
        """`before` and the rows that the blocks computed in a trip: int64 `[blocks]`.

        Only `before` where all blocks compute a row for every lane: these are counted once, at the end.
        """
        if not any(chunks):
            return before
        backend, ran = self.backend, trip.ran
        size = backend.array([each.rows if each else 1 for each in chunks], "int32")
        gathered = (ran + size - 1) // size * size
        never = [INT32_MAX if each and each.whole is None else each.whole if each else 1 for each in chunks]
        rows = backend.where(ran >= backend.array(never, "int32"), backend.cast(ran > 0, "int32") * lanes, gathered)
        return before + backend.cast(trip.rows(rows), "int64")

    def _counted(self, state: State) -> Array:
        """Count the lanes that wait at each block, able to run, and that the schedule may choose: int32 `[blocks]`."""
        waiting = self.guarded.waiting(state, range(len(self.blocks)))
        return self.backend.tally(self._in_turn(state, waiting), range(len(self.blocks)))

    def _live(self, carried: Carried) -> Array:
        """Numbers that add up to how many lanes have not ended: int32 `[blocks]`.

        They are those that wait, if none lacks room or waits for others. (To read program counters that the trip is to
        change would take a copy of them and a reduction.)
        """
        if not self.sync and not self.guarded.can_lack_room:
            return carried["waiting"]
        backend = self.backend
        live = backend.sum(carried["state"]["pc"] < self.layout.start)
        return backend.stack([live, *(backend.constant(0) for _ in self.blocks[1:])])

    def _in_turn(self, state: State, waiting: Array) -> Array:
        """`waiting`, but FREE for the lanes that wait for others at a sync block.

        They go on when all lanes that can run are at such blocks: those at one of them, where the lane with the fewest
        steps is, so that lanes that come back to the same place for ever hold up nobody.
        """
        if not self.sync:
            return waiting
        backend = self.backend
        nowhere = backend.constant(self.layout.free)
        there = functools.reduce(operator.or_, [waiting == number for number in self.sync])
        elsewhere = (waiting < self.layout.start) & ~there
        elsewhere = backend.any(elsewhere)
        if len(self.sync) == 1:
            return backend.where(there & elsewhere, nowhere, waiting)
        fewest = backend.min(backend.where(there, state["steps"], backend.constant(INT32_MAX)))
        turn = backend.min(backend.where(there & (state["steps"] == fewest), waiting, nowhere))
        return backend.where(there & (elsewhere | (waiting != turn)), nowhere, waiting)
