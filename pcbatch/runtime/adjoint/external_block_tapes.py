"""The interface to native code between the taped blocks of a run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.machine.context import ExternalBlocks
from pcbatch.runtime.machine.state import Layout, Limits


class ExternalBlockTapes(Protocol):
    """Runs blocks that are not taped."""

    def lockstep(self, program: Program, backend: Backend, taped: Collection[int]) -> frozenset[int] | None:
        """The blocks that are left to the machine, those that are `taped` among them; None where it does not pay."""

    def prepared(self, program: Program) -> Program:
        """The program as it needs it."""

    def elsewhere(self, layout: Layout, backend: Backend, limits: Limits, lockstep: frozenset[int]) -> ExternalBlocks:
        """Return the runner of all blocks but those in `lockstep`, of which there are some."""
