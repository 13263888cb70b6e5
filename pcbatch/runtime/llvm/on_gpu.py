"""The native form of a program on a GPU: one kernel, in which a thread runs a lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pcbatch.ir.machine import LaneStatus
from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.llvm import ptx
from pcbatch.runtime.llvm.in_graphs import InGraphs, Traced
from pcbatch.runtime.llvm.interface import NEEDS_ROOM, STOPPED, Interface
from pcbatch.runtime.llvm.kernel import Kernel
from pcbatch.runtime.llvm.program import LlvmProgram
from pcbatch.runtime.machine.error_translation import explaining
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Finished, Outcome, Run
from pcbatch.runtime.machine.state import GROWTH
from pcbatch.threads import once

BUDGET = 1 << 18
"""Steps of a lane, of 10 to 1,000 ns each, after which the host may handle Ctrl-C."""


class Kernels:
    """The kernels of a program, and calls of them within compiled programs."""

    def __init__(self, owner: KernelProgram):
        self.owner, self.backend = owner, owner.backend
        self._calls: dict[bool, ptx.Kernel] = {}
        self.first = self._made(again=False)

    @once
    def again(self) -> Kernel:
        """The kernel that goes on with lanes that were stopped."""
        return self._made(again=True)

    def _made(self, again: bool) -> Kernel:
        kernel, owner = self.owner.translation.kernel(again), self.owner
        parts = kernel.text, kernel.reads, kernel.outputs(1, 0), kernel.changed
        self._calls[again] = ptx.Kernel(self.backend, *parts, owner.program.name)
        return kernel

    def called(
        self, count: Array, arrays: Sequence[Array], lanes: int | None, capacity: int, before: Sequence[Array] = ()
    ) -> list[Array]:
        """The outputs of a kernel for `count` of `lanes` lanes, after those `before`; and the worst status of one."""
        backend, kernel = self.backend, self.again if before else self.first
        control = kernel.layout.control(capacity, self.owner.budget)
        numbers = [backend.cast(count, "int64"), *(backend.array(each, "int64") for each in control)]
        inputs = [*arrays, backend.stack(numbers), *before]
        found = self._calls[kernel.again].call(inputs, kernel.outputs(lanes, capacity), lanes)
        status = found[-2]
        own = backend.lane_numbers(backend.lanes_of(status) if lanes is None else lanes) < count
        return [*found, backend.max(backend.where(own, status, backend.constant(0)))]


class KernelProgram(LlvmProgram):
    """Runs the program of a machine as a kernel. The host sees how lanes have ended, and gives them larger stacks."""

    form = "native: one kernel"
    is_numpys = any_lanes = False
    budget = BUDGET

    def __init__(self, machine: Machine):
        super().__init__(machine)
        limits = machine.context.limits
        self.capacity = 0 if not self._interface.storage.has_calls else min(limits.first_capacity, self.most)

    def _translate(self) -> None:
        self._interface = Interface(self.program, counts=False)
        with self.statistics.tracing(counts=False):
            self._kernels = Kernels(self)
        self._programs: dict[Any, Callable[..., Sequence[Array]]] = {}

    @property
    def most(self) -> int:
        """The capacity that no lane exceeds."""
        return self.limits.max_depth if self._interface.storage.has_calls else 0

    @property
    def stack_entries(self) -> int:
        return self.capacity + 1 if self._interface.storage.has_calls else 0

    @property
    def text(self) -> str:
        """The first kernel as LLVM is given it."""
        return self._kernels.first.text

    def _check(self, lanes: int) -> None:
        """Nothing is left: the kernel is made, and what XLA compiles beside it are a few operations."""

    def _compile(self, arrays: Sequence[Array], lanes: int) -> None:
        self._run_arrays(arrays, lanes, idle=True)

    @once
    def _in_graphs(self) -> InGraphs:
        return _InGraphs(self.machine, self._interface, self._kernels, self.most)

    def _ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        return lambda given: Finished.of(self._run_arrays(given, lanes))

    def _run_arrays(self, arrays: Sequence[Array], lanes: int, idle: bool = False) -> Outcome:
        """A whole run; where a lane lacks room, one more on larger stacks. In an `idle` one no lane has an example."""
        room, backend, first = self._room(lanes), self.backend, self.capacity
        flat = [backend.constant(0 if idle else lanes), *self.machine.extended(arrays, lanes, room)]
        sealed = backend.forbid_gradients(Traced(partial(self._whole, room)), self.program.name)
        failures, steps, *rest = sealed(*flat)
        failures = np.asarray(failures)[:lanes]
        if room != lanes:
            steps, *rest = (backend.rows_at(each, 0, lanes) for each in (steps, *rest))
        count = len(self._interface.results)
        found = self._ended(
            np.zeros_like(failures) if idle else failures,
            *(steps, rest[:count], rest[count:]),
            lambda: self._counting.run_all([*map(np.asarray, arrays)], lanes, self._cost).of(
                self._counting.interface.executions
            ),
        )
        if self.capacity > first and np.any(np.asarray(found.status) == LaneStatus.MAX_DEPTH):
            self.capacity = first  # maybe of a recursion without end, for which no other run is to pay
        return found

    def _whole(self, room: int, *flat: Array) -> list[Array]:
        """The outputs once all lanes have ended: launch after launch, and again from the start on larger stacks."""
        capacity = self.capacity
        while True:
            with self.statistics.timed(), explaining(self.program, self.backend, jit=True):
                *found, worst = self._leg(room, capacity, again=False)(*flat)
                while (state := int(worst)) == STOPPED:
                    *found, worst = self._leg(room, capacity, again=True)(*flat, *found)
            if state != NEEDS_ROOM:
                return found[:-2]
            capacity = min(capacity * GROWTH, self.most)
            self.capacity = max(self.capacity, capacity)

    def _leg(self, room: int, capacity: int, again: bool) -> Callable[..., Sequence[Array]]:
        """The compiled program of one launch: of a count of examples, all arrays, and what was written before."""
        key = room, capacity, again
        inputs = len(self._interface.given) + len(self._interface.shared)

        def program(count: Array, *arrays: Array) -> list[Array]:
            with self.statistics.tracing(counts=True):
                return self._kernels.called(count, arrays[:inputs], room, capacity, arrays[inputs:])

        if key not in self._programs:
            self._programs[key] = self.backend.compile(program, jit=True)
        return self._programs[key]


class _InGraphs(InGraphs):
    """Runs in callers' graphs: all launches are one program; lanes without room are left to the machine."""

    def __init__(self, machine: Machine, interface: Interface, kernels: Kernels, most: int):
        super().__init__(machine, interface, _no_handler)
        self._kernels, self._most, self._says_depth = kernels, most, machine.says_depth
        self._capacity = min(machine.context.limits.first_capacity * GROWTH, most)

    def _is_possible(self) -> bool:
        return not (self._most and self._backend.inside("fixed program")) or self._says_depth

    def _inside(self, lanes: int | None) -> Callable[..., list[Array]]:
        return partial(self._run, lanes, self._most)

    def _native(self, lanes: int | None, *arrays: Array) -> list[Array]:
        return self._run(lanes, self._capacity, *arrays)

    def _run(self, lanes: int | None, capacity: int, *arrays: Array) -> list[Array]:
        """Return what a run on stacks of so much room writes, and the worst status of a lane."""
        backend = self._backend
        count = backend.lanes_of(arrays[0]) if lanes is None else backend.constant(lanes)
        called = partial(self._kernels.called, count, arrays, lanes, capacity)
        *found, worst = backend.while_loop(
            lambda state: backend.equal(state[-1], STOPPED), lambda state: called(state[:-1]), called()
        )
        return [*found[:-2], worst]

    def _here(self, native: Callable[[], list[Array]], otherwise: Callable[[], list[Array]]) -> list[Array]:
        backend = self._backend
        if self._capacity >= self._most or backend.inside("fixed program"):
            return backend.handlers.here(lambda: native()[:-1], otherwise)
        *parts, worst = backend.handlers.here(native, self._nothing)
        return list(backend.cond(backend.equal(worst, NEEDS_ROOM), otherwise, lambda: parts))

    def _nothing(self) -> list[Array]:
        """The results in place of those of a run without room, which the machine is to make."""
        written = [*self._interface.results, *self._interface.shown]
        types = [TensorType("int32")] * 2 + [TensorType(each.number.dtype, each.sizes) for each in written]
        return [*(self._backend.zeros(1, type_) for type_ in types), self._backend.constant(NEEDS_ROOM)]


def _no_handler(version: tuple[int, int]) -> Any:
    raise AssertionError("kernels need none")
