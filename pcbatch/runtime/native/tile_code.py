"""The code of a tile of lanes: that of one lane, in which a loop turns as long as enough of them are inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from pcbatch.ir.analysis.nesting import Loop, blocks_of
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.native.code import EXECUTIONS, Code
from pcbatch.runtime.native.registers import Registers
from pcbatch.runtime.native.tile import Tile

TURNS = "turns"
"""The key of how many turns of loops the tile has made, an int32 scalar."""


class TileCode(Code):
    """The code of a `tile`.

    What is a scalar of a lane is `[width]` here, but for `TURNS`. Steps are counted from 0.
    """

    is_doubled = False  # some lanes of a tile may be in the loop already

    def __init__(
        self,
        tile: Tile,
        registers: Registers,
        max_steps: int | None,
        row_costs: Sequence[float],
        shared: Mapping[str, Leaves],
        never: Array,
        counts: bool,
    ):
        super().__init__(cast("Backend", tile), registers, max_steps, row_costs, shared, never, counts, goes_on=True)
        self.tile = tile

    def passed(self, state: State, most: Array, few: Array) -> State:
        """Registers after a pass through the program, which loops are left in with that.

        Lanes stay inside a loop if the tile has made `most` turns, or if `few` are left that have not ended.
        """
        self._most, self._few = most, few
        if self.max_steps is not None:
            state = {**state, "limit": self.tile.constant(0)}
        return self.turn(self.nodes, state, is_first=False)[0]

    def loop(self, loop: Loop, state: State, is_led_to: bool = False) -> State:
        """As long as lanes wait at a block of the loop, go through them."""
        backend = self.tile.backend
        numbers = [*blocks_of(loop.nodes)]
        first, behind = self.places.of[numbers[0]], self.places.of[numbers[-1]] + 1
        keys = [*self.changed([self.program.blocks[number] for number in numbers]), TURNS]

        def is_on(carried: State) -> Array:
            place = carried["pc"]
            is_here = backend.equal(place, first) if behind == first + 1 else (place >= first) & (place < behind)
            return backend.both(self._are_enough(loop, place, is_here), carried[TURNS] < self._most)

        def turn(carried: State) -> State:
            after, _ = self.turn(loop.nodes, {**state, **carried}, is_first=False)
            return {**{key: after[key] for key in keys}, TURNS: backend.add(after[TURNS], backend.constant(1))}

        return {**state, **backend.while_loop(is_on, turn, {key: state[key] for key in keys})}

    def _are_enough(self, loop: Loop, place: Array, is_here: Array) -> Array:
        """Whether lanes are inside a loop, and more than a few, if it is one at which others join them."""
        backend = self.tile.backend
        if loop not in self.nodes:
            return self.tile.count(is_here) > 0
        if sum(isinstance(node, Loop) for node in self.nodes) == 1:  # nowhere else do lanes stay that have not ended
            return self.tile.count(is_here) > self._few
        return backend.both(self.tile.count(is_here) > 0, self.tile.count(place < self.places.ended) > self._few)

    def counted(self, number: int, executions: Array, enabled: Array | None) -> State:
        """One more execution of a block in each slot for whose lane it is enabled: `[blocks, width]`."""
        backend, place = self.tile.backend, [self.tile.backend.constant(number)]
        ones = backend.cast(self.tile.constant_bool(True) if enabled is None else enabled, "int64")
        more = backend.add(backend.element(executions, place), ones)
        return {EXECUTIONS: backend.with_element(executions, place, more)}
