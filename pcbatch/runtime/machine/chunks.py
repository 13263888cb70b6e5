"""A run of a block in chunks: the lanes that wait are listed once, then so many rows are computed at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.machine.rows import Rows

RunRows = Callable[[Rows, Sequence[Array]], list[Array]]
"""`run(rows, arrays)`: what the arrays are once these rows have been computed."""


def in_chunks(backend: Backend, mask: Array, size: int, run: RunRows, before: Sequence[Array]) -> list[Array]:
    """`before` after `run` for all lanes of `mask` (bool `[lanes]`), `size` at a time, in their order."""
    order, count = backend.listed(mask)

    def turn(go: Array, carried: Sequence[Array]) -> tuple[Array, list[Array]]:
        first, *arrays = carried
        after = run(Rows.chunk(backend, order, count, first, size), arrays)
        first = first + size
        return first < count, [first, *after]

    nobody = backend.constant(0)
    _, *after = backend.repeated(count > 0, turn, [nobody, *before])
    return after
