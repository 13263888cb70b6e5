"""A bounded cache for several threads: what was used longest ago goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """At most `limit` values by key, the one used last at the end."""

    def __init__(self, limit: int):
        self.limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """The value of `key`, used now; None if there is none (any more)."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: K, value: V) -> V:
        """Keep `value`, unless another thread has already put one for `key`; the value that is kept."""
        with self._lock:
            kept = self._values.setdefault(key, value)
            self._values.move_to_end(key)
            if len(self._values) > self.limit:
                self._values.popitem(last=False)
            return kept

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()

    @property
    def last(self) -> V | None:
        """The value used last."""
        with self._lock:
            return next(reversed(self._values.values()), None)

    def values(self) -> list[V]:
        """All values, the one used last at the end."""
        with self._lock:
            return list(self._values.values())

    def __len__(self) -> int:
        return len(self._values)
