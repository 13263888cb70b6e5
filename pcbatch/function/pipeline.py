"""The whole pipeline on one page.

source -> frontend -> cfg IR -> lowering.types -> typed cfg -> lowering.calls -> stack IR -> optimize -> lowering.emit
-> Python source -> table -> machine. `Compilation` has a line for each arrow.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pcbatch.function.arguments import Arguments
from pcbatch.function.identity import program_digest
from pcbatch.function.linking import Linked
from pcbatch.function.longruns import LongRun
from pcbatch.function.precompiled import make_machine, parameters, run_machine
from pcbatch.ir import machine as table
from pcbatch.ir.program import Program
from pcbatch.lowering.calls import lower_calls
from pcbatch.lowering.captures.captured import Captured
from pcbatch.lowering.captures.reads import Record
from pcbatch.lowering.codegen.emit import Emitted, emit
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.shareable import shareable
from pcbatch.lowering.inference.static import Static
from pcbatch.lowering.inference.typed import Typed
from pcbatch.lowering.inference.types import infer
from pcbatch.optimize.pipeline import optimize
from pcbatch.options import Options
from pcbatch.runtime.costs.estimate import block_cost
from pcbatch.runtime.machine.legs import Snapshot
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.resume.checkpoint import Saved
from pcbatch.runtime.strategies.reference import ReferenceMachine


@dataclass(frozen=True)
class Compilation:
    """One program for one signature of arguments: every stage of the pipeline, made when it is asked for."""

    linked: Linked
    environment: Environment
    arguments: Arguments
    options: Options
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False, compare=False)
    _ready: set[Any] = field(default_factory=set, init=False, repr=False, compare=False)
    """The numbers of lanes that the machine is compiled for; for legs, with the capacities of stacks."""
    reads: Record = field(default_factory=Record, init=False, repr=False, compare=False)
    """What the user's code has read while the program was traced."""
    read_first: tuple[tuple[Any, Any], ...] = field(default=(), init=False, repr=False, compare=False)
    """Of these what was read when types were inferred, names and values: the same in every process."""

    def keep_first_reads(self) -> None:
        """Types have been inferred: what has been read so far tells the program from others."""
        object.__setattr__(self, "read_first", tuple(self.reads.described()))

    def is_ready(self, lanes: Any) -> bool:
        """Whether the machine is compiled for `lanes` lanes."""
        return isinstance(lanes, int) and (lanes, None) in self._ready

    @contextlib.contextmanager
    def first_time(self, lanes: Any, capacity: int | None = None) -> Iterator[None]:
        """One thread at a time, as long as something may be compiled inside for `lanes` lanes.

        For a leg alone, with the `capacity` of its stacks.
        """
        if isinstance(lanes, int) and (lanes, capacity) in self._ready:
            yield
            return
        with self._lock:
            yield
            if isinstance(lanes, int):
                self._ready.add((lanes, capacity))

    @cached_property
    def typed(self) -> Typed:
        """The typed cfg program."""
        program = self.linked.built.program
        types, statics = self.arguments.types, self.arguments.statics
        known = (Static(statics[name]) if name in statics else types[name] for name in program.entry.parameters)
        return infer(program, self.environment, tuple(known))

    @cached_property
    def stack(self) -> Program:
        """The stack program, its control flow optimised, its stacks not."""
        return lower_calls(optimize(self.typed.program), frozenset(self.environment.operand_types))

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
        return emit(self.optimized, self.typed.origin, self.typed.environment, self.shared_parameters)

    @cached_property
    def table(self) -> table.Program:
        """The executable table, from executing the generated source."""
        program = self.emitted.load()
        program = table.with_kept(program, self.environment.kept)
        return replace(program, name=self.options.name or program.name)

    @cached_property
    def machine(self) -> Machine | ReferenceMachine:
        """The machine that runs the table."""
        return make_machine(self.table, self.options)

    def row_cost(self, block: int) -> float:
        """The estimated work of one lane at the block of this number, in the unit of `runtime.costs`."""
        return block_cost(self.table, self.table.blocks[block], self.environment.backend)

    def run(self, arguments: Arguments, captured: Captured) -> Outcome:
        """Run the machine on `arguments`, which fit this compilation's, and on the captured values of now."""
        return run_machine(self.machine, self.environment.backend, self._parameters(), arguments, captured.values)

    @cached_property
    def digest(self) -> str:
        """What tells the program from all others, in every process."""
        return program_digest(self.table, self.read_first)

    def run_in_slices(self, arguments: Arguments, captured: Captured, options: Options, saved: Saved | None) -> Outcome:
        """The same as `run`, as `options` say; from where `saved` stands, if that is given."""
        machine = self.machine
        assert isinstance(machine, Machine)  # options refuse the other one

        def first_time(snapshot: Snapshot) -> contextlib.AbstractContextManager[None]:
            return self.first_time(snapshot.pool.lanes, int(machine.legs.capacity(snapshot)))

        given = self._parameters()
        run = LongRun(machine, given, options, self.digest, captured.values, first_time)
        if saved is not None:
            return run.resume(saved, arguments)
        return run.start(arguments, parameters(machine, self.environment.backend, given, arguments))
