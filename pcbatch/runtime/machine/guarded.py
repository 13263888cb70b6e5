"""Blocks under guards: run where lanes wait at them, once or several times in a row, on as many rows as it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Chunks
from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State, repeated
from pcbatch.runtime.machine.blocks import BlockRunner
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.values import Rows
from pcbatch.runtime.schedules.schedule_step import Again, BlockCounts, BlockGraph

MOST_TURNS = 64
"""Maximal number of runs of a block in one trip: a run can be stopped between trips."""


MakeRunner = Callable[[Context, int], BlockRunner]
"""A function that makes the runner of the block of a number."""


@dataclass(frozen=True)
class BlockInvocation:
    """A block at which `lanes` lanes wait (a scalar), and the requests for its run."""

    number: int
    lanes: Array
    followed: Sequence[int]
    """The blocks at which arrivals are counted."""
    shared: Mapping[str, Leaves]
    chunks: Chunks | None = None
    """The gathering of its lanes; None where it computes a row for every lane."""
    counter: Array | None = None
    """The array for arrivals, int32 `[followed]`, whose old values are ignored; None for a new one.

    One that is handed from trip to trip costs nothing; XLA fills and copies a new one for every guard."""


Form = Callable[[BlockInvocation, State, Array], tuple[State, Array]]
"""`form(visit, state, go)`: the state after the block has run, and which lanes went on from it, or failed in it, so
that their program counters are those of no block: bool `[lanes]`. `go` holds."""


class GuardedBlocks:
    """The blocks of one program, each under a guard that carries only its changes."""

    def __init__(self, context: Context, flow: BlockGraph, runner: MakeRunner = BlockRunner):
        self.context = context
        self.layout, self.limits, self.backend, self.flow = context.layout, context.limits, context.backend, flow
        self.blocks = context.program.blocks
        self.runners = [runner(context, number) for number in range(len(self.blocks))]
        self.changes = [each.changes for each in self.runners]

    @property
    def can_lack_room(self) -> bool:
        """True if a lane can lack room at one of the blocks."""
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
        """Return whether a run of the block has to count the lanes that come to wait at each of `followed`."""
        return bool(followed) and not self._all_arrive(number, followed)

    def once(self, visit: BlockInvocation, predicate: Array, state: State) -> tuple[State, list[Array], Array | None]:
        """Run the block once at most, where `predicate` holds: under a guard for each form that it may run in.

        Gives the state, how many lanes came to wait at each of the blocks that are followed, and the counter, if any.
        """
        backend, nobody, counter = self.backend, self.backend.constant(0), visit.counter
        counted = self.counts(visit.number, visit.followed)
        if counted and counter is None:
            counter = backend.zeros(len(visit.followed), TensorType("int32"))
        for form, fits in self._forms(visit, predicate):
            state, counter = self._guarded(visit, form, fits, state, counter if counted else None)
        places = len(visit.followed)
        arrived = [visit.lanes] * places if counter is None else backend.unstack(counter, places)
        return state, [backend.where(predicate, lanes, nobody) for lanes in arrived], counter

    def _forms(self, visit: BlockInvocation, predicate: Array) -> list[tuple[Form, Array]]:
        """The forms in which the block may run, and where it runs in each: one of them where `predicate` holds."""
        chunks = visit.chunks
        if chunks is None:
            return [(self._whole, predicate)]
        chunked = partial(self._in_chunks, chunks)
        if chunks.whole is None:
            return [(chunked, predicate)]
        many = visit.lanes >= chunks.whole
        return [(chunked, predicate & ~many), (self._whole, predicate & many)]

    def _guarded(
        self, visit: BlockInvocation, form: Form, predicate: Array, state: State, counter: Array | None
    ) -> tuple[State, Array | None]:
        """Run the block in one of its forms. Only what it changes goes through the conditional."""
        keys = self.changes[visit.number]

        def block(go: Array, *before: Array) -> list[Array]:
            now = {**state, **dict(zip(keys, before, strict=False))}
            after, ran = form(visit, now, go)
            changed = [after[key] for key in keys]
            return changed if counter is None else [*changed, self._arrivals(after, ran, visit.followed)]

        arrival_counters = [] if counter is None else [counter]
        in_place = self.runners[visit.number].in_place
        before = [*(state[key] for key in keys), *arrival_counters]
        places = [*(key in in_place for key in keys), *(False for _ in arrival_counters)]
        results = self.backend.guarded(predicate, block, before, places)
        return {**state, **dict(zip(keys, results, strict=False))}, None if counter is None else results[-1]

    def unguarded(self, visit: BlockInvocation, state: State, go: Array, dear: frozenset[int]) -> tuple[State, Array]:
        """The state after the block has run, whoever waits there, if the scalar `go` holds, and for which lanes it has.

        A row is computed for every lane; those of lanes that do not wait there are junk. `dear` pieces, by their places
        in its body, are computed only if there is one that does: their results alone go through a conditional. Where
        lanes are gathered, there are no more chunks of rows than it takes, perhaps none.
        """
        if visit.chunks is not None:
            return self._in_chunks(visit.chunks, visit, state, go)
        ready = self.runners[visit.number].ready(state, go)
        after, _ = self._run(visit, state, Rows.of_all(self.backend, ready, dear))
        return after, ready

    def repeated(
        self, visit: BlockInvocation, predicate: Array, state: State, again: Again, every: Array | int
    ) -> tuple[State, list[Array], BlockCounts, Array]:
        """See `schedules.schedule_step.Guarded`: the block in a loop of its own, in a batch of `every` lanes."""
        backend, number = self.backend, visit.number
        keys, places = self.changes[number], [number, *visit.followed]
        count = 3 + len(places)  # times, lanes, rows, who is left, who arrived elsewhere: a vector is one kernel

        def turn(go: Array, arrays: Sequence[Array]) -> tuple[Array, list[Array]]:
            *before, counts = arrays
            here = backend.unstack(counts, count)[3]
            now = {**state, **dict(zip(keys, before, strict=True))}
            if visit.chunks is None:
                now, ran = self._whole(visit, now, go)
                arrivals = self._arrivals(now, ran, places)
            else:
                now, arrived, _ = self.once(replace(visit, lanes=here, followed=places, counter=None), go, now)
                arrivals = backend.stack(arrived)
            turned = backend.stack([backend.constant(1), here, self.rows(here, visit.chunks, every)])
            counts = counts * kept + backend.joined(turned, arrivals)
            times, _, _, left, *_ = backend.unstack(counts, count)
            return (left > 0) & again(left) & (times < MOST_TURNS), [*(now[key] for key in keys), counts]

        kept = backend.array([1, 1, 1, 0, *(1 for _ in visit.followed)], "int32")
        nobody = backend.constant(0)
        counts = backend.stack([nobody, nobody, nobody, visit.lanes, *(nobody for _ in visit.followed)])
        *after, counts = repeated(backend, predicate, turn, [*(state[key] for key in keys), counts])
        times, total, rows, left, *arrived = backend.unstack(counts, count)
        turns = BlockCounts(visit.lanes, times=times, lanes=total, rows=rows)
        return {**state, **dict(zip(keys, after, strict=True))}, arrived, turns, left

    def switched(
        self, number: Array, state: State, shared: Mapping[str, Leaves], chunks: Sequence[Chunks | None]
    ) -> State:
        """The state after block `number`, an int32 scalar, has run: one conditional with an arm for each block.

        Each arm gives the whole state (Radul et al., 2020, Figure 5). Blocks that have `chunks` run in chunks.
        """

        def arm(block: int) -> Callable[[], list[Array]]:
            def run() -> list[Array]:
                visit = BlockInvocation(block, self.backend.constant(0), (), shared, chunks[block])
                form = self._whole if visit.chunks is None else partial(self._in_chunks, visit.chunks)
                after, _ = form(visit, state, self.backend.equal(number, block))
                return [after[key] for key in state]

            return run

        arms = [arm(block) for block in range(len(self.blocks))]
        return dict(zip(state, self.backend.switch(number, arms, list(state.values())), strict=True))

    def turns(self, number: int, state: State, ready: Array) -> Array:
        """Return the turns of `ready` lanes that a deferred block is to run: bool `[lanes * most]`."""
        backend, deferred = self.backend, self.blocks[number].deferred
        assert deferred is not None
        (key,) = self.layout.tops(deferred.count)
        lanes = backend.lane_numbers(backend.lanes_of(ready) * deferred.most)
        owner = lanes // deferred.most
        return backend.load(ready, [], owner) & (lanes % deferred.most < backend.load(state[key], [], owner))

    def rows(self, lanes: Array, chunks: Chunks | None, every: Array | int) -> Array:
        """Return the number of rows computed for so many lanes in a batch of `every`: an int32 scalar."""
        backend = self.backend
        rows = backend.constant(0) + every
        if chunks is None:
            return rows
        gathered = (lanes + (chunks.rows - 1)) // chunks.rows * chunks.rows
        return gathered if chunks.whole is None else backend.where(lanes >= chunks.whole, rows, gathered)

    # -- running blocks ------------------------------------------------------------------------------------------------

    def _whole(self, visit: BlockInvocation, state: State, go: Array) -> tuple[State, Array]:
        """The state after the block has computed a row for every lane, and which lanes went on from it."""
        ready = self.runners[visit.number].ready(state, go)
        return self._run(visit, state, Rows.of_all(self.backend, ready))

    def _in_chunks(self, chunks: Chunks, visit: BlockInvocation, state: State, go: Array) -> tuple[State, Array]:
        """The same after it has computed so many rows at a time; lanes that failed in it are among the others."""
        keys = self.changes[visit.number]

        def run(rows: Rows, before: Sequence[Array]) -> list[Array]:
            after, _ = self._run(visit, {**state, **dict(zip(keys, before, strict=True))}, rows)
            return [after[key] for key in keys]

        ready = self.runners[visit.number].ready(state, go)
        deferred, mask, most = self.blocks[visit.number].deferred, ready, None
        if deferred is not None:
            mask, most = self.turns(visit.number, state, ready), deferred.most
        after = in_chunks(self.backend, mask, chunks, run, [state[key] for key in keys], most)
        return {**state, **dict(zip(keys, after, strict=True))}, ready

    def _run(self, visit: BlockInvocation, state: State, rows: Rows) -> tuple[State, Array]:
        """The state after the block has run for `rows`, and which of them went on: bool `[rows]`.

        A run of a block is one such call, for all lanes, or a call for each of its chunks, in a loop. A recorder of
        runs writes what it keeps of `rows` here, into arrays of the state that are among `changes`.
        """
        updates, moving = self.runners[visit.number].run(state, visit.shared, rows)
        if unknown := updates.keys() - set(self.changes[visit.number]):
            raise AssertionError(f"{self.blocks[visit.number].label} changes {unknown}, not in its changes")
        return {**state, **updates}, moving

    def _arrivals(self, state: State, moving: Array, places: Sequence[int]) -> Array:
        """Count the `moving` lanes that wait at each of `places`, able to run: int32 `[places]`."""
        nowhere = self.backend.constant(self.layout.free)
        return self.backend.tally(self.backend.where(moving, self.waiting(state, places), nowhere), places)

    def _all_arrive(self, number: int, followed: Sequence[int]) -> bool:
        """Return whether each lane that runs the block is sure to wait, able to run, at the only one of `followed`."""
        if len(followed) > 1 or tuple(self.flow.successors[number]) != tuple(followed):
            return False
        return not effects.can_fault(self.blocks[number], self.limits.max_steps) and not any(
            self.runners[place].can_lack_room for place in followed
        )


RunRows = Callable[[Rows, Sequence[Array]], list[Array]]
"""A function `run(rows, arrays)` that returns the arrays after these rows have been computed."""


def in_chunks(
    backend: Backend, mask: Array, chunks: Chunks, run: RunRows, before: Sequence[Array], most: int | None = None
) -> list[Array]:
    """`before` after `run` for all lanes of `mask` (bool `[lanes]`), so many at a time, in their order.

    Given `most`, for all turns of lanes, of which each has as many: bool `[lanes * most]`.
    """
    order, count = backend.listed(mask)

    def rows(first: Array, size: int) -> Rows:
        if most is None:
            return Rows.chunk(backend, order, count, first, size)
        return Rows.turns_of_lanes(backend, order, count, first, size, most)

    def in_turns(size: int, beyond: int, carried: list[Array]) -> list[Array]:
        """Run chunks of `size` rows, as long as more than `beyond` are left."""

        def turn(go: Array, carried: Sequence[Array]) -> tuple[Array, list[Array]]:
            first, *arrays = carried
            after = run(rows(first, size), arrays)
            first = first + size
            return first + beyond < count, [first, *after]

        return repeated(backend, carried[0] + beyond < count, turn, carried)

    carried = [backend.constant(0), *before]
    if chunks.pairs:
        carried = in_turns(2 * chunks.rows, chunks.rows, carried)
    _, *after = in_turns(chunks.rows, 0, carried)
    return after
