"""The cache of compiled programs: bounded, for several threads; and what compiling cost, as its user gets to see it.

It drops the least recently used entry.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """At most `limit` values, the key used last at the end; a key may have several, of which one `serves` at a time."""

    def __init__(self, limit: int, serves: Callable[[V], bool] = lambda value: True):
        self.limit = limit
        self._serves = serves
        self._values: OrderedDict[K, list[V]] = OrderedDict()
        self._lock = threading.RLock()
        self.last_used: V | None = None
        """The value whose `get` would change nothing."""

    def peek(self, key: K) -> V | None:
        """The value of `key` that serves now, not used by that; None if there is none (any more)."""
        with self._lock:
            return next((value for value in reversed(self._values.get(key, [])) if self._serves(value)), None)

    def get(self, key: K) -> V | None:
        """The same, used now."""
        with self._lock:
            found = self.peek(key)
            if found is not None:
                kept = self._values[key]
                if found is not kept[-1]:
                    kept.remove(found)
                    kept.append(found)
                self._values.move_to_end(key)
                self.last_used = found
            return found

    def put(self, key: K, value: V) -> V:
        """Keep `value`, unless another thread has already put one for `key` that serves; the value that is kept."""
        with self._lock:
            known = self.get(key)
            if known is not None:
                return known
            self._values.setdefault(key, []).append(value)
            self._values.move_to_end(key)
            self.last_used = value
            if len(self) > self.limit:
                oldest, kept = next(iter(self._values.items()))
                del kept[0]
                if not kept:
                    del self._values[oldest]
            return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self.last_used = None

    @property
    def last(self) -> V | None:
        """The value used last."""
        with self._lock:
            return next((kept[-1] for kept in reversed(self._values.values())), None)

    def values(self) -> list[V]:
        """All values, the one used last at the end."""
        with self._lock:
            return [value for kept in self._values.values() for value in kept]

    def __len__(self) -> int:
        return sum(map(len, self._values.values()))


# -- statistics --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stats:
    """The cost of compilation so far: machine programs compiled, cache entries, seconds of tracing and compiling.

    A recursive program is compiled anew for each size of its stacks; `stack_entries` is the one that the next call
    starts with, learnt from those before it (0 for programs without stacks). `forms` has the form in which each of the
    signatures runs, those used last at the end: "native", "lockstep", or "lockstep: " and why not native; "mixed: ",
    which blocks are in lockstep, the others being native, and why; "straight, by XLA" or "straight, by kernels of
    TensorFlow", with `jit="auto"` and why.
    `rooms` has for each of them for how many lanes there are programs: one of these serves fewer lanes, too, the others
    being idle. (With `max_lanes`, or in strategies other than "pc", programs are made in other ways, and there are none
    here.)
    `notes` say which operations no rule computes for all lanes at once, so that they run lane after lane, and where.
    Where there is a cache on disk (`pcbatch.cache`), `hits` programs were found there and `misses` were not.
    """

    compilations: int
    cache_entries: int
    trace_seconds: float
    compile_seconds: float
    stack_entries: int = 0
    forms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    hits: int = 0
    misses: int = 0
    rooms: tuple[tuple[int, ...], ...] = ()

    def __repr__(self) -> str:
        stacks = f", stacks of {self.stack_entries} entries" if self.stack_entries else ""
        cache = f", {self.hits} of {self.hits + self.misses} found on disk" if self.hits + self.misses else ""
        return (
            f"<pcbatch.Stats: {self.compilations} compilations of {self.cache_entries} signatures, "
            f"traced in {self.trace_seconds:.3g} s, compiled in {self.compile_seconds:.3g} s{stacks}{cache}>"
        )
