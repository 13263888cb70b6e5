"""What a user sees of a run: values, what became of each lane, and how well the lanes were used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pcbatch.diagnostics import Diagnostic, PcbatchError, Span, UsageError
from pcbatch.ir.types import leaves
from pcbatch.runtime import values
from pcbatch.runtime.outcome import Outcome
from pcbatch.runtime.status import LaneStatus
from pcbatch.runtime.table import Block, FaultSite, Piece, Program

SHOWN_LANES = 5
"""How many failed lanes a message draws."""


@dataclass(frozen=True)
class LaneFault:
    """Why a lane failed and where. `message` starts with the name of the exception that Python would have raised."""

    lane: int
    status: LaneStatus
    message: str
    span: Span | None

    def render(self) -> str:
        """The fault with its source line and carets."""
        return Diagnostic(f"lane {self.lane} ({self.status.name})", self.message, self.span).render()

    def __str__(self) -> str:
        return self.render()


@dataclass(frozen=True)
class Utilization:
    """How many of the rows that were computed belonged to lanes that took part.

    A block that runs computes one row for each lane of the batch; `active` counts, by block label, the rows that were
    of use, `executed` all of them. A source line's rows are those of all blocks that contain a part of it.
    """

    active: Mapping[str, int]
    executed: Mapping[str, int]
    lines: Mapping[str, tuple[int, ...]] = field(repr=False)
    """The source lines of each block."""

    @property
    def overall(self) -> float:
        """The part of all rows that was of use; 1 if none was computed."""
        return _ratio(sum(self.active.values()), sum(self.executed.values()))

    @property
    def by_block(self) -> dict[str, float]:
        """The part of each block's rows that was of use, by label, for blocks that ran."""
        return {label: _ratio(self.active[label], rows) for label, rows in self.executed.items() if rows}

    @property
    def by_line(self) -> dict[int, float]:
        """The part of each source line's rows that was of use, for lines that ran."""
        active = self._per_line(self.active)
        return {line: _ratio(active[line], rows) for line, rows in self.rows_by_line.items() if rows}

    @property
    def rows_by_line(self) -> dict[int, int]:
        """How many rows were computed for each source line."""
        return self._per_line(self.executed)

    def _per_line(self, rows: Mapping[str, int]) -> dict[int, int]:
        found: defaultdict[int, int] = defaultdict(int)
        for label, lines in self.lines.items():
            for line in lines:
                found[line] += rows[label]
        return dict(sorted(found.items()))

    def __repr__(self) -> str:
        return f"<utilization {self.overall:.0%} of {sum(self.executed.values())} rows>"


@dataclass(frozen=True)
class Run:
    """A run of a batch; arrays are indexed by example. Made inside a `tf.function`, it knows `value` and `status` only.

    `value` is what the function returned, `[lanes, ...]`, failed lanes reading NaN or 0.
    """

    value: Any
    program: Program = field(repr=False)
    outcome: Outcome = field(repr=False)

    @classmethod
    def of(cls, program: Program, outcome: Outcome) -> Run:
        """The run of `program` that gave `outcome`."""
        return cls(_value(outcome), program, outcome)

    @classmethod
    def checked_value(cls, program: Program, outcome: Outcome) -> Any:
        """The value of a run that must not fail.

        From Python a failed lane raises LaneError. Inside a plain `tf.function` an assertion raises it when the graph
        runs. Under an outer `jit_compile=True` nothing can raise, so there a program that can fail is refused:
        UsageError PCB532.
        """
        backend = outcome.backend
        if backend.is_concrete(outcome.status):
            return cls.of(program, outcome).check()
        if outcome.can_fail and backend.in_outer_xla():
            raise UsageError(
                "PCB532",
                f"{program.name} can fail (an assert, a raise, a division, an index, a depth or step limit), and in "
                "a function compiled with jit_compile=True nothing can raise; "
                f"call {program.name}.run(...) and read .status",
            )
        texts = [_templates(program, site) for site in program.faults]
        return _value(backend.assert_ok(program, outcome, texts)) if outcome.can_fail else _value(outcome)

    @property
    def status(self) -> Any:
        """int32 `[lanes]`, LaneStatus numbers: a NumPy array, inside a `tf.function` a tensor."""
        status = self.outcome.status
        return np.asarray(status) if self.outcome.backend.is_concrete(status) else status

    @cached_property
    def errors(self) -> tuple[LaneFault, ...]:
        """The failed lanes, in order."""
        return tuple(_faults(self.program, self._concrete))

    @property
    def lane_steps(self) -> np.ndarray:
        """int32 `[lanes]`: the loop turns plus calls of each lane, which `max_steps` limits."""
        return np.asarray(self._concrete.steps)

    @property
    def trips(self) -> int:
        """Turns of the machine's loop."""
        return int(self._concrete.trips)

    @property
    def steps(self) -> int:
        """How many blocks the machine ran in all, each for all lanes that waited at it."""
        return sum(self.executions.values())

    @cached_property
    def executions(self) -> dict[str, int]:
        """How often each block ran, by label."""
        return self._by_label(self._concrete.executions)

    @cached_property
    def utilization(self) -> Utilization:
        """How many of the rows that were computed belonged to lanes that took part."""
        executed = {label: times * len(self.status) for label, times in self.executions.items()}
        lines = {block.label: _lines(block) for block in self.program.blocks}
        return Utilization(self._by_label(self._concrete.active), executed, lines)

    def check(self) -> Any:
        """The value; LaneError if a lane failed."""
        if self.errors:
            raise LaneError(self)
        return self.value

    def report(self) -> str:
        """The value, every failed lane at its source line, and the counts, as text."""
        return "\n".join([f"{_plain(self.value)}", *(fault.render() for fault in self.errors), self._counts()])

    @property
    def _concrete(self) -> Outcome:
        if not self.outcome.backend.is_concrete(self.outcome.status):
            raise UsageError(
                "PCB533", "inside a tf.function a Run knows only .value and .status; the rest is known after it ran"
            )
        return self.outcome

    def _by_label(self, counts: Any) -> dict[str, int]:
        return dict(zip((block.label for block in self.program.blocks), np.asarray(counts).tolist(), strict=True))

    def _counts(self) -> str:
        lanes, failed = len(self.status), len(self.errors)
        ended = f"{failed} of {lanes} lanes failed" if failed else f"{lanes} lanes"
        return f"{ended}, {self.trips} trips, {self.steps} steps, {self.utilization.overall:.0%} of the rows of use"

    def __repr__(self) -> str:
        concrete = self.outcome.backend.is_concrete(self.outcome.status)
        return f"<Run of {self.program.name}: {self._counts() if concrete else 'inside a tf.function'}>"


