"""Feedback from runs whose calls are forked to all later runs of the program.

Plain runs and taped ones, those by whatever is differentiated and those under other options: as far as they fork the
same calls, each begins with what the last one that was short of something could have used.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from pcbatch.runtime.costs.device import CPU

FIRST_CAPACITY = 2
"""Initial room on a lane's stacks, in live calls: lanes that fork have one or two."""


@dataclass(frozen=True)
class ForkStatistics:
    """The beginning of a run: its lanes for each example, and room on their stacks for `capacity` live calls.

    Tapes have room for so many `rows` of a block for each example, where taped runs have had more than was guessed.
    """

    spread: int
    capacity: int = FIRST_CAPACITY
    rows: float | None = None
    is_known: bool = False
    """True if some run has reported it."""


class ForkFeedback:
    """The lesson of now, always a whole one, whatever other threads learn."""

    def __init__(self, spread: int):
        self.now = ForkStatistics(spread)
        self._lock = threading.Lock()

    def learn(self, after: Callable[[ForkStatistics], ForkStatistics]) -> bool:
        """Set the beginning of the next run to `after` of the present one; return whether it changed."""
        with self._lock:
            before, self.now = self.now, after(self.now)
            return self.now != before


@dataclass(eq=False)
class FeedbackHistory:
    """The feedback of one program under all options: separate by forked calls, and by the limit on lanes."""

    _known: dict[Any, ForkFeedback] = field(default_factory=dict)

    def of(self, blocks: tuple[int, ...], most: int | None) -> ForkFeedback:
        """Return the feedback of runs that fork groups of calls at these blocks, on at most so many lanes."""
        return self._known.setdefault((blocks, most), ForkFeedback(CPU.spread))


class FeedbackCache:
    """The feedback of one function's programs, as long as one of these programs exists."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Any, FeedbackHistory] = WeakValueDictionary()
        self._lock = threading.Lock()

    def of(self, key: Any) -> FeedbackHistory:
        """Return the feedback of the program with this key."""
        with self._lock:
            return self._known.setdefault(key, FeedbackHistory())
