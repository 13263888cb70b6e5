"""The memory that lanes work in: stacks and large arrays, which a thread keeps for its next call."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from pcbatch.runtime.llvm.interface import CONTROL, TAPE, TAPE_BYTES, Interface
from pcbatch.runtime.llvm.types import ALIGNED

LARGE = 1 << 26
"""Bytes of stacks that are laid out at once. The system hands out memory where it is written to, so it costs little."""
GROWTH = 4
"""Factor by which stacks grow that were too small: the lane begins anew, so all beginnings cost a third of its run."""
FIRST_TAPE = 1 << 16
"""Bytes of a tape at first: of a thousand turns of a small loop."""
SLACK = 2
"""Entries beyond the live calls: the running function's own, and one that is written before its call is refused."""


_HEAD = object.__basicsize__
_word = ctypes.c_size_t.from_address


def _told(array: np.ndarray) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def _read(array: np.ndarray) -> int:
    """The address by the binary interface of NumPy's arrays: the first field of every array, in a tenth of the time."""
    found: int = _word(id(array) + _HEAD).value
    return found


_probed: list[np.ndarray] = [np.zeros(3), np.zeros((4, 5), np.int8)[1:], np.ones(())]
address = _read if [*map(_read, _probed)] == [*map(_told, _probed)] else _told
"""The address of an array's first element."""


class Workspace:
    """Memory of one thread; stacks have room for `capacity` live calls. A call of the function takes `words`."""

    def __init__(self, interface: Interface, arena_bytes: int, capacity: int):
        storage = interface.storage
        self.capacity = capacity
        self.control = (ctypes.c_int64 * CONTROL)()
        entries = capacity + SLACK
        self._arrays = [np.empty(arena_bytes + ALIGNED, np.uint8), np.empty(entries * 4, np.uint8)]
        self._arrays += [np.empty(entries * frame.bytes + ALIGNED, np.uint8) for frame in storage.frames.values()]
        arena, calls, *stacks = self._arrays
        fixed = (ctypes.addressof(self.control), 0, 0, capacity, _aligned(arena), address(calls))
        self.words: Any = (ctypes.c_size_t * len(interface.types))(*fixed, *map(_aligned, stacks))
        self.words_address = ctypes.addressof(self.words)
        self._arrays_from = len(fixed) + len(stacks)
        self._tape = np.empty(0, np.uint8)

    @property
    def laid(self) -> tuple[int, ...]:
        """The address of `control`, the capacity, and the addresses of all memory."""
        control, _, _, *rest = self.words[: self._arrays_from]
        return control, *rest

    def take(self, addresses: Sequence[int], first: int, behind: int) -> None:
        """Set the next call to run the lanes from `first` to before `behind` on arrays at these addresses."""
        words = self.words
        words[1], words[2] = first, behind
        words[self._arrays_from :] = addresses

    # -- the tape ------------------------------------------------------------------------------------------------------

    def lengthen(self, most: int | None) -> bool:
        """Make the tape longer, which loses its contents; False where it would have more than `most` bytes."""
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
    return (address(array) + ALIGNED - 1) // ALIGNED * ALIGNED


class Workspaces:
    """The memory of all threads that run a program."""

    def __init__(self, interface: Interface, arena_bytes: int, max_depth: int):
        self._interface, self._arena_bytes, self._max_depth = interface, arena_bytes, max_depth
        storage = interface.storage
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
                return Workspace(self._interface, self._arena_bytes, self.capacity)
            if found.capacity >= self.capacity:
                return found

    def put_back(self, space: Workspace) -> None:
        """Release a workspace for others."""
        self._free.append(space)

    def grow(self, beyond: int) -> None:
        """Let stacks have room for more live calls than those that had room for so many."""
        with self._lock:
            self.capacity = max(self.capacity, min(self._max_depth, beyond * GROWTH))
