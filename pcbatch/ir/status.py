"""The outcome of a lane: the frozen status numbers."""

from __future__ import annotations

from enum import IntEnum


class LaneStatus(IntEnum):
    """Per-lane outcome of a run. The numbers are part of the public contract and never change."""

    OK = 0
    """The lane returned."""
    ASSERTION = 1
    """An `assert` failed."""
    RAISED = 2
    """A `raise` was reached, or an error of Python's own: a missing key, an operation with None."""
    ARITHMETIC = 3
    """An integer `//` or `%` by zero, or another operation on numbers that raises in Python."""
    INDEX = 4
    """An index was out of range."""
    MAX_DEPTH = 5
    """The lane made more than `max_depth` live calls."""
    MAX_STEPS = 6
    """The lane made more than `max_steps` loop turns and calls."""
    UNFINISHED = 7
    """The run was stopped before this lane ended."""

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec[-1:] in tuple("bcdeEfFgGnoxX%") else format(self.name, spec)
