"""The limits of a lane, beyond which it fails, and the growth of its stacks up to them."""

from __future__ import annotations

from dataclasses import dataclass

from pcbatch.runtime.costs.device import CPU

DEFAULT_MAX_DEPTH = 8192
"""Live calls that a lane may have unless `max_depth` says otherwise: a limit against recursion without end."""

FIRST_CAPACITY, GROWTH = CPU.first_capacity, CPU.growth
"""Initial capacity of stacks, in live calls, where `max_depth` allows more; and the factor by which they grow."""

LARGEST = 2**31 - 2
"""Depths and steps are counted in int32."""


@dataclass(frozen=True)
class Limits:
    """`max_depth` live calls, `max_steps` loop turns and calls (None: no limit).

    `roomy` says that stacks have room for `max_depth` calls from the start, so that no lane ever waits for room.
    """

    max_depth: int
    max_steps: int | None
    roomy: bool = False

    @classmethod
    def of(cls, max_depth: int | None, max_steps: int | None) -> Limits:
        """The limits that a user's options mean."""
        depth = DEFAULT_MAX_DEPTH if max_depth is None else max_depth
        return cls(depth, max_steps, roomy=depth <= FIRST_CAPACITY)

    @property
    def largest_capacity(self) -> int:
        """The capacity of the largest stacks, in calls: `max_depth`, made even so that entries are odd in number."""
        return self.max_depth + self.max_depth % 2

    @property
    def first_capacity(self) -> int:
        """The capacity of the stacks, in calls, of a program that has never run."""
        return self.largest_capacity if self.roomy else FIRST_CAPACITY

    def sizes(self, after: int, until: int) -> list[int]:
        """The capacities that stacks grow through from `after` to `until`, the first left out."""
        found = []
        while after < until:
            after = min(after * GROWTH, self.largest_capacity)
            found.append(after)
        return found
