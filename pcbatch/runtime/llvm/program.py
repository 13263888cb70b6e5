"""The native form of a program on a CPU: its lanes run as machine code that LLVM has made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from time import perf_counter
from typing import Any

import numpy as np

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import LaneStatus, Program
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.llvm import interface as native
from pcbatch.runtime.llvm import multithreading
from pcbatch.runtime.llvm.compiler import loaded, width
from pcbatch.runtime.llvm.entry import OTHERS, Entry, entry
from pcbatch.runtime.llvm.function import Function
from pcbatch.runtime.llvm.group import GROUPS, may_be_for_groups
from pcbatch.runtime.llvm.handler import Handler
from pcbatch.runtime.llvm.in_graphs import InGraphs, Traced
from pcbatch.runtime.llvm.interface import Interface, Outputs
from pcbatch.runtime.llvm.lane import Limits
from pcbatch.runtime.llvm.machine_code import MachineCode, StoredCode
from pcbatch.runtime.llvm.memory import Workspace, Workspaces, address
from pcbatch.runtime.llvm.multithreading import LaneCost, Part, short_seconds
from pcbatch.runtime.llvm.ptx import ptx
from pcbatch.runtime.llvm.translation import Translation
from pcbatch.runtime.llvm.types import ALIGNED
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.native_executable import MachineToBe, NativeExecutable
from pcbatch.runtime.machine.outcome import CheckedRun, Counts, Finished, Outcome, Run
from pcbatch.runtime.machine.pool import BatchBuckets
from pcbatch.runtime.machine.segments import blanked
from pcbatch.threads import once

Ended = Callable[["Written", Sequence[Array], int], Outcome]
"""The outcome of a run by what it has written, of its arrays and number of lanes."""


class LlvmProgram(NativeExecutable):
    """Runs the program of a machine as native code; the machine does the rest.

    These are runs in slices and runs of no lanes. `UnsupportedError` where there is something in the program of which
    no native code is made.
    """

    form = "native"
    is_numpys = any_lanes = True

    def __init__(self, machine: Machine | MachineToBe):
        super().__init__(machine)
        self.limits = Limits(self._known.limits.max_depth, self._known.limits.max_steps)
        # A lane's bits are the same in any batch only if it is never with others in a group.
        self._width = 1 if self._known.is_deterministic else width()
        in_groups = self._width > 1 and may_be_for_groups(self.program)
        self._cost = LaneCost(GROUPS * self._width if in_groups else 1)
        self._translate()

    def _translate(self) -> None:
        """Raise what stands against native code."""
        self._found = self._looked_up(counts=False)

    @cached_property
    def translation(self) -> Translation:
        """The translation of the program, which its code is needed for."""
        return Translation(self.machine.program, self.backend, self.limits, self._width)

    @cached_property
    def _statuses(self) -> np.ndarray:
        """The status of a lane, by its fault site plus one."""
        return np.array([LaneStatus.OK, *(site.status for site in self.program.faults)], np.int32)

    @property
    def stack_entries(self) -> int:
        whole: NativeCode | None = vars(self).get("_whole")  # nothing is compiled for who asks
        interface = Interface(self.program, counts=False) if whole is None else whole.interface
        workspaces = Workspaces(interface, 0, self.limits.max_depth) if whole is None else whole.workspaces
        return workspaces.capacity + 1 if interface.storage.has_calls else 0

    @property
    def rooms(self) -> BatchBuckets:
        return self.machine.rooms

    def program_for(self, lanes: Any) -> Program:
        return replace(self.program, native=tuple(range(len(self.program.blocks))))

    def _check(self, lanes: int) -> None:
        assert self._whole, "it is compiled by now"

    def _compile(self, arrays: Sequence[Array], lanes: int) -> None:
        self._check(lanes)

    @cached_property
    def text(self) -> str:
        """The program as LLVM is given it."""
        return self.translation.function(counts=False).text

    @cached_property
    def ptx(self) -> str:
        """The program as a kernel for GPUs. UnsupportedError where there is something in it that these have not."""
        return ptx(self.translation.kernel(again=False).text)

    @once
    def _whole(self) -> NativeCode:
        return self._compiled(*self._found, counts=False)

    @once
    def _counting(self) -> NativeCode:
        return self._compiled(*self._looked_up(counts=True), counts=True)

    def _looked_up(self, counts: bool) -> tuple[StoredCode, Function | None]:
        """The entry of the cache on disk, and the function to be compiled if that is empty."""
        kept = StoredCode(self._known.name_of("llvm", counts, self.limits, self._width), self.backend)
        if kept.found is not None:
            return kept, None
        with self.statistics.tracing(counts=False):
            return kept, self.translation.function(counts)

    def _compiled(self, kept: StoredCode, function: Function | None, counts: bool) -> NativeCode:
        with self.statistics.timed():
            code = kept.found
            if code is None:
                assert function is not None, "there is a function where there is no machine code"
                self.statistics.compilations += 1
                code = MachineCode.of(function)
                kept.keep(code)
            return NativeCode(Interface(self.program, counts), code, self.limits.max_depth)

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` lanes; see `Machine.run`. In a caller's graph a handler runs them, where there can be one."""
        if self.backend.runs_now() or (isinstance(lanes, int) and not lanes):
            return super().run(arguments, shared, lanes)
        found = self._in_graphs.run(arguments, shared, lanes)
        return super().run(arguments, shared, lanes) if found is None else found

    @once
    def _in_graphs(self) -> InGraphs:
        return InGraphs(self.machine, self._whole.interface, self._handler)

    def _handler(self, version: tuple[int, int]) -> Handler:
        """The function that XLA calls, for a version of its interface."""
        return Handler(self._whole, self._cost, self.program.name, version)

    def _ready(self, arrays: Sequence[Array], lanes: int) -> Run:
        def run(given: Sequence[Array]) -> Finished:
            found = whole.run_all(given, lanes, self._cost)
            values = None if found.failed else [found.of(place) for place in places]
            return Finished(values, lambda: self._outcome(found, given, lanes))

        whole = self._whole
        places = whole.interface.result_places
        enter = whole.entry([*map(np.ascontiguousarray, arrays)], lanes)
        return run if enter is None else Ready(whole, enter, lanes, self._cost, run, self._outcome)

    def _run_arrays(self, arrays: Sequence[Array], lanes: int) -> Outcome:
        def run(*given: Array) -> Sequence[Array]:
            found.append(self._whole.run_all(given, lanes, self._cost))
            return self._tensors(found[-1])

        found: list[Written] = []
        values = self.backend.forbid_gradients(Traced(run), self.program.name)(*arrays)
        return self._outcome(found[-1], arrays, lanes, values)

    def _tensors(self, found: Written) -> list[Array]:
        return [self.backend.adopted(found.of(place)) for place in self._whole.interface.result_places]

    def _outcome(
        self, found: Written, arrays: Sequence[Array], lanes: int, values: Sequence[Array] | None = None
    ) -> Outcome:
        # Whoever asks for counts later gets those of this run, whatever is in NumPy's arrays by then.
        arrays = [array.copy() if isinstance(array, np.ndarray) else array for array in arrays]
        interface = self._whole.interface
        return self._ended(
            found.of(interface.failures),
            found.of(interface.steps),
            self._tensors(found) if values is None else values,
            [self.backend.adopted(found.of(place)) for place in interface.shown_places],
            lambda: self._counting.run_all(arrays, lanes, self._cost).of(interface.executions),
        )

    def _ended(
        self,
        failures: np.ndarray,
        steps: Array,
        values: Sequence[Array],
        shown: Sequence[Array],
        counted: Callable[[], np.ndarray],
    ) -> Outcome:
        """The outcome of a run by what it has written; `counted` repeats it and counts how often blocks run."""
        interface = Interface(self.program, counts=False)
        bits = interface.storage.site_bits
        codes = failures & ((1 << bits) - 1)
        have_failed = failures.any()
        status = self._statuses[codes] if have_failed else np.zeros_like(failures)
        fault_values: dict[str, list[Array]] = {name: [] for name in interface.storage.shown}
        for result, array in zip(interface.shown, shown, strict=True):
            fault_values[result.leaf[0]].append(array)

        def counting() -> Counts:
            executions = counted()
            return Counts(executions, active=executions, rows=executions, trips=np.int64(0))

        return Outcome(
            values=tuple(blanked(self.program, self.backend, values, status)),
            status=status,
            site=codes - 1,
            place=np.where(codes > 0, failures >> bits, -1) if have_failed else np.full_like(failures, -1),
            fault_values=fault_values,
            counting=counting,
            steps=steps,
            stack_entries=self.stack_entries,
            backend=self.backend,
            can_fail=any(effects.can_fault(block, self.limits.max_steps) for block in self.program.blocks),
            native_lanes=1,
            code=lambda: self.machine.program,
        )


