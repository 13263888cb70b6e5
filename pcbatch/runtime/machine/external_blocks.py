"""The interface to code that runs blocks in the machine's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, State


class ExternalBlocks(Protocol):
    """Runs all blocks but some, for all lanes, between two trips of the machine."""

    @property
    def lockstep(self) -> Sequence[int]:
        """The numbers of the blocks that are left to the machine, ascending."""

    def run(self, state: State, shared: Mapping[str, Leaves], executions: Array) -> tuple[State, Array]:
        """The state after the other blocks, and how often each block of the program has run now: int64 `[blocks]`.

        Lanes may still wait at them, but each has gone on.
        """
