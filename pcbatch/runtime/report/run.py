"""A run, as users see it: values, the status of each lane, and the use that was made of lanes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from pcbatch.errors import Diagnostic, PcbatchError, UsageError
from pcbatch.ir import values
from pcbatch.ir.machine import FaultSite, LaneStatus, Program
from pcbatch.ir.types import Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report import formatting, results
from pcbatch.runtime.report.faults import SHOWN_LANES, Faults, LaneFault, Statuses, alike, drawn, lanes_of
from pcbatch.runtime.report.formatting import listed, written
from pcbatch.runtime.report.profile import Profile
from pcbatch.runtime.report.results import delivered, packed
from pcbatch.runtime.report.trace import Trace, Utilization, not_recorded, picture, stacks_picture

SHOWN_RESULTS = 20
"""The number of lanes whose results a report lists."""
SHOWN_LINES, SHOWN_COLUMNS = 3, 100
"""The lines of a result that a table shows, and the characters of each."""
LEGEND = (
    "trips: turns of the machine's loop; block runs: each for all lanes that wait at the block; rows of use: those of"
    "\nlanes that took part, of all the rows that were computed"
)


@dataclass(frozen=True)
class Run:
    """A run of a batch; arrays are indexed by example. Made inside a `tf.function`, it knows `value` and `status` only.

    `value` is what the function returned, `[lanes, ...]`, failed lanes reading NaN or 0.
    """

    value: Any
    program: Program = field(repr=False)
    outcome: Outcome = field(repr=False)
    seconds: float | None = field(default=None, repr=False)
    """Seconds from arguments to results; None where something was compiled in the call."""

    @classmethod
    def of(cls, program: Program, outcome: Outcome, seconds: float | None = None, output: str = "tensors") -> Run:
        """The run of `program` that gave `outcome`, in so many seconds; its value as the option `output` says."""
        return cls(delivered(program, outcome.backend, outcome.values, output), program, outcome, seconds)

    @classmethod
    def from_elsewhere(cls, value: Any, program: Program, outcome: Outcome, errors: Sequence[LaneFault]) -> Run:
        """A run that was made in other processes, which have told its `errors`."""
        run = cls(value, program, outcome)
        vars(run)["errors"] = Faults(errors)
        return run

    @classmethod
    def checked_value(cls, program: Program, outcome: Outcome, output: str = "tensors") -> Any:
        """The value of a run that must not fail, as the option `output` says.

        From Python a failed lane raises LaneError. Inside a plain `tf.function` an assertion raises it when the graph
        runs. Under an outer `jit_compile=True` nothing can raise, so there a program that can fail is refused:
        UsageError PCB532.
        """
        backend = outcome.backend
        if backend.is_concrete(outcome.status):
            return cls.of(program, outcome, output=output).check()
        if outcome.can_fail and backend.inside("fixed program"):
            raise UsageError(
                "PCB532",
                f"{program.name} can fail (an assert, a raise, a division, an index, a depth or step limit), and in "
                "a function compiled with jit_compile=True nothing can raise; "
                f"call {program.name}.run(...) and read .status; in a Keras layer that calls it write "
                "self.supports_jit = False",
            )
        texts = [_templates(program, site) for site in program.faults]
        leaves = backend.checked_values(program, outcome, texts) if outcome.can_fail else outcome.values
        return packed(program, leaves)

    @property
    def status(self) -> Any:
        """int32 `[lanes]`, LaneStatus numbers: a NumPy array, which prints names; inside a `tf.function` a tensor."""
        status = self.outcome.status
        return Statuses.of(status) if self.outcome.backend.is_concrete(status) else status

    @cached_property
    def errors(self) -> Faults:
        """The failed lanes, in order: a tuple of `LaneFault`s."""
        return Faults(_faults(self.program, self._concrete))

    @property
    def lane_steps(self) -> np.ndarray:
        """int32 `[lanes]`: the loop turns plus calls of each lane, which `max_steps` limits."""
        return np.asarray(self._concrete.steps)

    @property
    def trips(self) -> int:
        """Turns of the machine's loop; 0 in native code, which has none."""
        return int(self._concrete.trips)

    @property
    def block_runs(self) -> int:
        """The number of runs of blocks, each for all lanes that waited there."""
        return sum(self.executions.values())

    @property
    def phases(self) -> Mapping[str, float]:
        """Seconds of the phases of a run under `strategy="depth"` or `"agenda"`; empty for others.

        "building" the lanes' graphs, "scheduling" their nodes, "executing" these.
        """
        return self._concrete.phases

    @property
    def steps(self) -> int:
        """The old name of `block_runs`: a step is a loop turn or a call of one lane, as in `max_steps`."""
        warnings.warn("Run.steps is now Run.block_runs", DeprecationWarning, stacklevel=2)
        return self.block_runs

    @cached_property
    def executions(self) -> dict[str, int]:
        """The number of runs of each block, by label."""
        return self._by_label(self._concrete.executions)

    @cached_property
    def utilization(self) -> Utilization:
        """The share of computed rows that belonged to lanes that took part."""
        active, executed = self._by_label(self._concrete.active), self._by_label(self._concrete.rows)
        return Utilization.of(self.program, active, executed)

    def profile(self) -> Profile:
        """The executed work, line by line of the user's source; printed, the source with the figures beside it."""
        if isinstance(self.outcome.checkpoint, results.StayedBehind):
            raise self.outcome.checkpoint.refused("profile()")
        took = [] if self.seconds is None else [f"{self.seconds:.3g} s"]
        return Profile.of(self.program, self._concrete, ", ".join([self._counts(), *took]))

    @cached_property
    def trace(self) -> Trace:
        """The schedule's choices, step by step, for runs under the option `trace`; UsageError PCB561 for others."""
        return Trace.of(self.program, self._concrete)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """A picture: for how many lanes each block ran, trip by trip, and which rows were of use.

        For runs under the option `trace`, as `trace` itself. It is saved to `path`, if one is given, and returned: a
        `matplotlib.figure.Figure`, which notebooks show. Raises UsageError PCB561 for runs that were not recorded,
        PCB564 where matplotlib is not installed.
        """
        title = f"{self.program.name}: {self._counts()}"
        figure = picture(self.program, self.trace, self.utilization, len(self.status), title)
        if path is not None:
            figure.savefig(path, dpi=120)
        return figure

    def plot_stacks(self, step: int, path: str | os.PathLike[str] | None = None) -> Any:
        """A picture of all lanes after `step` steps of the run: their program counters, variables and stacks.

        Entries lie one above another, the top above all. Lanes that wait at the same block have the same colour. A step
        is a trip; under `strategy="local"` or `"hybrid"` it is a launch, and the calls on the host's stack are drawn as
        frames. The run is made again, up to this step. The first 16 lanes are drawn.

        Args:
            step: from 0, the beginning, to `trips`, the end.
            path: where the picture is saved, if anywhere.

        Returns:
            A `matplotlib.figure.Figure`, which notebooks show.

        Raises:
            UsageError: PCB561 for a run that was made without the option `trace`, in slices, or in another process, or
                that has no stacks; PCB579 for a step that the run does not have; PCB564 without matplotlib.
        """
        standing = self._concrete.standing
        if standing is None:
            raise not_recorded(self.program.name, "stacks")
        last = self.trips
        if isinstance(step, bool) or not isinstance(step, int | np.integer) or not 0 <= step <= last:
            raise UsageError("PCB579", f"this run of {self.program.name} has steps 0 to {last}, and not {step!r}")
        found = standing(int(step))
        figure = stacks_picture(found, f"{self.program.name}, after step {found.steps} of {last}")
        if path is not None:
            figure.savefig(path, dpi=120)
        return figure

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C ended the run; its lanes may all have ended by then."""
        return self.outcome.checkpoint is not None and self.outcome.checkpoint.interrupted

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save where the run stands to `path` (an npz file): `f.options(resume=path)()` goes on from there.

        A file of this name is replaced once the new one is written. A finished run can be saved too: it resumes to its
        results. Raises OSError where the file cannot be written, UsageError PCB566 for a run that was not made in
        slices, of which nothing is left but the results, PCB595 for what is no path.
        """
        if self.outcome.checkpoint is None:
            raise UsageError(
                "PCB566",
                f"this run of {self.program.name} was made in one go, so there is nothing to go on from; "
                f"runs under {self.program.name}.options(progress=True) can be saved",
            )
        self.outcome.checkpoint.save(path)

    def check(self) -> Any:
        """The value; LaneError if a lane failed, RunInterruptedError if Ctrl-C ended the run."""
        if self.interrupted:
            raise RunInterruptedError(self)
        if self.errors:
            raise LaneError(self)
        return self.value

    def report(self, lanes: int | None = SHOWN_RESULTS) -> str:
        """Each lane's result (the first `lanes` of them), every failed lane at its source line, and the counts."""
        count = len(self.status)
        shown = count if lanes is None else min(lanes, count)
        more = [f"and {count - shown} more lanes"] if shown < count else []
        ends = [*map(self._ended, range(shown)), *more, *(f.render() for f in self.errors), self._counts()]
        return "\n".join(ends if self._concrete.native_lanes else [*ends, LEGEND])

    def as_json(self) -> dict[str, Any]:
        """The contents of `report` for JSON: `value` is None for a failed lane, text for a number not finite."""
        failed = {fault.lane: fault for fault in self.errors}
        lanes: list[dict[str, Any]] = []
        for lane, status in enumerate(self.status.tolist()):
            end: dict[str, Any] = {"status": LaneStatus(status).name, "value": None}
            if lane not in failed:
                end["value"] = listed(self.result(lane))
            elif (span := failed[lane].span) is not None:
                end |= {"message": failed[lane].message, "file": span.file, "line": span.line}
            else:
                end |= {"message": failed[lane].message}
            lanes.append(end)
        counts = {"trips": self.trips, "block_runs": self.block_runs, "utilization": round(self.utilization.overall, 4)}
        return {"function": self.program.name, "lanes": lanes, **counts}

    def _ended(self, lane: int) -> str:
        status = LaneStatus(int(self.status[lane]))
        return f"lane {lane}: {written(self.result(lane)) if status is LaneStatus.OK else status.name}"

    def result(self, lane: int) -> Any:
        """The result of one lane: NumPy scalars and arrays in the user's structure."""
        return packed(self.program, [np.asarray(leaf)[lane] for leaf in self._concrete.values])

    @property
    def _concrete(self) -> Outcome:
        backend = self.outcome.backend
        if not backend.is_concrete(self.outcome.status):
            inside = f"inside a {backend.spelling('function')}"
            raise UsageError("PCB533", f"{inside} a Run knows only .value and .status; the rest is known after it ran")
        return self.outcome

    def _by_label(self, counts: Any) -> dict[str, int]:
        return dict(zip((block.label for block in self.program.blocks), np.asarray(counts).tolist(), strict=True))

    def _counts(self) -> str:
        lanes, failed = len(self.status), len(self.errors)
        unended = int(np.count_nonzero(self.status == LaneStatus.UNFINISHED))
        ended = f"{failed - unended} of {lanes} lanes failed" if failed > unended else f"{lanes} lanes"
        ended += f", {unended} not at their end" if unended else ""
        at_once = self._concrete.native_lanes
        if at_once:
            return f"{ended}, {'one after another' if at_once == 1 else f'{at_once} at a time'} in native code"
        behind = self._concrete.counting
        if isinstance(behind, results.StayedBehind):
            return f"{ended}, from {behind.origin}"
        ran = f"{self.trips} trips, {self.block_runs} block runs"
        return f"{ended}, {ran}, {self.utilization.overall:.0%} of the rows of use"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle values, statuses, errors and counts; the program stays behind, and its methods say so.

        What blocks did is counted now, where it was not (in native code): by another run.
        """
        return self._reduced(counts=True)

    def __copy__(self) -> Run:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Run:
        return self

    def with_value(self, value: Any) -> Run:
        """The same run, its value in other arrays."""
        run = replace(self, value=value)
        vars(run).update({name: each for name, each in vars(self).items() if name not in vars(run)})
        return run

    def _reduced(self, counts: bool) -> tuple[Any, ...]:
        """The parts of its pickle; with `counts` missing counts are made now."""
        outcome = self._concrete
        known: dict[str, Any] = {"seconds": self.seconds, "errors": self.errors}
        if outcome.trace is not None:
            known["trace"] = self.trace
        kept = results.outcome_of(self.program, outcome, counts)
        if not isinstance(kept["counting"], results.StayedBehind):
            known["utilization"] = self.utilization
        return _run, (self.value, results.program_of(self.program), kept, known)

    def __repr__(self) -> str:
        backend = self.outcome.backend
        concrete = backend.is_concrete(self.outcome.status)
        what = self._counts() if concrete else f"inside a {backend.spelling('function')}"
        return f"<pcbatch.Run of {self.program.name}: {what}>"

    def _repr_html_(self) -> str | None:
        """A table of the lanes, in notebooks; None inside a `tf.function`."""
        if not self.outcome.backend.is_concrete(self.outcome.status):
            return None
        failed = {fault.lane: fault for fault in self.errors}
        rows, count = [], len(self.status)
        for lane in range(min(count, SHOWN_RESULTS)):
            fault = failed.get(lane)
            text = _shortened(written(self.result(lane))) if fault is None else f"{fault.message}  {fault.place}"
            rows.append(formatting.row([str(lane), self.status[lane].name], text.rstrip()))
        more = [f"and {lanes_of(count - len(rows))} more"] if count > len(rows) else []
        return formatting.table(f"{self.program.name}: {self._counts()}", ("lane", "status", "value"), rows, more)


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
        groups = alike(run.errors)[:SHOWN_LANES]
        shown = [drawn(group) for group in groups]
        rest = len(run.errors) - sum(map(len, groups))
        more = [f"and {rest} more, see .run.errors"] if rest else []
        head = f"{len(run.errors)} of {len(run.status)} lanes of {run.program.name} failed"
        super().__init__("\n\n".join([head, *shown, *more]))

    def __repr__(self) -> str:
        return f"<pcbatch.LaneError: {str(self).splitlines()[0]}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the run, as that says, but nothing is counted for it.

        Without it where the results have classes that pickle cannot find, for the message is to arrive in any case.
        """
        return _failure(self, getattr(self, "run", None))


