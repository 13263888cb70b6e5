"""Programs with native code between blocks in lockstep, whatever blocks cost: every second one is left to lockstep."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from pcbatch.function import executing
from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.costs.estimate import left_to_lockstep
from pcbatch.runtime.llvm.mixed import MixedProgram
from pcbatch.runtime.machine.machine import Machine


def every_second_block(program: Program, backend: Backend, first: int = 0) -> frozenset[int] | None:
    """Every second block and those of which no native code is made; None where none is left for native code."""
    needed = left_to_lockstep(program, backend, [0.0] * len(program.blocks))
    if needed is None:
        return None
    chosen = needed | {*range(first, len(program.blocks), 2)}
    return chosen if effects.reachable(program) - chosen else needed


@contextlib.contextmanager
def forced() -> Iterator[None]:
    """What is compiled inside for lockstep has native code between its blocks, where any can be made."""
    made = executing._executable

    def mixed(program: Program, backend: Backend, options: Any, *rest: Any) -> Any:
        executable = made(program, backend, options, *rest)
        if options.form != "lockstep":
            return executable
        assert isinstance(executable, Machine)
        lockstep = every_second_block(program, backend, first=len(program.blocks) % 2)
        if lockstep is None:
            return executable
        return MixedProgram(executable, lockstep, "every second block")

    with mock.patch.object(executing, "_executable", mixed):
        yield
