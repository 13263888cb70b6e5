"""Parts of the lanes on all cores, where that is worth a thread: a lane's bits do not depend on any other."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from pcbatch.runtime.costs.device import CPU

Part = tuple[int, int]
"""The first lane of a part, and the one behind its last."""
PARTS = 4
"""Parts for each core: lanes differ, and who is done with one part takes another."""
MANY = 2**31
"""More lanes than there are."""


def available() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(available(), thread_name_prefix="pcbatch")


if hasattr(os, "register_at_fork"):  # threads do not live on in a child
    os.register_at_fork(after_in_child=_pool.cache_clear)


class LaneCost:
    """The seconds that a lane takes, from the last runs: the least of two, as one may have been held up."""

    def __init__(self) -> None:
        self._last: tuple[float, float] = (0.0, 0.0)

    def note(self, lanes: int, seconds: float) -> None:
        """A run of so many lanes has taken so many seconds of one core."""
        self._last = (seconds / lanes, self._last[0])

    def parts(self, part: Part) -> Sequence[Part]:
        """The parts in which to run these lanes: one where the work is not worth a thread."""
        first, behind = part
        lanes = behind - first
        if lanes < 2 or min(self._last) * lanes <= CPU.native_split or (cores := available()) < 2:
            return [part]
        count = min(cores * PARTS, lanes)
        bounds = [first + lanes * place // count for place in range(count + 1)]
        return list(itertools.pairwise(bounds))

    @property
    def most(self) -> int:
        """Up to how many lanes their work is not worth a thread; 0 as long as that is not known."""
        least = min(self._last)
        if available() < 2:
            return MANY
        return int(min(CPU.native_split / least, MANY)) if least else 0


def run(call: Callable[[Part], None], parts: Sequence[Part], stop: Callable[[], None]) -> None:
    """`call` of every part, some of them in this thread; where it ends early, others are told to `stop`."""
    remaining = iter(parts)

    def work() -> None:
        for part in remaining:
            call(part)

    others = [_pool().submit(work) for _ in range(min(available(), len(parts)) - 1)]
    try:
        work()
        for other in others:
            other.result()
    except BaseException:
        stop()
        wait(others)
        raise
