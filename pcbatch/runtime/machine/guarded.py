"""Blocks under guards: run where lanes wait at them, once or several times in a row, on as many rows as it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pcbatch.ir.analysis import effects
from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.machine.blocks import BlockRunner
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.schedules.flow import Flow
from pcbatch.runtime.schedules.trip import Again, Turns

MOST_TURNS = 64
"""How often a block may run in one trip: a run can be stopped between trips."""


MakeRunner = Callable[[Context, int], BlockRunner]
"""Makes what runs the block of a number."""


@dataclass(frozen=True)
class Visit:
    """A block at which `lanes` lanes wait (a scalar), and what is asked when it runs for them."""

    number: int
    lanes: Array
    followed: Sequence[int]
    """The blocks at which arrivals are counted."""
    shared: Mapping[str, Leaves]
    sizes: tuple[int, ...]
    """The numbers of rows, smaller than the batch, that it may run on, ascending."""
    counter: Array | None = None
    """Where arrivals are written, int32 `[followed]`, its values of no account; None for a new one.

    One that is handed from trip to trip costs nothing; XLA fills and copies a new one for every guard."""


class GuardedBlocks:
    """The blocks of one program, each to be run by a guard that keeps what it does not change out of it."""

    def __init__(self, context: Context, flow: Flow, runner: MakeRunner = BlockRunner):
        self.layout, self.limits, self.backend, self.flow = context.layout, context.limits, context.backend, flow
        self.blocks = context.program.blocks
        self.runners = [runner(context, number) for number in range(len(self.blocks))]
        self.changes = [each.changes for each in self.runners]

    @property
    def can_lack_room(self) -> bool:
        """Whether a lane can lack room at one of the blocks."""
        return any(runner.can_lack_room for runner in self.runners)

    def waiting(self, state: State, numbers: Sequence[int]) -> Array:
        """The block at which each lane waits; FREE for lanes that lack room for one of the blocks `numbers`."""
        waiting = state["pc"]
        for number in numbers:
            if self.runners[number].can_lack_room:
                lacking = (state["pc"] == number) & ~self.runners[number].room(state)
                waiting = self.backend.where(lacking, self.backend.constant(self.layout.free), waiting)
        return waiting

    def counts(self, number: int, followed: Sequence[int]) -> bool:
        """Whether a run of the block has to count how many lanes come to wait at each of `followed`."""
        return bool(followed) and not self._all_arrive(number, followed)

    def once(self, visit: Visit, predicate: Array, state: State) -> tuple[State, list[Array], Array | None]:
        """Run the block once at most, where `predicate` holds: a chain of guards, one for each size that it may run at.

        Gives the state, how many lanes came to wait at each of the blocks that are followed, and the counter, if any.
        """
        backend, nobody, counter = self.backend, self.backend.constant(0), visit.counter
        counted = self.counts(visit.number, visit.followed)
        if counted and counter is None:
            counter = backend.zeros(len(visit.followed), TensorType("int32"))
        fewest = 0
        for size in (*visit.sizes, None):
            fits = predicate & (visit.lanes > fewest) if fewest else predicate
            fits = fits & (visit.lanes <= size) if size is not None else fits
            state, counter = self._sized(visit, fits, state, size, counter if counted else None)
            fewest = size or 0
        places = len(visit.followed)
        arrived = [visit.lanes] * places if counter is None else backend.unstack(counter, places)
        return state, [backend.where(predicate, lanes, nobody) for lanes in arrived], counter

    def _sized(
        self, visit: Visit, predicate: Array, state: State, size: int | None, counter: Array | None
    ) -> tuple[State, Array | None]:
        """Run the block on `size` rows, or on all lanes. Only what it changes goes through the conditional."""
        keys = self.changes[visit.number]

        def block(go: Array, *before: Array) -> list[Array]:
            now = {**state, **dict(zip(keys, before, strict=False))}
            after, moving = self._run(visit.number, now, visit.shared, go, size)
            changed = [after[key] for key in keys]
            return changed if counter is None else [*changed, self._arrivals(after, moving, visit.followed)]

        arrival_counters = [] if counter is None else [counter]
        in_place = self.runners[visit.number].in_place
        results = self.backend.guarded(
            predicate,
            block,
            [*(state[key] for key in keys), *arrival_counters],
            [*(key in in_place for key in keys), *(False for _ in arrival_counters)],
        )
        return {**state, **dict(zip(keys, results, strict=False))}, None if counter is None else results[-1]

    def repeated(
        self, visit: Visit, predicate: Array, state: State, again: Again, every: Array | int
    ) -> tuple[State, list[Array], Turns, Array]:
        """See `schedules.trip.Guarded`: the block in a loop of its own, in a batch of `every` lanes."""
        backend, number, sizes = self.backend, visit.number, visit.sizes
        keys, places = self.changes[number], [number, *visit.followed]
        count = 3 + len(places)  # times, lanes, rows, who is left, who arrived elsewhere: a vector is one kernel

        def turn(go: Array, arrays: Sequence[Array]) -> tuple[Array, list[Array]]:
            *before, counts = arrays
            here = backend.unstack(counts, count)[3]
            now = {**state, **dict(zip(keys, before, strict=True))}
            if sizes:
                now, arrived, _ = self.once(replace(visit, lanes=here, followed=places, counter=None), go, now)
                arrivals = backend.stack(arrived)
            else:
                now, moving = self._run(number, now, visit.shared, go, None)
                arrivals = self._arrivals(now, moving, places)
            turned = backend.stack([backend.constant(1), here, self._fitting(here, sizes, every)])
            counts = counts * kept + backend.joined(turned, arrivals)
            times, _, _, left, *_ = backend.unstack(counts, count)
            return (left > 0) & again(left) & (times < MOST_TURNS), [*(now[key] for key in keys), counts]

        kept = backend.array([1, 1, 1, 0, *(1 for _ in visit.followed)], "int32")
        nobody = backend.constant(0)
        counts = backend.stack([nobody, nobody, nobody, visit.lanes, *(nobody for _ in visit.followed)])
        *after, counts = backend.repeated(predicate, turn, [*(state[key] for key in keys), counts])
        times, total, rows, left, *arrived = backend.unstack(counts, count)
        turns = Turns(visit.lanes, times=times, lanes=total, rows=rows)
        return {**state, **dict(zip(keys, after, strict=True))}, arrived, turns, left

    def switched(self, number: Array, state: State, shared: Mapping[str, Leaves]) -> State:
        """The state after block `number`, an int32 scalar, has run: one conditional with an arm for each block.

        Each arm gives the whole state (Radul et al., 2020, Figure 5).
        """

        def arm(block: int) -> Callable[[], list[Array]]:
            def run() -> list[Array]:
                after, _ = self._run(block, state, shared, self.backend.equal(number, block), None)
                return [after[key] for key in state]

            return run

        arms = [arm(block) for block in range(len(self.blocks))]
        return dict(zip(state, self.backend.switch(number, arms, list(state.values())), strict=True))

    def _fitting(self, lanes: Array, sizes: tuple[int, ...], every: Array | int) -> Array:
        """The least of `sizes` into which so many lanes fit, or every lane: an int32 scalar."""
        backend = self.backend
        rows = backend.constant(0) + every
        for size in reversed(sizes):
            rows = backend.where(lanes <= size, backend.constant(size), rows)
        return rows

    def _run(
        self, number: int, state: State, shared: Mapping[str, Leaves], chosen: Array, size: int | None
    ) -> tuple[State, Array]:
        """The state after the block, and which lanes went on from it."""
        updates, moving = self.runners[number].run_for(state, shared, chosen, size)
        if unknown := updates.keys() - set(self.changes[number]):
            raise AssertionError(f"{self.blocks[number].label} changes {unknown}, not in its changes")
        return {**state, **updates}, moving

    def _arrivals(self, state: State, moving: Array, places: Sequence[int]) -> Array:
        """How many of the `moving` lanes wait at each of `places`, able to run: int32 `[places]`."""
        nowhere = self.backend.constant(self.layout.free)
        return self.backend.tally(self.backend.where(moving, self.waiting(state, places), nowhere), places)

    def _all_arrive(self, number: int, followed: Sequence[int]) -> bool:
        """Whether every lane that runs the block is then sure to wait, able to run, at the only place in `followed`."""
        if len(followed) > 1 or tuple(self.flow.successors[number]) != tuple(followed):
            return False
        return not effects.can_fault(self.blocks[number], self.limits.max_steps) and not any(
            self.runners[place].can_lack_room for place in followed
        )
