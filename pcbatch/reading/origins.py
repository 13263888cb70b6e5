"""Arrays that have other names after a turn of a loop: which a variable of its head may be, besides its first one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pcbatch.reading.phis import Path, Phi
from pcbatch.reading.values import Optional, Value

if TYPE_CHECKING:
    from pcbatch.reading.heads import Head


def widened(head: Head) -> dict[Path, Phi]:
    """The paths at which the head may have arrays that it was not known to have; `head.origins` has these then."""
    reader = head.reader
    paths = {lane.name: path for path, lane in head.lanes.items() if lane.name in head.state.origins}
    found = {paths[lane.name]: _sources(head, now) for lane, now in head.moves if lane.name in paths}
    if not found:
        return {}
    given = {lane.name for lane, _ in head.moves}
    before = reader.in_state(head.state, lambda: _living(head, given))
    more: dict[Path, Phi] = {}
    for path, names in found.items():
        known = head.origins.get(path, frozenset())
        own = names & before
        for other, theirs in found.items():
            if other != path and not names.isdisjoint(theirs):
                own.add(f"{reader.span()} {sorted([repr(path), repr(other)])}")
        if not own <= known | head.state.origins[head.lanes[path].name]:
            head.origins[path] = known | own
            more[path] = head.phis[path]
    return more


def _living(head: Head, given: set[str]) -> set[str]:
    """What the arrays share their elements with that are read in the loop or behind it, but for those of the head."""
    reader = head.reader
    roots = iter([*reader.state.names.values()])
    if head.loop is not None and getattr(head.loop.node, "lineno", None) is not None:
        reader.loops.append(head.loop)
        roots = iter([*reader.living()])
        reader.loops.remove(head.loop)
    values = [each for each in reader.state.reachable(roots) if not isinstance(each, Optional)]
    return set().union(*(reader.shares(each) for each in values if getattr(each, "name", None) not in given))


def _sources(head: Head, now: Value) -> set[str]:
    """What an array may share its elements with at the end of a turn, where it is an array that stays there, too."""
    found: set[str] = head.reader.in_state(head.behind, lambda: head.reader.shares(now))
    cells = {int(name[1:]) for name in found if name.startswith("#")}
    return found | {f"#{head.back[cell]}" for cell in cells if cell in head.back}
