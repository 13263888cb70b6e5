"""Which blocks run in a trip of the machine's loop, and in which order.

A schedule sees where every lane waits once per trip (`plan`) and then guards each block by a scalar bool. Whatever
the rule, it is a chain of guards `cond(chosen and someone waits, block, identity)`: XLA copies the whole state
through a multi-way conditional (60 times slower at stack depth 1024), and does not through these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pcbatch.diagnostics import UsageError
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.state import State

Plan = Any
"""What a schedule wants to know at the start of a trip: a structure of arrays of constant shapes."""

Guarded = Callable[[int, Array, Array, State, Sequence[int]], tuple[State, list[Array]]]
"""`guarded(number, predicate, lanes, state, followed) -> (state, arrivals)`.

Runs block `number` where `predicate` holds for the `lanes` lanes (a scalar) that wait there; `arrivals[i]` is how
many of them then wait, able to run, at block `followed[i]`.
"""


class Schedule(Protocol):
    """A rule that chooses blocks."""

    @property
    def name(self) -> str:
        """The name by which options choose it."""

    def plan(self, backend: Backend, waiting: Array, blocks: int) -> Plan:
        """From the block number at which each lane waits, `blocks` for a lane that cannot run."""

    def ready(self, backend: Backend, plan: Plan, blocks: int) -> Array:
        """Whether any lane can run: a scalar bool."""

    def trip(
        self, backend: Backend, plan: Plan, state: State, guarded: Guarded, successors: Sequence[Sequence[int]]
    ) -> tuple[State, Array]:
        """One trip: the state after it, and int32 `[blocks]`, how many lanes ran each block."""


@dataclass(frozen=True)
class Earliest:
    """Each trip runs one block, the first in source order at which a lane waits (Radul et al., 2020, Algorithm 2)."""

    name: str = "earliest"

    def plan(self, backend: Backend, waiting: Array, blocks: int) -> Plan:
        chosen = backend.min(waiting)
        return {"chosen": chosen, "lanes": backend.sum(waiting == chosen)}

    def ready(self, backend: Backend, plan: Plan, blocks: int) -> Array:
        return plan["chosen"] < blocks

    def trip(
        self, backend: Backend, plan: Plan, state: State, guarded: Guarded, successors: Sequence[Sequence[int]]
    ) -> tuple[State, Array]:
        for number in range(len(successors)):
            state, _ = guarded(number, plan["chosen"] == number, plan["lanes"], state, ())
        chosen = backend.lane_numbers(len(successors)) == plan["chosen"]
        return state, backend.cast(chosen, "int32") * plan["lanes"]


@dataclass(frozen=True)
class Sweep:
    """Each trip goes through all blocks in order and runs those at which a lane waits at that moment.

    All blocks' lanes are counted once per trip; a block that runs counts the lanes that it sends further down, so
    that a guard only compares a scalar (0.6 to 1.3 us per block, against 3.5 to 5 with a reduction of its own).
    """

    name: str = "sweep"

    def plan(self, backend: Backend, waiting: Array, blocks: int) -> Plan:
        return backend.tally(waiting, range(blocks))

    def ready(self, backend: Backend, plan: Plan, blocks: int) -> Array:
        return backend.any(plan > 0)

    def trip(
        self, backend: Backend, plan: Plan, state: State, guarded: Guarded, successors: Sequence[Sequence[int]]
    ) -> tuple[State, Array]:
        blocks = len(successors)
        lanes = backend.unstack(plan, blocks)
        for number, places in enumerate(successors):
            followed = [place for place in places if number < place < blocks]
            state, arrivals = guarded(number, lanes[number] > 0, lanes[number], state, followed)
            for place, count in zip(followed, arrivals, strict=True):
                lanes[place] = lanes[place] + count
        return state, backend.stack(lanes)


_BUILT: tuple[Schedule, ...] = (Earliest(), Sweep())
SCHEDULES: dict[str, Schedule] = {schedule.name: schedule for schedule in _BUILT}
AUTO = "sweep"


def schedule_named(name: str) -> Schedule:
    """The schedule called `name`; "auto" is the best that there is. UsageError PCB530 for an unknown name."""
    found = SCHEDULES.get(AUTO if name == "auto" else name)
    if found is None:
        known = ", ".join(repr(known) for known in ("auto", *SCHEDULES))
        raise UsageError("PCB530", f"there is no schedule {name!r}; there are {known}")
    return found
