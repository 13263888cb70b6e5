"""What became of a lane: the frozen status numbers."""

from __future__ import annotations

from enum import IntEnum


class LaneStatus(IntEnum):
    """Per-lane outcome of a run. The numbers are part of the public contract and never change."""

    OK = 0
    ASSERTION = 1  # an `assert` failed
    RAISED = 2  # a `raise` was reached
    ARITHMETIC = 3  # integer `//` or `%` by zero
    INDEX = 4  # `a[i]` out of range
    MAX_DEPTH = 5  # more than `max_depth` live calls
    MAX_STEPS = 6  # more than `max_steps` loop turns and calls
    UNFINISHED = 7  # the run was stopped before this lane ended

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec[-1:] in tuple("bcdeEfFgGnoxX%") else format(self.name, spec)
