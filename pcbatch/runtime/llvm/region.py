"""The cheap blocks of a program as one function, which takes every lane to its next expensive block.

    region(first, stride, lanes, entries, arena, changed.., constant.., shared..)

Lanes share an expensive block, so that runs in lockstep (`runtime.machine`). What lies between two of them is cheap,
and is run lane after lane on the arrays of the machine's state: a lane's numbers are read from there, its code runs
until it comes to a block that is left to the machine, and the numbers that it has changed are written back. Arrays and
stacks stay where they are; `entries` is how many the latter have. On a CPU a handler of XLA's calls the function for
all lanes. On a GPU each thread of a kernel calls it, for a lane, and for those that are `stride` further:

    run(changed.., constant.., shared.., control, changed.., memory)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ir
import numpy as np

from pcbatch.ir.analysis import effects
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.llvm import frame_text
from pcbatch.runtime.llvm.code import Code, scalar
from pcbatch.runtime.llvm.function import Function, captured_arrays
from pcbatch.runtime.llvm.hlo import Module, UnsupportedError
from pcbatch.runtime.llvm.interface import NAME as RUN
from pcbatch.runtime.llvm.interface import POINTER, place
from pcbatch.runtime.llvm.kernel import ON_STACK, STACK, THREAD, THREADS
from pcbatch.runtime.llvm.lane import Limits, Places, Setting, State
from pcbatch.runtime.llvm.native_blocks import EXECUTIONS, Extent
from pcbatch.runtime.llvm.one_lane import OneLane
from pcbatch.runtime.llvm.stacks import Storage
from pcbatch.runtime.llvm.types import BYTE, INT32, INT64, Number, by_dtype

NAME = "region"


def build(
    extent: Extent,
    module: Module,
    pieces: Mapping[tuple[int, int], Places],
    captured: Sequence[np.ndarray],
    version: tuple[int, int],
) -> Function:
    """The function of some blocks, whose pieces are in `module`, and the handler that calls it.

    See `function.build`; `version` is that of XLA's interface, which a handler has to tell.
    """
    llvm = ir.Module(name=extent.program.name)
    code = _region(llvm, extent, module, pieces, captured)
    text = [str(llvm), *_handler(extent, code.arena_bytes, version), ""]
    return Function("\n".join(text), code.arena_bytes)


@dataclass(frozen=True)
class Kernel:
    """The text of a region's kernel, as `ptx` takes it, and the bytes of a lane's large arrays."""

    text: str
    arena_bytes: int


def kernel(
    extent: Extent, module: Module, pieces: Mapping[tuple[int, int], Places], captured: Sequence[np.ndarray]
) -> Kernel:
    """The kernel of some blocks."""
    llvm = ir.Module(name=extent.program.name)
    code = _region(llvm, extent, module, pieces, captured, on_gpu=True)
    keys, changed = [*extent.changed, *extent.constant], len(extent.changed)
    reads = len(keys) + len(extent.shared_leaves)
    run = ir.Function(llvm, ir.FunctionType(ir.VoidType(), [POINTER] * (reads + 1 + changed + 1)), RUN)
    builder = ir.IRBuilder(run.append_basic_block("entry"))
    first, stride = (
        builder.call(ir.Function(llvm, ir.FunctionType(INT64, []), name), []) for name in (THREAD, THREADS)
    )
    lanes, entries, size = (builder.load(place(builder, run.args[reads], at), typ=INT64) for at in range(3))
    arena = builder.gep(run.args[-1], [builder.mul(first, size)], inbounds=True, source_etype=BYTE)
    arrays = [*run.args[reads + 1 : -1], *run.args[changed:reads]]
    builder.call(llvm.globals[NAME], [first, stride, lanes, entries, arena, *arrays])
    builder.ret_void()
    return Kernel(str(llvm), code.arena_bytes)


def _region(
    llvm: ir.Module,
    extent: Extent,
    module: Module,
    pieces: Mapping[tuple[int, int], Places],
    captured: Sequence[np.ndarray],
    on_gpu: bool = False,
) -> Code:
    """Emit the function."""
    keys, pointer = [*extent.changed, *extent.constant], ir.PointerType()
    types = [INT64] * 4 + [pointer, *(pointer for _ in keys), *(pointer for _ in extent.shared_leaves)]
    function = ir.Function(llvm, ir.FunctionType(ir.VoidType(), types), NAME)
    function.linkage = "internal"
    for argument in function.args[4:]:
        argument.add_attribute("noalias")
    first, stride, lanes, entries, arena, *arrays = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    code = Code(builder, arena, on_stack=ON_STACK, stack=STACK) if on_gpu else Code(builder, arena)
    remaining = iter(arrays[len(keys) :])
    shared = {}
    for leaf, number, sizes in extent.shared_leaves:
        array = code.memory(number, sizes, next(remaining))
        shared[leaf] = array if sizes else scalar(number, array.value)
    limits = Limits(extent.limits.max_depth, extent.limits.max_steps)
    tables = captured_arrays(code, module, captured)
    setting = Setting(code, Storage(extent.program), module, pieces, limits, shared, tables)
    RegionLane(setting, extent, lanes, entries, dict(zip(keys, arrays, strict=False)), on_gpu).run(first, stride)
    return code


def _handler(extent: Extent, arena_bytes: int, version: tuple[int, int]) -> Iterator[str]:
    """The text of the handler, which takes the arrays as the function does, and gives those that are changed.

    These lie where they came in, unless XLA could not do so: then they are copied first.
    """
    keys = [*extent.changed, *extent.constant]
    reads, changed = len(keys) + len(extent.shared_leaves), len(extent.changed)
    yield "declare ptr @malloc(i64)"
    yield "declare void @free(ptr)"
    yield "declare ptr @memcpy(ptr, ptr, i64)"
    yield f"define ptr @{frame_text.NAME}(ptr %frame) {{"
    yield from frame_text.about(version)
    yield "run:"
    yield from frame_text.buffers(reads, reads + changed)
    yield frame_text.length("lanes", keys.index("pc"), 0)
    stacked = next((number for number, key in enumerate(keys) if extent.is_stacked(key)), None)
    yield "%entries = add i64 0, 0" if stacked is None else frame_text.length("entries", stacked, 1)
    yield "%rows = mul i64 %lanes, %entries"
    for number, key in enumerate(extent.changed):
        target = f"%array{reads + number}"
        count = "1" if key == EXECUTIONS else "%rows" if extent.is_stacked(key) else "%lanes"
        yield f"%there{number} = icmp eq ptr {target}, %array{number}"
        yield f"br i1 %there{number}, label %ready{number}, label %apart{number}"
        yield f"apart{number}:"
        yield f"%bytes{number} = mul i64 {count}, {extent.row_bytes(key)}"
        yield f"%copied{number} = call ptr @memcpy(ptr {target}, ptr %array{number}, i64 %bytes{number})"
        yield f"br label %ready{number}"
        yield f"ready{number}:"
    yield f"%arena = call ptr @malloc(i64 {max(arena_bytes, 1)})"
    arrays = [*range(reads, reads + changed), *range(changed, reads)]
    given = ", ".join(
        ["i64 0, i64 1, i64 %lanes, i64 %entries, ptr %arena", *(f"ptr %array{number}" for number in arrays)]
    )
    yield f"call void @{NAME}({given})"
    yield "call void @free(ptr %arena)"
    yield "ret ptr null"
    yield "}"


class RegionLane(State):
    """The lane that a region runs, on the arrays of a machine's state."""

    def __init__(
        self, setting: Setting, extent: Extent, lanes: Any, entries: Any, arrays: Mapping[str, Any], on_gpu: bool
    ):
        kept = [name for name in extent.names if name in extent.program.storage]
        super().__init__(setting, extent.names, fixed=kept)
        self.extent, self.kept, self.lanes, self.entries, self.arrays = extent, kept, lanes, entries, arrays
        self.counts = {number: self.code.variable(INT64) for number in extent.numbers if on_gpu}
        """The addresses of how often blocks have run in this thread; on a CPU they are counted where they are added."""
        self.rows: dict[str, Any] = {}
        """The addresses of the lane's parts of the arrays, by key."""
        self.counter, self.limit, self.depth, self.room = (self.code.variable(INT32) for _ in range(4))
        self.fault, self.steps = self.code.variable(INT32), self.code.variable(INT32)
        self.pointers = {key: self.code.variable(INT32) for key in self._keys if key.startswith("pointer ")}

    @property
    def _keys(self) -> list[str]:
        return [*self.extent.changed, *self.extent.constant]

    def _registers(self) -> dict[str, tuple[Number, Any]]:
        """The keys of numbers, with their types and the addresses of the registers in which they are."""
        fixed = {"pc": self.counter, "fault": self.fault, "steps": self.steps, "depth": self.depth, "room": self.room}
        number = by_dtype("int32")
        found = {key: (number, address) for key, address in {**fixed, **self.pointers}.items()}
        for name in self.kept:
            for key, (leaf, of, sizes) in zip(self.extent.layout.tops(name), self.storage.leaves(name), strict=True):
                if not sizes:
                    found[key] = of, self.registers[leaf]
        return {key: found[key] for key in self._keys if key in found}

    # -- lanes ---------------------------------------------------------------------------------------------------------

    def run(self, first: Any, stride: Any) -> None:
        """Emit the function: every lane that waits at one of the blocks goes on from there."""
        builder, function = self.builder, self.builder.function
        head, start, load, self.leave, following, end = (
            function.append_basic_block(name) for name in ("lane", "start", "load", "leave", "following", "end")
        )
        at = self.code.variable(INT64, first)
        for count in self.counts.values():
            builder.store(ir.Constant(INT64, 0), count)
        each = builder.udiv(ir.Constant(INT64, self.extent.steps_of_all), self.lanes)
        least = ir.Constant(INT64, CPU.native_least)
        visit = builder.trunc(builder.select(builder.icmp_signed(">", each, least), each, least), INT32)
        builder.branch(head)
        builder.position_at_end(head)
        number = builder.load(at, typ=INT64)
        builder.cbranch(builder.icmp_signed("<", number, self.lanes), start, end)
        builder.position_at_end(start)
        waiting = builder.load(self._row("pc", number), typ=INT32)
        switch = builder.switch(waiting, following)
        for block in self.extent.numbers:
            switch.add_case(ir.Constant(INT32, block), load)
        builder.position_at_end(load)
        self._begin(number, visit)
        self._blocks(waiting, following)
        builder.position_at_end(self.leave)
        for key, (of, register) in self._registers().items():
            if key in self.extent.changed:
                self.code.store(of, builder.load(register, typ=of.type), self.rows[key])
        builder.branch(following)
        builder.position_at_end(following)
        builder.store(builder.add(number, stride), at)
        builder.branch(head)
        builder.position_at_end(end)
        for block, count in self.counts.items():
            total = builder.gep(self.arrays[EXECUTIONS], [ir.Constant(INT64, block)], source_etype=INT64)
            builder.atomic_rmw("add", total, builder.load(count, typ=INT64), "monotonic")
        builder.ret_void()

    def _row(self, key: str, lane: Any) -> Any:
        """The address of a lane's part of an array."""
        size = self.extent.row_bytes(key)
        if self.extent.is_stacked(key):
            lane = self.builder.mul(lane, self.entries, flags=("nsw",))
        return self.builder.gep(self.arrays[key], [self.code.times(lane, size)], inbounds=True, source_etype=BYTE)

    def _begin(self, lane: Any, visit: Any) -> None:
        """Load a lane's numbers; its arrays stay where they are."""
        builder = self.builder
        self.rows = {key: self._row(key, lane) for key in self._keys if key != EXECUTIONS}
        for name in self.kept:
            for key, (leaf, _, sizes) in zip(self.extent.layout.tops(name), self.storage.leaves(name), strict=True):
                if sizes:
                    self.memory[leaf] = self.rows[key]
        for name in self.extent.names:
            for leaf, number, sizes in self.storage.leaves(name) if name not in self.kept else ():
                if sizes and name in self.storage.under_predicates:
                    self.clear(number, sizes, self.memory[leaf])
        for key, (of, register) in self._registers().items():
            builder.store(self.code.load(of, self.rows[key]), register)
        if "steps" in self.rows:
            builder.store(builder.add(builder.load(self.steps, typ=INT32), visit), self.limit)

    def _blocks(self, waiting: Any, nowhere: Any) -> None:
        builder, program = self.builder, self.program
        labels = {each: builder.append_basic_block(program.blocks[each].label) for each in self.extent.numbers}
        switch = builder.switch(waiting, nowhere)
        for each, label in labels.items():
            switch.add_case(ir.Constant(INT32, each), label)
        for each, label in labels.items():
            builder.position_at_end(label)
            with self.code.scratch():
                try:
                    RegionBlock(self, each, labels).emit()
                except UnsupportedError as error:
                    raise UnsupportedBlockError(each, str(error)) from error


