"""The memory that lanes work in: stacks and large arrays, which a thread keeps for its next call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pcbatch.runtime.llvm.function import CONTROL
from pcbatch.runtime.llvm.stacks import Storage

LARGE = 1 << 26
"""Bytes of stacks that are laid out at once. The system hands out memory where it is written to, so it costs little."""
GROWTH = 4
"""By what stacks grow that were too small: the lane begins anew, so all its beginnings cost a third of its run."""
SLACK = 2
"""Entries beyond the live calls: the running function's own, and one that is written before its call is refused."""


class Workspace:
    """Memory of one thread; stacks have room for `capacity` live calls."""

    def __init__(self, storage: Storage, arena_bytes: int, capacity: int):
        self.capacity = capacity
        self.control = np.zeros(CONTROL, np.int64)
        entries = capacity + SLACK
        self._arrays = [np.empty(arena_bytes + 64, np.uint8), np.empty(entries * 4, np.uint8)]
        self._arrays += [np.empty(entries * frame.bytes + 64, np.uint8) for frame in storage.frames.values()]
        arena, calls, *stacks = self._arrays
        self.addresses = (_aligned(arena), calls.ctypes.data, *map(_aligned, stacks))
        self.control_address: int = self.control.ctypes.data


def _aligned(array: np.ndarray) -> int:
    """The first address of an array that is a multiple of 64."""
    return (int(array.ctypes.data) + 63) // 64 * 64


class Workspaces:
    """The memory of all threads that run a program."""

    def __init__(self, storage: Storage, arena_bytes: int, max_depth: int):
        self._storage, self._arena_bytes, self._max_depth = storage, arena_bytes, max_depth
        entry = max(storage.entry_bytes, 1)
        self.capacity = max_depth if storage.has_calls else 0
        self.capacity = min(self.capacity, max(32, LARGE // entry))
        self._free: list[Workspace] = []
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[Workspace]:
        """Memory that nobody else uses inside."""
        found: Workspace | None = None
        with self._lock:
            while self._free and (found is None or found.capacity < self.capacity):
                found = self._free.pop()
        if found is None or found.capacity < self.capacity:
            found = Workspace(self._storage, self._arena_bytes, self.capacity)
        try:
            yield found
        finally:
            with self._lock:
                self._free.append(found)

    def grow(self, beyond: int) -> None:
        """Let stacks have room for more live calls than those that had room for so many."""
        with self._lock:
            self.capacity = max(self.capacity, min(self._max_depth, beyond * GROWTH))
