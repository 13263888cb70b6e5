"""The schedule of a run, recorded in the machine's loop; `runtime.report.trace` reads it.

The record is an array for a fixed number of trips and one more, which stands for all others. A row has what is known in
the loop anyway, as to compute anything there costs as much as a cheap block: how often each block had run after the
trip, and for how many lanes, all trips together and modulo 2**32; for how many lanes it ran in this trip at first; and
numbers whose sum is how many lanes had not ended before the trip. It travels with the machine's counters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pcbatch.runtime.backends.protocol import Array, Backend


def apart(backend: Backend, turn: Callable[[Any], tuple[Any, Array]], carried: Any) -> tuple[Any, Array]:
    """A function `turn(carried)` that returns the next `carried`, and an int32 `[blocks]`.

    The record is not to slow down small programs.
    """
    if not backend.in_turn([*carried["state"].values(), *carried["counters"].values()]):
        return turn(carried)
    go = carried["counters"]["trips"] >= 0  # true, which XLA cannot know
    _, carried, first = backend.while_loop(
        lambda arrays: arrays[0],
        lambda arrays: (arrays[0] & False, *turn(arrays[1])),
        (go, carried, carried["waiting"]),
    )
    return carried, first


def recorded(
    backend: Backend, record: Array, trips: Array, counters: Mapping[str, Array], first: Array, live: Array
) -> Array:
    """`record`, int32 `[trips + 1, 4, blocks]`, with the row of a trip, before which there were `trips` (int64).

    `counters` are those after it. `first` is for how many lanes each block ran in it at first, and `live` adds up to
    how many lanes had not ended before it: int32 `[blocks]`.
    """
    last = backend.cast(backend.lanes_of(record) + backend.constant(-1), "int64")
    place = backend.cast(backend.where(trips < last, trips, last), "int32")
    totals = [backend.cast(counters[name], "int32") for name in ("executions", "active")]
    return backend.with_row(record, place, backend.stack([*totals, first, live]))
