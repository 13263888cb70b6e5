"""Blocks in a pool of many lanes, of which few wait at a time: they run for those alone, a chunk of rows at a time.

The waiting lanes are listed once, then a loop goes through the list. So a run costs what its lanes cost, however many
lanes there are; and no rows are computed for nobody but in the last chunk.
"""

from __future__ import annotations

from collections.abc import Sequence

from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.execution import Execution
from pcbatch.runtime.machine.guarded import GuardedBlocks, Visit
from pcbatch.runtime.machine.rows import Rows


def chunk_of(row_cost: float, lanes: int) -> int:
    """How many rows of a block are computed at a time."""
    return min(lanes, CPU.expensive_chunk if row_cost > CPU.native_work else CPU.cheap_chunk)


class ChunkedBlocks(GuardedBlocks):
    """Guarded blocks of which each runs in chunks of as many rows as the only one of its sizes says."""

    def once(self, visit: Visit, predicate: Array, state: State) -> tuple[State, list[Array], Array | None]:
        """See `GuardedBlocks.once`."""
        backend, keys, places = self.backend, self.changes[visit.number], len(visit.followed)
        counter = backend.zeros(places, TensorType("int32")) if places else None
        before = [*(state[key] for key in keys), *([] if counter is None else [counter])]

        def run(go: Array, arrays: Sequence[Array]) -> tuple[Array, list[Array]]:
            now = {**state, **dict(zip(keys, arrays, strict=False))}
            mask = self._ready(visit.number, now, go)
            after = self._in_chunks(visit, now, mask)
            arrived = [] if counter is None else [self._arrivals(after, mask, visit.followed)]
            return go & False, [*(after[key] for key in keys), *arrived]

        after = backend.repeated(predicate, run, before)
        arrivals = backend.unstack(after[-1], places) if counter is not None else []
        return {**state, **dict(zip(keys, after, strict=False))}, arrivals, visit.counter

    def _ready(self, number: int, state: State, go: Array) -> Array:
        """Which lanes run the block; `go` holds."""
        mask = self.backend.both(self.backend.equal(state["pc"], number), go)
        runner = self.runners[number]
        return mask & runner.room(state) if runner.can_lack_room else mask

    def _in_chunks(self, visit: Visit, state: State, mask: Array) -> State:
        backend, (size,) = self.backend, visit.sizes
        order, count = backend.compact(mask, backend.lanes_of(mask)), backend.sum(mask)
        keys = self.changes[visit.number]

        def chunk(carried: tuple[Array, list[Array]]) -> tuple[Array, list[Array]]:
            start, arrays = carried
            places = start + backend.lane_numbers(size)
            inside = places < count
            lanes = backend.take(order, backend.where(inside, places, start))
            now = {**state, **dict(zip(keys, arrays, strict=True))}
            with backend.scope(self.blocks[visit.number].label):
                execution = Execution(self.context, visit.number, now, visit.shared, Rows(backend, lanes, inside))
                execution.execute()
                now |= execution.updates()
            return start + size, [now[key] for key in keys]

        start = (backend.constant(0), [state[key] for key in keys])
        _, arrays = backend.while_loop(lambda carried: carried[0] < count, chunk, start)
        return {**state, **dict(zip(keys, arrays, strict=True))}

    def _fitting(self, lanes: Array, sizes: tuple[int, ...], every: Array | int) -> Array:
        """How many rows are computed for so many lanes, at least one."""
        (size,) = sizes
        return (lanes + (size - 1)) // size * size
