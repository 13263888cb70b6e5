"""What runs of a program whose calls are forked have learned of it, for all runs after them.

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
"""How many live calls the stacks of a lane have room for at first: lanes that fork have one or two."""


@dataclass(frozen=True)
class Lesson:
    """With what a run begins: with so many lanes for each example, and room on their stacks for `capacity` live calls.

    Tapes have room for so many `rows` of a block for each example, where taped runs have had more than was guessed.
    """

    spread: int
    capacity: int = FIRST_CAPACITY
    rows: float | None = None
    is_known: bool = False
    """Whether some run has said so."""


class Learned:
    """The lesson of now, always a whole one, whatever other threads learn."""

    def __init__(self, spread: int):
        self.now = Lesson(spread)
        self._lock = threading.Lock()

    def learn(self, after: Callable[[Lesson], Lesson]) -> bool:
        """Have the next run begin with what comes `after` the lesson of now; whether that is anything new."""
        with self._lock:
            before, self.now = self.now, after(self.now)
            return self.now != before


@dataclass(eq=False)
class Lessons:
    """What was learned of one program under all options: apart by which calls are forked, and how many lanes may be."""

    _known: dict[Any, Learned] = field(default_factory=dict)

    def of(self, blocks: tuple[int, ...], most: int | None) -> Learned:
        """What was learned where groups of calls are forked at these blocks, on at most so many lanes."""
        return self._known.setdefault((blocks, most), Learned(CPU.spread))


class LessonsByKey:
    """What was learned of the programs of one function, as long as there is a program that has learned it."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Any, Lessons] = WeakValueDictionary()
        self._lock = threading.Lock()

    def of(self, key: Any) -> Lessons:
        """What was learned of the program of this key."""
        with self._lock:
            return self._known.setdefault(key, Lessons())
