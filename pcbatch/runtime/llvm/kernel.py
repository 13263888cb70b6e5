"""The kernel of a program: a thread runs a lane, with the code that a CPU has for one.

    run(parameters.., shared.., control, [outputs ..,] failures, steps, results.., shown.., status, memory)

takes the addresses of arrays. A lane that has used up its budget of steps writes down where it is, and is `STOPPED`.
The kernel that goes on `again` reads that; it takes the outputs so far besides, which lie where it writes them. All
that a lane works in lies in its part of `memory`. Stacks of all lanes are interleaved, so that neighbouring threads
use neighbouring numbers: a field of an entry lies there for all lanes, then the next field.

On a CPU a loop takes the place of the threads, which tests the same code without a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import llvmlite.ir as ir

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Block, Branch, Jump, PushJump
from pcbatch.runtime.backends.protocol import Spec
from pcbatch.runtime.llvm import block
from pcbatch.runtime.llvm.block import BlockCode
from pcbatch.runtime.llvm.code import Array, Code, Index
from pcbatch.runtime.llvm.function import Builder, row_of
from pcbatch.runtime.llvm.interface import ENDED, NAME, NEEDS_ROOM, POINTER, STOPPED, Arguments, Interface, place
from pcbatch.runtime.llvm.lane import Exits, Lane, Setting
from pcbatch.runtime.llvm.memory import SLACK
from pcbatch.runtime.llvm.stacks import Leaf
from pcbatch.runtime.llvm.types import ALIGNED, BYTE, INT32, INT64, Number, by_dtype

LANES, CAPACITY, BUDGET, ARENA, RECORD = range(5)
"""Places of `control`, int64: lanes, the live calls that stacks have room for, steps of a lane in a launch, and bytes
of a lane for large arrays and for where it is."""
ON_STACK, STACK = 1024, 4096
"""Bytes of an array, and of all together, up to which they are a thread's own: the card has room for every thread."""
THREAD, THREADS = "thread", "threads"
"""Functions that the target defines: the number of this thread, and how many there are."""


@dataclass(frozen=True)
class Layout:
    """The memory of lanes beside their arguments and outputs."""

    interface: Interface
    arena_bytes: int
    record_bytes: int

    @cached_property
    def entries(self) -> list[int]:
        """The bytes of an entry: of the places to come back to, and of each stack."""
        storage = self.interface.storage
        return [4 * storage.has_calls, *(frame.bytes for frame in storage.frames.values())]

    def bytes(self, capacity: int) -> int:
        """The bytes of a lane."""
        stacks = sum(rounded((capacity + SLACK) * each) for each in self.entries)
        return max(stacks + rounded(self.arena_bytes) + rounded(self.record_bytes), ALIGNED)

    def control(self, capacity: int, budget: int) -> list[int]:
        """The numbers of `control` behind that of the lanes."""
        return [capacity, budget, rounded(self.arena_bytes), rounded(self.record_bytes)]


def rounded(count: int) -> int:
    """The next multiple of `ALIGNED`."""
    return (count + ALIGNED - 1) // ALIGNED * ALIGNED


@dataclass(frozen=True)
class Kernel:
    """The text of a kernel, whose functions `THREAD` and `THREADS` are missing."""

    text: str
    layout: Layout
    again: bool

    @property
    def reads(self) -> int:
        """The number of arrays that it takes."""
        interface = self.layout.interface
        return 1 + len(interface.given) + len(interface.shared) + len(self.outputs(1, 0)) * self.again

    @property
    def changed(self) -> range:
        """The places of the arrays where outputs lie that came in."""
        return range(self.reads - len(self.outputs(1, 0)), self.reads) if self.again else range(0)

    def outputs(self, lanes: int | None, capacity: int) -> list[Spec]:
        """The dtypes and shapes of what it writes."""
        interface = self.layout.interface
        found: list[Spec] = [("int32", (lanes,))] * 2
        found += [(each.number.dtype, (lanes, *each.sizes)) for each in (*interface.results, *interface.shown)]
        return [*found, ("int32", (lanes,)), ("uint8", (lanes, self.layout.bytes(capacity)))]


