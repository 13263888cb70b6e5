"""`pcbatch.explain`: one batch run in several ways, counted, and what follows from it.

One lane of a batch can be run by the reference block by block, to show what each block did to its variables.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.errors import Span, UsageError
from pcbatch.function.batched import Batched
from pcbatch.function.executing import arrays_of
from pcbatch.function.pipeline import Pipeline
from pcbatch.function.user_code import pieces_of
from pcbatch.ir.machine import Block, LaneStatus
from pcbatch.options import OptionValues
from pcbatch.runtime.costs.estimate import Prices, block_costs, line_costs, obstacle
from pcbatch.runtime.machine.forked import ForkedMachine
from pcbatch.runtime.report import steps
from pcbatch.runtime.report.explanation import ExecutionCost, Expensive, Explanation, Figures, advised
from pcbatch.runtime.report.profile import noted
from pcbatch.runtime.report.run import Run
from pcbatch.runtime.schedules.adaptive import EXPENSIVE, expensive_blocks
from pcbatch.runtime.strategies.local import LocalMachine
from pcbatch.runtime.strategies.reference import ReferenceMachine
from pcbatch.runtime.strategies.straight_line import is_straight
from pcbatch.threads import Interrupts

LOCAL = OptionValues(
    strategy="local", schedule="auto", form="auto", jit=True, trace=0, backend="tensorflow", fork=False, max_lanes=None
)
"""The options under which the host sees which lanes run which block."""
ON_THE_FLY: dict[str, OptionValues] = {
    "Fold, by depth": {**LOCAL, "strategy": "depth"},
    "DyNet, by agenda": {**LOCAL, "strategy": "agenda"},
}
"""The ways of batching on the fly."""
OTHERS: dict[str, OptionValues] = {
    "its hybrid": {**LOCAL, "strategy": "hybrid"},
    "the switch": {**LOCAL, "strategy": "pc", "schedule": "switch"},
}
"""The paper's other machines."""


