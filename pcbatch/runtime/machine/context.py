"""The context shared by all parts of one program's run: the array library, the state's layout, the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pcbatch.errors import Span
from pcbatch.ir.machine import Program
from pcbatch.optimize.machine.compaction import Compaction
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.costs.device import CPU, Device
from pcbatch.runtime.machine.state import Layout, Limits
from pcbatch.runtime.schedules import schedule_named
from pcbatch.runtime.schedules.schedule_step import Schedule


@dataclass(frozen=True)
class Context:
    """A program's layout, the array library, the limits of its lanes, and the choice and running of its blocks.

    With `spread_live`, junk lanes are fed the values of a lane that takes part, so that no operation can raise for
    them: needed where operations raise at all, which is everywhere but under XLA. `compaction` says which blocks
    run on gathered lanes, None that none do. If it is `unguarded`, blocks run in every trip where the device gains by
    that. `trace` is of how many trips is recorded what the schedule chose.
    `elsewhere` runs some blocks in a way of its own, between two trips.
    `notes` has what was found out while the program was traced, in order: a place in the source, and what to know.
    """

    backend: Backend
    layout: Layout
    limits: Limits
    spread_live: bool = False
    schedule: Schedule = schedule_named("auto")
    compaction: Compaction | None = None
    unguarded: bool = False
    trace: int = 0
    elsewhere: ExternalBlocks | None = None
    notes: dict[tuple[Span | None, str], None] = field(default_factory=dict)

    @property
    def is_deterministic(self) -> bool:
        """True if a lane's bits are to be the same in every batch."""
        return self.compaction is not None and self.compaction.always

    @property
    def device(self) -> Device:
        """The kind of device that it runs on."""
        return CPU if self.compaction is None else self.compaction.device

    @property
    def program(self) -> Program:
        """The program."""
        return self.layout.program

    def note(self, span: Span | None, text: str) -> None:
        """Note a remark about a place in the source, once."""
        self.notes[span, text] = None


class ExternalBlocks(Protocol):
    """Runs all blocks but some, for all lanes, between two trips of the machine."""

    @property
    def lockstep(self) -> Sequence[int]:
        """The numbers of the blocks that are left to the machine, ascending."""

    def run(self, state: State, shared: Mapping[str, Leaves], executions: Array) -> tuple[State, Array]:
        """The state after the other blocks, and how often each block of the program has run now: int64 `[blocks]`.

        Lanes may still wait at them, but each has gone on.
        """
