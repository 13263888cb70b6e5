"""Forked calls: lanes of their own run the calls of a group, while the lane that makes them waits.

What a block does is move lanes to program counters below 0 (`Layout.waits`, `asks`, `delivers`, `again`). The rest
happens between two trips, here, for all lanes at once:

1. lanes that have run a forked call hand its results over to the lane that made it, into its slots, and are free;
2. lanes whose calls have all come back go on behind the first of them, as if they had called; where they would make the
   others, they find the results in their slots (`Execution.take_back`);
3. an example of which any lane has failed, or has taken too many steps, is given up: its lanes are free, and it is to
   be run anew without forks. So what becomes of it, its message and its steps are those of calls in sequence, and what
   another lane of it might do for ever holds up nobody;
4. lanes that are to fork get free lanes, by one prefix sum over those that want some and one over those that are free.
   Where too few are left, they make their calls one after the other, unless the pool can become larger.

There is no queue and no list of free lanes. What is moved beside program counters and the like is moved for the lanes
that take part, in chunks: `Device.forked`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from pcbatch.ir.machine import ForkedCall
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.context import Context

Act = Callable[[State, Array, Array], State]
"""`act(state, lanes, mask)`: what changes of the state for those of some lanes (int32 `[n]`) for which `mask` holds."""

Pairs = list[tuple[str, str]]
"""Keys of arrays where values are handed over, each with that of a top."""
Slots = dict[int, Pairs]
"""The same for each call of a group."""


class Forking:
    """What happens between two trips of a program that forks.

    With `grows` lanes that find no free ones wait (`lacks_lanes`): the pool is to become larger.
    """

    def __init__(self, context: Context, grows: bool):
        self.layout, self.backend, self.limits, self.grows = context.layout, context.backend, context.limits, grows

    def step(self, state: State, examples: Array | int) -> State:
        """The state of the lanes of so many examples after all that can be handed over, given up and forked is."""
        backend, layout = self.backend, self.layout
        pc = state["pc"]
        delivers = (pc > layout.again) & (pc <= layout.delivers(layout.deliveries[0]))
        state = self._if(backend.any(delivers), state, lambda now: self._resume(self._deliver(now)), self._returning)
        failed = self._failed(state)
        state = self._if(backend.any(failed), state, lambda now: self._give_up(now, examples), ["pc", "fault"])
        return self._if(self.lacks_lanes(state), state, self._fork, self._forking)

    def _if(self, predicate: Array, state: State, act: Callable[[State], State], keys: Sequence[str]) -> State:
        """`act(state)`, which changes what is called `keys`, where the predicate holds."""

        def once(go: Array, arrays: Sequence[Array]) -> tuple[Array, list[Array]]:
            now = act({**state, **dict(zip(keys, arrays, strict=True))})
            return go & False, [now[key] for key in keys]

        after = self.backend.repeated(predicate, once, [state[key] for key in keys])
        return {**state, **dict(zip(keys, after, strict=True))}

    @cached_property
    def _returning(self) -> list[str]:
        """What changes where calls come back."""
        layout = self.layout
        slots = [
            key for s in range(layout.slots) for name in layout.given_back for key in layout.keys(f"slot {s}", name)
        ]
        tops = [key for name in layout.given_back for key in layout.tops(name)]
        return ["pc", "steps", "depth", "joined", *self._by_slot, *slots, *tops]

    @cached_property
    def _forking(self) -> list[str]:
        """What changes where lanes fork."""
        layout = self.layout
        tops = [key for name in layout.given for key in layout.tops(name)]
        own = ("pc", "example", "fault", "steps", "depth", "calls", *layout.pointers)
        return [*own, "parent", "slot", "base", "joined", *self._by_slot, *tops]

    @property
    def _by_slot(self) -> list[str]:
        return [f"{what} {slot}" for what in ("arrived", "steps") for slot in range(self.layout.slots)]

    def lacks_lanes(self, state: State) -> Array:
        """Whether a lane waits for lanes that are not there: a scalar bool."""
        return self._any_at(state, [self.layout.asks(group.block) for group in self.layout.groups])

    def is_given_up(self, state: State) -> Array:
        """Which lanes are those of examples that are to be run anew."""
        return self.backend.equal(state["pc"], self.layout.again)

    # -- the parts of a step -------------------------------------------------------------------------------------------

    def _deliver(self, state: State) -> State:
        """Lanes that have run a forked call hand over its results, and how many steps it took."""
        layout, backend = self.layout, self.backend
        for results in layout.deliveries:
            mask = backend.equal(state["pc"], layout.delivers(results))
            pairs = {slot: self._pairs(f"slot {slot}", results) for slot in range(layout.slots)}

            def act(now: State, lanes: Array, mask: Array, before: State = state, pairs: Slots = pairs) -> State:
                parents, slots = backend.take(before["parent"], lanes), backend.take(before["slot"], lanes)
                found = {}
                for slot, keys in pairs.items():
                    there = mask & (slots == slot)
                    values = {key: backend.take(before[top], lanes) for key, top in keys}
                    values[f"steps {slot}"] = backend.take(before["steps"], lanes)
                    values[f"arrived {slot}"] = slots * 0 + 1
                    for key, value in values.items():
                        found[key] = backend.masked_store(now[key], [], there, value, parents)
                return found

            keys = [key for each in pairs.values() for key, _ in each]
            keys += [f"{what} {slot}" for what in ("steps", "arrived") for slot in range(layout.slots)]
            state = {**state, **self._in_chunks(mask, {key: state[key] for key in keys}, act)}
            state["pc"] = backend.where(mask, backend.constant(layout.free), state["pc"])
        return state

    def _resume(self, state: State) -> State:
        """Lanes whose calls have all come back go on behind the first of them, with its results."""
        layout, backend = self.layout, self.backend
        pc, nothing = state["pc"], state["pc"] * 0
        slots = range(layout.slots)
        came = functools.reduce(operator.and_, [state[f"arrived {slot}"] > 0 for slot in slots])
        joins, back = nothing != 0, nothing
        takers: dict[tuple[str, ...], Array] = {}
        for group in layout.groups:
            first = group.members[0]
            mask = backend.equal(pc, layout.waits(group.block)) & came
            joins, back = joins | mask, backend.where(mask, backend.constant(first.back), back)
            takers[first.call.results] = takers.get(first.call.results, nothing != 0) | mask
        for results, mask in takers.items():
            pairs = self._pairs("slot 0", results)

            def act(now: State, lanes: Array, mask: Array, before: State = state, pairs: Pairs = pairs) -> State:
                return {
                    top: backend.masked_store(now[top], [], mask, backend.take(before[key], lanes), lanes)
                    for key, top in pairs
                }

            state = {**state, **self._in_chunks(mask, {top: state[top] for _, top in pairs}, act)}
        taken = functools.reduce(operator.add, [state[f"steps {slot}"] for slot in slots])
        return {
            **state,
            "pc": backend.where(joins, back, pc),
            "depth": backend.where(joins, state["depth"] - 1, state["depth"]),
            "steps": backend.where(joins, state["steps"] + taken, state["steps"]),
            "joined": backend.where(joins, backend.constant(1), state["joined"]),
        }

    def _failed(self, state: State) -> Array:
        """Which lanes have failed, or have taken too many steps."""
        layout, pc = self.layout, state["pc"]
        failed = pc > layout.free
        if self.limits.max_steps is None:
            return failed
        return failed | ((state["steps"] > self.limits.max_steps) & (pc != layout.free) & (pc != layout.again))

    def _give_up(self, state: State, examples: Array | int) -> State:
        """Examples of which a lane has failed, or has taken too many steps, are to be run anew."""
        layout, backend, pc = self.layout, self.backend, state["pc"]
        hit = backend.take(backend.marked(examples, state["example"], self._failed(state)), state["example"])
        stopped = hit & (pc != layout.free)
        place = backend.where(state["parent"] < 0, backend.constant(layout.again), backend.constant(layout.free))
        return {
            **state,
            "pc": backend.where(stopped, place, pc),
            "fault": backend.where(stopped, backend.constant(0), state["fault"]),
        }

    def _fork(self, state: State) -> State:
        """Lanes that want to fork get free ones, and wait; or make the calls themselves."""
        layout, backend = self.layout, self.backend
        pc, nothing = state["pc"], state["pc"] * 0
        lanes = backend.lanes_of(pc)
        wanted, first, waits = nothing, nothing, nothing
        for group in layout.groups:
            asks = backend.equal(pc, layout.asks(group.block))
            wanted = backend.where(asks, backend.constant(len(group.members)), wanted)
            first = backend.where(asks, backend.constant(group.members[0].entry), first)
            waits = backend.where(asks, backend.constant(layout.waits(group.block)), waits)
        is_free = pc == layout.free
        end, rank = self._prefix(wanted), backend.counted(is_free) - 1
        forks = (wanted > 0) & (end <= backend.sum(is_free))
        total = backend.max(backend.where(forks, end, nothing))
        owners = nothing
        for number in range(layout.slots):  # child number c of all belongs to the lane whose calls it lies among
            owners = backend.masked_store(
                owners, [], forks & (wanted > number), self._numbers(lanes), end - wanted + number
            )
        takes = is_free & (rank < total)
        owner = backend.take(owners, backend.where(takes, rank, nothing))
        slot = rank - backend.take(end - wanted, owner)
        kind = backend.take(waits, owner)
        state = self._given(state, takes, owner, slot, kind)
        entry, delivers = nothing, nothing
        for group in layout.groups:
            for number, member in enumerate(group.members):
                mask = (kind == layout.waits(group.block)) & (slot == number)
                entry = backend.where(mask, backend.constant(member.entry), entry)
                delivers = backend.where(mask, backend.constant(layout.delivers(member.call.results)), delivers)
        one = backend.constant(1)
        base = backend.take(state["base"] + state["depth"] - 1, owner)
        new = {"parent": owner, "slot": slot, "base": base, "example": backend.take(state["example"], owner)}
        blank = dict.fromkeys(("fault", "steps", "joined", *layout.pointers), nothing)
        found = {key: backend.where(takes, value, state[key]) for key, value in {**new, **blank}.items()}
        calls = backend.masked_store(state["calls"], [nothing], takes, delivers)
        pc = backend.where(takes, entry, backend.where(forks, waits, pc))
        if not self.grows:
            pc = backend.where((wanted > 0) & ~forks, first, pc)
        return {
            **state,
            **found,
            "pc": pc,
            "depth": backend.where(takes, one, state["depth"]),
            "calls": calls,
            **self._expected(state, forks, wanted),
        }

    def _expected(self, state: State, forks: Array, wanted: Array) -> State:
        """What has arrived of lanes that have just forked: nothing of the calls that they have made."""
        backend, found = self.backend, {}
        for slot in range(self.layout.slots):
            there = backend.where(wanted > slot, backend.constant(0), backend.constant(1))
            found[f"arrived {slot}"] = backend.where(forks, there, state[f"arrived {slot}"])
            found[f"steps {slot}"] = backend.where(forks, backend.constant(0), state[f"steps {slot}"])
        return found

    def _given(self, state: State, takes: Array, owner: Array, slot: Array, kind: Array) -> State:
        """Lanes that have been forked have what their calls are given."""
        layout, backend = self.layout, self.backend

        def act(now: State, lanes: Array, mask: Array) -> State:
            owners, slots = backend.take(owner, lanes), backend.take(slot, lanes)
            kinds = backend.take(kind, lanes)
            found = {}
            for name in layout.given:
                gets = self._are_given(name, kinds, slots)
                tops = layout.tops(name)
                values = [
                    [backend.take(state[key], owners) for key in layout.keys(f"argument {each}", name)]
                    for each in range(layout.slots)
                ]
                for top, (first, *others) in zip(tops, zip(*values, strict=True), strict=True):
                    value = first
                    for each, other in enumerate(others):
                        value = backend.where(slots > each, other, value)
                    found[top] = backend.masked_store(now[top], [], mask & gets, value, lanes)
            return found

        tops = [top for name in layout.given for top in layout.tops(name)]
        return {**state, **self._in_chunks(takes, {top: state[top] for top in tops}, act)}

    def _are_given(self, name: str, kinds: Array, slots: Array) -> Array:
        """Which of some forked calls are given a value for a variable."""
        layout = self.layout

        def gives(call: ForkedCall) -> bool:
            return any(variable == name for variable, _ in call.given)

        found = kinds != kinds
        for group in layout.groups:
            for number, member in enumerate(group.members):
                if gives(member.call):
                    found = found | ((kinds == layout.waits(group.block)) & (slots == number))
        return found

    # -- tools ---------------------------------------------------------------------------------------------------------

    def _pairs(self, what: str, names: Iterable[str]) -> Pairs:
        """For each leaf of some variables the keys of its array in slots, and of its top."""
        layout = self.layout
        return [pair for name in names for pair in zip(layout.keys(what, name), layout.tops(name), strict=True)]

    def _in_chunks(self, mask: Array, state: State, act: Act) -> State:
        """`state`, of which `act` changes what it changes for the lanes of `mask`, a chunk of them at a time."""
        if not state:
            return state
        backend = self.backend
        every = backend.lanes_of(mask)
        size = min(every, CPU.forked)
        order, count = backend.compact(mask, every), backend.sum(mask)

        def chunk(carried: tuple[Array, State]) -> tuple[Array, State]:
            start, now = carried
            places = start + self._numbers(size)
            inside = places < count
            lanes = backend.take(order, backend.where(inside, places, backend.constant(0)))
            return start + size, {**now, **act(now, lanes, inside)}

        start = (backend.constant(0), dict(state))
        return backend.while_loop(lambda carried: carried[0] < count, chunk, start)[1]

    def _prefix(self, numbers: Array) -> Array:
        """The sums of the first one, two, .. of small numbers."""
        found = [self.backend.counted(numbers > each) for each in range(self.layout.slots)]
        return functools.reduce(operator.add, found)

    def _numbers(self, count: Array | int) -> Array:
        return self.backend.lane_numbers(count)

    def _any_at(self, state: State, places: Iterable[int]) -> Array:
        found = [self.backend.equal(state["pc"], place) for place in places]
        return self.backend.any(functools.reduce(operator.or_, found))
