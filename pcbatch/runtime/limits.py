"""What a lane may use before it fails."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_MAX_DEPTH = 64


@dataclass(frozen=True)
class Limits:
    """`max_depth` live calls, `max_steps` loop turns and calls (None: no limit)."""

    max_depth: int
    max_steps: int | None

    @classmethod
    def of(cls, max_depth: int | None, max_steps: int | None) -> Limits:
        """The limits that a user's options mean."""
        return cls(DEFAULT_MAX_DEPTH if max_depth is None else max_depth, max_steps)
