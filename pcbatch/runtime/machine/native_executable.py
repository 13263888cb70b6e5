"""The common part of executables with native code: they make whole runs, and leave all others to the machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.machine.error_translation import explaining
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Outcome, Run, Statistics
from pcbatch.runtime.machine.pool import BatchBuckets
from pcbatch.runtime.machine.result_packing import argument_arrays, operand_arrays
from pcbatch.runtime.machine.state import Limits
from pcbatch.runtime.store.cache_session import Name
from pcbatch.threads import once


@dataclass(frozen=True)
class MachineToBe:
    """A machine that is made by `make` when it is asked for, and what is known of it before that.

    Its `program` may be without code, which a run of native code does not need.
    """

    program: Program
    backend: Backend
    limits: Limits
    is_deterministic: bool
    statistics: Statistics
    name_of: Callable[..., Name]
    """The name of a part of the program on disk."""
    make: Callable[[], Machine]

    @classmethod
    def of(cls, machine: Machine) -> MachineToBe:
        """The same of a machine that there is."""
        context, programs = machine.context, machine.programs
        known = (machine.program, machine.backend, context.limits, context.is_deterministic)
        return cls(*known, machine.statistics, programs.name_of, lambda: machine)


class NativeExecutable(ABC):
    """Runs the program of a machine from ordinary code, for numbers of lanes that are known and not 0.

    Runs in slices, runs in a caller's graph and runs of no lanes are the affair of the `machine`.
    """

    is_numpys = any_lanes = False

    form: str
    """The form in `f.stats()`."""

    def __init__(self, machine: Machine | MachineToBe):
        self._known = MachineToBe.of(machine) if isinstance(machine, Machine) else machine
        self.program, self.backend = machine.program, machine.backend
        self.statistics: Statistics = machine.statistics
        if isinstance(machine, Machine):
            vars(self)["machine"] = machine

    @once
    def machine(self) -> Machine:
        """The machine that does the rest."""
        return self._known.make()

    @property
    def notes(self) -> Sequence[tuple[Span | None, str]]:
        """The notes of the trace about the program."""
        return self.machine.notes if self.has_machine else ()

    @property
    def has_machine(self) -> bool:
        """Return whether its machine is made."""
        return "machine" in vars(self)

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
            self._compile(self._arrays_given(arguments, shared, lanes), lanes)

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` lanes; see `Machine.run`."""
        if not (isinstance(lanes, int) and lanes and self.backend.runs_now()):
            return self.machine.run(arguments, shared, lanes)
        return self._run_arrays(self._arrays_given(arguments, shared, lanes), lanes)

    def _arrays_given(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> list[Array]:
        given = argument_arrays(self.program, self.backend, arguments, lanes)
        return given + operand_arrays(self.program, self.backend, shared)

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
        with self.statistics.timed(), explaining(self.program, self.backend, jit=True):
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