def explain(function: Batched[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Explain how a batch runs, and what would make it faster: `print(pcbatch.explain(f, *args))`.

    The batch is run as it always is, with calls forked if there are some that can be, and by local static autobatching.
    If blocks have expensive rows, it is run by the paper's other machines, too, and batched on the fly, by depth as in
    Fold and by agenda as in DyNet. Each runs several times, so this takes many times as long as a call. Of every block
    with expensive rows it says how often it ran, on how many rows, in how many seconds. Where it is not run in native
    code, it says why, and which line that is about.

    Arguments:
        function: a batched function.
        *args: a batch for it, arrays `[lanes, ...]`.
        **kwargs: the same, by name.

    Returns:
        An `Explanation`; printed, tables and sentences of advice.

    Raises:
        UsageError: PCB568 for what is no batched function, else as a call.
        CompileError: as a call. Lanes that fail raise nothing.
    """
    if not isinstance(function, Batched):
        raise UsageError(
            "PCB568", f"explain takes a batched function and its batch, not {type(function).__name__}: see autobatch"
        )
    plain = function.options(progress=False, resume=None, trace=0)
    usual = _measured(plain, args, kwargs)
    local, ways = _watched(plain.options(**LOCAL), args, kwargs)
    lanes = len(usual.run.status)
    chosen = expensive_blocks(Prices(local.costs, max(lanes, 1)), EXPENSIVE)
    on_the_fly = {}
    if chosen:
        on_the_fly = {name: _measured(plain.options(**options), args, kwargs) for name, options in ON_THE_FLY.items()}
    blocks = _blocks(local, chosen, ways, {each: measured.run.executions for each, measured in on_the_fly.items()})
    found = [usual.way("as it is run", blocks)]
    forked = plain.options(fork=True)
    if blocks and isinstance(forked.session.pipeline(args, kwargs)[1].machine, ForkedMachine):
        found.append(_measured(forked, args, kwargs).way("with fork=True", blocks))
    found.append(local.way("local static autobatching", blocks))
    if blocks and usual.pipeline.options.jit is True:
        found += [_measured(plain.options(**each), args, kwargs).way(name, blocks) for name, each in OTHERS.items()]
    found += [measured.way(name, blocks) for name, measured in on_the_fly.items()]
    advice = advised(
        lanes,
        found[0],
        blocks,
        straight=is_straight(usual.pipeline.table),
        native=usual.form.startswith("native"),
        failed=len(usual.run.errors),
    )
    calls = [noted(*each) for each in usual.pipeline.unforked] if blocks else []
    calls += [*usual.pipeline.machine.in_sequence] if isinstance(usual.pipeline.machine, ForkedMachine) else []
    return Explanation(
        function.__name__, lanes, usual.form, found, blocks, tuple(advice), tuple(calls), _not_native(usual)
    )


@dataclass(frozen=True)
class _Measured:
    """A warm run: its pipeline, its seconds, the estimated work of a row of each block."""

    pipeline: Pipeline
    run: Run
    seconds: float
    costs: tuple[float, ...]

    @property
    def form(self) -> str:
        """The form in which it ran."""
        return self.pipeline.machine.form

    def way(self, name: str, blocks: Sequence[Expensive]) -> ExecutionCost:
        """Return its figures for some blocks."""
        executions, utilization = self.run.executions, self.run.utilization
        work = {
            block.label: utilization.executed[block.label] * cost
            for block, cost in zip(self.run.program.blocks, self.costs, strict=True)
        }
        second = self.seconds / max(sum(work.values()), 1.0)
        figures = {
            label: Figures(
                executions[label], utilization.executed[label], utilization.active[label], work[label] * second
            )
            for label in (block.label for block in blocks)
            if label in work
        }
        return ExecutionCost(name, self.seconds, utilization.overall, figures)


def _measured(function: Batched[..., Any], args: Any, kwargs: Any) -> _Measured:
    """The second of two runs."""
    function.run(*args, **kwargs)
    started = time.perf_counter()
    run = function.run(*args, **kwargs)
    np.asarray(run.status)  # waits for it
    seconds = time.perf_counter() - started
    pipeline = function.session.pipeline(args, kwargs)[1]
    return _Measured(pipeline, run, seconds, block_costs(pipeline.table, run.outcome.backend))


def _not_native(usual: _Measured) -> str:
    """A sentence: why not all is native code, and at which line; "" where it is, or there is no choice to be made."""
    kind, _, why = usual.form.partition(": ")
    if kind not in ("lockstep", "mixed") or not why:
        return ""
    program, backend = usual.pipeline.table, usual.run.outcome.backend
    why = why.partition(", the rest native: ")[2] if kind == "mixed" else why
    found = obstacle(program, backend)
    span = found.span if found is not None and found.why == why else None
    if span is None:
        lines = line_costs(program, backend)
        named = [number for number, block in enumerate(program.blocks) if re.search(rf"\b{block.label}\b", why)]
        span = next((_dearest(program.blocks[number], lines[number]) for number in named), None)
    some = "some blocks are" if kind == "mixed" else "this is"
    return noted(span, f"{some} not run in native code: {why}")


def _watched(function: Batched[..., Any], args: Any, kwargs: Any) -> tuple[_Measured, list[list[int]]]:
    """The same under "local", and for each lane the blocks that it ran, in order."""
    measured = _measured(function, args, kwargs)
    machine = measured.pipeline.machine
    assert isinstance(machine, LocalMachine)
    ways: list[list[int]] = [[] for _ in range(len(measured.run.status))]

    def watch(number: int, lanes: np.ndarray) -> None:
        for lane in np.flatnonzero(lanes).tolist():
            ways[lane].append(number)

    kept, machine.watch = machine.watch, watch
    try:
        function.run(*args, **kwargs)
    finally:
        machine.watch = kept
    return measured, ways


def _blocks(
    local: _Measured, chosen: Sequence[int], ways: Sequence[Sequence[int]], launches: Mapping[str, Mapping[str, int]]
) -> list[Expensive]:
    """Return the data of the chosen blocks whatever runs them; `launches` are those on the fly, by label."""
    program = local.pipeline.executed(len(ways))
    longest: Counter[int] = Counter()
    for way in ways:
        longest |= Counter(way)
    lines = line_costs(local.run.program, local.run.outcome.backend)
    found = []
    for number in chosen:
        block, spans = program.blocks[number], lines[number]
        span = _dearest(block, spans)
        file, line = (span.file, span.line) if span is not None else ("", 0)
        counts = longest[number], *(launches[each][block.label] for each in ON_THE_FLY)
        found.append(Expensive(block.label, block.function, file, line, local.costs[number], *counts))
    return found


def _dearest(block: Block, spans: Mapping[Span, float]) -> Span | None:
    """The place of the most work of a block."""
    return max(spans, key=lambda each: spans[each], default=block.span)


# -- one lane ----------------------------------------------------------------------------------------------------------


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
