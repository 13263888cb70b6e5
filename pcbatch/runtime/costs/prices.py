"""The prices of trips and blocks, for choosing between blocks: the one place where fixed costs stand beside rows.

The unit is that of `estimate`, a multiply-add or an element; the fixed costs are measured (`device`). A price is an
estimate: what it decides is right when it is right to a factor of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pcbatch.runtime.costs.device import CPU, Device

USUAL_LANES = CPU.usual_lanes
"""Number of lanes to assume while it is not known."""


@dataclass(frozen=True)
class Prices:
    """Prices of a program's blocks. `row_costs` are those of one row (one lane) of each; a block runs `lanes` rows."""

    row_costs: Sequence[float]
    lanes: int
    device: Device = CPU

    @property
    def trip(self) -> float:
        """A trip in which no block runs."""
        return self.device.trip + self.device.guard * len(self.row_costs)

    @property
    def rows(self) -> list[float]:
        """The rows of one execution of each block, without fixed costs."""
        return [self.lanes * cost for cost in self.row_costs]

    @property
    def executions(self) -> list[float]:
        """The cost of one execution of each block."""
        return [self.device.execution + rows for rows in self.rows]

    def is_dear(self, cost: float) -> bool:
        """Return whether to compute a row of such a cost for all lanes costs more than to look whether one waits.

        As if in every other trip none did: a guard costs a look in every trip, and saves the rows in those.
        """
        return self.lanes * cost > 2 * self.device.guard

    def whole_run(self, trips: int, executions: Sequence[int]) -> float:
        """A whole run of so many trips in which the blocks ran so often."""
        return trips * self.trip + sum(n * price for n, price in zip(executions, self.executions, strict=True))
