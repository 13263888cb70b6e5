"""The native form of a program: an executable in which one lane runs after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir.machine import Program
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.protocol import Array, Spec, State
from pcbatch.runtime.machine.explaining import explaining
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Counts, Finished, Outcome, Run, Statistics
from pcbatch.runtime.native.code import EXECUTIONS
from pcbatch.runtime.native.cores import Cores, Part
from pcbatch.runtime.native.lanes import ENDS, Lanes
from pcbatch.runtime.native.registers import Registers

FAULTS = ENDS.index("fault")
"""Which of the `ENDS` says whether a lane has failed."""


class NativeProgram:
    """Runs the program of a machine in the native form; what that cannot do, the machine does.

    These are runs in a caller's graph, runs in slices, and runs of no lanes.
    """

    def __init__(self, machine: Machine):
        self.machine, self.program, self.backend = machine, machine.program, machine.backend
        limits = machine.context.limits
        self.registers = Registers(self.program, limits.max_depth)
        self.lanes = Lanes(self.backend, self.registers, limits.max_steps)
        self.statistics: Statistics = machine.statistics
        self.form = "native"
        self._constants: dict[Part, Array] = {}
        self._cores = Cores()
        self._compiled: dict[tuple[int, bool], Callable[..., Any]] = {}

    @cached_property
    def _statuses(self) -> np.ndarray:
        """What becomes of a lane, by its fault site plus one."""
        return np.array([LaneStatus.OK, *(site.status for site in self.program.faults)], np.int32)

    @property
    def notes(self) -> Sequence[tuple[Span | None, str]]:
        """What was found out about the program where the machine has run it."""
        return self.machine.notes

    @property
    def stack_entries(self) -> int:
        """How many entries the stacks have; 0 if there are none."""
        return self.registers.entries if self.registers.stacks else 0

    def program_for(self, lanes: Any) -> Program:
        """What is executed for `lanes` lanes."""
        return self.program

    def check(self, lanes: int) -> None:
        """Compile for `lanes` lanes without running; raises what `run` would raise before it runs."""
        if lanes == 0:
            self.machine.check(lanes)
            return
        given = [leaf for name in self.program.parameters for leaf in leaves(self.program.types[name])]
        shared = [leaf for name in self.program.shared for leaf in leaves(self.program.shared_types[name])]
        specs: list[Spec] = [("int32", (2,)), *((leaf.dtype, (lanes, *leaf.shape)) for leaf in given)]
        specs += [(leaf.dtype, leaf.shape) for leaf in shared]
        with self.machine.timed(), explaining(self.program, self.backend, jit=True):
            self.backend.lower(self._whole(lanes, counts=False), specs, jit=True)

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` lanes; see `Machine.run`."""
        if not (isinstance(lanes, int) and lanes and self.backend.runs_now()):
            return self.machine.run(arguments, shared, lanes)
        return self._run_arrays(self.machine.arrays_given(arguments, shared, lanes), lanes)

    def ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        """A run of `lanes` lanes on arrays like these; see `Machine.ready`."""
        if lanes == 0:
            return self.machine.ready(arrays, lanes)
        bounds = self._constant((0, lanes))
        direct = self.backend.direct(self._whole(lanes, counts=False), [bounds, *arrays])
        count = sum(len(registers) for registers in map(self.registers.leaves, self.program.results))

        def run(given: Sequence[Array]) -> Finished:
            if self._cores.would_split(lanes):
                return Finished.of(self._run_arrays(given, lanes))
            try:
                started = time.perf_counter()
                found = direct([bounds, *given])
                ends = np.asarray(found[0])
                self._cores.note(lanes, time.perf_counter() - started)
            except Exception:
                with explaining(self.program, self.backend, jit=True):
                    raise

            def outcome() -> Outcome:
                return self._ended(self._kept(ends, found[1:], lanes, counts=False), given, lanes)

            failed = np.count_nonzero(ends[FAULTS * lanes : (FAULTS + 1) * lanes])
            return Finished(None if failed else found[1 : 1 + count], outcome)

        return run

    def _run_arrays(self, flat: Sequence[Array], lanes: int) -> Outcome:
        return self._ended(self._run(flat, lanes, counts=False), flat, lanes)

    def _ended(self, arrays: State, flat: Sequence[Array], lanes: int) -> Outcome:
        def counting() -> Counts:
            executions = self._run(flat, lanes, counts=True)[EXECUTIONS]
            return Counts(executions, active=executions, rows=executions, trips=np.int64(0))

        return self._outcome(arrays, counting)

    def _run(self, flat: Sequence[Array], lanes: int, counts: bool) -> State:
        """The outputs of all lanes by key, the `ENDS` as NumPy arrays; where it `counts`, `EXECUTIONS`, too."""
        whole = self._whole(lanes, counts)
        sealed = self.backend.forbid_gradients(whole, self.program.name)
        parts = [(0, lanes)]
        with self.machine.timed(), explaining(self.program, self.backend, jit=True):
            if sealed is whole and not counts:
                parts = self._cores.parts(lanes)
                found = self._cores.run(lambda part: sealed(self._constant(part), *flat), lanes, parts)
            else:  # a tape sees what its own thread does; and how long counting takes is of no account
                found = [sealed(self._constant(parts[0]), *flat)]
        ends = [np.asarray(each[0]) for each in found]
        if len(parts) == 1:
            packed, others = ends[0], found[0][1:]
        else:
            rows = [each[: len(ENDS) * lanes].reshape(len(ENDS), lanes) for each in ends]
            packed = np.hstack([each[:, first:behind] for each, (first, behind) in zip(rows, parts, strict=True)])
            columns = zip(*(each[1:] for each in found), strict=True)
            packed, others = packed.ravel(), [self._joined(parts, column) for column in columns]
        return self._kept(packed, others, lanes, counts)

    def _kept(self, packed: np.ndarray, others: Sequence[Array], lanes: int, counts: bool) -> State:
        """The outputs by key: the `ENDS` of all lanes, packed, and the others."""
        kept = {key: packed[at * lanes : (at + 1) * lanes] for at, key in enumerate(ENDS)}
        return kept | dict(zip(self._names(counts), others, strict=True))

    def _joined(self, parts: Sequence[Part], arrays: Sequence[Array]) -> Array:
        """The rows of all lanes, of arrays of which each has those of one part."""
        return self.backend.joined(*(each[first:behind] for each, (first, behind) in zip(arrays, parts, strict=True)))

    def _names(self, counts: bool) -> list[str]:
        """The keys of all outputs but `ENDS`."""
        return [*self.lanes.outputs][len(ENDS) :] + [EXECUTIONS] * counts

    def _constant(self, part: Part) -> Array:
        if part not in self._constants:
            self._constants[part] = self.backend.array(part, "int32")
        return self._constants[part]

    def _whole(self, lanes: int, counts: bool) -> Callable[..., Any]:
        """The program of a whole run for so many lanes, perhaps one that `counts` what blocks run.

        What it gives is packed where it is of one type: each array that comes back costs the call a microsecond.
        """

        def program(*arrays: Array) -> list[Array]:
            with self.machine.tracing(counts=True):
                run = partial(self.lanes.run, lanes, counts=counts)
                found = self.backend.natively(lambda bounds, *given: run(bounds, given), arrays)
                *outputs, witness = found
                ends = self.backend.joined(*outputs[: len(ENDS)], self.backend.stack([witness]))
                return [ends, *outputs[len(ENDS) :]]

        if (lanes, counts) not in self._compiled:
            name = self.machine.name_of("native", lanes, counts)
            self._compiled[lanes, counts] = self.backend.compile(program, jit=True, name=name)
        return self._compiled[lanes, counts]

    def _outcome(self, arrays: State, counting: Callable[[], Counts]) -> Outcome:
        registers, legs = self.registers, self.machine.legs
        failures = arrays["fault"]
        site, place = registers.sites_and_blocks(failures) if failures.any() else (failures - 1,) * 2
        status = self._statuses[site + 1]

        def columns(what: str, name: str) -> list[Array]:
            return [arrays[key] for key in registers.keys(what, name)]

        results = [leaf for name in self.program.results for leaf in columns("result", name)]
        return Outcome(
            values=tuple(legs.blanked(results, status)),
            status=status,
            site=site,
            place=place,
            fault_values={name: columns("shown", name) for name in registers.shown},
            counting=counting,
            steps=arrays["steps"],
            stack_entries=self.stack_entries,
            backend=self.backend,
            can_fail=legs.loop.can_fail,
            is_native=True,
        )
