"""The whole pipeline on one page.

source -> frontend -> cfg IR -> lowering.types -> typed cfg -> lowering.calls -> stack IR -> optimize -> lowering.emit
-> Python source -> table -> machine. `Compilation` has a line for each arrow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from pcbatch.arguments import Arguments
from pcbatch.compiled import make_machine, run_machine
from pcbatch.ir.program import Program
from pcbatch.linking import Linked
from pcbatch.lowering.calls import lower_calls
from pcbatch.lowering.captures import Captured
from pcbatch.lowering.emit import Emitted, emit
from pcbatch.lowering.environment import Environment
from pcbatch.lowering.instances import Typed
from pcbatch.lowering.shareable import shareable
from pcbatch.lowering.types import infer
from pcbatch.optimize import optimize
from pcbatch.options import Options
from pcbatch.runtime import table
from pcbatch.runtime.backends.reference import ReferenceMachine
from pcbatch.runtime.machine import Machine
from pcbatch.runtime.outcome import Outcome


@dataclass(frozen=True)
class Compilation:
    """One program for one signature of arguments: every stage of the pipeline, made when it is asked for."""

    linked: Linked
    environment: Environment
    arguments: Arguments
    options: Options

    @cached_property
    def typed(self) -> Typed:
        """The typed cfg program."""
        return infer(self.linked.built.program, self.environment, tuple(self.arguments.types.values()))

    @cached_property
    def stack(self) -> Program:
        """The stack program, not optimised."""
        return lower_calls(self.typed.program, frozenset(self.environment.operand_types))

    @cached_property
    def optimized(self) -> Program:
        """The stack program after all passes."""
        return optimize(self.stack)

    @cached_property
    def shared_parameters(self) -> tuple[str, ...]:
        """The parameters that stay one value for all lanes: the caller's shared ones that are passed on unchanged."""
        wanted = [n for n in self._parameters() if self._parameters()[n] in self.arguments.shared]
        return tuple(name for name in wanted if name in shareable(self.optimized))

    def _parameters(self) -> dict[str, str]:
        """Parameter of the stack program to parameter of the user's function."""
        return dict(zip(self.optimized.entry.parameters, self.arguments.types, strict=True))

    @cached_property
    def emitted(self) -> Emitted:
        """The generated Python source."""
        return emit(self.optimized, self.typed.origin, self.environment, self.shared_parameters)

    @cached_property
    def table(self) -> table.Program:
        """The executable table, from executing the generated source."""
        program = self.emitted.load()
        return replace(program, name=self.options.name or program.name)

    @cached_property
    def machine(self) -> Machine | ReferenceMachine:
        """The machine that runs the table."""
        return make_machine(self.table, self.options)

    def run(self, arguments: Arguments, captured: Captured) -> Outcome:
        """Run the machine on `arguments`, which fit this compilation's, and on the captured values of now."""
        return run_machine(self.machine, self.environment.backend, self._parameters(), arguments, captured.values)
