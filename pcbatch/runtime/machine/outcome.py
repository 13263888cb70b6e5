"""The outcome of a run, on any kind of machine."""

from __future__ import annotations

import contextlib
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from pcbatch import notice
from pcbatch.errors import Span
from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.machine import gc_pause
from pcbatch.runtime.machine.state import Layout


class Saveable(Protocol):
    """A run in slices that can be saved; see `runtime.resume.checkpoint`."""

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C ended the run."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to `path`."""


@dataclass(frozen=True)
class Counts:
    """The counts of a run.

    `executions` int64 `[blocks]` is how often each block ran, `active` int64 `[blocks]` for how many lanes in all,
    `rows` int64 `[blocks]` how many rows it computed for them, `trips` int64 the turns of the machine's loop.
    """

    executions: Array
    active: Array
    rows: Array
    trips: Array


Counting = Callable[[], Counts]
"""A function that returns the counts of a run, perhaps by another run."""


@dataclass(frozen=True)
class Standing:
    """The lanes after so many steps of a run: their `state`, by the keys of its `layout`.

    `frames`, bool `[lanes]` each, are the calls on the host's stack, where they lie there.
    """

    steps: int
    layout: Layout
    state: Mapping[str, Array]
    frames: Sequence[np.ndarray] = ()


@dataclass(frozen=True)
class Outcome:
    """The end of a run, or how it stands; by example, whichever lanes held them.

    `values` has the leaves of the program's results, `[examples, ...]` arrays, in order; examples that failed read NaN
    or 0. `status` int32 `[examples]` (LaneStatus), `site` int32 `[examples]` (index into `Program.faults`, or -1),
    `place` int32 `[examples]` the number of the block in which it failed, or -1, `fault_values` the leaves of
    the variables that fault messages show, `counting` gives the `counts`, perhaps by another run, `steps` int32
    `[examples]` loop turns plus calls, `stack_entries` how many entries the stacks had in the end (0 where there are
    none, or lists). `backend` is the library of the arrays; `can_fail` says whether any lane of the program could have
    failed at all. `checkpoint` is where a run in slices stands, from which it can go on; `trace` is the record of the
    first trips, where they were recorded (`trace.recorded`); `native_lanes` says how many lanes ran at a time in a
    native function, so that nothing was counted in the run itself, 0 where there was none. `notes` has what is worth
    knowing of places in the source, as `Context`.
    """

    values: tuple[Array, ...]
    status: Array
    site: Array
    place: Array
    fault_values: Mapping[str, Sequence[Array]]
    counting: Counting
    steps: Array
    backend: Backend
    stack_entries: Array | int = 0
    can_fail: bool = True
    checkpoint: Saveable | None = None
    trace: Array | None = None
    native_lanes: int = 0
    notes: Sequence[tuple[Span | None, str]] = ()
    tape: Mapping[int, Mapping[Span, int]] = field(default_factory=dict)
    """The bytes that a taped run has kept of each row of a block, by the source that they come from."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """The seconds of building graphs, scheduling and executing, of a run that was batched on the fly."""
    standing: Callable[[int], Standing] | None = None
    """A function that runs so many steps again, where runs can be looked at: trips, or launches of frames."""
    code: Callable[[], Program] | None = None
    """A function that returns the program with its code, where the one that was run may be without."""

    @property
    def arrays(self) -> list[Array]:
        """The leaves of results, how lanes have ended, and the leaves that messages show, one after another."""
        shown = [leaf for each in self.fault_values.values() for leaf in each]
        return [*self.values, self.status, self.site, self.place, self.steps, *shown]

    def wait(self) -> None:
        """Wait for the end of the run; return at once where it is only described, in a graph."""
        if self.backend.is_concrete(self.status):
            np.asarray(self.status)

    @cached_property
    def counts(self) -> Counts:
        """The counts of the run."""
        return self.counting()

    @property
    def executions(self) -> Array:
        """See `counts`."""
        return self.counts.executions

    @property
    def active(self) -> Array:
        """See `counts`."""
        return self.counts.active

    @property
    def rows(self) -> Array:
        """See `counts`."""
        return self.counts.rows

    @property
    def trips(self) -> Array:
        """See `counts`."""
        return self.counts.trips


class Finished:
    """The end of a run that was made ready before: the leaves of the results, or None where some lane has failed.

    The `outcome` is made only for those who ask for it: most calls want the results alone.
    """

    __slots__ = ("outcome", "values")

    def __init__(self, values: Sequence[Array] | None, outcome: Callable[[], Outcome]):
        self.values = values
        self.outcome = outcome

    @classmethod
    def of(cls, outcome: Outcome) -> Finished:
        """The end of a run of which all is known."""
        return cls(None, lambda: outcome)


Run = Callable[[Sequence[Array]], Finished]
"""A run made ready: from arrays of the shapes and dtypes that it was made ready for."""


class CheckedRun(ABC):
    """A run made ready that looks at arrays itself, faster than others can."""

    checked: Callable[[tuple[Any, ...]], Finished | None]
    """Runs on arrays if they are NumPy's, of the right dtypes and shapes; None where one is not, and nothing has run.
    None, too, where the run had better be called."""

    @abstractmethod
    def __call__(self, given: Sequence[Array]) -> Finished:
        """Run on arrays that are known to be right."""


@dataclass
class Statistics:
    """The cost of compilation: compilations, seconds of tracing, seconds of first runs beyond that (XLA's compiler).

    And what a cache on disk has saved of it: `hits` programs were found there, `misses` were not.
    """

    compilations: int = 0
    trace_seconds: float = 0.0
    compile_seconds: float = 0.0
    hits: int = 0
    misses: int = 0

    def note(self, hit: bool) -> None:
        """Count a program that was looked for on disk."""
        self.hits += hit
        self.misses += not hit

    @contextlib.contextmanager
    def tracing(self, *, counts: bool) -> Iterator[None]:
        """Count the seconds of tracing inside, once where one program is traced for another."""
        started, before = time.perf_counter(), self.trace_seconds
        with gc_pause.paused():
            yield
        self.compilations += counts
        self.trace_seconds = before + time.perf_counter() - started

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Count compilations inside, and the seconds beyond tracing."""
        known, started, traced = self.compilations, time.perf_counter(), self.trace_seconds
        with notice.perhaps_compiling():
            yield
        if self.compilations > known:
            tracing = self.trace_seconds - traced
            self.compile_seconds += time.perf_counter() - started - tracing