class LaneError(PcbatchError, RuntimeError):
    """Lanes failed; `run` holds the whole run, so the results of the others are not lost.

    In a lane of

        @pcbatch.autobatch
        def root(x):
            assert x >= 0, f"{x} is negative"
            return tf.sqrt(x)

    where `x` is negative, the assertion fails: `root(tf.constant([1.0, -1.0]))` raises LaneError. `root.run(...)`
    raises nothing: `run.status` says which lanes failed, `run.errors` why, and `run.value` has the results of the
    others.
    """

    def __init__(self, run: Run):
        self.run = run
        shown = [fault.render() for fault in run.errors[:SHOWN_LANES]]
        rest = len(run.errors) - len(shown)
        more = [f"and {rest} more, see .run.errors"] if rest else []
        head = f"{len(run.errors)} of {len(run.status)} lanes of {run.program.name} failed"
        super().__init__("\n\n".join([head, *shown, *more]))


def _faults(program: Program, outcome: Outcome) -> Iterator[LaneFault]:
    """The failed lanes in order, their messages filled in."""
    status, sites, places = np.asarray(outcome.status), np.asarray(outcome.site), np.asarray(outcome.place)
    for lane in np.flatnonzero(status).tolist():
        reached = LaneStatus(int(status[lane]))
        if reached is LaneStatus.UNFINISHED:
            yield LaneFault(lane, reached, "the run was stopped before this lane ended", None)
            continue
        site = program.faults[int(sites[lane])]
        shown = [_shown(program, name, outcome.fault_values[name], lane) for name in site.arguments]
        span = site.span or program.blocks[int(places[lane])].span
        yield LaneFault(lane, reached, site.message.format(*shown), span)


def _shown(program: Program, name: str, value: Any, lane: int) -> Any:
    """One lane's value as a message shows it: NumPy scalars and arrays inside the user's structure."""
    type_ = program.types[name]
    found = [np.asarray(leaf)[lane] for leaf in values.flatten(type_, value)]
    weak = [type_leaf.weak for type_leaf in leaves(type_)]
    return values.pack(type_, [leaf.item() if is_weak else leaf for leaf, is_weak in zip(found, weak, strict=True)])


def _value(outcome: Outcome) -> Any:
    return outcome.values[0] if len(outcome.values) == 1 else outcome.values


def _templates(program: Program, site: FaultSite) -> list[str]:
    """A fault's message, still with its fields, and its source: one text, or one for each block that it may be in."""
    spans = [site.span] if site.span is not None else [block.span for block in program.blocks]
    return [Diagnostic(site.status.name, site.message, span).render() for span in spans]


def _plain(value: Any) -> Any:
    """`value` with NumPy arrays in place of the array library's, for printing."""
    match value:
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*map(_plain, value))
        case tuple() | list():
            return type(value)(map(_plain, value))
        case dict():
            return {key: _plain(item) for key, item in value.items()}
    return np.asarray(value)


def _lines(block: Block) -> tuple[int, ...]:
    """The source lines that a block's code comes from."""
    spans = [span for item in block.body if isinstance(item, Piece) for span in item.spans if span is not None]
    spans = spans or ([block.span] if block.span is not None else [])
    return tuple(sorted({line for span in spans for line in range(span.line, span.end_line + 1)}))


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
