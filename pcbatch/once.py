"""Properties of objects that several threads share, which the first thread that asks computes."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T")


class once(cached_property[T]):  # noqa: N801 - a decorator, as `cached_property` is
    """`functools.cached_property`, for which other threads wait while one computes it.

    From Python 3.12 on that has no lock: each thread that asks computes a value, and goes on with its own.
    """

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        """The value."""
        if instance is None:
            return self
        with vars(instance).setdefault(f"_once_{self.attrname}", threading.RLock()):
            return super().__get__(instance, owner)
