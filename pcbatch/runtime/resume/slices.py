"""A run in slices: legs with budgets of trips, so that Python gets a turn about four times a second.

Budgets are an argument of the compiled leg, so nothing is compiled for them; and a slice is a leg, so how a run is
sliced changes nothing in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from pcbatch.ir.machine import LaneStatus, Program
from pcbatch.notice import silent
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.machine.segments import Snapshot
from pcbatch.runtime.report.run import Run
from pcbatch.threads import Interrupts

SLICE_SECONDS = 0.25
"""Seconds that a slice is to last."""
FIRST_TRIPS = 64
"""The budget of the first slice, of which nothing is known yet."""
STEEPEST = 4
"""The factor by which a budget may change from one slice to the next: one may have waited for the compiler."""


@dataclass(frozen=True)
class SliceState:
    """The state of a run after its last slice, and whether it was interrupted then: by Ctrl-C, or by an exception."""

    snapshot: Snapshot
    outcome: Outcome
    interrupted: bool


def run_slices(
    machine: Machine,
    snapshot: Snapshot,
    shared: Sequence[Any],
    watch: Watch | None = None,
    guard: Callable[[Snapshot], AbstractContextManager[Any]] = lambda snapshot: contextlib.nullcontext(),
) -> SliceState:
    """Go on from `snapshot` to the end of the run or to a KeyboardInterrupt.

    Each slice runs inside `guard(snapshot)`, and `watch` is told of its end. A KeyboardInterrupt before the first slice
    has ended goes through: nothing has happened yet. After that nothing is lost but a slice, if even that.
    """
    trips, last, raised = FIRST_TRIPS, None, False
    with Interrupts() as interrupts:
        try:
            while True:
                started = perf_counter()
                with guard(snapshot):
                    arrived, outcome = machine.leg(snapshot, shared, trips)
                    can_run, paused = bool(arrived.can_run), bool(arrived.paused)  # waits for the device
                last = (arrived.snapshot, outcome)
                if watch is not None:
                    watch(outcome)
                larger = machine.grown(arrived.snapshot) if paused else None
                if larger is not None:
                    last = (larger, outcome)  # or a run interrupted and resumed right here would not go on
                if interrupts.pending or (larger is None and not can_run):
                    break
                snapshot = last[0]
                trips = next_budget(trips, perf_counter() - started)
        except KeyboardInterrupt:
            if last is None:
                raise
            raised = True
    return SliceState(*last, raised or interrupts.pending)


def next_budget(trips: int, seconds: float) -> int:
    """The trips of the next slice, after one of so many trips took so many seconds."""
    factor = SLICE_SECONDS / max(seconds, SLICE_SECONDS / STEEPEST)
    return max(1, int(trips * max(factor, 1 / STEEPEST)))


Watch = Callable[[Outcome], None]
"""A callback for the standing of the run after each slice."""


@contextmanager
def bar(program: Program, examples: int) -> Iterator[Watch]:
    """A bar of tqdm's, in a notebook or a terminal; tqdm's own environment variables (TQDM_DISABLE, ..) hold."""
    from tqdm.auto import tqdm  # only now: it looks for a notebook

    with silent(), tqdm(total=examples, desc=program.name, unit="lane") as shown:

        def watch(outcome: Outcome) -> None:
            run = Run.of(program, outcome)
            ended = int(np.count_nonzero(run.status != LaneStatus.UNFINISHED))
            text = f"{run.trips} trips, {run.utilization.overall:.0%} of rows of use"
            shown.set_postfix_str(text, refresh=False)
            shown.update(ended - shown.n)

        yield watch