class KernelBuilder(Builder):
    """Emits a kernel."""

    def kernel(self, again: bool) -> Kernel:
        """The kernel that begins lanes, or the one that goes on `again` with those that were stopped."""
        interface = self.interface
        outputs = 2 + len(interface.results) + len(interface.shown) + 2
        count = 1 + len(interface.given) + len(interface.shared) + outputs * (1 + again)
        lane = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [POINTER] * count + [INT64]), "lane")
        lane.linkage = "internal"
        lane.attributes.add("alwaysinline")
        for argument in lane.args[:-1]:
            argument.add_attribute("noalias")
        layout = _LaneCode(self, lane, again).layout
        self._run_all(lane)
        return Kernel(str(self.module), layout, again)

    def _run_all(self, lane: Any) -> None:
        """Run the lanes of this thread: one, and every so many lanes another."""
        *pointers, _ = lane.function_type.args
        run = ir.Function(self.module, ir.FunctionType(ir.VoidType(), pointers), NAME)
        thread, threads = (self._declared(name, INT64) for name in (THREAD, THREADS))
        builder = ir.IRBuilder(run.append_basic_block("entry"))
        first, stride = (builder.call(each, []) for each in (thread, threads))
        control = run.args[len(self.interface.given) + len(self.interface.shared)]
        lanes = _number(builder, control, LANES)
        entry, (head, body, end) = builder.block, (run.append_basic_block(name) for name in ("head", "body", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        number = builder.phi(INT64)
        number.add_incoming(first, entry)
        builder.cbranch(builder.icmp_signed("<", number, lanes), body, end)
        builder.position_at_end(body)
        builder.call(lane, [*run.args, number])
        number.add_incoming(builder.add(number, stride), builder.block)
        builder.branch(head)
        builder.position_at_end(end)
        builder.ret_void()


class _LaneCode:
    """The function that runs one lane."""

    def __init__(self, make: KernelBuilder, function: Any, again: bool):
        self.make, self.interface, self.storage = make, make.interface, make.storage
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.number = function.args[-1]
        self._append = function.append_basic_block
        given, status, memory = self._arguments(function)
        control = [_number(self.builder, given.control, at) for at in range(RECORD + 1)]
        self.lanes, capacity, self.budget, arena, record = control
        empty = Layout(self.interface, 0, 0)
        calls, *stacks, rest = self._parts(memory, capacity, empty.entries)
        rest = self._moved(rest, self.builder.mul(self.number, self.builder.add(arena, record)))
        self.code = code = Code(self.builder, rest, on_stack=ON_STACK, stack=STACK)
        self.counter = code.variable(INT64)
        ended, room, stopped = (self._append(name) for name in ("ended", "room", "stopped"))
        steps, limit = code.variable(INT64), code.variable(INT64)
        exits = Exits(ended, room, stopped, code.variable(INT32), steps, limit)
        setting = Setting(
            *(code, self.storage, make.hlo, make.pieces, make.limits),
            *(given.shared(code), make.captured_in(code)),
        )
        frames = dict(zip(self.storage.frames, stacks, strict=True))
        self.lane = Lane(setting, exits, stacks=frames, calls=calls, capacity=capacity, poll=None)
        self.record = _Record(self.lane, self.counter, self._moved(rest, arena))
        self._emit(given, self._moved(status, self.builder.mul(self.number, ir.Constant(INT64, 4))), again)
        self.layout = Layout(self.interface, code.arena_bytes, self.record.bytes)

    def _moved(self, address: Any, by: Any) -> Any:
        return self.builder.gep(address, [by], inbounds=True, source_etype=BYTE)

    def _arguments(self, function: Any) -> tuple[Arguments, Any, Any]:
        """The function's arguments; the status of its lanes, and their memory."""
        interface = self.interface
        arrays = function.args[:-1]
        inputs, outputs = iter(arrays), 2 + len(interface.results) + len(interface.shown) + 2
        given = [(*each, next(inputs)) for each in interface.given]
        shared = [(*each, next(inputs)) for each in interface.shared]
        control = next(inputs)
        failures, steps, *written, status, memory = arrays[-outputs:]
        results, shown = written[: len(interface.results)], written[len(interface.results) :]
        nothing = (None,) * 4
        found = Arguments(control, self.number, *nothing, {}, given, failures, steps, results, shown, None, shared)
        return found, status, memory

    def _parts(self, memory: Any, capacity: Any, entries: list[int]) -> Iterator[Any]:
        """The addresses of what stacks there are for all lanes, and of what follows them."""
        builder = self.builder
        count = builder.add(capacity, ir.Constant(INT64, SLACK))
        for entry in entries:
            yield memory
            size = builder.add(builder.mul(count, ir.Constant(INT64, entry)), ir.Constant(INT64, ALIGNED - 1))
            size = builder.and_(size, ir.Constant(INT64, -ALIGNED))
            memory = self._moved(memory, builder.mul(size, self.lanes))
        yield memory

    def _emit(self, given: Arguments, status: Any, again: bool) -> None:
        builder, lane, exits = self.builder, self.lane, self.lane.exits
        begin, start, resume, idle = (self._append(name) for name in ("begin", "start", "resume", "idle"))
        found = builder.load(status, typ=INT32) if again else ir.Constant(INT32, STOPPED)
        builder.cbranch(builder.icmp_signed("==", found, ir.Constant(INT32, STOPPED)), begin, idle)
        builder.position_at_end(begin)
        rows = {leaf: row_of(self.code, *each, self.number) for leaf, each in given.arrays().items()}
        builder.branch(resume if again else start)
        builder.position_at_end(start)
        builder.store(self.budget, exits.limit)
        lane.start(rows)
        labels = self._blocks()
        builder.position_at_end(resume)
        if again:
            self.record.read()
            builder.store(ir.Constant(INT32, 0), exits.code)
            steps = builder.load(exits.steps, typ=INT64)
            builder.store(builder.add(steps, self.budget), exits.limit)
            onward = builder.switch(builder.load(self.counter, typ=INT64), start)
            for target in sorted(set[int]().union(*(map(_after_step, self.storage.program.blocks))) & labels.keys()):
                onward.add_case(ir.Constant(INT64, target), labels[target])
        else:
            builder.unreachable()
        builder.position_at_end(exits.ended)
        told, made = builder.load(exits.code, typ=INT32), builder.load(exits.steps, typ=INT64)
        for pointer, value in ((given.failures, told), (given.steps, builder.trunc(made, INT32))):
            builder.store(value, builder.gep(pointer, [self.number], inbounds=True, source_etype=INT32))
        self.make.end(lane, self.number, told, given)
        self.make.show(lane, self.number, given)
        self._leave(status, ENDED)
        builder.position_at_end(exits.room)
        self._leave(status, NEEDS_ROOM)
        builder.position_at_end(exits.stopped)
        self.record.write()
        self._leave(status, STOPPED)
        builder.position_at_end(idle)
        builder.ret_void()

    def _leave(self, status: Any, value: int) -> None:
        self.builder.store(ir.Constant(INT32, value), status)
        self.builder.ret_void()

    def _blocks(self) -> Mapping[int, Any]:
        """Emit all blocks; return their labels."""
        found: dict[int, Any] = {}

        def make(lane: Lane, number: int, labels: Mapping[int, Any]) -> BlockCode:
            found.update(labels)
            return _Block(lane, number, labels, self.lanes, self.number, self.counter)

        block.emit(self.lane, make)
        return found


def _number(builder: Any, control: Any, at: int) -> Any:
    """Return a number of `control`."""
    return builder.load(place(builder, control, at), typ=INT64)


def _after_step(block: Block) -> set[int]:
    """The blocks that follow this one, if a lane may be stopped in between: where it has made a step."""
    match block.terminator:
        case PushJump(target=target):
            return _targets(target)
        case Jump(target=target) if effects.is_step(block):
            return _targets(target)
    return set()


def _targets(target: int | Branch) -> set[int]:
    return {target} if isinstance(target, int) else {target.true, target.false}


class _Record:
    """The state that a stopped lane writes down: its next block, its registers and its arrays in a thread's memory."""

    def __init__(self, lane: Lane, counter: Any, base: Any):
        self.lane, self.code, self.base = lane, lane.code, base
        wide = by_dtype("int64")
        fixed = [counter, lane.depth, lane.exits.steps, *lane.pointers.values()]
        numbers = [(wide, address) for address in fixed]
        arrays = []
        for name in lane.program.types:
            for leaf, number, sizes in lane.storage.leaves(name):
                if leaf in lane.registers:
                    numbers.append((number, lane.registers[leaf]))
                elif isinstance(lane.memory.get(leaf), ir.instructions.AllocaInstr):
                    arrays.append((lane.memory[leaf], number.bytes * math.prod(sizes)))
        self._numbers, self._arrays, end = [], [], 0
        for number, address in numbers:
            self._numbers.append((number, address, end))
            end += max(number.bytes, 8)
        for address, size in arrays:
            self._arrays.append((address, size, end))
            end += (size + 7) // 8 * 8
        self.bytes = end

    def _at(self, offset: int) -> Any:
        return self.lane.builder.gep(self.base, [ir.Constant(INT64, offset)], inbounds=True, source_etype=BYTE)

    def write(self) -> None:
        """Write it down."""
        for number, address, offset in self._numbers:
            self.code.store(number, self.lane.builder.load(address, typ=number.type), self._at(offset))
        for address, size, offset in self._arrays:
            self.code.copy(address, self._at(offset), size)

    def read(self) -> None:
        """Take up what was written down."""
        for number, address, offset in self._numbers:
            self.lane.builder.store(self.code.load(number, self._at(offset)), address)
        for address, size, offset in self._arrays:
            self.code.copy(self._at(offset), address, size)


class _Block(BlockCode):
    """One block, in a kernel: `lanes` share the stacks, of which `own` is this one."""

    def __init__(self, lane: Lane, number: int, labels: Mapping[int, Any], lanes: Any, own: Any, counter: Any):
        super().__init__(lane, number, labels)
        self.lanes, self.own, self.counter = lanes, own, counter

    def _fields(self, name: str, above: int) -> Iterator[tuple[Leaf, Number, tuple[int, ...], Any]]:
        builder, group = self.builder, self.storage.group(name)
        count, frame = builder.load(self.lane.pointers[group], typ=INT64), self.storage.frames[group]
        entry = self.code.times(self.code.add(count, above), frame.bytes)
        for leaf, number, sizes in self.storage.leaves(name):
            field = self.code.add(entry, frame.fields[leaf].offset)
            at = builder.add(builder.mul(field, self.lanes), self.code.times(self.own, number.bytes))
            yield leaf, number, sizes, builder.gep(self.lane.stacks[group], [at], inbounds=True, source_etype=BYTE)

    def _spread(self, sizes: tuple[int, ...], index: tuple[Index, ...]) -> Any:
        """The place of an element in a stack: a number of every lane is between it and the next."""
        return self.builder.mul(self.code.place(self.code.offset(sizes, index)), self.lanes)

    def _entry(self, number: Number, sizes: tuple[int, ...], address: Any) -> Array:
        def at(index: Any) -> Any:
            return self.code.load(number, address, self._spread(sizes, index))

        return Array(number, sizes, at, 1)

    def _write_entry(self, array: Array, address: Any) -> None:
        def one(index: tuple[Index, ...]) -> None:
            self.code.store(array.number, array.at(index), address, self._spread(array.sizes, index))

        self.code.each(array.sizes, one)

    def _called_from(self, depth: Any) -> Any:
        at = self.builder.add(self.builder.mul(depth, self.lanes), self.own)
        return self.builder.gep(self.lane.calls, [at], inbounds=True, source_etype=INT32)

    def _step(self) -> None:
        builder, steps = self.builder, self.lane.exits.steps
        made = builder.load(steps, typ=INT64)
        most = self.lane.limits.max_steps
        if most is not None:
            over, counted = (builder.append_basic_block(name) for name in ("too_many", "counted"))
            builder.cbranch(builder.icmp_signed(">=", made, ir.Constant(INT64, most)), over, counted)
            builder.position_at_end(over)
            self._fail(ir.Constant(INT32, self.block.steps_site + 1))
            builder.position_at_end(counted)
        builder.store(builder.add(made, ir.Constant(INT64, 1)), steps)

    def _go(self, target: int | Branch) -> None:
        """Go on; after a step, which has taken effect by now, a lane may be stopped."""
        if _after_step(self.block):
            builder, exits = self.builder, self.lane.exits
            stop, goes_on = (builder.append_basic_block(name) for name in ("stop", "goes_on"))
            steps, limit = (builder.load(each, typ=INT64) for each in (exits.steps, exits.limit))
            builder.cbranch(builder.icmp_signed("<", steps, limit), goes_on, stop)
            builder.position_at_end(stop)
            onward = target if isinstance(target, int) else target.true
            number = ir.Constant(INT64, onward)
            if isinstance(target, Branch):
                number = builder.select(self.bool_of(target.condition), number, ir.Constant(INT64, target.false))
            builder.store(number, self.counter)
            builder.branch(exits.stopped)
            builder.position_at_end(goes_on)
        super()._go(target)
