"""Strategies by which Python decides, while a run goes on, what runs next: none can become part of a caller's graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcbatch.errors import Span, UsageError
from pcbatch.ir.machine import Program
from pcbatch.ir.machine_verifier import validate
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.error_translation import explaining
from pcbatch.runtime.machine.outcome import Finished, Outcome, Run, Statistics
from pcbatch.runtime.machine.result_packing import argument_arrays, operand_arrays
from pcbatch.runtime.machine.segments import Legs
from pcbatch.runtime.machine.state import Layout, Limits


class OnHost:
    """A program whose blocks the host launches; `form` names the strategy."""

    is_numpys = False

    def __init__(
        self,
        program: Program,
        backend: Backend,
        form: str,
        compiled: bool,
        max_depth: int | None = None,
        max_steps: int | None = None,
    ):
        validate(program, max_steps)
        self.program, self.backend, self.form, self.compiled = program, backend, form, compiled
        self.context = Context(backend, Layout(program), Limits.of(max_depth, max_steps), not compiled)
        self.layout, self.limits, self.legs = self.context.layout, self.context.limits, Legs(self.context)
        self.statistics = Statistics()

    def program_for(self, lanes: Any) -> Program:
        """The program that is executed for `lanes` lanes."""
        return self.program

    @property
    def notes(self) -> Sequence[tuple[Span | None, str]]:
        """Findings about places in the source, made while the program was traced."""
        return tuple(self.context.notes)

    def check(self, lanes: int) -> None:
        """Compile for `lanes` lanes without running; raises what `run` would raise before it runs."""
        raise NotImplementedError

    def compile(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: int) -> None:
        """Compile all that a run of `lanes` lanes on such arrays takes; where nothing is compiled, trace it."""
        self.check(lanes)

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` lanes; see `Machine.run`. UsageError PCB536 inside a graph, where no host decides what runs."""
        require_host(self.backend, f"strategy={self.form!r}", self.program.name)
        given = argument_arrays(self.program, self.backend, arguments, lanes)
        return self.run_arrays([*given, *operand_arrays(self.program, self.backend, shared)], lanes)

    def ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        """A run of `lanes` lanes on arrays like these; the blocks are what there is to make ready."""
        self.check(lanes)
        return lambda given: Finished.of(self.run_arrays(given, lanes))

    def run_arrays(self, arrays: Sequence[Array], lanes: int) -> Outcome:
        """Run `lanes` lanes on the arrays of arguments and shared operands."""
        with explaining(self.program, self.backend, self.compiled):
            count = len(self.layout.inputs)
            return self.launched(arrays[:count], arrays[count:], lanes)

    def launched(self, arguments: Sequence[Array], shared: Sequence[Array], lanes: int) -> Outcome:
        """Launch what lanes wait for until all have ended; what they leave behind."""
        raise NotImplementedError


def require_host(backend: Backend, option: str, function: str) -> None:
    """UsageError PCB536 inside a graph, where nothing is known yet that `option` could decide by."""
    if not backend.runs_now():
        inside = f"inside a {backend.spelling('function')}"
        raise UsageError(
            "PCB536",
            f"{option} decides on the host what runs next, which {inside} there is none; call {function} outside, "
            "or leave the defaults (backend='tensorflow', strategy='pc')",
        )
