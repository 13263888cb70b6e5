"""Schedules by name: they choose the blocks that run in a trip of the machine's loop, and their order.

A schedule sees how many lanes wait at each block and asks for blocks to be run under guards (`schedule_step.Trip`).
Whatever the rule, what runs is a chain of guards `cond(chosen and someone waits, block, identity)`: XLA copies the
whole state through a multi-way conditional (60 times slower at stack depth 1024), and does not through these. (The one
exception, "switch", is that conditional, for comparison.)

No schedule changes what a lane computes, and none can keep a run from ending: as long as a lane can run, every trip
runs a block for at least one lane, and a lane runs finitely many blocks unless its own loop is endless (`max_steps`
ends that). How long a lane can be left waiting while others run is said with each schedule.
"""

from __future__ import annotations

from pcbatch.errors import UsageError
from pcbatch.runtime.schedules.adaptive import Adaptive
from pcbatch.runtime.schedules.schedule_step import Schedule
from pcbatch.runtime.schedules.simple import Busiest, Earliest, Sweep, Switch

_BUILT: tuple[Schedule, ...] = (Earliest(), Busiest(), Sweep(), Adaptive(), Switch())
SCHEDULES: dict[str, Schedule] = {schedule.name: schedule for schedule in _BUILT}
AUTO = "adaptive"


def schedule_named(name: str) -> Schedule:
    """The schedule called `name`; "auto" is the best that there is. UsageError PCB530 for an unknown name."""
    found = SCHEDULES.get(AUTO if name == "auto" else name)
    if found is None:
        known = ", ".join(repr(known) for known in ("auto", *SCHEDULES))
        raise UsageError("PCB530", f"there is no schedule {name!r}; there are {known}")
    return found
