"""The interface to gradients by native code, where nothing is recorded until they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pcbatch.runtime.adjoint.vjp import TapedProgram
from pcbatch.runtime.backends.protocol import Array


class Natively(Protocol):
    """Gives the gradients of runs of one program, from ordinary code."""

    def gradients(
        self, arrays: Sequence[Array], upstream: Sequence[Array | None], lanes: int
    ) -> list[Array | None] | None:
        """See `TapedProgram.gradients`; `arrays` are arguments and shared operands. None if a record gets too long."""


MakeNative = Callable[[TapedProgram], Natively | None]
"""Makes the giver of gradients of a way's program by native code; None where there is none."""
