"""The machine's loop: trips through guarded blocks until no lane can run."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pcbatch.ir.types import TensorType
from pcbatch.runtime import effects
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.blocks import BlockRunner
from pcbatch.runtime.compaction import Compaction
from pcbatch.runtime.costs import block_costs
from pcbatch.runtime.limits import Limits
from pcbatch.runtime.schedules.prices import USUAL_LANES, Prices
from pcbatch.runtime.schedules.trip import Again, Schedule, Trip, Turns
from pcbatch.runtime.state import Layout, State
from pcbatch.runtime.trace import recorded

Counters = dict[str, Array]
"""All int64: `executions`, `active` and `rows`, `[blocks]`: how often each block ran, for how many lanes, how many rows
it computed in all; `trips`, a scalar; `memory`, `[blocks]`: what the schedule remembers from trip to trip. Where trips
are recorded, `trace` as well: see `trace.recorded`."""

INT32_MAX = 2**31 - 1
MOST_TURNS = 64
"""How often a block may run in one trip: a run can be stopped between trips."""


class Loop:
    """The loop of one program under one schedule; `run` may be traced for any number of lanes."""

    def __init__(
        self,
        layout: Layout,
        limits: Limits,
        backend: Backend,
        schedule: Schedule,
        *,
        spread_live: bool,
        compaction: Compaction | None = None,
        trace: int = 0,
    ):
        self.layout, self.limits, self.backend, self.schedule = layout, limits, backend, schedule
        self.compaction, self.trace = compaction, trace
        self.blocks = layout.program.blocks
        self.runners = [BlockRunner(backend, layout, limits, spread_live, number) for number in range(len(self.blocks))]
        self.sync = [number for number, block in enumerate(self.blocks) if block.sync]
        self.flow = effects.flow(layout.program)
        self.can_fail = any(effects.can_fault(block, limits.max_steps) for block in self.blocks)
        self.changes = [effects.changes(layout, block, limits.max_steps) for block in self.blocks]

    @cached_property
    def row_costs(self) -> tuple[float, ...]:
        """The estimated work of one row of each block."""
        return block_costs(self.layout.program, self.backend)

    def prices(self, lanes: int) -> Prices:
        """What trips and blocks are estimated to cost with so many lanes."""
        return Prices(self.row_costs, lanes)

    @property
    def counter_shapes(self) -> dict[str, tuple[int, ...]]:
        """The counters, all int64, in the order in which they are passed on."""
        per_block = (len(self.blocks),)
        trace = {"trace": (self.trace, 2 * len(self.blocks) + 1)} if self.trace else {}
        return {
            "executions": per_block,
            "active": per_block,
            "rows": per_block,
            "trips": (),
            "memory": per_block,
            **trace,
        }

    def start(self) -> Counters:
        """The counters of a run that has not begun."""
        zero = self.backend.cast(self.backend.constant(0), "int64")
        return {
            name: self.backend.zeros(shape[0], TensorType("int64", shape[1:])) if shape else zero
            for name, shape in self.counter_shapes.items()
        }

    def run(
        self, state: State, counters: Counters, shared: Mapping[str, Any], until: Array
    ) -> tuple[State, Counters, Array]:
        """Trips until no lane can run, or until there have been `until` trips (an int64 scalar) in all.

        Gives the state, the counters, and whether a lane could go on: a scalar bool.
        """
        backend = self.backend
        every = backend.lanes_of(state["pc"])
        sizes = self._sizes(every)
        prices = functools.partial(self.prices, every if isinstance(every, int) else USUAL_LANES)

        def guarded(
            number: int, predicate: Array, lanes: Array, state: State, followed: Sequence[int], again: Again | None
        ) -> tuple[State, list[Array], Turns, Array]:
            if again is not None:
                return self._repeated(
                    number, predicate, lanes, state, followed, again, shared, sizes[number], every
                )
            state, arrivals = self._guarded(number, predicate, lanes, state, followed, shared, sizes[number])
            return state, arrivals, Turns(predicate, lanes), backend.constant(0)

        def turn(carried: dict[str, Any]) -> dict[str, Any]:
            before = carried["counters"]
            trip = Trip(backend, carried["state"], carried["waiting"], self._counted, guarded, self.flow, prices)
            memory = self.schedule.trip(trip, before["memory"])
            times = trip.times
            counters = {
                "executions": before["executions"] + backend.cast(times, "int64"),
                "active": before["active"] + backend.cast(trip.lanes, "int64"),
                "rows": self._rows(before["rows"], trip, sizes, every),
                "trips": before["trips"] + 1,
                "memory": memory,
            }
            if self.trace:
                record = before["trace"]
                live, number = self._live(carried), counters["trips"] - 1
                counters["trace"] = recorded(backend, record, trip.ran, times, live, number)
            return {"state": trip.state, "waiting": self._counted(trip.state), "counters": counters}

        def ready(carried: dict[str, Any]) -> Array:
            return backend.any(carried["waiting"] > 0)

        def goes_on(carried: dict[str, Any]) -> Array:
            return ready(carried) & (carried["counters"]["trips"] < until)

        start = {"state": state, "waiting": self._counted(state), "counters": counters}
        end = backend.while_loop(goes_on, turn, start)
        if not any(sizes):  # every run of a block computed a row for every lane
            ran = end["counters"]["executions"] - counters["executions"]
            end["counters"]["rows"] = counters["rows"] + ran * backend.cast(every, "int64")
        return end["state"], end["counters"], ready(end)

    def _sizes(self, lanes: Array | int) -> Sequence[tuple[int, ...]]:
        """The sizes smaller than the batch that each block may run at; none where that is not known when tracing."""
        if self.compaction is None or not isinstance(lanes, int) or lanes < 2 * self.compaction.floor:
            return [()] * len(self.blocks)
        return self.compaction.sizes(self.layout.program, self.row_costs, lanes)

    def _rows(self, before: Array, trip: Trip, sizes: Sequence[tuple[int, ...]], lanes: Array | int) -> Array:
        """`before` and the rows that the blocks computed in a trip: int64 `[blocks]`.

        Only `before` where all blocks compute a row for every lane: these are counted once, at the end.
        """
        if not any(sizes):
            return before
        backend, ran = self.backend, trip.ran
        rows = backend.cast(ran > 0, "int32") * lanes
        for place in reversed(range(max(map(len, sizes)))):
            size = backend.array([each[place] if place < len(each) else 0 for each in sizes], "int32")
            rows = backend.where((ran > 0) & (ran <= size), size, rows)
        return before + backend.cast(trip.rows(rows), "int64")

    def _counted(self, state: State) -> Array:
        """How many lanes wait at each block, able to run, that the schedule may choose: int32 `[blocks]`."""
        waiting = self._waiting(state, range(len(self.blocks)))
        return self.backend.tally(self._in_turn(state, waiting), range(len(self.blocks)))

    def _live(self, carried: Mapping[str, Any]) -> Array:
        """How many lanes have not ended: an int32 scalar.

        They are those that wait, if none lacks room or waits for others. (To read program counters that the trip is to
        change would take a copy of them and a reduction.)
        """
        if self.sync or any(runner.can_lack_room for runner in self.runners):
            return self.backend.sum(carried["state"]["pc"] < self.layout.finished)
        return self.backend.sum(carried["waiting"])

    def _in_turn(self, state: State, waiting: Array) -> Array:
        """`waiting`, but "finished" for the lanes that wait for others at a sync block.

        They go on when all lanes that can run are at such blocks: those at one of them, where the lane with the fewest
        steps is, so that lanes that come back to the same place for ever hold up nobody.
        """
        if not self.sync:
            return waiting
        backend = self.backend
        finished = backend.constant(self.layout.finished)
        there = functools.reduce(operator.or_, [waiting == number for number in self.sync])
        elsewhere = backend.any((waiting < finished) & ~there)
        if len(self.sync) == 1:
            return backend.where(there & elsewhere, finished, waiting)
        fewest = backend.min(backend.where(there, state["steps"], backend.constant(INT32_MAX)))
        turn = backend.min(backend.where(there & (state["steps"] == fewest), waiting, finished))
        return backend.where(there & (elsewhere | (waiting != turn)), finished, waiting)

    def _waiting(self, state: State, numbers: Sequence[int]) -> Array:
        """The block at which each lane waits; "finished" for lanes that lack room for one of the blocks `numbers`."""
        waiting = state["pc"]
        for number in numbers:
            if self.runners[number].can_lack_room:
                lacking = (state["pc"] == number) & ~self.runners[number].room(state)
                waiting = self.backend.where(lacking, self.backend.constant(self.layout.finished), waiting)
        return waiting

    def _guarded(
        self,
        number: int,
        predicate: Array,
        lanes: Array,
        state: State,
        followed: Sequence[int],
        shared: Mapping[str, Any],
        sizes: tuple[int, ...],
    ) -> tuple[State, list[Array]]:
        """Run the block once at most: a chain of guards, one for each size that it may run at.

        Gives the state, and how many lanes came to wait at each of the blocks `followed`.
        """
        arrivals: list[Array] = []
        fewest = 0
        for size in (*sizes, None):
            fits = predicate & (lanes > fewest) if fewest else predicate
            fits = fits & (lanes <= size) if size is not None else fits
            state, arrived = self._sized(number, fits, lanes, state, followed, shared, size)
            arrivals = [sum_ + one for sum_, one in zip(arrivals, arrived, strict=True)] if fewest else arrived
            fewest = size or 0
        return state, arrivals

    def _sized(
        self,
        number: int,
        predicate: Array,
        lanes: Array,
        state: State,
        followed: Sequence[int],
        shared: Mapping[str, Any],
        size: int | None,
    ) -> tuple[State, list[Array]]:
        """Run the block on `size` rows, or on all lanes. Only what it changes goes through the conditional."""
        backend, keys = self.backend, self.changes[number]
        counted = bool(followed) and not self._all_arrive(number, followed)

        def block(*before: Array) -> list[Array]:
            now = {**state, **dict(zip(keys, before, strict=False))}
            after, moving = self._run(number, now, shared, predicate, size)
            changed = [after[key] for key in keys]
            return [*changed, self._arrivals(after, moving, followed)] if counted else changed

        nobody = [backend.zeros(len(followed), TensorType("int32"))] if counted else []
        in_place = effects.in_place(self.layout, self.blocks[number])
        results = backend.guarded(
            predicate,
            block,
            [*(state[key] for key in keys), *nobody],
            [*(key in in_place for key in keys), *(False for _ in nobody)],
        )
        state = {**state, **dict(zip(keys, results, strict=False))}
        if counted:
            return state, backend.unstack(results[-1], len(followed))
        return state, [backend.where(predicate, lanes, backend.constant(0)) for _ in followed]

    def _repeated(
        self,
        number: int,
        predicate: Array,
        lanes: Array,
        state: State,
        followed: Sequence[int],
        again: Again,
        shared: Mapping[str, Any],
        sizes: tuple[int, ...],
        every: Array | int,
    ) -> tuple[State, list[Array], Turns, Array]:
        """See `schedules.trip.Guarded`: the block in a loop of its own."""
        backend, keys = self.backend, self.changes[number]
        places = [number, *followed]

        def turn(go: Array, arrays: Sequence[Array]) -> tuple[Array, list[Array]]:
            *before, times, total, rows, waiting = arrays
            here, *arrived = backend.unstack(waiting, len(places))
            now = {**state, **dict(zip(keys, before, strict=True))}
            if sizes:
                after, (left, *arrivals) = self._guarded(number, go, here, now, places, shared, sizes)
                waiting = backend.stack([left, *(a + b for a, b in zip(arrived, arrivals, strict=True))])
            else:
                after, moving = self._run(number, now, shared, go, None)
                waiting = self._arrivals(after, moving, places) + waiting * only_followed
                left, *_ = backend.unstack(waiting, len(places))
            times, total, rows = times + 1, total + here, rows + self._fitting(here, sizes, every)
            go_on = (left > 0) & again(left) & (times < MOST_TURNS)
            return go_on, [*(after[key] for key in keys), times, total, rows, waiting]

        only_followed = backend.array([0, *(1 for _ in followed)], "int32")
        nobody = backend.constant(0)
        waiting = backend.stack([lanes, *(nobody for _ in followed)])
        before = [*(state[key] for key in keys), nobody, nobody, nobody, waiting]
        *after, times, total, rows, waiting = backend.repeated(predicate, turn, before)
        left, *arrivals = backend.unstack(waiting, len(places))
        turns = Turns(predicate, lanes, times, total, rows)
        return {**state, **dict(zip(keys, after, strict=True))}, arrivals, turns, left

    def _fitting(self, lanes: Array, sizes: tuple[int, ...], every: Array | int) -> Array:
        """The least of `sizes` into which so many lanes fit, or every lane: an int32 scalar."""
        backend = self.backend
        rows = backend.constant(0) + every
        for size in reversed(sizes):
            rows = backend.where(lanes <= size, backend.constant(size), rows)
        return rows

    def _run(
        self, number: int, state: State, shared: Mapping[str, Any], chosen: Array, size: int | None
    ) -> tuple[State, Array]:
        """The state after the block, and which lanes went on from it."""
        updates, moving = self.runners[number].run(state, shared, chosen, size)
        if unknown := updates.keys() - set(self.changes[number]):
            raise AssertionError(f"{self.blocks[number].label} changes {unknown}, not in its effects")
        return {**state, **updates}, moving

    def _arrivals(self, state: State, moving: Array, places: Sequence[int]) -> Array:
        """How many of the `moving` lanes wait at each of `places`, able to run: int32 `[places]`."""
        gone = self.backend.constant(self.layout.finished)
        return self.backend.tally(self.backend.where(moving, self._waiting(state, places), gone), places)

    def _all_arrive(self, number: int, followed: Sequence[int]) -> bool:
        """Whether every lane that runs the block is then sure to wait, able to run, at the only place in `followed`."""
        if len(followed) > 1 or tuple(self.flow.successors[number]) != tuple(followed):
            return False
        return not effects.can_fault(self.blocks[number], self.limits.max_steps) and not any(
            self.runners[place].can_lack_room for place in followed
        )
