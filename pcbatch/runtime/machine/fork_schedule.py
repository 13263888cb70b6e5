"""The routes of lanes through a program that forks, and the order of blocks in a trip."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from pcbatch.ir.analysis.callgraph import components
from pcbatch.ir.analysis.parallel_call_groups import Group, onward_forking
from pcbatch.ir.machine import Program, PushJump, Return, fork_of


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
