"""What trips and blocks cost, for choosing between blocks: the one place where fixed costs stand beside rows.

The unit is that of `estimate`, a multiply-add or an element; a microsecond of one CPU core is about 4000.
The fixed costs were measured there: 0.6 to 1.3 microseconds a guard, a few for a turn of the loop and for the
bookkeeping of a block that runs. A price is an estimate: what it decides is right when it is right to a factor of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GUARD = 4_000.0
"""To look whether a block runs, in every trip."""
TRIP = 12_000.0
"""A turn of the loop: counting the waiting lanes."""
EXECUTION = 12_000.0
"""To run a block, whatever it computes: program counters, masks, stack pointers."""
USUAL_LANES = 64
"""How many lanes to reckon with while their number is not known."""


@dataclass(frozen=True)
class Prices:
    """Prices of a program's blocks. `row_costs` are those of one row (one lane) of each; a block runs `lanes` rows."""

    row_costs: Sequence[float]
    lanes: int

    @property
    def trip(self) -> float:
        """A trip in which no block runs."""
        return TRIP + GUARD * len(self.row_costs)

    @property
    def rows(self) -> list[float]:
        """The rows of one execution of each block, without what is fixed."""
        return [self.lanes * cost for cost in self.row_costs]

    @property
    def executions(self) -> list[float]:
        """One execution of each block."""
        return [EXECUTION + rows for rows in self.rows]

    def run(self, trips: int, executions: Sequence[int]) -> float:
        """A whole run of so many trips in which the blocks ran so often."""
        return trips * self.trip + sum(n * price for n, price in zip(executions, self.executions, strict=True))
