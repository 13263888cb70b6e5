"""The native form of a program: an executable in which one lane runs after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from pcbatch.ir.machine import Program
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.backends.protocol import Array, Backend, Spec, State
from pcbatch.runtime.costs.estimate import block_costs
from pcbatch.runtime.machine.explaining import explaining
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Counts, Outcome, Statistics
from pcbatch.runtime.native.code import EXECUTIONS, Code
from pcbatch.runtime.native.registers import Registers

ENDS = ("fault", "steps")
"""The keys of the numbers that say how each lane has ended."""


class Lanes:
    """The program over all lanes, one after another: from `[lanes, ...]` arrays to `[lanes, ...]` arrays."""

    def __init__(self, backend: Backend, registers: Registers, max_steps: int | None):
        self.backend, self.registers, self.max_steps = backend, registers, max_steps
        self.program = registers.program
        self.row_costs = block_costs(self.program, backend)

    @cached_property
    def outputs(self) -> dict[str, TensorType]:
        """What is kept of every lane, by key, `ENDS` first."""
        registers = self.registers
        found = {key: registers.types[key] for key in ENDS}
        for name in self.program.results:
            given = [TensorType(type_.returned, type_.shape) for type_ in registers.leaves(name)]
            found.update(zip(registers.keys("result", name), given, strict=True))
        for name in registers.shown:
            found.update(zip(registers.keys("shown", name), registers.leaves(name), strict=True))
        return found

    def run(self, lanes: int, many: Array, arrays: Sequence[Array], counts: bool) -> list[Array]:
        """`outputs` of the first so `many` of `lanes` lanes, given the leaves of parameters and shared operands.

        Last, if it `counts`, how often each block has run.
        """
        backend, registers, program = self.backend, self.registers, self.program
        remaining = iter(arrays)
        inputs = {key: next(remaining) for name in program.parameters for key in registers.keys("top", name)}
        shared = {name: [next(remaining) for _ in leaves(program.shared_types[name])] for name in program.shared}
        code = Code(backend, registers, self.max_steps, self.row_costs, shared, counts)
        outputs = self.outputs
        stays = {key: backend.zeros(registers.entries, type_) for key, type_ in registers.stacks.items()}
        if counts:
            stays[EXECUTIONS] = backend.zeros(len(program.blocks), TensorType("int64"))

        def is_left(carried: State) -> Array:
            return carried["lane"] < many

        def one(carried: State) -> State:
            lane = carried["lane"]
            given = {key: backend.element(array, [lane]) for key, array in inputs.items()}
            end = code.run({**code.start({key: carried[key] for key in stays}), **given})
            kept = self.kept(end)
            written = {key: backend.with_element(carried[key], [lane], kept[key]) for key in outputs}
            return {"lane": lane + 1, **written, **{key: end[key] for key in stays}}

        blank = {key: backend.zeros(lanes, type_) for key, type_ in outputs.items()}
        end = backend.while_loop(is_left, one, {"lane": backend.constant(0), **blank, **stays})
        return [end[key] for key in (*outputs, *([EXECUTIONS] if counts else []))]

    def kept(self, end: State) -> State:
        """The `outputs` of one lane at its end."""
        registers, found = self.registers, {key: end[key] for key in ENDS}
        for what, names in (("result", self.program.results), ("shown", registers.shown)):
            for name in names:
                tops = [end[key] for key in registers.keys("top", name)]
                found.update(zip(registers.keys(what, name), tops, strict=True))
        types = self.outputs
        return {key: self.backend.cast(value, types[key].dtype) for key, value in found.items()}


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
        self._constants: dict[int, Array] = {}
        self._compiled: dict[tuple[int, bool], Callable[..., Any]] = {}

    @cached_property
    def _statuses(self) -> np.ndarray:
        """What becomes of a lane, by its fault site plus one."""
        return np.array([LaneStatus.OK, *(site.status for site in self.program.faults)], np.int32)

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
        specs: list[Spec] = [("int32", ()), *((leaf.dtype, (lanes, *leaf.shape)) for leaf in given)]
        specs += [(leaf.dtype, leaf.shape) for leaf in shared]
        with self.machine.timed(), explaining(self.program, self.backend, jit=True):
            self.backend.lower(self._whole(lanes, counts=False), specs, jit=True)

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` lanes; see `Machine.run`."""
        if not isinstance(lanes, int) or lanes == 0 or not all(map(self.backend.is_concrete, (*arguments, *shared))):
            return self.machine.run(arguments, shared, lanes)
        flat = self.machine.arrays_given(arguments, shared, lanes)
        arrays = self._run(flat, lanes, counts=False)

        def counting() -> Counts:
            executions = self._run(flat, lanes, counts=True)[EXECUTIONS]
            return Counts(executions, active=executions, rows=executions, trips=np.int64(0))

        return self._outcome(arrays, counting)

    def _run(self, flat: Sequence[Array], lanes: int, counts: bool) -> State:
        """The outputs of all lanes by key, the `ENDS` as NumPy arrays; where it `counts`, `EXECUTIONS`, too."""
        sealed = self.backend.forbid_gradients(self._whole(lanes, counts), self.program.name)
        with self.machine.timed(), explaining(self.program, self.backend, jit=True):
            ends, *others = sealed(self._constant(lanes), *flat)
        found = dict(zip(self._names(counts), others, strict=True))
        packed = np.asarray(ends)
        return found | {key: packed[at * lanes : (at + 1) * lanes] for at, key in enumerate(ENDS)}

    def _names(self, counts: bool) -> list[str]:
        """The keys of all outputs but `ENDS`."""
        return [*self.lanes.outputs][len(ENDS) :] + [EXECUTIONS] * counts

    def _constant(self, number: int) -> Array:
        if number not in self._constants:
            self._constants[number] = self.backend.constant(number)
        return self._constants[number]

    def _whole(self, lanes: int, counts: bool) -> Callable[..., Any]:
        """The program of a whole run for so many lanes, perhaps one that `counts` what blocks run.

        What it gives is packed where it is of one type: each array that comes back costs the call a microsecond.
        """

        def program(*arrays: Array) -> list[Array]:
            with self.machine.tracing(counts=True):
                run = partial(self.lanes.run, lanes, counts=counts)
                found = self.backend.natively(lambda many, *given: run(many, given), arrays)
                *outputs, witness = found
                ends = self.backend.joined(*outputs[: len(ENDS)], self.backend.stack([witness]))
                return [ends, *outputs[len(ENDS) :]]

        if (lanes, counts) not in self._compiled:
            self._compiled[lanes, counts] = self.backend.compile(program, jit=True)
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