def _shortened(text: str) -> str:
    """The first lines of a text."""
    lines = text.splitlines()
    kept = [line if len(line) <= SHOWN_COLUMNS else f"{line[:SHOWN_COLUMNS]} .." for line in lines[:SHOWN_LINES]]
    return "\n".join([*kept, ".."] if len(lines) > SHOWN_LINES else kept)


def _failure(error: Any, run: Run | None) -> tuple[Any, ...]:
    """The parts of the pickle of an error that has ended a run."""
    has_run = run is not None and results.has_names(run.program)
    return _failed, (type(error), str(error), run._reduced(counts=False)[1] if run is not None and has_run else None)


def _failed(kind: Any, message: str, run: tuple[Any, ...] | None) -> Any:
    """An error of this kind from another process."""
    error: Any = kind.__new__(kind, message)
    error.args = (message,)
    if run is not None:
        error.run = _run(*run)
    return error


def _run(value: Any, program: Program, outcome: Mapping[str, Any], known: Mapping[str, Any]) -> Run:
    """A run from another process."""
    run = Run(value, program, results.outcome(outcome))
    vars(run).update(known)
    return run


class RunInterruptedError(KeyboardInterrupt):
    """Ctrl-C ended a run under the options `progress` or `resume`; `run` is the run as far as it came.

    Lanes that had ended have their results there, and nothing of the others is lost:

        walk = walk.options(progress=True)
        try:
            ends = walk(starts)
        except pcbatch.RunInterruptedError as interrupted:
            interrupted.run.save("walk.npz")

    and later, in another process, `ends = walk.options(resume="walk.npz")()`. As a KeyboardInterrupt it passes through
    `except Exception`. (`walk.run(starts)` raises nothing: it returns the run.)
    """

    def __init__(self, run: Run):
        self.run = run
        ended = int(np.count_nonzero(run.status != LaneStatus.UNFINISHED))
        super().__init__(
            f"{run.program.name} was interrupted after {run.trips} trips, when {ended} of {len(run.status)} lanes had "
            "ended; .run has their results, and .run.save(path) keeps the rest"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the run, as that says."""
        return _failure(self, self.run)


def _faults(program: Program, outcome: Outcome) -> Iterator[LaneFault]:
    """The failed lanes in order, their messages filled in."""
    status, sites, places = np.asarray(outcome.status), np.asarray(outcome.site), np.asarray(outcome.place)
    for lane in np.flatnonzero(status).tolist():
        reached = LaneStatus(int(status[lane]))
        if reached is LaneStatus.UNFINISHED:
            yield LaneFault(lane, reached, "the run was stopped before this lane ended", None)
            continue
        site = program.faults[int(sites[lane])]
        shown = [_shown(program.types[name], outcome.fault_values[name], lane) for name in site.arguments]
        span = site.span or program.blocks[int(places[lane])].span
        yield LaneFault(lane, reached, site.message.format(*shown), span)


def _shown(type_: Type, leaves: Sequence[Any], lane: int) -> Any:
    """Return one lane's value for messages: NumPy scalars and arrays in its structure, weak numbers Python's."""
    found = [np.asarray(leaf)[lane] for leaf in leaves]
    weak = [leaf_type.weak for leaf_type in leaf_types(type_)]
    return values.pack(type_, [leaf.item() if is_weak else leaf for leaf, is_weak in zip(found, weak, strict=True)])


def _templates(program: Program, site: FaultSite) -> list[str]:
    """A fault's message, still with its fields, and its source: one text, or one for each block that it may be in."""
    spans = [site.span] if site.span is not None else [block.span for block in program.blocks]
    return [Diagnostic(site.status.name, site.message, span).render() for span in spans]
