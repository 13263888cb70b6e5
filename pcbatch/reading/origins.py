"""Arrays and objects that may be one behind a turn of a loop: its head has to know them, besides its variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pcbatch.reading.phis import Path
from pcbatch.reading.state import STRIDED, TURNED, State
from pcbatch.reading.values import Optional, Value

Head = Any
"""The head of a loop; see `heads`."""


@dataclass(eq=False)
class Origins:
    """Origins that a turn may give to what the head of a loop has, found out in all rounds so far."""

    loop: Any = None
    arrays: dict[Path, frozenset[str]] = field(default_factory=dict)
    """The arrays, and marks for those of other variables of the head, that a variable may be."""
    twins: set[tuple[int, int]] = field(default_factory=set)
    """Objects that may be one, or have one in them."""

    def of(self, path: Path) -> frozenset[str]:
        """The arrays that the variable at a path may be after a turn."""
        return self.arrays.get(path, frozenset())

    def enter(self, state: State) -> None:
        """Note in the state before a loop which objects may be one after a turn."""
        for one, other in self.twins:
            if one in state.heap and other in state.heap:
                state.pair(one, other)

    def widened(self, head: Head) -> bool:
        """Tell whether a turn has made more of what the head has be one."""
        is_wider = self._has_more_arrays(head)
        for number, others in head.behind.twins.items():
            for other in others:
                pair = (head.back.get(number, number), head.back.get(other, other))
                is_known = pair in self.twins or pair[0] in head.state.twins.get(pair[1], ())
                if pair[0] != pair[1] and not is_known and all(each in head.state.heap for each in pair):
                    self.twins.add(pair)
                    is_wider = True
        return is_wider

    def _has_more_arrays(self, head: Head) -> bool:
        reader = head.reader
        paths = {lane.name: path for path, lane in head.lanes.items() if lane.name in head.state.origins}
        found = {paths[lane.name]: _sources(head, now) for lane, now in head.moves if lane.name in paths}
        if not found:
            return False
        before = reader.in_state(head.state, lambda: self._living(head))
        is_wider = False
        for path, names in found.items():
            is_cell = path[0] == "c" and head.state.heap[path[1]].kind == "array"  # an array itself, whatever it holds
            own = set() if is_cell else names & before
            for other, theirs in found.items():
                if other != path and not is_cell and not names.isdisjoint(theirs):
                    own.add(f"{reader.span()} {sorted([repr(path), repr(other)])}")
            own |= {f"{mark}{path!r}" for mark in (TURNED, STRIDED) if any(each.startswith(mark) for each in names)}
            if not own <= self.of(path) | head.state.origins[head.lanes[path].name]:
                self.arrays[path] = self.of(path) | own
                is_wider = True
        return is_wider

    def _living(self, head: Head) -> set[str]:
        """The origins of the arrays that are read in the loop or behind it, but those of the head."""
        reader = head.reader
        given = {lane.name for lane, _ in head.moves}
        roots = iter([*reader.state.names.values()])
        if getattr(self.loop.node, "lineno", None) is not None:
            reader.loops.append(self.loop)
            roots = iter([*reader.living()])
            reader.loops.remove(self.loop)
        values = [each for each in reader.state.reachable(roots) if not isinstance(each, Optional)]
        return set().union(*(reader.shares(each) for each in values if getattr(each, "name", None) not in given))


def _sources(head: Head, now: Value) -> set[str]:
    """The origins of an array at the end of a turn, where it is an array that stays there, too."""
    found: set[str] = {*head.reader.in_state(head.behind, lambda: head.reader.origins_of(now))}
    cells = {int(name[1:]) for name in found if name.startswith("#")}
    return found | {f"#{head.back[cell]}" for cell in cells if cell in head.back}
