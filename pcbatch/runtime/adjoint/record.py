"""Runs of blocks that are recorded: the usual work, and records at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pcbatch.ir.machine import Piece, Store
from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.tape import (
    LANE,
    LOG,
    LOGGED,
    BlockTape,
    Tapes,
    index_field,
    predicate_field,
    residual_field,
)
from pcbatch.runtime.backends.pieces import Leaves, Signature
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.machine.blocks import BlockRunner
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.execution import Execution
from pcbatch.runtime.machine.guarded import MakeRunner
from pcbatch.runtime.machine.values import Rows


class TapedExecution(Execution):
    """One run of a block, which is recorded."""

    def __init__(
        self, tapes: Tapes, context: Context, number: int, state: State, shared: Mapping[str, Leaves], rows: Rows
    ):
        super().__init__(context, number, state, shared, rows)
        self.tapes, self.tape = tapes, tapes.blocks[number]
        self.kept: dict[str, Array] = {}

    @property
    def has_gaps(self) -> bool:
        """True if rows that have entered lie among others: in a chunk they come first."""
        return self.rows.lanes is None

    def count(self) -> Array:
        """Return the number of rows kept."""
        return self.backend.sum(self.entered)

    def computed(
        self,
        piece: Piece,
        signature: Signature,
        reads: Sequence[Leaves],
        shared: Sequence[Leaves],
        taking_part: Array,
    ) -> tuple[list[list[Array]], Array | None]:
        """Compute the piece, and the residuals where a gradient flows through it."""
        linear = self.tape.linear.get(self.item)
        if linear is None:
            return super().computed(piece, signature, reads, shared, taking_part)
        lanes = self.backend.lanes_of(self.moving)
        outputs, site, residuals = linear.forward(reads, shared, lanes, taking_part, self.note)
        return [*outputs, list(residuals)], site

    def given(self, piece: Piece) -> list[list[TensorType]]:
        """Return the types of the results, and those of the residuals."""
        linear = self.tape.linear.get(self.item)
        return super().given(piece) + ([] if linear is None else [list(linear.residuals)])

    def taking_part(self, item: Piece | Store) -> Array:
        """Return which rows take part, and keep them where a predicate decides."""
        found = super().taking_part(item)
        if item.predicate is not None:
            self.kept[predicate_field(self.item)] = found
        return found

    def seen(self, arrays: Sequence[Leaves]) -> None:
        """Keep residuals, or the indices of a store."""
        field = residual_field if self.item in self.tape.linear else index_field
        for number, array in enumerate(array for group in arrays for array in group):
            self.kept[field(self.item, number)] = array

    def updates(self) -> State:
        """Return the updates, and those of the tapes: a row more for each lane that came."""
        before = super().updates()
        backend, tape = self.backend, self.tape
        self.kept |= {key: self.pointer(name) for key, name in tape.pointers.items()}
        # Lanes that fail here are among them: their rows are left out as those of all that fail.
        lanes, count = backend.lanes_of(self.entered), self.count()
        kept = {LANE: backend.lane_numbers(lanes) if self.rows.lanes is None else self.rows.lanes, **self.kept}
        if self.has_gaps:
            live, _ = backend.listed(self.entered)
            kept = {field: backend.load(rows, [], live) for field, rows in kept.items()}
        used, logged = self.state[tape.used], self.state[LOGGED]
        start = used + self.tapes.margin(tape, backend.lanes_of(self.state["pc"]))
        found: State = {}
        for field in (field for field in tape.fields if field in kept):
            found[tape.key(field)] = backend.with_rows(self.state[tape.key(field)], start, kept[field])
        found[tape.used] = used + count
        ran = backend.cast(count > 0, "int32")
        entry = backend.stack([backend.constant(self.number), count])
        found[LOG] = backend.with_rows(self.state[LOG], logged, backend.stack([entry]))
        found[LOGGED] = logged + ran
        return {**before, **found}


@dataclass(frozen=True)
class TapedRunner(BlockRunner):
    """Runs a block of which every run is recorded."""

    tapes: Tapes

    @property
    def tape(self) -> BlockTape:
        """The tape of the block."""
        return self.tapes.blocks[self.number]

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """The changed arrays, with those of the tape."""
        return tuple(sorted((*super().changes, *self.tape.keys)))

    @property
    def in_place(self) -> set[str]:
        """The arrays written in place, with those of the tape."""
        return super().in_place | {*map(self.tape.key, self.tape.fields), LOG}

    def execution(self, state: State, shared: Mapping[str, Leaves], rows: Rows) -> Execution:
        """Return a run of the block, to be recorded."""
        return TapedExecution(self.tapes, self.context, self.number, state, shared, rows)

    @property
    def can_lack_room(self) -> bool:
        """A tape can be full."""
        return True

    def has_stacks(self, state: State) -> Array | None:
        """Return which lanes have room on their stacks, whatever is on the tape; None if all are sure to."""
        return super().room(state) if super().can_lack_room else None

    def room(self, state: State) -> Array:
        """Return which lanes have room on their stacks and on the tape."""
        lanes = self.context.backend.lanes_of(state["pc"])
        on_tape, on_stacks = self.tapes.has_room(self.tape, state, lanes), self.has_stacks(state)
        return on_tape & (state["pc"] == state["pc"]) if on_stacks is None else on_tape & on_stacks


def runner(tapes: Tapes) -> MakeRunner:
    """Return the maker of block runners of a taped program."""

    def make(context: Context, number: int) -> BlockRunner:
        return TapedRunner(context, number, tapes) if number in tapes.blocks else BlockRunner(context, number)

    return make
