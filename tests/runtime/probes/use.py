"""A use of TensorFlow's insides, and how to try it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Use:
    """A use that can be tried: `check()` raises, or returns something false, where it works otherwise."""

    name: str
    check: Callable[[], Any]
    lost: str


NOTHING = "PCB580: nothing that is not plain Python can be traced, so no batched function runs"
"""The loss without an internal that everything needs."""
