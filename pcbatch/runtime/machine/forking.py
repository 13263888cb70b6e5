"""Forked calls: lanes of their own run the calls of a group, while the lane that makes them waits.

Lanes are kept in lists (`worklists`), so all that is done is done for the lanes that take part, in chunks of rows:

1. a trip goes through the blocks, callers before callees' ends (`Forking.order`). A block runs for all lanes on its
   list; an expensive one only if nobody is at a block from which lanes come to it and never back: so all leaves of a
   tree run at once, then its nodes level by level;
2. where a block forks, each row takes a free lane for each call and gives it what the call is given; its lane waits.
   Rows that find no free lanes stay where they are: others may come back. If none does, the run ends with them there;
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
from functools import cached_property
from typing import Any

from pcbatch.ir.analysis import effects
from pcbatch.ir.analysis.callgraph import components
from pcbatch.ir.analysis.forks import Group, onward_forking
from pcbatch.ir.machine import PushJump, Return
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.blocks import BlockRunner
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.ends import given_by
from pcbatch.runtime.machine.execution import Execution
from pcbatch.runtime.machine.loop import Counters
from pcbatch.runtime.machine.rows import Rows
from pcbatch.runtime.machine.state import HELD
from pcbatch.runtime.machine.worklists import LENGTHS, LISTS, Worklists

GIVEN_UP = "given up"
"""The key of which examples are given up: int32 `[examples]`, 0 or 1."""
MOST_GROWTH = 8
"""How many times as many lanes a run may have as the last one."""
OWN = (LISTS, LENGTHS, GIVEN_UP)


class ForkedExecution(Execution):
    """One run of one block in a program that forks."""

    def execute(self) -> None:
        """Run the block; a lane whose calls have come back takes over their steps."""
        if (group := self.layout.joins.get(self.number)) is None:
            super().execute()
            return
        steps = self.old("steps") + (len(group.members) - 1)
        for slot in range(len(group.members)):
            steps = steps + self.backend.load(self.state["steps"], [], self.old(f"child {slot}"))
        self.taken["steps"] = steps
        if self.limits.max_steps is not None:
            self.moving = self.moving & (steps <= self.limits.max_steps)
        self.written["steps"] = (self.entered, steps)
        super().execute()

    def called(self, target: Any, back: int) -> Array:
        """Where a call leads: one that forks to the join block, when all of the group have come back."""
        end = self.block.terminator
        assert isinstance(end, PushJump)
        if end.fork is None:
            return super().called(target, back)
        if self.forkable is not None:
            self.moving = self.moving & self.forkable
        return self.backend.constant(end.fork.join)


@dataclass(frozen=True)
class Needs:
    """What a run could have used: how many `lanes`; and how many of them, `paused`, found no room on their stacks.

    It has `forked` so many calls, and had `most` lanes at a time; lanes were `short` at the end of so many trips.
    """

    lanes: int
    paused: int
    forked: int
    most: int
    short: int


class Forking:
    """The trips of a program that forks, traced for a pool of `lanes` and so many `examples`."""

    def __init__(self, context: Context, costs: Sequence[float], lanes: int, examples: int):
        self.context, self.layout, self.backend = context, context.layout, context.backend
        self.blocks, self.examples = context.program.blocks, examples
        self.lists = Worklists(self.backend, len(self.blocks), lanes)
        self.groups = {group.block: group for group in self.layout.groups}
        self.expensive = [number for number, cost in enumerate(costs) if cost > CPU.native_work]
        self.runners = {number: BlockRunner(context, number) for number in context.program.order}

    def size(self, number: int) -> int:
        """On how many rows a block runs at a time."""
        return CPU.expensive_chunk if number in self.expensive else CPU.cheap_chunk

    # -- where lanes go ------------------------------------------------------------------------------------------------

    @cached_property
    def onward(self) -> dict[int, list[int]]:
        """The blocks at which lanes may be next when lanes have left each: also others, that they fork or send on."""
        entries = {number: [member.entry for member in group.members] for number, group in self.groups.items()}
        program = self.context.program
        found = {number: onward_forking(program, number, entries) for number in program.order}
        for number in program.order:
            end = self.blocks[number].terminator
            if isinstance(end, PushJump):
                calls = [(member.entry, end.fork.join) for member in self.groups[number].members] if end.fork else []
                calls += [] if end.fork else [(entry, end.back) for entry in found[number][:-1]]
                for entry, back in calls:
                    for place in self._returns(entry, found):
                        found[place] = [*found[place], back]
        return found

    def _returns(self, entry: int, onward: Mapping[int, Sequence[int]]) -> list[int]:
        """The blocks that return from a call that begins at `entry`."""
        seen: set[int] = set()
        waiting = [entry]
        while waiting:
            number = waiting.pop()
            if number not in seen:
                seen.add(number)
                end = self.blocks[number].terminator
                if isinstance(end, PushJump):
                    waiting.append(end.back if end.fork is None else end.fork.join)
                elif not isinstance(end, Return):
                    waiting += onward[number]
        return [number for number in seen if isinstance(self.blocks[number].terminator, Return)]

    @cached_property
    def _components(self) -> list[list[int]]:
        """The blocks that lanes come to, those together that send lanes to each other, in the order of a trip."""
        order = self.context.program.order
        found = components({number: self.onward[number] for number in order})
        return [sorted(members, key=order.index) for members in reversed(found)]

    @cached_property
    def order(self) -> list[int]:
        """The blocks in the order of a trip."""
        return [number for members in self._components for number in members]

    def before(self, number: int) -> list[int]:
        """The blocks that must be empty for a block to run, if any: those before an expensive one, others at a sync."""
        if self.blocks[number].sync:
            return [other for other in self.order if not self.blocks[other].sync]
        if number not in self.expensive:
            return []
        (own,) = (members for members in self._components if number in members)
        reaching = {*own}
        for other in reversed(self.order):
            if reaching.intersection(self.onward[other]):
                reaching.add(other)
        return [other for other in self.order if other in reaching and other not in own]

    # -- a run ---------------------------------------------------------------------------------------------------------

    def start(self, inputs: State, capacity: int) -> State:
        """The state in which a run begins: lane i holds example i, the others are free."""
        backend, layout, lanes = self.backend, self.layout, self.lists.lanes
        state = layout.free_lanes(backend, lanes, capacity)
        numbers = backend.lane_numbers(lanes)
        state["example"] = backend.where(numbers < self.examples, numbers, numbers * 0)
        state["pc"] = numbers * 0
        state["depth"] = numbers * 0 + 1
        state["parent"] = numbers * 0 - 1
        for name in (name for name in self.context.program.parameters if layout.storage(name) in HELD):
            for key, top in zip(layout.keys("input", name), layout.tops(name), strict=True):
                state[top] = backend.extended(inputs[key], lanes)
        return {**state, **self.lists.first(self.examples), GIVEN_UP: backend.lane_numbers(self.examples) * 0}

    def run(
        self, state: State, inputs: State, shared: Mapping[str, Leaves], counters: Counters
    ) -> tuple[State, Counters, Array]:
        """The end of a run: the state, the counters, and what it needed, a vector of `Needs`."""
        backend, lists = self.backend, self.lists
        by_example = {key: inputs[key] for key in self.layout.by_example}
        sizes = backend.array([self.size(number) for number in range(len(self.blocks))], "int64")
        makes = backend.array([len(self.groups[n].members) if n in self.groups else 0 for n in self._numbers], "int64")

        def turn(carried: dict[str, Any]) -> dict[str, Any]:
            state, lanes, chunks = self.trip(carried["state"], by_example, shared)
            ran, several = (backend.cast(backend.stack(each), "int64") for each in (lanes, chunks))
            before = carried["counters"]
            used = lists.lanes - lists.length(state, lists.free)
            most = backend.where(used > carried["most"], used, carried["most"])
            lacks = self.can_run(state) < backend.sum(state[LENGTHS][: len(self.blocks)])
            return {
                "state": state,
                "counters": {
                    **before,
                    "executions": before["executions"] + backend.cast(several > 0, "int64"),
                    "active": before["active"] + ran,
                    "rows": before["rows"] + several * sizes,
                    "trips": before["trips"] + 1,
                },
                "most": most,
                "short": carried["short"] + backend.cast(lacks, "int32"),
            }

        nobody = backend.constant(0)
        start = {"state": state, "counters": counters, "most": nobody + self.examples, "short": nobody}
        end = backend.while_loop(lambda carried: self.can_run(carried["state"]) > 0, turn, start)
        forked = backend.cast(backend.sum(end["counters"]["active"] * makes), "int32")
        wanted = backend.where(end["short"] > 0, self.examples + forked, end["most"])
        stuck = backend.sum(end["state"][LENGTHS][: len(self.blocks)]) > 0  # who knows what they would have forked
        wanted = backend.where(stuck, backend.constant(self.lists.lanes * MOST_GROWTH), wanted)
        found = [wanted, lists.length(end["state"], lists.paused), forked, end["most"], end["short"]]
        return end["state"], end["counters"], backend.stack(found)

    def outputs(self, state: State) -> State:
        """What comes out of a run, by example: UNFINISHED are those that are to be run anew."""
        backend, layout = self.backend, self.layout
        own = {key: array[: self.examples] for key, array in state.items() if key in layout.arrays}
        given_up = state[GIVEN_UP] > 0
        own["pc"] = backend.where(given_up, backend.constant(0), own["pc"])
        own["fault"] = backend.where(given_up, backend.constant(0), own["fault"])
        return given_by(backend, layout, own)

    @property
    def _numbers(self) -> range:
        return range(len(self.blocks))

    # -- trips ---------------------------------------------------------------------------------------------------------

    def keys(self, number: int) -> list[str]:
        """The keys of what a run of a block changes."""
        layout, found = self.layout, {*self.runners[number].changes, *OWN}
        if number in layout.joins:
            found.add("steps")
        if (group := self.groups.get(number)) is not None:
            found |= {"parent", "slot", "base", "example", "steps", "depth", "calls", *layout.pointers}
            found |= {f"{what} {slot}" for what in ("child", "arrived") for slot in range(layout.slots)}
            found |= {top for member in group.members for name, _ in member.call.given for top in layout.tops(name)}
        return sorted(found)

    def trip(self, state: State, inputs: State, shared: Mapping[str, Leaves]) -> tuple[State, list[Array], list[Array]]:
        """The state after a trip, and for each block for how many lanes it has run, and in how many chunks."""
        nobody = self.backend.constant(0)
        lanes, chunks = [nobody] * len(self.blocks), [nobody] * len(self.blocks)
        for number in self.order:
            state, lanes[number], chunks[number] = self._visit(number, state, inputs, shared)
        return self._hand_over(state), lanes, chunks

    def can_run(self, state: State, numbers: Sequence[int] | None = None) -> Array:
        """How many lanes could go on at some blocks, None standing for all of them and for those that are HANDED."""
        backend, some = self.backend, self.order if numbers is None else numbers
        found = [self.lists.length(state, self.lists.handed)] if numbers is None else []
        for number in some:
            waiting = self.lists.length(state, number)
            if number in self.groups:
                enough = self.lists.length(state, self.lists.free) >= len(self.groups[number].members)
                waiting = backend.where(enough, waiting, backend.constant(0))
            found.append(waiting)
        return functools.reduce(operator.add, found)

    def _visit(
        self, number: int, state: State, inputs: State, shared: Mapping[str, Leaves]
    ) -> tuple[State, Array, Array]:
        """Run a block for all lanes on its list, a chunk of them at a time."""
        backend, lists, size, keys = self.backend, self.lists, self.size(number), self.keys(number)
        group = self.groups.get(number)

        def fitting(now: State, todo: Array) -> Array:
            """How many lanes the next chunk has."""
            most = backend.constant(size)
            if group is not None:
                enough = lists.length(now, lists.free) // len(group.members)
                most = backend.where(enough < size, enough, most)
            return backend.where(todo < most, todo, most)

        def turn(go: Array, carried: Sequence[Array]) -> tuple[Array, list[Array]]:
            todo, done, chunks, *arrays = carried
            now = {**state, **dict(zip(keys, arrays, strict=True))}
            count = fitting(now, todo)
            now = self._chunk(number, now, inputs, shared, count, size)
            todo = todo - count
            after = [todo, done + count, chunks + 1, *(now[key] for key in keys)]
            return fitting(now, todo) > 0, after

        nobody = backend.constant(0)
        todo = lists.length(state, number)
        if before := self.before(number):
            todo = backend.where(self.can_run(state, before) > 0, nobody, todo)
        start = [todo, nobody, nobody, *(state[key] for key in keys)]
        _, done, chunks, *after = backend.repeated(fitting(state, todo) > 0, turn, start)
        return {**state, **dict(zip(keys, after, strict=True))}, done, chunks

    def _chunk(
        self, number: int, now: State, inputs: State, shared: Mapping[str, Leaves], count: Array, size: int
    ) -> State:
        """Run a block for the last `count` lanes on its list, one of `size` rows for each."""
        backend, lists, layout, runner = self.backend, self.lists, self.layout, self.runners[number]
        places = backend.lane_numbers(size)
        lanes, inside = lists.last(now, number, count, places), places < count
        now = lists.changed(now, {number: 0 - count})
        examples = backend.take(now["example"], lanes)
        lives = inside & (backend.take(now[GIVEN_UP], examples) == 0)
        runs = lives
        if runner.can_lack_room:
            runs = lives & runner.room(_Taken(self, now, lanes))
        execution = ForkedExecution(self.context, number, {**now, **inputs}, shared, Rows(backend, lanes, runs))
        with backend.scope(self.blocks[number].label):
            execution.execute()
        moving = execution.moving
        failed = runs & ~moving
        target = places * 0 + execution.written["pc"][1]
        goes = self._place(number, target)
        over = inside & (failed | ~lives)
        is_root = backend.take(now["parent"], lanes) < 0
        ended = backend.where(is_root, backend.constant(lists.nowhere), backend.constant(lists.handed))
        goes = backend.where(over, ended, goes)
        if runner.can_lack_room:
            goes = backend.where(lives & ~runs, backend.constant(lists.paused), goes)
        goes = backend.where(inside, goes, backend.constant(lists.nowhere))
        given_up = now[GIVEN_UP]
        if effects.can_fault(self.blocks[number], self.context.limits.max_steps) or number in layout.joins:
            one, hit = backend.constant(1), backend.marked(self.examples, examples, failed)
            given_up = backend.where(hit, one, given_up)
        group, joined = self.groups.get(number), layout.joins.get(number)
        children = [execution.old(f"child {slot}") for slot in range(len(joined.members))] if joined else []
        values = self._arguments(execution, group) if group else {}
        depth = execution.old("base") + execution.old("depth") if group else None
        now = {**now, **execution.updates(), GIVEN_UP: given_up}
        for child in children:
            now = lists.put(now, lists.free, child, inside, places, count)
        now = lists.spread(now, lanes, goes)
        return self._fork(group, now, lanes, examples, moving, depth, values) if group else now

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

    # -- forking -------------------------------------------------------------------------------------------------------

    def _arguments(self, execution: ForkedExecution, group: Group) -> dict[str, dict[int, Array]]:
        """By key of a top what the calls that are given one are given, by their places."""
        found: dict[str, dict[int, Array]] = {}
        for slot, member in enumerate(group.members):
            for variable, name in member.call.given:
                for top, value in zip(self.layout.tops(variable), execution.read(name), strict=True):
                    found.setdefault(top, {})[slot] = self.backend.where(execution.entered, value, value)
        return found

    def _fork(
        self,
        group: Group,
        now: State,
        lanes: Array,
        examples: Array,
        forks: Array,
        depth: Array,
        values: Mapping[str, Mapping[int, Array]],
    ) -> State:
        """After the rows that fork have a lane for each call, and these begin it."""
        backend, layout, lists = self.backend, self.layout, self.lists
        calls = len(group.members)
        rank, count = backend.counted(forks) - 1, backend.sum(forks)
        total = count * calls
        nothing = lanes * 0
        ranks = backend.where(forks, rank * calls, nothing)
        children = [lists.last(now, lists.free, total, ranks + slot) for slot in range(calls)]
        now = lists.changed(now, {lists.free: 0 - total})
        every, mask = backend.joined(*children), backend.joined(*[forks] * calls)
        zeros = every * 0

        def write(
            key: str, value: Array, at: Array = every, where: Array = mask, indices: Sequence[Array] = ()
        ) -> None:
            now[key] = backend.masked_store(now[key], indices, where, value, at)

        now = dict(now)
        write("parent", backend.joined(*[lanes] * calls))
        write("slot", backend.joined(*[nothing + slot for slot in range(calls)]))
        write("example", backend.joined(*[examples] * calls))
        write("base", backend.joined(*[depth] * calls))
        write("depth", zeros + 1)
        for key in ("steps", *layout.pointers):
            write(key, zeros)
        write("calls", zeros + layout.handed, indices=[zeros])
        for top, by_slot in values.items():
            some = list(by_slot)
            where, at = (backend.joined(*each) for each in ([forks] * len(some), [children[slot] for slot in some]))
            write(top, backend.joined(*by_slot.values()), at, where)
        for slot in range(layout.slots):
            write(f"arrived {slot}", nothing + int(slot >= calls), lanes, forks)
            if slot < calls:
                write(f"child {slot}", children[slot], lanes, forks)
        entries: dict[int, list[int]] = {}
        for slot, member in enumerate(group.members):
            entries.setdefault(member.entry, []).append(slot)
        after: State = now
        for entry, some in entries.items():
            at = [rank * len(some) + place for place in range(len(some))]
            every, mask = backend.joined(*(children[slot] for slot in some)), backend.joined(*[forks] * len(some))
            after = lists.put(after, entry, every, mask, backend.joined(*at), count * len(some))
        return after

    # -- coming back ---------------------------------------------------------------------------------------------------

    def _hand_over(self, state: State) -> State:
        """After lanes that have run forked calls have told those that wait; these go on where they are the last."""
        backend, lists, layout, size = self.backend, self.lists, self.layout, CPU.cheap_chunk
        arrivals = [f"arrived {slot}" for slot in range(layout.slots)]
        keys = [LISTS, LENGTHS, *arrivals]

        def turn(go: Array, carried: Sequence[Array]) -> tuple[Array, list[Array]]:
            todo, *arrays = carried
            now = {**state, **dict(zip(keys, arrays, strict=True))}
            places = backend.lane_numbers(size)
            count = backend.where(todo < size, todo, backend.constant(size))
            lanes, inside = lists.last(now, lists.handed, count, places), places < count
            parents, slots = backend.take(now["parent"], lanes), backend.take(now["slot"], lanes)
            now = lists.changed(now, {lists.handed: 0 - count})
            came = inside
            for slot, key in enumerate(arrivals):
                now[key] = backend.masked_store(now[key], [], inside & (slots == slot), 1 + places * 0, parents)
                came = came & (backend.take(now[key], parents) > 0)
            # Of several that come at once, one sends the lane that waits for them all.
            sends = came & (backend.ranks(backend.where(came, parents, backend.constant(-1))) == 0)
            place = backend.where(sends, backend.take(now["pc"], parents), backend.constant(lists.nowhere))
            now = lists.spread(now, parents, place)
            todo = todo - count
            return todo > 0, [todo, *(now[key] for key in keys)]

        todo = lists.length(state, lists.handed)
        _, *after = backend.repeated(todo > 0, turn, [todo, *(state[key] for key in keys)])
        return {**state, **dict(zip(keys, after, strict=True))}


class _Taken(dict[str, Array]):
    """The rows of a state for some lanes, taken when they are asked for."""

    def __init__(self, forking: Forking, now: State, lanes: Array):
        super().__init__()
        self._forking, self._now, self._lanes = forking, now, lanes

    def __missing__(self, key: str) -> Array:
        self[key] = self._forking.backend.take(self._now[key], self._lanes)
        return self[key]
