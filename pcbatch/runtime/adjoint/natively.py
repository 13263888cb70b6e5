"""The interface to gradients by native code, where nothing is recorded until they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pcbatch.runtime.adjoint.way import Way
from pcbatch.runtime.backends.protocol import Array


class Natively(Protocol):
    """Gives the gradients of runs of one program, from ordinary code."""

    def gradients(
        self, arrays: Sequence[Array], upstream: Sequence[Array | None], lanes: int
    ) -> list[Array | None] | None:
        """See `Way.gradients`; `arrays` are of arguments and shared operands. None where a record would be too long."""


MakeNative = Callable[[Way], Natively | None]
"""Makes the giver of gradients of a way's program by native code; None where there is none."""
