"""Equal parts of the lanes on all cores, where that is worth a thread: a lane's bits do not depend on any other."""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

from pcbatch.runtime.costs.device import CPU

T = TypeVar("T")
Part = tuple[int, int]
"""The first lane of a part, and the one behind its last."""


def available() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(available(), thread_name_prefix="pcbatch")


if hasattr(os, "register_at_fork"):  # threads do not live on in a child
    os.register_at_fork(after_in_child=_threads.cache_clear)


class Cores:
    """Decides by what runs of as many lanes have taken whether the next one is split."""

    def __init__(self) -> None:
        self._runs: dict[int, int] = {}
        self._seconds: dict[int, float] = {}

    def would_split(self, lanes: int) -> bool:
        """Whether a run of `lanes` lanes is worth a thread for each core."""
        return self._seconds.get(lanes, 0.0) > CPU.native_split and min(available(), lanes) > 1

    def parts(self, lanes: int) -> list[Part]:
        """The parts in which `lanes` lanes are to run: one, or as many as there are cores."""
        count = min(available(), lanes) if self.would_split(lanes) else 1
        bounds = [lanes * place // count for place in range(count + 1)]
        return list(itertools.pairwise(bounds))

    def run(self, call: Callable[[Part, Event], T], lanes: int, parts: Sequence[Part]) -> list[T]:
        """`call` of every part, the first in this thread; where that ends early, so do the others, by an event."""
        started, stop = time.perf_counter(), Event()
        others = [_threads().submit(call, part, stop) for part in parts[1:]]
        try:
            found = [call(parts[0], stop), *(other.result() for other in others)]
        except BaseException:
            stop.set()
            wait(others)
            raise
        self.note(lanes, (time.perf_counter() - started) * len(parts))
        return found

    def note(self, lanes: int, seconds: float) -> None:
        """Remember how long a run of `lanes` lanes has taken, on one core."""
        if self._runs.setdefault(lanes, 0):  # the first one compiles
            self._seconds[lanes] = seconds
        self._runs[lanes] += 1