class Running:
    """The calls of native code that make a run, and the switch that stops them."""

    def __init__(self, failed: bool = False) -> None:
        self.failed, self.stopped = failed, False
        self.calls: dict[int, Workspace] = {}

    def stop(self) -> None:
        """Let no lane run on."""
        self.stopped = True
        for space in [*self.calls.values()]:
            space.control[native.STOP] = 1


class Written(Running):
    """A run with its outputs, in one piece of memory."""

    def __init__(self, outputs: Outputs, memory: np.ndarray, start: int, failed: bool = False):
        super().__init__(failed)
        self._outputs, self._memory, self._start = outputs, memory, start

    @classmethod
    def new(cls, outputs: Outputs) -> Written:
        """A run that has yet to write."""
        memory = np.empty(outputs.bytes + ALIGNED, np.uint8)
        return cls(outputs, memory, -address(memory) % ALIGNED)

    @property
    def addresses(self) -> list[int]:
        """The addresses of the outputs."""
        first = address(self._memory) + self._start
        return [first + offset for offset in self._outputs.offsets]

    def of(self, place: int) -> np.ndarray:
        """Return one of the outputs."""
        dtype, sizes = self._outputs.arrays[place]
        return np.ndarray(sizes, dtype, self._memory, self._start + self._outputs.offsets[place])


