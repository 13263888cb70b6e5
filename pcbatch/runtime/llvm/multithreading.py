"""Parts of the lanes on all cores, where that is worth a thread."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from time import thread_time

from pcbatch.runtime.costs.device import CPU

Part = tuple[int, int]
"""The first lane of a part, and the one behind its last."""
Call = Callable[[Part], None]
"""Runs the lanes of a part."""
PARTS = 4
"""Parts for each core: lanes differ, and who is done with one part takes another."""
MOST_PARTS = 256
"""Maximal number of parts for each core, where the work suffices for each to take `CPU.native_part_seconds`. Lanes are
ordered by their costs, and the last part is the dearest."""
MANY = 2**31
"""A number of lanes that no run reaches."""
SHORT = 0.0625
"""The part of `CPU.native_split` up to which a run is short: it is then made without a look at the thread's clock."""
TRUSTED = 16
"""The cost of a lane holds for so many times the lanes that it was measured on; beyond them it is measured again."""


def available() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def short_seconds() -> float:
    """The seconds up to which a run is short."""
    return SHORT * CPU.native_split


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(available(), thread_name_prefix="pcbatch")


if hasattr(os, "register_at_fork"):  # threads do not live on in a child
    os.register_at_fork(after_in_child=_pool.cache_clear)


class LaneCost:
    """The CPU seconds of a lane, in the mean over the lanes of late: with each run those before count half as much.

    Other programs on the same cores do not make a lane dearer. The thread's own clock takes 1 us to read, the wall's
    0.1, so this one serves where runs are `short`: as long as it says so, nothing has held them up for long.
    """

    def __init__(self, least: int = 1) -> None:
        self.least = least
        """The fewest lanes of a part, as long as each core has one. Groups take other lanes where some have ended, so
        they want many to take."""
        self._lanes = self._seconds = 0.0
        self.short = 0
        """The number of lanes up to which a run is known to be short."""

    def note(self, lanes: int, seconds: float) -> None:
        """A run of so many lanes has taken so many CPU seconds."""
        self._lanes, self._seconds = self._lanes / 2 + lanes, self._seconds / 2 + seconds
        fit = short_seconds() / one if (one := self.of(1)) else MANY
        self.short = int(min(fit, TRUSTED * self._lanes, MANY))

    def doubt(self) -> None:
        """Let the next run be measured: one has been longer than it was to be, or held up."""
        self.short = 0

    def measured(self, call: Call, part: Part) -> None:
        """Run a part in this thread, and note its time."""
        began = thread_time()
        call(part)
        self.note(part[1] - part[0], thread_time() - began)

    def known(self, lanes: int) -> int:
        """Return the number, of so many lanes, whose cost is known from lanes that have run; at least one."""
        return min(lanes, max(1, int(TRUSTED * self._lanes)))

    def of(self, lanes: int) -> float:
        """The CPU seconds that so many lanes will take."""
        return self._seconds / self._lanes * lanes if self._lanes else 0.0

    @property
    def most(self) -> int:
        """The number of lanes up to which their work is not worth a thread; 0 as long as that is not known."""
        if available() < 2:
            return MANY
        one = self.of(1)
        return int(min(CPU.native_split / one, MANY)) if one else 0


def run(call: Call, part: Part, cost: LaneCost, stop: Callable[[], None]) -> None:
    """`call` of these lanes, in parts on all cores as soon as `cost` says that it pays; `stop` ends calls early."""
    first, behind = part
    is_alone = behind - first == 1
    while first < behind:
        left = behind - first
        known = cost.known(left)
        if left > 1 and cost.of(known) > CPU.native_split and (cores := available()) > 1:
            _run_on_cores(call, parts(first, behind, cost, cores), cores, cost, stop)
            return
        if is_alone:
            call(part)  # never in parts, so nobody need know what it takes
        else:
            cost.measured(call, (first, first + known))
        first += known


def parts(first: int, behind: int, cost: LaneCost, cores: int) -> Sequence[Part]:
    """The parts in which cores share the lanes from `first` to before `behind`."""
    lanes = behind - first
    worth = int(cost.of(lanes) / CPU.native_part_seconds)
    wanted = cores * min(max(PARTS, worth // cores), MOST_PARTS)
    fit = round(lanes / cost.least / cores) * cores  # as many for each core
    count = min(lanes, wanted, max(cores, fit))
    return [*itertools.pairwise(first + lanes * place // count for place in range(count + 1))]


def _run_on_cores(call: Call, parts: Sequence[Part], cores: int, cost: LaneCost, stop: Callable[[], None]) -> None:
    """`call` of every part, some of them in this thread; where it ends early, others are told to `stop`."""
    remaining = iter(parts)
    taken: list[float] = []

    def work() -> None:
        began = thread_time()
        for part in remaining:
            call(part)
        taken.append(thread_time() - began)

    others = [_pool().submit(work) for _ in range(min(cores, len(parts)) - 1)]
    try:
        work()
        for other in others:
            if not other.cancel():  # one that waits for a thread still has nothing left to do
                other.result()
    except BaseException:
        stop()
        wait([other for other in others if not other.cancel()])
        raise
    cost.note(parts[-1][1] - parts[0][0], sum(taken))
