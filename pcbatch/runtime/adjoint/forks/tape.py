"""The records of a taped run whose calls are forked.

Blocks run for lists of lanes, a chunk at a time, so a run of a block leaves a chunk of rows at most, whatever the
number of lanes; and how long a tape is to be follows from the number of examples. A row says of which example it is,
and, where a block forks or joins calls, which lanes have run them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.tape import LOGGED, BlockTape, Sizes, Sources, Tapes, child_field
from pcbatch.runtime.backends.protocol import Array, Spec, State
from pcbatch.runtime.machine.context import Context

EXAMPLE = "example"
"""The field of the example that a row is of."""
APART = 16
"""Number of rows processed together where gradients are kept apart by example."""


class ForkedTapes(Tapes):
    """The tapes of one program that forks, with room for so many `rows` of a block in a segment, if these are small.

    `are_likely` says whether that is known from other runs, `size(number)` on how many rows a block runs at a time.
    """

    owner = EXAMPLE

    def __init__(
        self,
        context: Context,
        rows: int,
        size: Callable[[int], int],
        sizes: Sizes | None = None,
        sources: Sources | None = None,
        are_likely: bool = True,
    ):
        super().__init__(context, sizes, sources)
        self.most, self.size, self.are_likely = rows, size, are_likely

    def _more_fields(self, number: int) -> dict[str, TensorType]:
        one, active = TensorType("int32"), self.activity.variables
        fields = {EXAMPLE: one}
        for group in self.layout.groups:
            for slot, member in enumerate(group.members):
                if group.block == number and any(variable in active for variable, _ in member.call.given):
                    fields[child_field("forked", slot)] = one
                if group.join == number and any(name in active for name, _ in member.call.results):
                    fields[child_field("joined", slot)] = one
        return fields

    def rows(self, tape: BlockTape, lanes: Any) -> int:
        """Return the number of rows of a tape: at least two chunks."""
        widest = max(max(type_.bytes, 1) for type_ in tape.fields.values())
        return max(min(self.most, self.sizes.bytes // widest), 2 * self.size(tape.number))

    @cached_property
    def useful(self) -> int:
        """The largest number of rows for which any tape has room."""
        widest = (max(max(type_.bytes, 1) for type_ in tape.fields.values()) for tape in self.blocks.values())
        return max((self.sizes.bytes // each for each in widest), default=0)

    def are_short(self, lanes: Any) -> bool:
        """Return whether some tape is smaller than its limit."""
        return False

    def are_likely_enough(self, lanes: int) -> bool:
        """See `Tapes`: there are as many rows as runs before have had, or some."""
        return self.are_likely

    def margin(self, tape: BlockTape, lanes: Any) -> int:
        """See `Tapes`: no run of a block computes more rows than a chunk has."""
        return max(self.size(tape.number), APART)

    def specs(self, lanes: int | None) -> dict[str, Spec]:
        """See `Tapes`: all lengths are known."""
        return super().specs(0)

    def _entries(self, lanes: Any) -> int:
        return self.sizes.log + 1

    def apart_at_once(self, lanes: Any) -> int:
        """See `Tapes`."""
        return APART

    def has_room(self, tape: BlockTape, state: State, lanes: Any) -> Array:
        """Return a scalar bool: whether another chunk of so many lanes can be recorded."""
        fits = state[tape.used] + lanes <= self.rows(tape, lanes)
        return fits & (state[LOGGED] < self.sizes.log)
