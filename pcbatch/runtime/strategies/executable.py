"""The interface of strategies: something that runs a machine program on batches, whatever it does for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pcbatch.errors import Span
from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.llvm.mixed import MixedProgram
from pcbatch.runtime.llvm.program import LlvmProgram
from pcbatch.runtime.machine.forked import IN_SLICES, ForkedMachine
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.native_executable import NativeExecutable
from pcbatch.runtime.machine.outcome import Outcome, Run, Statistics
from pcbatch.runtime.machine.pool import BatchBuckets
from pcbatch.runtime.strategies.straight_line import StraightLine


class Executable(Protocol):
    """A program made ready to run: the machine is one, the reference another."""

    @property
    def program(self) -> Program:
        """The program that it was made of."""

    @property
    def backend(self) -> Backend:
        """The library of its arrays."""

    @property
    def statistics(self) -> Statistics:
        """The cost of compiling so far."""

    @property
    def form(self) -> str:
        """The form in which the program runs, and perhaps the reason, for `Stats`."""

    @property
    def notes(self) -> Sequence[tuple[Span | None, str]]:
        """Findings about places in the source, made while the program was traced."""

    @property
    def stack_entries(self) -> int:
        """The number of entries that the stacks of the next run have at first; 0 if there are none."""

    @property
    def is_numpys(self) -> bool:
        """Tell whether a run that is `ready` takes NumPy's arrays, of the dtypes of its parameters, and gives such."""

    @property
    def any_lanes(self) -> bool:
        """Tell whether what is compiled serves every number of lanes but 0."""

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` lanes on the `[lanes, ...]` leaves of all parameters and the leaves of all shared operands."""

    def ready(self, arrays: Sequence[Any], lanes: int) -> Run:
        """A run of `lanes` lanes on such arrays, those of parameters and those of shared operands: made ready once.

        It asks nothing again that was known before, so it is to be run only where the backend `runs_unseen`.
        """

    def check(self, lanes: int) -> None:
        """Compile for `lanes` lanes without running; raises what `run` would raise before it runs."""

    def compile(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> None:
        """Compile all that a run of `lanes` lanes on such arrays takes, without making it.

        What grows in a run, such as stacks, has the size that it has now.
        """

    def program_for(self, lanes: Any) -> Program:
        """The program that is executed for `lanes` lanes."""


def resumable(executable: Executable) -> Machine:
    """The machine that runs the program leg by leg: of other forms their own, in lockstep, without forks."""
    machine: Executable = executable
    if isinstance(executable, ForkedMachine):
        executable.because(IN_SLICES)
    if isinstance(executable, ForkedMachine | LlvmProgram | MixedProgram | StraightLine):
        machine = executable.machine
    assert isinstance(machine, Machine), f"{type(executable).__name__} does not run leg by leg"
    return machine


def rooms_of(executable: Executable) -> BatchBuckets | None:
    """The numbers of lanes for which it has programs that serve fewer, too; None where it has none such."""
    if isinstance(executable, Machine | LlvmProgram | MixedProgram | StraightLine):
        return executable.rooms
    return executable.pools.rooms if isinstance(executable, ForkedMachine) else None


def made_rooms(executable: Executable) -> tuple[int, ...]:
    """The rooms that it has."""
    if isinstance(executable, NativeExecutable) and not executable.has_machine:
        return ()
    rooms = rooms_of(executable)
    return () if rooms is None else rooms.made