class Ready(CheckedRun):
    """Runs of so many lanes in this thread, as long as they are short; all others are an affair of `run`."""

    def __init__(self, code: NativeCode, enter: Entry, lanes: int, cost: LaneCost, run: Run, outcome: Ended):
        outputs, spaces, long = code.interface.outputs(lanes), code.workspaces, short_seconds()
        size, is_alone, put_back, uint8 = outputs.bytes + ALIGNED, lanes == 1, spaces.put_back, np.dtype(np.uint8)
        views = [(*outputs.arrays[place], outputs.offsets[place]) for place in code.interface.result_places]

        def checked(given: tuple[Any, ...]) -> Finished | None:
            if lanes > cost.short and not is_alone:
                return None
            space, memory, began = spaces.take(), np.empty(size, uint8), perf_counter()
            try:
                start = enter(given, memory, space.words_address)
            finally:
                put_back(space)
            if perf_counter() - began > long:
                cost.doubt()
            if start >= ALIGNED:
                return Finished(None, lambda: outcome(Written(outputs, memory, start - ALIGNED, True), given, lanes))
            if start < 0:
                return None if start == OTHERS else run(given)
            values = [np.ndarray(sizes, dtype, memory, start + offset) for dtype, sizes, offset in views]
            return Finished(values, lambda: outcome(Written(outputs, memory, start), given, lanes))

        self.checked, self._run = checked, run

    def __call__(self, given: Sequence[Array]) -> Finished:
        arrays = tuple(map(np.ascontiguousarray, given))
        return self.checked(arrays) or self._run(arrays)


class TapeLengthError(Exception):
    """A lane that needs a longer tape than there may be."""


class NativeCode:
    """A native function, and the memory that it works in; its tapes have so many bytes at most, if that is given."""

    def __init__(self, interface: Interface, code: MachineCode, max_depth: int, longest_tape: int | None = None):
        self.interface, self.longest_tape = interface, longest_tape
        self.workspaces = Workspaces(interface, code.arena_bytes, max_depth)
        self._loaded = loaded(code.object_file)
        self.lanes = self._loaded.lanes
        """The address of the function that runs lanes without Python."""

    def entry(self, arrays: Sequence[np.ndarray], lanes: int) -> Entry | None:
        """The entry for so many lanes of arrays like these; see `entry.entry`."""
        outputs = self.interface.outputs(lanes)
        place = native.FIXED + len(self.interface.storage.frames)
        return entry(self._loaded.run, lanes, arrays, place, outputs.offsets)

    def run_all(self, arrays: Sequence[Array], lanes: int, cost: LaneCost) -> Written:
        """Run so many lanes on all `arrays` that the function takes, on all cores where that pays; see `run_part`."""
        given = [*map(np.ascontiguousarray, arrays)]
        found = Written.new(self.interface.outputs(lanes))
        addresses = [*map(address, given), *found.addresses]
        if self.interface.counts:
            found.of(self.interface.executions)[:] = 0
            self.run(addresses, found, (0, lanes))
        else:
            self.run_part(addresses, found, (0, lanes), cost)
        return found

    def run_part(self, addresses: Sequence[int], found: Running, part: Part, cost: LaneCost) -> None:
        """Run the lanes of a part, on all cores where their `cost` is worth it, which learns from it."""
        multithreading.run(partial(self.run, addresses, found), part, cost, found.stop)

    def run_rest(self, addresses: Sequence[int], part: Part, cost: LaneCost) -> None:
        """The same, of a run in a graph."""
        self.run_part(addresses, Running(), part, cost)

    def run(self, addresses: Sequence[int], found: Running, part: Part) -> None:
        """Run the lanes of a part, with larger stacks where they need some."""
        first, behind = part
        while first < behind:
            space, is_over = self.workspaces.take(), True
            control = space.control
            control[native.FAILED] = control[native.STOP] = 0
            found.calls[id(space)] = space
            try:
                if found.stopped:
                    return
                space.take(addresses, first, behind)
                self._loaded.call(space.words_address)
                first = control[native.REACHED]
                is_over = first >= behind or found.stopped
                if control[native.FAILED]:
                    found.failed = True
                if control[native.STATUS] == native.NEEDS_ROOM:
                    self.workspaces.grow(space.capacity)
                elif control[native.STATUS] == native.NEEDS_TAPE and not space.lengthen(self.longest_tape):
                    is_over = True
                    raise TapeLengthError
            finally:
                del found.calls[id(space)]
                if is_over:
                    space.shrink()
                self.workspaces.put_back(space)