class UnsupportedBlockError(UnsupportedError):
    """A block, by its number, of which no native code is made."""

    def __init__(self, number: int, why: str):
        super().__init__(why)
        self.number = number


class RegionBlock(OneLane):
    """One block of a region, for one lane."""

    def __init__(self, lane: RegionLane, number: int, labels: Mapping[int, Any]):
        super().__init__(lane, number, labels, lane.arrays[EXECUTIONS])
        self.lane = lane

    def _count(self) -> None:
        count = self.lane.counts.get(self.number)
        if count is None:
            super()._count()
        else:
            self.builder.store(self.builder.add(self.builder.load(count, typ=INT64), ir.Constant(INT64, 1)), count)

    def emit(self) -> None:
        """The whole block, if the lane may run it now: before it has an effect that is known."""
        builder, lane = self.builder, self.lane
        if effects.is_step(self.block):
            self._unless(builder.icmp_signed(">=", self._of(lane.steps), self._of(lane.limit)))
        if lane.extent.can_lack_room(self.block):
            depth, most = self._of(lane.depth), ir.Constant(INT32, lane.extent.limits.max_depth)
            full = builder.icmp_signed(">", depth, self._of(lane.room))
            self._unless(builder.and_(full, builder.icmp_signed("<=", depth, most)))
        super().emit()

    def _of(self, register: Any) -> Any:
        return self.builder.load(register, typ=INT32)

    def _unless(self, condition: Any) -> None:
        """Leave the lane at this block where a condition holds."""
        goes_on = self.builder.append_basic_block("goes_on")
        self.builder.cbranch(condition, self._outward(self.number), goes_on)
        self.builder.position_at_end(goes_on)

    def _outward(self, counter: int) -> Any:
        """The label at which the lane leaves the region, with this program counter."""
        label = self.builder.append_basic_block("outward")
        with self.builder.goto_block(label):
            self.builder.store(ir.Constant(INT32, counter), self.lane.counter)
            self.builder.branch(self.lane.leave)
        return label

    def _label(self, number: int) -> Any:
        return self.labels[number] if number in self.labels else self._outward(number)

    def _fail(self, code: Any) -> None:
        self.builder.store(code, self.lane.fault)
        self.builder.branch(self._outward(self.lane.extent.layout.failed(self.number)))

    # -- stacks --------------------------------------------------------------------------------------------------------

    def _pointer(self, name: str) -> tuple[Any, Any]:
        register = self.lane.pointers[self.lane.extent.layout.pointer(name)]
        return register, self._of(register)

    def _fields(self, name: str, above: int) -> Any:
        _, count = self._pointer(name)
        place = self.code.add(self.builder.sext(count, INT64), above)
        keys = self.lane.extent.layout.stacks(name)
        for key, (leaf, number, sizes) in zip(keys, self.storage.leaves(name), strict=True):
            at = self.code.times(place, number.bytes * math.prod(sizes))
            yield leaf, number, sizes, self.builder.gep(self.lane.rows[key], [at], inbounds=True, source_etype=BYTE)

    def _move(self, group: str, by: int) -> None:
        register, count = self._pointer(group)
        self.builder.store(self.builder.add(count, ir.Constant(INT32, by)), register)

    # -- the end of the block ------------------------------------------------------------------------------------------

    def _call(self, back: int, site: int) -> None:
        builder, lane = self.builder, self.lane
        depth = self._of(lane.depth)
        deep, fits = (builder.append_basic_block(name) for name in ("too_deep", "fits"))
        most = ir.Constant(INT32, lane.extent.limits.max_depth)
        builder.cbranch(builder.icmp_signed(">", depth, most), deep, fits)
        builder.position_at_end(deep)
        self._fail(ir.Constant(INT32, site + 1))
        builder.position_at_end(fits)
        self._step()
        builder.store(ir.Constant(INT32, back), self._called_from(depth))
        builder.store(builder.add(depth, ir.Constant(INT32, 1)), lane.depth)

    def _called_from(self, depth: Any) -> Any:
        return self.builder.gep(self.lane.rows["calls"], [depth], inbounds=True, source_etype=INT32)

    def _step(self) -> None:
        builder, steps = self.builder, self._of(self.lane.steps)
        if self.lane.extent.limits.max_steps is not None:
            over, other = (builder.append_basic_block(name) for name in ("too_many", "other"))
            most = ir.Constant(INT32, self.lane.extent.limits.max_steps)
            builder.cbranch(builder.icmp_signed(">=", steps, most), over, other)
            builder.position_at_end(over)
            self._fail(ir.Constant(INT32, self.block.steps_site + 1))
            builder.position_at_end(other)
        builder.store(builder.add(steps, ir.Constant(INT32, 1)), self.lane.steps)

    def _return(self) -> None:
        builder, lane = self.builder, self.lane
        finish = lane.extent.layout.finish
        if not lane.extent.layout.has_calls:
            builder.branch(self._outward(finish))
            return
        below = builder.sub(self._of(lane.depth), ir.Constant(INT32, 1))
        builder.store(below, lane.depth)
        place = builder.load(self._called_from(below), typ=INT32)
        elsewhere = builder.append_basic_block("elsewhere")
        switch = builder.switch(place, elsewhere)
        for back in self.storage.returns:
            if back in self.labels:
                switch.add_case(ir.Constant(INT32, back), self.labels[back])
        builder.position_at_end(elsewhere)
        builder.store(place, lane.counter)
        builder.branch(lane.leave)
