"""From options to what runs a program, and from a call's arguments to what that takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pcbatch.function.arguments import Arguments
from pcbatch.ir import values
from pcbatch.ir.machine import Program
from pcbatch.ir.types import leaves
from pcbatch.optimize.machine.row_sizes import DEFAULT
from pcbatch.options import Options
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.strategies.executable import Executable
from pcbatch.runtime.strategies.reference import ReferenceMachine


def make_executable(program: Program, options: Options) -> Executable:
    """What runs a program under the given options."""
    if options.backend == "reference":
        return ReferenceMachine(
            program, backend_named(options.backend), max_depth=options.max_depth, max_steps=options.max_steps
        )
    return Machine(
        program,
        backend_named(options.backend),
        schedule=options.schedule,
        jit=options.jit,
        max_depth=options.max_depth,
        max_steps=options.max_steps,
        compaction=None if options.deterministic else DEFAULT,
        trace=options.trace,
    )


def run_on(
    executable: Executable,
    backend: Backend,
    given: Mapping[str, str],
    arguments: Arguments,
    operands: Mapping[str, Any],
) -> Outcome:
    """Run `executable`; `given` maps its parameters and shared parameters to those of the user's function."""
    program = executable.program
    shared = [arguments.values[given[name]] if name in given else operands[name] for name in program.shared]
    return executable.run(parameters(executable, backend, given, arguments), shared, arguments.lanes)


def parameters(executable: Executable, backend: Backend, given: Mapping[str, str], arguments: Arguments) -> list[Any]:
    """What each parameter of the program is for every lane.

    What all lanes share but the program writes is repeated for every lane; a weak number takes the dtype that the
    program's own values give it.
    """

    def lane_value(name: str) -> Any:
        user = given[name]
        value, type_ = arguments.values[user], executable.program.types[name]
        if user in arguments.shared:
            return backend.spread(value, type_, arguments.lanes)
        if arguments.types[user] == type_:
            return value
        pairs = zip(leaves(type_), values.flatten(type_, value), strict=True)
        return values.pack(type_, [backend.cast(leaf, leaf_type.dtype) for leaf_type, leaf in pairs])

    return [lane_value(name) for name in executable.program.parameters]
