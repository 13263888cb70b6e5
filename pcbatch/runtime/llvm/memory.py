"""The memory that lanes work in: stacks and large arrays, which a thread keeps for its next call."""

from __future__ import annotations

import ctypes
import threading

import numpy as np

from pcbatch.runtime.llvm.function import CONTROL, TAPE, TAPE_BYTES
from pcbatch.runtime.llvm.stacks import Storage
from pcbatch.runtime.llvm.types import ALIGNED

LARGE = 1 << 26
"""Bytes of stacks that are laid out at once. The system hands out memory where it is written to, so it costs little."""
GROWTH = 4
"""By what stacks grow that were too small: the lane begins anew, so all its beginnings cost a third of its run."""
FIRST_TAPE = 1 << 16
"""Bytes of a tape at first: of a thousand turns of a small loop."""
SLACK = 2
"""Entries beyond the live calls: the running function's own, and one that is written before its call is refused."""


class Workspace:
    """Memory of one thread; stacks have room for `capacity` live calls."""

    def __init__(self, storage: Storage, arena_bytes: int, capacity: int):
        self.capacity = capacity
        self.control = (ctypes.c_int64 * CONTROL)()
        entries = capacity + SLACK
        self._arrays = [np.empty(arena_bytes + ALIGNED, np.uint8), np.empty(entries * 4, np.uint8)]
        self._arrays += [np.empty(entries * frame.bytes + ALIGNED, np.uint8) for frame in storage.frames.values()]
        arena, calls, *stacks = self._arrays
        self.addresses = (_aligned(arena), calls.ctypes.data, *map(_aligned, stacks))
        self.control_address = ctypes.addressof(self.control)
        self._tape = np.empty(0, np.uint8)

    def lengthen(self, most: int | None) -> bool:
        """Make the tape longer, which loses what is on it; False where it would have more than `most` bytes."""
        size = max(FIRST_TAPE, (self._tape.size - ALIGNED) * GROWTH)
        if most is not None and size > most:
            return False
        self._set_tape(np.empty(size + ALIGNED, np.uint8))
        return True

    def shrink(self) -> None:
        """Give a long tape back: the next run may need none."""
        if self._tape.size > LARGE:
            self._set_tape(np.empty(0, np.uint8))

    def _set_tape(self, tape: np.ndarray) -> None:
        self._tape = tape
        self.control[TAPE], self.control[TAPE_BYTES] = _aligned(tape), max(tape.size - ALIGNED, 0)


def _aligned(array: np.ndarray) -> int:
    """The first address of an array that is a multiple of `ALIGNED`."""
    return (int(array.ctypes.data) + ALIGNED - 1) // ALIGNED * ALIGNED


class Workspaces:
    """The memory of all threads that run a program."""

    def __init__(self, storage: Storage, arena_bytes: int, max_depth: int):
        self._storage, self._arena_bytes, self._max_depth = storage, arena_bytes, max_depth
        entry = max(storage.entry_bytes, 1)
        self.capacity = max_depth if storage.has_calls else 0
        self.capacity = min(self.capacity, max(32, LARGE // entry))
        self._free: list[Workspace] = []
        self._lock = threading.Lock()

    def take(self) -> Workspace:
        """Memory that nobody else uses until it is put back."""
        while True:
            try:
                found = self._free.pop()
            except IndexError:
                return Workspace(self._storage, self._arena_bytes, self.capacity)
            if found.capacity >= self.capacity:
                return found

    def put_back(self, space: Workspace) -> None:
        """Others may use it now."""
        self._free.append(space)

    def grow(self, beyond: int) -> None:
        """Let stacks have room for more live calls than those that had room for so many."""
        with self._lock:
            self.capacity = max(self.capacity, min(self._max_depth, beyond * GROWTH))
