"""Watching the user's code while a program is traced, in the way that the Python that runs has for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from pcbatch.lowering.captures.reads import monitored
from pcbatch.lowering.captures.reads.monitored import Monitored
from pcbatch.lowering.captures.reads.record import Record
from pcbatch.lowering.captures.reads.traced import Traced
from pcbatch.lowering.captures.reads.watch import Watch
from pcbatch.runtime.backends import following


@contextlib.contextmanager
def watching(record: Record, seeds: Iterable[Any]) -> Iterator[None]:
    """Record what the user's code that runs inside reads; `seeds` are what the program captures.

    Where these reach none of the user's code, nothing is watched.
    """
    watch = Watch(record, seeds)
    if watch.is_idle:
        yield
        return
    try:
        with monitored.events() as are_given:
            follower = Monitored(watch) if are_given else Traced(watch)
            with follower.following(), watch.knowing_collections(), following.by(follower):
                yield
    finally:
        if watch.has_run:
            record.settle()
