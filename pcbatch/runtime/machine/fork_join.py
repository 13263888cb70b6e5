"""Lanes that fork calls and lanes that run them: how these begin, and how they come back."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from pcbatch.ir.analysis.parallel_call_groups import Group
from pcbatch.ir.machine import Branch, Fork, ForkedCall, fork_of
from pcbatch.runtime.backends.protocol import Array, Backend, State, repeated
from pcbatch.runtime.machine.execution import Execution
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.machine.worklists import LENGTHS, LISTS, Worklists

# -- fork join ---------------------------------------------------------------------------------------------------------


class _Every:
    """The places of calls among those of all rows, where all rows that fork make all calls: row by row."""

    def __init__(self, backend: Backend, forks: Array, makes: Sequence[Array]):
        self.backend, self.forks, self.makes = backend, forks, makes
        self.rank, self.rows = backend.counted(forks) - 1, backend.sum(forks)

    def places(self, slots: Sequence[int]) -> list[Array]:
        """Return the places of some calls of each row."""
        first = self.backend.where(self.forks, self.rank * len(slots), self.rank * 0)
        return [first + place for place in range(len(slots))]

    def count(self, slots: Sequence[int]) -> Array:
        """Return the number of lanes."""
        return self.rows * len(slots)


class _Some(_Every):
    """The same where rows make some of the calls: call by call."""

    def places(self, slots: Sequence[int]) -> list[Array]:
        every = self.backend.joined(*(self.makes[slot] for slot in slots))
        rows, places = self.backend.lanes_of(self.forks), self.backend.counted(every) - 1
        places = self.backend.where(every, places, places * 0)
        return [places[place * rows : (place + 1) * rows] for place in range(len(slots))]

    def count(self, slots: Sequence[int]) -> Array:
        return self.backend.sum(self.backend.joined(*(self.makes[slot] for slot in slots)))


class ForkJoin:
    """The passing of values between lanes that wait and lanes that run their calls, `size` of these at a time."""

    def __init__(self, backend: Backend, layout: Layout, lists: Worklists, size: int):
        self.backend, self.layout, self.lists, self.size = backend, layout, lists, size

    def fork(
        self,
        group: Group,
        now: State,
        lanes: Array,
        examples: Array,
        forks: Array,
        makes: Sequence[Array],
        depth: Array,
        values: Mapping[str, Mapping[int, Array]],
    ) -> tuple[State, Array]:
        """Give the rows that fork a lane for each of their calls, which begins it; return the number of these, too.

        Where a row makes no call, its lane goes on at once.
        """
        backend, layout, lists = self.backend, self.layout, self.lists
        calls, nothing = len(group.members), lanes * 0
        taken = (_Some if group.is_conditional else _Every)(backend, forks, makes)
        total = taken.count(range(calls))
        children = [lists.last(now, lists.free, total, place) for place in taken.places(range(calls))]
        if group.is_conditional:  # in place of who makes no call there is the lane itself
            children = [backend.where(made, child, lanes) for made, child in zip(makes, children, strict=True)]
        now = lists.changed(now, {lists.free: 0 - total})
        every, mask = backend.joined(*children), backend.joined(*makes)
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
            where, at = (backend.joined(*(each[slot] for slot in some)) for each in (makes, children))
            write(top, backend.joined(*by_slot.values()), at, where)
        for slot in range(layout.slots):
            arrived = backend.where(makes[slot], nothing, nothing + 1) if slot < calls else nothing + 1
            write(f"arrived {slot}", arrived, lanes, forks)
            if slot < calls:
                write(f"child {slot}", children[slot], lanes, forks)
        entries: dict[int, list[int]] = {}
        for slot, member in enumerate(group.members):
            entries.setdefault(member.entry, []).append(slot)
        after: State = now
        for entry, some in entries.items():
            every, mask = (backend.joined(*(each[slot] for slot in some)) for each in (children, makes))
            after = lists.put(after, entry, every, mask, backend.joined(*taken.places(some)), taken.count(some))
        if group.is_conditional:
            idle = forks & ~functools.reduce(operator.or_, makes)
            after = lists.put(after, group.join, lanes, idle, backend.counted(idle) - 1, backend.sum(idle))
        return after, total

    def hand_over(self, state: State, go: Array | None = None) -> State:
        """Report the results of lanes that have run forked calls; a waiting lane goes on with the last of its calls.

        Given the scalar `go`, of so many lanes at most, of none unless it holds, without a loop.
        """
        backend, lists, layout, size = self.backend, self.lists, self.layout, self.size
        arrivals = [f"arrived {slot}" for slot in range(layout.slots)]
        keys = [LISTS, LENGTHS, *arrivals]

        def turn(go: Array, carried: Sequence[Array]) -> tuple[Array, list[Array]]:
            todo, *arrays = carried
            now = {**state, **dict(zip(keys, arrays, strict=True))}
            places = backend.lane_numbers(size)
            count = backend.where(todo < size, todo, backend.constant(size))
            lanes, inside = lists.last(now, lists.handed, count, places), places < count
            parents, slots = backend.load(now["parent"], [], lanes), backend.load(now["slot"], [], lanes)
            now = lists.changed(now, {lists.handed: 0 - count})
            came = inside
            for slot, key in enumerate(arrivals):
                now[key] = backend.masked_store(now[key], [], inside & (slots == slot), 1 + places * 0, parents)
                came = came & (backend.load(now[key], [], parents) > 0)
            # Of several that come at once, one sends the lane that waits for them all.
            sends = came & (backend.ranks(backend.where(came, parents, backend.constant(-1))) == 0)
            place = backend.where(sends, backend.load(now["pc"], [], parents), backend.constant(lists.nowhere))
            now = lists.spread(now, parents, place)
            todo = todo - count
            return todo > 0, [todo, *(now[key] for key in keys)]

        todo = lists.length(state, lists.handed)
        before = [state[key] for key in keys]
        if go is None:
            _, *after = repeated(backend, todo > 0, turn, [todo, *before])
        else:
            _, (_, *after) = turn(go, [backend.where(go, todo, backend.constant(0)), *before])
        return {**state, **dict(zip(keys, after, strict=True))}


# -- forked execution --------------------------------------------------------------------------------------------------
# One run of one block in a program that forks.


class ForkedExecution(Execution):
    """One run of one block in a program that forks."""

    def execute(self) -> None:
        """Run the block; a lane whose calls have come back takes over their steps."""
        if (group := self.layout.joins.get(self.number)) is None:
            super().execute()
            return
        steps = self.old("steps") + group.steps
        for slot, member in enumerate(group.members):
            more = self.backend.load(self.state["steps"], [], self.old(f"child {slot}"))
            if member.call.condition is not None:
                more = self.backend.where(self.made(slot), more + 1, more * 0)
            steps = steps + more
        self.taken["steps"] = steps
        if self.limits.max_steps is not None:
            self.moving = self.moving & (steps <= self.limits.max_steps)
        self.written["steps"] = (self.entered, steps)
        super().execute()

    @property
    def lanes(self) -> Array:
        """The lanes of the rows."""
        assert self.rows.lanes is not None, "rows are gathered where calls are forked"
        return self.rows.lanes

    def made(self, slot: int) -> Array:
        """Return for each lane that waited whether it has made a call of the group: otherwise it is its own child."""
        return self.old(f"child {slot}") != self.lanes

    def children(self, group: Group) -> list[tuple[Array, Array | None]]:
        """The lanes that have run the calls of a group, each with where that call was made, None for everywhere."""
        slots = range(len(group.members))
        always = [member.call.condition is None for member in group.members]
        return [(self.old(f"child {slot}"), None if always[slot] else self.made(slot)) for slot in slots]

    def made_calls(self, group: Group) -> list[Array]:
        """Return for each call of the forked group which rows make it: a bool array."""
        return [self.moving & self.condition(member.call) for member in group.members]

    def called(self, target: Any, back: int) -> Array:
        """Return the block that a call jumps to: of a forking one the join block, run when all calls have returned."""
        fork = fork_of(self.block.terminator)
        return super().called(target, back) if fork is None else self._forked(fork)

    def place(self, target: int | Branch) -> Array:
        """The number of the block that `target` means for every row; of a branch that forks, the join block."""
        fork = fork_of(target) if target is self.block.terminator else None
        if fork is None:
            return super().place(target)
        some = functools.reduce(operator.or_, (self.condition(call) for call in fork.calls))
        depth = self.old("depth") + self.old("base")
        self.moving = self.moving & ~(some & (depth > self.limits.max_depth))
        return self._forked(fork)

    def _forked(self, fork: Fork) -> Array:
        if self.forkable is not None:
            self.moving = self.moving & self.forkable
        return self.backend.constant(fork.join)

    def condition(self, call: ForkedCall) -> Array:
        """Return which rows make a call of the forked group: a bool array."""
        if call.condition is None:
            return self.entered
        (holds,) = self.read(call.condition)
        return self.entered & holds

    def waits(self, mask: Array) -> None:
        """Make the rows that lack room wait where they are."""
        entered, target = self.written["pc"]
        here = self.backend.constant(self.number)
        self.written["pc"] = (entered | mask, self.backend.where(mask, here, target))

    def arguments(self, group: Group) -> dict[str, dict[int, Array]]:
        """Return, by the key of a top, the arguments of the calls, by their places."""
        found: dict[str, dict[int, Array]] = {}
        for slot, member in enumerate(group.members):
            for variable, name in member.call.given:
                for top, value in zip(self.layout.tops(variable), self.read(name), strict=True):
                    found.setdefault(top, {})[slot] = self.backend.where(self.entered, value, value)
        return found
