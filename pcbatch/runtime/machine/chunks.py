"""A run of a block in chunks: the lanes that wait are listed once, then so many rows are computed at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pcbatch.ir.machine import Chunks
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.machine.rows import Rows

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

        return backend.repeated(carried[0] + beyond < count, turn, carried)

    carried = [backend.constant(0), *before]
    if chunks.pairs:
        carried = in_turns(2 * chunks.rows, chunks.rows, carried)
    _, *after = in_turns(chunks.rows, 0, carried)
    return after
