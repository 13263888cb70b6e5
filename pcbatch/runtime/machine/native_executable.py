"""The common part of executables with native code: they make whole runs, and leave all others to the machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.machine.error_translation import explaining
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Outcome, Run, Statistics
from pcbatch.runtime.machine.pool import BatchBuckets


class NativeExecutable(ABC):
    """Runs the program of a machine from ordinary code, for numbers of lanes that are known and not 0.

    Runs in slices, runs in a caller's graph and runs of no lanes are the affair of the `machine`.
    """

    is_numpys = any_lanes = False

    form: str
    """The form in `f.stats()`."""

    def __init__(self, machine: Machine):
        self.machine, self.program, self.backend = machine, machine.program, machine.backend
        self.statistics: Statistics = machine.statistics

    @property
    def notes(self) -> Sequence[tuple[Span | None, str]]:
        """The notes of the trace about the program."""
        return self.machine.notes

    @property
    @abstractmethod
    def stack_entries(self) -> int:
        """The initial number of entries of the next run's stacks; 0 if there are none."""

    @abstractmethod
    def program_for(self, lanes: Any) -> Program:
        """Return the program executed for `lanes` lanes."""

    def check(self, lanes: int) -> None:
        """Compile for `lanes` lanes without running; raises the errors of `run` before it runs."""
        if lanes == 0:
            self.machine.check(lanes)
        else:
            self._check(lanes)

    def compile(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> None:
        """Compile all that a run of `lanes` lanes on such arrays takes; see `Executable.compile`."""
        if lanes == 0:
            self.machine.compile(arguments, shared, lanes)
        else:
            self._compile(self.machine.arrays_given(arguments, shared, lanes), lanes)

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` lanes; see `Machine.run`."""
        if not (isinstance(lanes, int) and lanes and self.backend.runs_now()):
            return self.machine.run(arguments, shared, lanes)
        return self._run_arrays(self.machine.arrays_given(arguments, shared, lanes), lanes)

    def ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        """A run of `lanes` lanes on arrays like these; see `Machine.ready`."""
        return self._ready(arrays, lanes) if lanes else self.machine.ready(arrays, lanes)

    @property
    @abstractmethod
    def rooms(self) -> BatchBuckets:
        """The numbers of lanes for which programs are compiled."""

    def _room(self, lanes: int) -> int:
        """Return the number of lanes of the program that runs so many examples."""
        return self.rooms.of(lanes)

    @abstractmethod
    def _check(self, lanes: int) -> None:
        """See `check`; of lanes, of which there are some."""

    @abstractmethod
    def _compile(self, arrays: Sequence[Array], lanes: int) -> None:
        """See `compile`; of lanes, of which there are some."""

    @abstractmethod
    def _run_arrays(self, arrays: Sequence[Array], lanes: int) -> Outcome:
        """A whole run on the leaves of all arguments and shared operands."""

    @abstractmethod
    def _ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        """See `ready`; of lanes, of which there are some."""

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Count compilations inside, and explain failures."""
        with self.machine.statistics.timed(), explaining(self.program, self.backend, jit=True):
            yield

    def _explained(self, run: Run) -> Run:
        """Return `run` with its failures explained, at no cost otherwise."""

        def explained(given: Sequence[Array]) -> Any:
            try:
                return run(given)
            except Exception:
                with explaining(self.program, self.backend, jit=True):
                    raise

        return explained
