"""Forked calls: lanes of their own run the calls of a group, while the lane that makes them waits.

Lanes are kept in lists (`worklists`), so all that is done is done for the lanes that take part, in chunks of rows:

1. a trip goes through the blocks, callers before callees' ends (`Routes.order`). A block runs for all lanes on its
   list; an expensive one only if nobody is at a block from which lanes come to it and never back: so all leaves of a
   tree run at once, then its nodes level by level;
2. where a block forks, each row takes a free lane for each call and gives it what the call is given; its lane waits.
   Rows that find no free lanes stay where they are: others may come back. If none does, the leg ends with them there,
   and the run goes on with more lanes (`pool_sizing`);
3. a lane that has run a forked call is HANDED: of the calls of each group the last one to come back sends the lane that
   waits to the join block, which reads the results off the lanes that have them, and frees these;
4. an example of which any lane has failed, or has taken too many steps, is given up: where its lanes are taken off a
   list, they run nothing any more, and are handed back as if they had ended. It is to be run anew without forks. So
   what becomes of it, its message and its steps are those of calls in sequence, and what another lane of it might do
   for ever holds up nobody.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Return
from pcbatch.optimize.machine.compaction import Compaction, Row
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, State, repeated
from pcbatch.runtime.costs.device import CPU, Device
from pcbatch.runtime.costs.estimate import Prices, dear_pieces
from pcbatch.runtime.machine.admission import given_by
from pcbatch.runtime.machine.blocks import BlockRunner
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.fork_join import ForkedExecution, ForkJoin
from pcbatch.runtime.machine.loop import TRIPS, Counters
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.state import HELD
from pcbatch.runtime.machine.values import Rows
from pcbatch.runtime.machine.worklists import LENGTHS, LISTS, Routes, Worklists

GIVEN_UP = "given up"
"""The key of which examples are given up: int32 `[examples]`, 0 or 1."""
OWN = (LISTS, LENGTHS, GIVEN_UP)
MOST_ROWS = 1024
"""Maximal number of rows of a chunk: each finds its place on a list by comparing itself with all others of it."""


@dataclass(frozen=True)
class Report:
    """The report on a run at the end of a leg: the calls that it has `forked`, and its `most` lanes at a time.

    Lanes were `short` at the end of so many of its trips. `can_run`, `stuck` and `paused` are numbers of lanes: could
    go on (none, unless a tape was full); wait at blocks, for free lanes if none can run; found no room on stacks.
    """

    forked: int
    most: int
    short: int
    can_run: int
    stuck: int
    paused: int


class Forking:
    """The trips of a program that forks, traced for a `pool`, which may have room for more examples than there are.

    `few` says that the examples are few: blocks then run on fewer rows at a time.
    """

    def __init__(self, context: Context, costs: Sequence[float], pool: Pool, few: bool = False):
        self.context, self.layout, self.backend = context, context.layout, context.backend
        self.blocks, self.examples = context.program.blocks, pool.examples
        self.lists = Worklists(self.backend, len(self.blocks), pool.lanes)
        self.groups = {group.block: group for group in self.layout.groups}
        self.costs = costs
        self.expensive = [number for number, cost in enumerate(costs) if cost > CPU.native_work]
        self.routes = Routes(context.program, self.groups, self.expensive)
        self.few = few
        self.family = ForkJoin(self.backend, self.layout, self.lists, self._cheap)
        self.runners = {number: BlockRunner(context, number) for number in context.program.order}

    @property
    def together(self) -> int:
        """The number of trips between two looks whether there is to be another: without guards.

        It is 0 where blocks run in loops, for all lanes on their lists. Without guards there is one chunk of rows in a
        trip, whoever waits: as many as the device takes at once.
        """
        guarded = self.context.is_deterministic or self.context.spread_live or not self.can_be_empty
        return 0 if guarded or not isinstance(self.lists.lanes, int) else self.device.trips_together

    @property
    def device(self) -> Device:
        """The device that it runs on."""
        return self.context.device

    @property
    def can_be_empty(self) -> bool:
        """True if a chunk of no lane changes nothing, whatever is full."""
        return True

    @property
    def _cheap(self) -> int:
        if self.together:
            return self._at_once(0.0)
        return CPU.cheap_chunk_of_few if self.few else CPU.cheap_chunk

    def _at_once(self, cost: float) -> int:
        """The number of rows that a device of many processors computes at a time: no more than there are lanes."""
        return min(Compaction(device=self.device).size(Row(cost)), self.lists.lanes, MOST_ROWS)

    def size(self, number: int) -> int:
        """Return the number of rows that a block computes at a time."""
        if self.together:
            return self._at_once(self.costs[number])
        if number not in self.expensive:
            return self.family.size
        if self.few:
            return CPU.expensive_chunk_of_few
        return CPU.expensive_chunk if number in self.routes.behind_joins else CPU.expensive_chunk_of_ends

    # -- a run ---------------------------------------------------------------------------------------------------------

    def start(self, inputs: State, capacity: int, examples: Array | int) -> State:
        """The state in which a run of so many examples begins: lane i holds example i, the others are free."""
        backend, layout, lanes = self.backend, self.layout, self.lists.lanes
        state = self.new_lanes(lanes, capacity, backend.constant(0) + examples)
        numbers = backend.lane_numbers(lanes)
        state["example"] = backend.where(numbers < examples, numbers, numbers * 0)
        for name in (name for name in self.context.program.parameters if layout.storage(name) in HELD):
            for key, top in zip(layout.keys("input", name), layout.tops(name), strict=True):
                state[top] = backend.extended(inputs[key], lanes)
        return {**state, **self.lists.first(examples), GIVEN_UP: backend.lane_numbers(self.examples) * 0}

    def new_lanes(self, lanes: int, capacity: int, examples: Array | None = None) -> State:
        """Return so many lanes before they begin anything; see `Layout.free_lanes`."""
        state = self.layout.free_lanes(self.backend, lanes, capacity, examples)
        nothing = state["pc"] * 0
        return {**state, "pc": nothing, "depth": nothing + 1, "parent": nothing - 1}

    def run(
        self, state: State, inputs: State, shared: Mapping[str, Leaves], counters: Counters
    ) -> tuple[State, Counters, Array]:
        """Go on until no lane can run; return the state and the counters then, and a vector of a `Report`."""
        backend, lists = self.backend, self.lists
        by_example = {key: inputs[key] for key in self.layout.by_example}
        sizes = backend.array([self.size(number) for number in self._numbers], "int64")

        def goes_on(carried: dict[str, Any]) -> Array:
            return self.goes_on(carried["state"])

        def turn(carried: dict[str, Any], go: Array | None = None) -> dict[str, Any]:
            state, lanes, chunks, calls = self.trip(carried["state"], by_example, shared, go)
            ran, several = (backend.cast(backend.stack(each), "int64") for each in (lanes, chunks))
            before = carried["counters"]
            used = lists.lanes - lists.length(state, lists.free)
            most = backend.where(used > carried["most"], used, carried["most"])
            lacks = self.can_run(state) < self._waiting(state)
            once = 1 if go is None else backend.cast(go, "int64")
            return {
                "state": state,
                "counters": {
                    **before,
                    "executions": before["executions"] + backend.cast(several > 0, "int64"),
                    "active": before["active"] + ran,
                    "rows": before["rows"] + several * sizes,
                    "trips": before["trips"] + once,
                },
                "forked": carried["forked"] + calls,
                "most": most,
                "short": carried["short"] + backend.cast(lacks if go is None else lacks & go, "int32"),
            }

        def look(carried: dict[str, Any]) -> dict[str, Any]:
            with backend.scope(f"{TRIPS}_{self.together}"):
                _, after = backend.while_loop(
                    lambda each: each[0] < self.together,
                    lambda each: (each[0] + 1, turn(each[1], goes_on(each[1]))),
                    (backend.constant(0), carried),
                )
            found: dict[str, Any] = after
            return found

        nobody = backend.constant(0)
        start = {"state": state, "counters": counters, "forked": nobody, "most": nobody, "short": nobody}
        with backend.scope(TRIPS):
            end = backend.while_loop(goes_on, look if self.together else turn, start, stops=True)
        after = end["state"]
        stand = [self.can_run(after), self._waiting(after), lists.length(after, lists.paused)]
        return after, end["counters"], backend.stack([end["forked"], end["most"], end["short"], *stand])

    def goes_on(self, state: State) -> Array:
        """Return a scalar bool: whether there is to be another trip."""
        return self.can_run(state) > 0

    def outputs(self, state: State) -> State:
        """Return the outputs of a run, by example: UNFINISHED where it is to be run anew, or has not ended."""
        backend, layout = self.backend, self.layout
        own = {key: array[: self.examples] for key, array in state.items() if key in layout.arrays}
        given_up = state[GIVEN_UP] > 0
        own["pc"] = backend.where(given_up, backend.constant(0), own["pc"])
        own["fault"] = backend.where(given_up, backend.constant(0), own["fault"])
        return given_by(backend, layout, own)

    def _waiting(self, state: State) -> Array:
        """Return the number of lanes that wait at blocks."""
        return self.backend.sum(state[LENGTHS][: len(self.blocks)])

    @property
    def _numbers(self) -> range:
        return range(len(self.blocks))

    # -- what a subclass has a part in ---------------------------------------------------------------------------------

    def fits(self, number: int, now: State) -> Array | None:
        """Return a scalar bool, whether another chunk of the block has room for its records; None if always."""
        return None

    def execution(
        self, number: int, state: State, shared: Mapping[str, Leaves], rows: Rows, count: Array
    ) -> ForkedExecution:
        """Return a run of a block for a chunk of `count` lanes, those that `rows` chooses."""
        return ForkedExecution(self.context, number, state, shared, rows)

    def have_begun(self, execution: ForkedExecution, now: State) -> State:
        """`now`, where lanes have begun the calls that a run of a block has forked."""
        return now

    # -- trips ---------------------------------------------------------------------------------------------------------

    def keys(self, number: int) -> list[str]:
        """Return the keys of the arrays that a run of a block changes."""
        layout, found = self.layout, {*self.runners[number].changes, *OWN}
        if number in layout.joins:
            found.add("steps")
        if (group := self.groups.get(number)) is not None:
            found |= {"parent", "slot", "base", "example", "steps", "depth", "calls", *layout.pointers}
            found |= {f"{what} {slot}" for what in ("child", "arrived") for slot in range(layout.slots)}
            found |= {top for member in group.members for name, _ in member.call.given for top in layout.tops(name)}
        return sorted(found)

    def trip(
        self, state: State, inputs: State, shared: Mapping[str, Leaves], go: Array | None = None
    ) -> tuple[State, list[Array], list[Array], Array]:
        """The state after a trip, for each block for how many lanes it ran, in how many chunks; and calls forked.

        Without guards nothing is changed unless the scalar `go` holds.
        """
        nobody = self.backend.constant(0)
        lanes, chunks = [nobody] * len(self.blocks), [nobody] * len(self.blocks)
        calls = nobody
        for number in self.routes.order:
            state, lanes[number], chunks[number], forked = self._visit(number, state, inputs, shared, go)
            calls = calls + forked
        return self.family.hand_over(state, go), lanes, chunks, calls

    def can_run(self, state: State, numbers: Sequence[int] | None = None) -> Array:
        """Count the lanes that could go on at some blocks; None stands for all blocks and for HANDED lanes."""
        backend, some = self.backend, self.routes.order if numbers is None else numbers
        found = [self.lists.length(state, self.lists.handed)] if numbers is None else []
        for number in some:
            waiting = self.lists.length(state, number)
            if number in self.groups:
                enough = self.lists.length(state, self.lists.free) >= len(self.groups[number].members)
                waiting = backend.where(enough, waiting, backend.constant(0))
            found.append(waiting)
        return functools.reduce(operator.add, found)

    def _visit(
        self, number: int, state: State, inputs: State, shared: Mapping[str, Leaves], go: Array | None
    ) -> tuple[State, Array, Array, Array]:
        """Run a block for all lanes on its list, a chunk of them at a time: for how many, chunks, calls forked.

        Without guards for one chunk, of no lane unless the scalar `go` holds.
        """
        backend, lists, size, keys = self.backend, self.lists, self.size(number), self.keys(number)
        group = self.groups.get(number)

        def fitting(now: State, todo: Array) -> Array:
            """Return the number of lanes of the next chunk."""
            most = backend.constant(size)
            if group is not None:
                enough = lists.length(now, lists.free) // len(group.members)
                most = backend.where(enough < size, enough, most)
            if (fits := self.fits(number, now)) is not None:
                most = backend.where(fits, most, backend.constant(0))
            return backend.where(todo < most, todo, most)

        def turn(go: Array, carried: Sequence[Array]) -> tuple[Array, list[Array]]:
            todo, done, chunks, calls, *arrays = carried
            now = {**state, **dict(zip(keys, arrays, strict=True))}
            count = fitting(now, todo)
            now, forked = self._chunk(number, now, inputs, shared, count, size)
            todo = todo - count
            after = [todo, done + count, chunks + 1, calls + forked, *(now[key] for key in keys)]
            return fitting(now, todo) > 0, after

        nobody = backend.constant(0)
        todo = lists.length(state, number)
        if before := self.routes.before(number):
            todo = backend.where(self.can_run(state, before) > 0, nobody, todo)
        if go is not None:
            count = fitting(state, backend.where(go, todo, nobody))
            now, forked = self._chunk(number, state, inputs, shared, count, size)
            return now, count, backend.cast(count > 0, "int32"), forked
        start = [todo, nobody, nobody, nobody, *(state[key] for key in keys)]
        _, done, chunks, calls, *after = repeated(backend, fitting(state, todo) > 0, turn, start)
        return {**state, **dict(zip(keys, after, strict=True))}, done, chunks, calls

    def _chunk(
        self, number: int, now: State, inputs: State, shared: Mapping[str, Leaves], count: Array, size: int
    ) -> tuple[State, Array]:
        """Run a block for the last `count` lanes on its list, one of `size` rows for each; how many calls it forks."""
        backend, lists, layout, runner = self.backend, self.lists, self.layout, self.runners[number]
        places = backend.lane_numbers(size)
        lanes, inside = lists.last(now, number, count, places), places < count
        now = lists.changed(now, {number: 0 - count})
        examples = backend.load(now["example"], [], lanes)
        lives = inside & (backend.load(now[GIVEN_UP], [], examples) == 0)
        runs = lives
        if runner.can_lack_room:
            runs = lives & runner.room(_Taken(self, now, lanes))
        dear = self._dear(number, size) if self.together else frozenset()
        execution = self.execution(number, {**now, **inputs}, shared, Rows(backend, lanes, runs, dear=dear), count)
        with backend.scope(self.blocks[number].label):
            execution.execute()
        moving = execution.moving
        failed = runs & ~moving
        target = places * 0 + execution.written["pc"][1]
        goes = self._place(number, target)
        over = inside & (failed | ~lives)
        is_root = backend.load(now["parent"], [], lanes) < 0
        ended = backend.where(is_root, backend.constant(lists.nowhere), backend.constant(lists.handed))
        goes = backend.where(over, ended, goes)
        if runner.can_lack_room:
            goes = backend.where(lives & ~runs, backend.constant(lists.paused), goes)
            execution.waits(lives & ~runs)
        goes = backend.where(inside, goes, backend.constant(lists.nowhere))
        given_up = now[GIVEN_UP]
        group, joined = self.groups.get(number), layout.joins.get(number)
        max_steps = self.context.limits.max_steps
        takes_over_steps = joined is not None and max_steps is not None
        if effects.can_fault(self.blocks[number], max_steps) or group or takes_over_steps:
            one, hit = backend.constant(1), backend.marked(self.examples, examples, failed)
            given_up = backend.where(hit, one, given_up)
        children = execution.children(joined) if joined else []
        makes = execution.made_calls(group) if group else []
        values = execution.arguments(group) if group else {}
        depth = execution.old("base") + execution.old("depth") if group else None
        now = {**now, **execution.updates(), GIVEN_UP: given_up}
        for child, made in children:
            if made is None and not runner.can_lack_room:
                now = lists.put(now, lists.free, child, inside, places, count)
            else:  # lanes that lack room come here again
                made = (inside if made is None else made & inside) & (runs | ~lives)
                now = lists.put(now, lists.free, child, made, backend.counted(made) - 1, backend.sum(made))
        now = lists.spread(now, lanes, goes)
        if group is None:
            return now, backend.constant(0)
        now, calls = self.family.fork(group, now, lanes, examples, moving, makes, depth, values)
        return self.have_begun(execution, now), calls

    def _dear(self, number: int, size: int) -> frozenset[int]:
        """The pieces of a block, by their places in its body, that so many rows do not compute for nobody."""
        return dear_pieces(self.context.program, number, Prices(self.costs, size, self.device), self.backend)

    def _place(self, number: int, target: Array) -> Array:
        """The lists of lanes that go to these places, if they have not failed."""
        backend, layout, lists, end = self.backend, self.layout, self.lists, self.blocks[number].terminator
        if number in self.groups:
            return target * 0 + lists.nowhere
        if not isinstance(end, Return):
            return backend.where(target >= layout.start, backend.constant(lists.nowhere), target)
        inside = (target >= 0) & (target < layout.start)
        ended = backend.where(target == layout.handed, backend.constant(lists.handed), backend.constant(lists.nowhere))
        return backend.where(inside, target, ended)


class _Taken(dict[str, Array]):
    """The rows of a state for some lanes, taken when they are asked for."""

    def __init__(self, forking: Forking, now: State, lanes: Array):
        super().__init__()
        self._forking, self._now, self._lanes = forking, now, lanes

    def __missing__(self, key: str) -> Array:
        self[key] = self._forking.backend.load(self._now[key], [], self._lanes)
        return self[key]
