"""The walk of one lane of a batch, run by the reference block by block: what each block did to its variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pcbatch.errors import UsageError
from pcbatch.function.batched import Batched
from pcbatch.function.executing import arrays_of
from pcbatch.function.tracing_context import pieces_of
from pcbatch.ir.machine import LaneStatus
from pcbatch.options import OptionValues
from pcbatch.runtime.report import steps
from pcbatch.runtime.strategies.reference import ReferenceMachine
from pcbatch.threads import Interrupts

REFERENCE = OptionValues(
    backend="reference", strategy="pc", schedule="switch", form="auto", jit=True, trace=0, progress=False
)
"""The options of a walk: the program is that before any merging of blocks, as under "local", "hybrid" and "switch"."""


def show_walk(
    function: Batched[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    lane: int,
    limit: int,
    show: Callable[[str], None],
) -> LaneStatus:
    """Run one lane of a batch and show, as text, its first `limit` block runs and the last; return its outcome.

    Ctrl-C ends the walk after the block that is running; the lane is UNFINISHED then. UsageError PCB562 where there is
    no such lane.
    """
    arguments, pipeline, captured = function.options(**REFERENCE).session.pipeline(tuple(args), dict(kwargs))
    program, machine, lanes = pipeline.table, pipeline.machine, arguments.lanes
    assert isinstance(machine, ReferenceMachine)
    if not 0 <= lane < lanes:
        has = f"{lanes} lane{'s' * (lanes > 1)}, numbered from 0" if lanes else "no lanes"
        raise UsageError("PCB562", f"there is no lane {lane}: this batch of {program.name} has {has}")
    walk = machine.walk(*arrays_of(machine, pipeline.parameters(), arguments, captured.leaves), lane)
    show(f"{steps.title(program, lane, lanes)}\n")
    show(f"{steps.picture(program, walk.visit())}\n")
    with pieces_of(function.__name__), Interrupts() as interrupts:
        while not interrupts.pending and walk.go_on():
            if walk.count <= limit:
                show(f"{steps.picture(program, walk.visit())}\n")
    last = walk.visit()
    if walk.count > limit:
        if walk.count > limit + 1:
            show(f"{steps.left_out(walk.count - limit - 1)}\n")
        show(f"{steps.picture(program, last)}\n")
    outcome = walk.outcome()
    show(steps.ending(program, outcome, lane, last))
    return LaneStatus(int(outcome.status[0]))
