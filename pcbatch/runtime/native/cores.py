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

from pcbatch.interrupts import GRACE
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.costs.device import CPU

T = TypeVar("T")
Part = tuple[int, int]
"""The first lane of a part, and the one behind its last."""
WHOLE = 16
"""How many runs are not split after one that had better not been."""


def available() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(available(), thread_name_prefix="pcbatch")


if hasattr(os, "register_at_fork"):  # threads do not live on in a child
    os.register_at_fork(after_in_child=_threads.cache_clear)


class Cores:
    """Decides by what runs of as many lanes have taken whether the next one is split.

    One of much work always is. A shorter one pays for its threads only where cores are free: where it has taken longer
    in parts than as a whole, the next ones are whole.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._runs: dict[int, int] = {}
        self._seconds: dict[int, float] = {}
        self._threaded: set[int] = set()
        self._whole: dict[int, int] = {}  # how many of the next runs are not to be split

    def would_split(self, lanes: int) -> bool:
        """Whether a run of `lanes` lanes is worth a thread for each core."""
        seconds = self._seconds.get(lanes, 0.0)
        if seconds <= CPU.native_split or min(available(), lanes) < 2:
            return False
        return seconds > CPU.native_split_always or not self._whole.get(lanes)

    def parts(self, lanes: int) -> Sequence[Part]:
        """The parts in which `lanes` lanes are to run: one, or as many as there are cores."""
        if not self.would_split(lanes):
            return [(0, lanes)]
        count = min(available(), lanes)
        bounds = [lanes * place // count for place in range(count + 1)]
        return list(itertools.pairwise(bounds))

    def run(
        self, call: Callable[[Part], T], lanes: int, parts: Sequence[Part], stop: Event | None = None
    ) -> Sequence[T]:
        """See `all_of`; how long it takes is noted."""
        started = time.perf_counter()
        found = self.all_of(call, parts, stop)
        self.note(lanes, time.perf_counter() - started, len(parts))
        return found

    def all_of(self, call: Callable[[Part], T], parts: Sequence[Part], stop: Event | None = None) -> Sequence[T]:
        """`call` of every part, the first in this thread; where that ends early, others are told by `stop`."""
        there = self._backend.carried(call)
        others = [_threads().submit(there, part) for part in parts[1:]]
        try:
            return [call(parts[0]), *(other.result() for other in others)]
        except BaseException:
            if stop is not None:
                stop.set()
            wait(others, GRACE)  # longer only where they are compiled
            raise

    def is_short(self, lanes: int) -> bool:
        """Whether runs of `lanes` lanes are too short to be split, as far as is known."""
        return self._seconds.get(lanes, 0.0) <= CPU.native_split

    def note(self, lanes: int, seconds: float, parts: int = 1) -> None:
        """Remember how long a run of `lanes` lanes has taken, in so many parts."""
        known = self._seconds.get(lanes)
        if parts > 1 and lanes not in self._threaded:  # a thread's first call of TensorFlow takes 0.1 to 0.4 ms more
            self._threaded.add(lanes)
        elif parts > 1 and known is not None:  # other programs may have had the cores: so never more than as a whole
            self._seconds[lanes] = min(known, seconds * parts)
            self._whole[lanes] = WHOLE if seconds > known else 0
        elif self._runs.setdefault(lanes, 0):  # the first one compiles
            self._seconds[lanes] = seconds * parts
            self._whole[lanes] = max(0, self._whole.get(lanes, 0) - 1)
        self._runs[lanes] += 1
