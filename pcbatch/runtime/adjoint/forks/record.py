"""Trips of a program that forks, which are recorded: each chunk of a block adds its rows to the block's tape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pcbatch.runtime.adjoint.forks.tape import EXAMPLE, ForkedTapes
from pcbatch.runtime.adjoint.record import TapedExecution
from pcbatch.runtime.adjoint.tape import BlockTape, child_field
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.fork_join import ForkedExecution
from pcbatch.runtime.machine.forking import Forking
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.values import Rows


class TapedForkedExecution(TapedExecution, ForkedExecution):
    """One run of a block for a chunk of lanes, `count` of them, which is recorded.

    Lanes of examples that are given up are kept with the others: their rows are left out with their examples. Where
    lanes can lack room on their stacks, those that do are not kept: `may_wait`.
    """

    def __init__(
        self,
        tapes: ForkedTapes,
        context: Context,
        number: int,
        state: State,
        shared: Mapping[str, Leaves],
        rows: Rows,
        count: Array,
        may_wait: bool,
    ):
        super().__init__(tapes, context, number, state, shared, rows)
        self.lanes_in_all, self.may_wait = count, may_wait

    @property
    def has_gaps(self) -> bool:
        """True if rows that have entered lie among others."""
        return self.may_wait

    def count(self) -> Array:
        """Return the number of rows kept."""
        return super().count() if self.may_wait else self.lanes_in_all

    def updates(self) -> State:
        """Keep the owner of each row, and for calls that are joined the lanes that have run them."""
        self.kept[EXAMPLE] = self.old(EXAMPLE)
        for slot in range(self.layout.slots):
            if child_field("joined", slot) in self.tape.fields:
                self.kept[child_field("joined", slot)] = self.old(f"child {slot}")
        return super().updates()

    def forked(self, now: State) -> State:
        """`now`, after the calls of the group have lanes, with these on the tape."""
        backend, tape = self.backend, self.tape
        start = now[tape.used] - self.count() + self.tapes.margin(tape, None)
        found = dict(now)
        for slot in range(self.layout.slots):
            if (field := child_field("forked", slot)) in tape.fields:
                lanes = self.rows.take(now[f"child {slot}"])
                if self.has_gaps:
                    lanes = backend.load(lanes, [], backend.listed(self.entered)[0])
                found[tape.key(field)] = backend.with_rows(now[tape.key(field)], start, lanes)
        return found


class TapedForking(Forking):
    """The trips of a program that forks, recorded on `tapes`; they end where a tape is full, too."""

    def __init__(self, context: Context, costs: Sequence[float], pool: Pool, tapes: ForkedTapes):
        super().__init__(context, costs, pool)
        self.tapes = tapes

    @property
    def can_be_empty(self) -> bool:
        """False: a chunk writes all of its rows onto a tape that may have no room for them."""
        return False

    def _tape(self, number: int) -> BlockTape | None:
        return self.tapes.blocks.get(number)

    def keys(self, number: int) -> list[str]:
        """Return the keys, with those of the tape."""
        tape = self._tape(number)
        return sorted([*super().keys(number), *(tape.keys if tape else ())])

    def goes_on(self, state: State) -> Array:
        """Return whether a lane can run, and there is room on every tape for a chunk."""
        return super().goes_on(state) & self.have_room(state)

    def have_room(self, state: State) -> Array:
        """Return a scalar bool: whether there is room on every tape for another chunk."""
        found = self.backend.constant(True)
        for number, tape in self.tapes.blocks.items():
            found = found & self.tapes.has_room(tape, state, self.size(number))
        return found

    def fits(self, number: int, now: State) -> Array | None:
        """See `Forking`."""
        tape = self._tape(number)
        return None if tape is None else self.tapes.has_room(tape, now, self.size(number))

    def execution(
        self, number: int, state: State, shared: Mapping[str, Leaves], rows: Rows, count: Array
    ) -> ForkedExecution:
        """Return a run of a block, recorded if it is active."""
        if self._tape(number) is None:
            return super().execution(number, state, shared, rows, count)
        may_wait = self.runners[number].can_lack_room
        return TapedForkedExecution(self.tapes, self.context, number, state, shared, rows, count, may_wait)

    def have_begun(self, execution: ForkedExecution, now: State) -> State:
        """See `Forking`."""
        return execution.forked(now) if isinstance(execution, TapedForkedExecution) else now
