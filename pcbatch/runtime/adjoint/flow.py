"""The flow of gradients: the leaves of arguments and shared operands, and the results of the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.backward_sweep import Replay
from pcbatch.runtime.backends.protocol import Array


class GradientFlow:
    """The flow of one program's gradients."""

    def __init__(self, replay: Replay):
        self.replay, self.tapes, self.program = replay, replay.tapes, replay.program
        self.backend = replay.backend

    @cached_property
    def arguments(self) -> list[bool]:
        """True for each leaf of all arguments that has a gradient."""
        active = self.tapes.activity.variables
        return [
            leaf is not None and name in active for name in self.program.parameters for leaf in self.tapes.floats(name)
        ]

    @cached_property
    def shared(self) -> list[str]:
        """The keys of gradients by the leaves of all shared operands."""
        return [key for name in self.program.shared for key, _ in self.tapes.shared_keys(name)]

    @property
    def by_lane(self) -> int:
        """The number of leading arrays from the backward pass that are `[lanes, ...]`."""
        return sum(self.arguments) + len(self.replay.totals) * self.replay.by_lane

    def packed(self, arrays: Iterator[Array]) -> list[Array | None]:
        """Pack the backward pass's results, in its order, as gradients by the leaves of arguments and shared operands.

        None where none flows.
        """
        found = [next(arrays) if flows else None for flows in self.arguments]
        totals = {key: next(arrays) for key in self.replay.totals}
        for key, table in self.replay.lookups.tables.items():
            rows, numbers = next(arrays), next(arrays)
            totals[key] = self.backend.rows_of_table(rows, numbers, table)
        return [*found, *(totals.get(key) for key in self.shared)]

    def nothing(self) -> list[Array | None]:
        """The gradients of a batch of no lanes."""
        backend = self.backend
        types = [leaf for name in self.program.parameters for leaf in self.tapes.layout.leaves(name)]
        found = [backend.zeros(0, leaf) for leaf, each in zip(types, self.arguments, strict=True) if each]
        found += [self.replay.nothing(type_, 0) for type_ in self.replay.totals.values()]
        for table in self.replay.lookups.tables.values():
            rows, numbers = TensorType(table.dtype, table.shape[1:]), TensorType("int32")
            found += [backend.zeros(0, rows), backend.zeros(0, numbers)]
        return self.packed(iter(found))
