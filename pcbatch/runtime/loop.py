"""The machine's loop: trips through guarded blocks until no lane can run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pcbatch.ir.types import TensorType
from pcbatch.runtime import effects
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.blocks import BlockRunner
from pcbatch.runtime.limits import Limits
from pcbatch.runtime.schedules import Schedule
from pcbatch.runtime.state import Layout, State

Counters = dict[str, Array]
"""`executions` and `active`, int64 `[blocks]`: how often each block ran and for how many lanes; `trips`, int32."""


class Loop:
    """The loop of one program under one schedule; `run` may be traced for any number of lanes."""

    def __init__(self, layout: Layout, limits: Limits, backend: Backend, schedule: Schedule, *, spread_live: bool):
        self.layout, self.limits, self.backend, self.schedule = layout, limits, backend, schedule
        self.blocks = layout.program.blocks
        self.runners = [BlockRunner(backend, layout, limits, spread_live, number) for number in range(len(self.blocks))]
        self.successors = effects.successors(layout.program)
        self.can_fail = any(effects.can_fault(block, limits.max_steps) for block in self.blocks)
        self.changes = [effects.changes(layout, block, limits.max_steps) for block in self.blocks]

    def run(self, state: State, shared: Mapping[str, Any]) -> tuple[State, Counters]:
        """Trips until no lane can run."""
        backend, count = self.backend, len(self.blocks)

        def guarded(
            number: int, predicate: Array, lanes: Array, state: State, followed: Sequence[int]
        ) -> tuple[State, list[Array]]:
            return self._guarded(number, predicate, lanes, state, followed, shared)

        def trip(carried: dict[str, Any]) -> dict[str, Any]:
            state, ran = self.schedule.trip(backend, carried["plan"], carried["state"], guarded, self.successors)
            counters = {
                "executions": carried["counters"]["executions"] + backend.cast(ran > 0, "int64"),
                "active": carried["counters"]["active"] + backend.cast(ran, "int64"),
                "trips": carried["counters"]["trips"] + 1,
            }
            return {"state": state, "plan": self._plan(state), "counters": counters}

        def ready(carried: dict[str, Any]) -> Array:
            return self.schedule.ready(backend, carried["plan"], count)

        per_block = backend.zeros(count, TensorType("int64"))
        counters = {"executions": per_block, "active": per_block, "trips": backend.constant(0)}
        end = backend.while_loop(ready, trip, {"state": state, "plan": self._plan(state), "counters": counters})
        return end["state"], end["counters"]

    def _plan(self, state: State) -> Any:
        waiting = self._waiting(state, range(len(self.blocks)))
        return self.schedule.plan(self.backend, waiting, len(self.blocks))

    def _waiting(self, state: State, numbers: Sequence[int]) -> Array:
        """The block at which each lane waits; "finished" for lanes that lack room for one of the blocks `numbers`."""
        waiting = state["pc"]
        for number in numbers:
            if self.runners[number].can_lack_room:
                lacking = (state["pc"] == number) & ~self.runners[number].room(state)
                waiting = self.backend.where(lacking, self.backend.constant(self.layout.finished), waiting)
        return waiting

    def _guarded(
        self,
        number: int,
        predicate: Array,
        lanes: Array,
        state: State,
        followed: Sequence[int],
        shared: Mapping[str, Any],
    ) -> tuple[State, list[Array]]:
        """See `schedules.Guarded`. Only what the block changes goes through the conditional."""
        backend, keys = self.backend, self.changes[number]
        counted = bool(followed) and not self._all_arrive(number, followed)

        def block() -> list[Array]:
            updates, moving = self.runners[number].run(state, shared, predicate)
            if not updates.keys() <= set(keys):
                raise AssertionError(
                    f"{self.blocks[number].label} changes {updates.keys() - set(keys)}, not in its effects"
                )
            after = {**state, **updates}
            changed = [after[key] for key in keys]
            if not counted:
                return changed
            gone = backend.constant(self.layout.finished)
            return [*changed, backend.tally(backend.where(moving, self._waiting(after, followed), gone), followed)]

        nobody = [backend.zeros(len(followed), TensorType("int32"))] if counted else []
        results = backend.cond(predicate, block, [*(state[key] for key in keys), *nobody])
        state = {**state, **dict(zip(keys, results, strict=False))}
        if counted:
            return state, backend.unstack(results[-1], len(followed))
        return state, [backend.where(predicate, lanes, backend.constant(0)) for _ in followed]

    def _all_arrive(self, number: int, followed: Sequence[int]) -> bool:
        """Whether every lane that runs the block is then sure to wait, able to run, at the only place in `followed`."""
        if len(followed) > 1 or self.successors[number] != tuple(followed):
            return False
        return not effects.can_fault(self.blocks[number], self.limits.max_steps) and not any(
            self.runners[place].can_lack_room for place in followed
        )
