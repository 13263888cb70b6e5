"""A program that was compiled ahead of time, in place of a function in a module by `pcbatch compile -o`.

It runs without the frontend: no source is read, nothing is parsed, types are what they were when it was written.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from pcbatch.errors import UsageError
from pcbatch.function import sliced_runs
from pcbatch.function.arguments import Arguments, bind_arguments, flattened
from pcbatch.function.executing import make_executable, make_reverse, parameters, run_on
from pcbatch.function.identity import program_digest
from pcbatch.ir import machine as table
from pcbatch.ir import values
from pcbatch.ir.types import Type, leaves
from pcbatch.lowering.captures.captured import Leaves, holds, kept, objects
from pcbatch.lowering.captures.guards import Guards
from pcbatch.options import Options
from pcbatch.runtime.adjoint.reverse import Reverse
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report import faults
from pcbatch.runtime.report.results import require_numbers
from pcbatch.runtime.report.run import Run
from pcbatch.runtime.resume.checkpoint import Saved
from pcbatch.runtime.strategies.executable import Executable, resumable


class Precompiled:
    """A batched function of fixed types; call it, or `run` it, as one calls a `Batched`.

    `types` are those of its arguments; `names` the program's parameters, one for each array in them, in their order.
    """

    def __init__(
        self,
        program: table.Program,
        types: Mapping[str, Type],
        names: Sequence[str],
        operands: Mapping[str, Callable[[], Any]] | None = None,
        **options: Any,
    ):
        self.program = program
        self.types = types
        waiting = iter(names)
        self._parameters = {user: [next(waiting) for _ in leaves(type_)] for user, type_ in types.items()}
        self.operands = operands or {}
        self._guards = Guards()
        """The reads of its pieces' functions."""
        self.options = Options().changed(options)
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.signature = inspect.Signature([inspect.Parameter(name, kinds) for name in types])
        self._made: tuple[Mapping[str, table.Kept], Executable] | None = None
        self._reverse: Callable[[], Reverse]

    @cached_property
    def _functions(self) -> list[Any]:
        """The functions of the program's pieces."""
        items = (item for block in self.program.blocks for item in block.body)
        return [item.function for item in items if isinstance(item, table.Piece)]

    def machine(self, operands: Leaves) -> Executable:
        """The machine, made at the first call, for the leaves of captured arrays."""
        if self._made is None:
            known = kept(operands, self._functions, backend_named(self.options.backend).is_variable)
            program = table.with_kept(self.program, known)
            made = make_executable(program, self.options, lambda: self.digest)
            self._made = (known, made)
            self._reverse = functools.cache(lambda: make_reverse(program, self.options, made))
        return self._made[1]

    @cached_property
    def digest(self) -> str:
        """A digest that identifies the program in every process."""
        return program_digest(self.program, ())

    def _keep_current(self, operands: Leaves) -> None:
        """Forget the machine if values read by its pieces have changed, or another variable is among `operands`."""
        if self._made is not None and holds(self._made[0], operands) and self._guards.hold():
            return
        vars(self).pop("digest", None)
        self._made, self._guards = None, Guards()
        for function in self._functions:
            self._guards.follow(function)

    def _execute(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Outcome:
        backend = backend_named(self.options.backend)
        require_numbers(self.program.name, backend, self.options.output)
        saved = sliced_runs.read(self.options) if self.options.resume is not None else None
        if saved is None:
            arguments = bind_arguments(self.signature, self.options, backend, args, kwargs)
        else:
            arguments = sliced_runs.saved_arguments(saved, self.signature, self.options, args, kwargs)
        for user, expected in self.types.items():
            if arguments.types[user] != expected:
                raise UsageError(
                    "PCB515", f"{self.program.name} was compiled for {user}: {expected}, not {arguments.types[user]}"
                )
        if arguments.variables and any(map(backend.takes_gradients, objects(self._functions))):
            raise arguments.refused_variable(self.program.name, backend)
        operands = {n: values.flatten(self.program.shared_types[n], read()) for n, read in self.operands.items()}
        self._keep_current(operands)
        outcome = self._run(arguments, operands, saved)
        faults.show(self.program, outcome)
        return outcome

    def _run(self, arguments: Arguments, operands: Leaves, saved: Saved | None) -> Outcome:
        flat = flattened(arguments, self._parameters)
        given = {name: name for name in flat.types}
        machine = self.machine(operands)
        if not self.options.in_slices:
            return run_on(machine, given, flat, operands, self._reverse, self.options)
        run = sliced_runs.LongRun(
            resumable(machine), given, self.options, self.digest, len(self.program.blocks), operands
        )
        if saved is not None:
            return run.resume(saved, arguments)
        return run.start(arguments, flat, parameters(machine, given, flat))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run a batch; raises LaneError if a lane failed."""
        return Run.checked_value(self.program, self._execute(args, kwargs), self.options.output)

    def run(self, *args: Any, **kwargs: Any) -> Run:
        """Run a batch and report the outcome of each lane."""
        return Run.of(self.program, self._execute(args, kwargs), output=self.options.output)
