"""Lists of lanes: where the lanes of a program that forks are, so that nothing has to look at all of them to find some.

There is a list for each block, of the lanes that wait there; one of lanes that have run a forked call (HANDED), one of
free lanes, and one of lanes that lack room on their stacks. A lane is in one list at most: one that waits for the calls
that it has forked is in none, nor is one that has ended. What is put on a list last is taken first: so forks go down
before they go on beside, and no more lanes are held than that takes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pcbatch.ir.analysis.dataflow import components
from pcbatch.ir.analysis.parallel_call_groups import Group, onward_forking
from pcbatch.ir.machine import Program, PushJump, Return, fork_of
from pcbatch.runtime.backends.protocol import Array, Backend, State

# -- worklists ---------------------------------------------------------------------------------------------------------

LISTS, LENGTHS = "lists", "lengths"
"""The keys of all lists, one behind the other, int32 `[lists * lanes]`, and of their lengths, int32 `[lists]`."""


@dataclass(frozen=True)
class Worklists:
    """The lists of a program of so many `blocks` in a pool of `lanes`: a number, or an int32 scalar."""

    backend: Backend
    blocks: int
    lanes: Any

    @property
    def handed(self) -> int:
        """The list of lanes that have run a forked call, to its end or not."""
        return self.blocks

    @property
    def free(self) -> int:
        """The list of free lanes."""
        return self.blocks + 1

    @property
    def paused(self) -> int:
        """The list of lanes that lack room."""
        return self.blocks + 2

    @property
    def count(self) -> int:
        """The number of lists."""
        return self.blocks + 3

    @property
    def nowhere(self) -> int:
        """The list of lanes that go on no list."""
        return self.count

    def first(self, examples: Array | int) -> State:
        """The lists when a run begins: lane i waits at block 0 for example i, the others are free."""
        backend, lanes = self.backend, self.lanes
        numbers, begin = backend.lane_numbers(lanes), backend.constant(0) + examples
        nobody = backend.lane_numbers(self.count * lanes) * 0
        free = backend.where(numbers < lanes - begin, lanes - 1 - numbers, numbers * 0)
        lists = backend.with_rows(nobody, backend.constant(0), numbers)
        lists = backend.with_rows(lists, backend.constant(0) + self.free * lanes, free)
        nothing = backend.constant(0)
        lengths = {0: begin, self.free: lanes - begin}
        return {LISTS: lists, LENGTHS: backend.stack([lengths.get(n, nothing) for n in range(self.count)])}

    def length(self, now: State, number: int) -> Array:
        """Return the number of lanes on a list: a scalar."""
        return now[LENGTHS][number]

    def last(self, now: State, number: int, count: Array, places: Array) -> Array:
        """Return the lanes at `places` among the last `count` of a list, the last first; beyond, the last of these."""
        backend = self.backend
        places = backend.where(places < count, places, count - 1)
        places = self.length(now, number) - 1 - places
        return backend.load(now[LISTS], [], number * self.lanes + backend.where(places < 0, places * 0, places))

    def changed(self, now: State, by: dict[int, Array]) -> State:
        """Change the lengths of lists by these numbers."""
        backend, nobody = self.backend, self.backend.constant(0)
        change = backend.stack([by.get(number, nobody) for number in range(self.count)])
        return {**now, LENGTHS: now[LENGTHS] + change}

    def put(self, now: State, number: int, lanes: Array, mask: Array, ranks: Array, count: Array) -> State:
        """Put `count` lanes, those of `mask`, on a list, in the order of their `ranks`."""
        places = number * self.lanes + self.length(now, number) + ranks
        lists = self.backend.masked_store(now[LISTS], [], mask, lanes, places)
        return self.changed({**now, LISTS: lists}, {number: count})

    def spread(self, now: State, lanes: Array, numbers: Array) -> State:
        """Put lanes on the lists of these numbers, maybe `nowhere`."""
        backend = self.backend
        goes = numbers < self.nowhere
        known = backend.where(goes, numbers, numbers * 0)
        places = known * self.lanes + backend.load(now[LENGTHS], [], known) + backend.ranks(numbers)
        lists = backend.masked_store(now[LISTS], [], goes, lanes, places)
        return {**now, LISTS: lists, LENGTHS: now[LENGTHS] + backend.tally(numbers, range(self.count))}


# -- fork schedule -----------------------------------------------------------------------------------------------------
# The routes of lanes through a program that forks, and the order of blocks in a trip.


class Routes:
    """The routes of lanes through `program`; `groups` are those of calls, by the blocks that fork them."""

    def __init__(self, program: Program, groups: Mapping[int, Group], expensive: Collection[int]):
        self.program, self.blocks = program, program.blocks
        self.groups, self.expensive = groups, expensive

    @cached_property
    def onward(self) -> dict[int, list[int]]:
        """The blocks at which lanes may be next when lanes have left each: also others, that they fork or send on."""
        entries = {number: [member.entry for member in group.members] for number, group in self.groups.items()}
        program = self.program
        found = {number: onward_forking(program, number, entries) for number in program.order}
        for number in program.order:
            for entry, back in self._calls(number, found[number]):
                for place in self._returns(entry, found):
                    found[place] = [*found[place], back]
        return found

    def _calls(self, number: int, onward: Sequence[int]) -> list[tuple[int, int]]:
        """The calls that a block makes: where they begin, and where a lane goes on when they have come back."""
        end = self.blocks[number].terminator
        if (fork := fork_of(end)) is not None:
            return [(member.entry, fork.join) for member in self.groups[number].members]
        return [(entry, end.back) for entry in onward[:-1]] if isinstance(end, PushJump) else []

    def _returns(self, entry: int, onward: Mapping[int, Sequence[int]]) -> list[int]:
        """The blocks that return from a call that begins at `entry`."""
        seen: set[int] = set()
        waiting = [entry]
        while waiting:
            number = waiting.pop()
            if number not in seen:
                seen.add(number)
                end, fork = self.blocks[number].terminator, fork_of(self.blocks[number].terminator)
                if fork is not None:
                    waiting.append(fork.join)
                elif isinstance(end, PushJump):
                    waiting.append(end.back)
                elif not isinstance(end, Return):
                    waiting += onward[number]
        return [number for number in seen if isinstance(self.blocks[number].terminator, Return)]

    @cached_property
    def behind_joins(self) -> frozenset[int]:
        """The blocks that lanes come to when calls that they have forked have come back, the join blocks among them."""
        found: set[int] = set()
        waiting = [group.join for group in self.groups.values()]
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += self.onward[number]
        return frozenset(found)

    @cached_property
    def _components(self) -> list[list[int]]:
        """The blocks that lanes come to, those together that send lanes to each other, in the order of a trip."""
        order = self.program.order
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
