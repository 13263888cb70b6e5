"""A native run in chunks of some 50 ms, so that Python gets a turn in between: a native call cannot be stopped.

Nearly every run is one chunk. Where there are more, each begins with the lane that comes after those that have ended.
A lane that takes longer than a chunk is stopped in the middle and gone on with: there is a second program for this,
which takes and gives what a lane holds, and it is compiled only for programs that have had such a lane. Where a lane
did not end though the chunk was short, the budget was too small: the lane begins anew in the next chunk, with more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.native.cores import Part

LARGEST = 2**28
"""The largest budget: several times as many steps are less than the largest int32."""
STEEPEST = 4
"""By what a budget may change from one chunk to the next: one of them may have waited for the compiler."""
SHORT = 0.5
"""Of the seconds of a chunk: a run of one that took less is a short one."""

Bounds = tuple[int, int, int, int]
"""What a chunk is told: see `Lanes.run`."""


@dataclass(frozen=True)
class Chunk:
    """What a chunk leaves behind.

    `arrays` are results, of which the lanes of `part` are of use, and the only ones once it is `cut`; `carried` is what
    the lane behind them holds, if it `began`. `failed` says whether any lane did.
    """

    part: Part
    began: bool
    failed: bool
    arrays: list[Any]
    carried: Sequence[Array] = ()
    cut: bool = False


class Pace:
    """The budget of chunks that last as long as they should, found out while chunks run.

    `work` is the estimated work of a step; `moved` are the bytes that each chunk moves, whatever it does: where they
    are many, chunks are longer. A budget is a power of two, so that there are few of them.
    """

    def __init__(self, work: float, moved: int):
        self.seconds = max(CPU.native_chunk, moved * CPU.native_moved)
        self.budget = _power(self.seconds * CPU.native_pace / max(work, 1.0))

    def exceed(self, budget: int) -> None:
        """A lane needs more than a `budget`, and how long that takes is not known yet."""
        self.budget = max(self.budget, _power(budget * STEEPEST))

    def note(self, budget: int, seconds: float) -> None:
        """A chunk has used up a `budget` in so many seconds."""
        factor = self.seconds / max(seconds, self.seconds / STEEPEST)
        self.budget = _power(budget * max(factor, 1 / STEEPEST))


def _power(steps: float) -> int:
    """The power of two next to a number of steps."""
    return 1 << round(math.log2(min(max(steps, 1.0), LARGEST)))


class Chunks:
    """Decides by the chunks of as many lanes so far how the next ones are run.

    `goes_on` says whether a lane has turned out to take longer than a chunk, and no run since was a short one: what
    every lane holds goes in and out of each chunk then.
    """

    def __init__(self, pace: Pace):
        self.pace, self.goes_on = pace, False
        self._known: set[bool] = set()  # whether programs that go on, and those that do not, have run

    def run(
        self,
        part: Part,
        call: Callable[[Bounds, Sequence[Array]], Chunk],
        blank: Callable[[], Sequence[Array]],
        cut: Callable[[Chunk], Chunk],
        stop: Event,
        done: Sequence[Chunk] = (),
    ) -> list[Chunk]:
        """One chunk after another, until all lanes of `part` have ended or there is a `stop`.

        `call` runs one, on from what is carried, if anything is. `blank` gives what stands for that where a lane
        begins. `cut` gives a chunk without the lanes that are not its own: each has arrays of all. Chunks that are
        `done` are not run.
        """
        found = list(done)
        if found:
            found[-1] = cut(found[-1])
            self._learn(found[-1], self.pace.budget, None)
        while not stop.is_set():
            first = found[-1].part[1] if found else part[0]
            if first >= part[1]:
                break
            before = found[-1].carried if found else ()
            began = bool(before) and found[-1].began  # else what the lane has done is lost
            if self.goes_on and not before:
                before = blank()
            budget, started = self.pace.budget, time.perf_counter()
            chunk = call((first, part[1], budget, int(began)), before)
            seconds = time.perf_counter() - started
            if found:
                found[-1] = replace(found[-1], carried=())
            found.append(cut(chunk) if chunk.part[1] < part[1] else chunk)
            is_known = bool(before) in self._known
            self._known.add(bool(before))
            if found[-1].part[1] < part[1]:
                self._learn(found[-1], budget, seconds if is_known else None)
            elif len(found) == 1 and seconds < self.pace.seconds * SHORT:
                self.goes_on = False
        return found

    def _learn(self, chunk: Chunk, budget: int, seconds: float | None) -> None:
        """From a chunk that has used up its budget in so many seconds, if it is not one that had to be compiled."""
        if seconds is not None:
            self.pace.note(budget, seconds)
        if chunk.began and not self.goes_on:
            if seconds is None and self.pace.seconds:
                self.pace.exceed(budget)
            else:
                self.goes_on = seconds is None or seconds >= self.pace.seconds * SHORT or self.pace.budget <= budget
