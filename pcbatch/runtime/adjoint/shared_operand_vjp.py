"""The results of pieces in the backward pass beside their lanes' gradients, for gradients by shared operands."""

from __future__ import annotations

from dataclasses import dataclass

from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.tape import Tapes, residual_field
from pcbatch.runtime.backends.pieces import Linear
from pcbatch.runtime.backends.protocol import Array, State


@dataclass(frozen=True)
class SharedOperandVjp:
    """The results of the piece at `place` of a block beside its lanes' gradients, by key: see `pieces.Linear`."""

    number: int
    place: int
    linear: Linear

    @property
    def by_row(self) -> dict[str, TensorType]:
        """The types written for each row when it is undone: the deltas, or, of a late piece, the seeds behind them."""
        if not self.linear.is_late:
            return self.deltas
        return {f"seed {self.number} {self.place} {n}": type_ for n, type_ in enumerate(self.linear.seeds_of)}

    @property
    def deltas(self) -> dict[str, TensorType]:
        """The deltas of each row, for gradients by operands that it meets in a product or looks up rows of."""
        return {f"delta {self.number} {self.place} {n}": type_ for n, type_ in enumerate(self.linear.deltas)}

    @property
    def sums(self) -> dict[str, TensorType]:
        """The types of sums over all rows."""
        return {f"sum {self.number} {self.place} {n}": type_ for n, type_ in enumerate(self.linear.summed)}


def residuals(tapes: Tapes, each: SharedOperandVjp, tape: State) -> list[Array]:
    """Return the residuals that a segment has kept of the rows of a piece."""
    block = tapes.blocks[each.number]
    return [tape[block.key(residual_field(each.place, n))] for n, _ in enumerate(each.linear.residuals)]
