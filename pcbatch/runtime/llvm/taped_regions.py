"""Native code between the blocks that are taped: see `adjoint.reverse.ExternalBlockTapes`."""

from __future__ import annotations

from collections.abc import Collection

from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.costs.estimate import block_costs, mixture
from pcbatch.runtime.llvm.region_handler import native_blocks, with_tops_apart
from pcbatch.runtime.machine.context import ExternalBlocks
from pcbatch.runtime.machine.state import Layout, Limits


class NativeTapedRegions:
    """The cheap blocks between those that are taped, where plain runs have native code among expensive ones, too."""

    def lockstep(self, program: Program, backend: Backend, taped: Collection[int]) -> frozenset[int] | None:
        """See `Mixing`."""
        costs = block_costs(program, backend)
        return None if mixture(program, backend, costs) is None else mixture(program, backend, costs, taped)

    def prepared(self, program: Program) -> Program:
        """See `Mixing`."""
        return with_tops_apart(program)

    def elsewhere(self, layout: Layout, backend: Backend, limits: Limits, lockstep: frozenset[int]) -> ExternalBlocks:
        """See `Mixing`."""
        return native_blocks(backend, layout, limits, block_costs(layout.program, backend), lockstep)
