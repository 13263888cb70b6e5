"""The native function of a program: lanes one after another, on the memory of their arguments and results.

    run(control, first, behind, capacity, arena, calls, stacks.., parameters.., shared.., failures, steps, results..,
        shown.., executions)

runs the lanes from `first` to before `behind`. It holds Python's global lock when it is called, and gives it up while
lanes run; now and then it takes the lock again and lets Python handle signals, so that Ctrl-C ends a run at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ir
import numpy as np

from pcbatch.ir.machine import Program
from pcbatch.ir.types import leaves
from pcbatch.runtime.llvm import block, elementwise
from pcbatch.runtime.llvm.code import Array, Code, Index, scalar
from pcbatch.runtime.llvm.hlo import Module
from pcbatch.runtime.llvm.lane import Exits, Lane, Limits, PieceCode
from pcbatch.runtime.llvm.stacks import Leaf, Storage
from pcbatch.runtime.llvm.types import ALIGNED, BYTE, INT32, INT64, Number, by_dtype

POINTER = ir.PointerType()
Row = tuple[Number, tuple[int, ...], Any]
"""The numbers and sizes of a row of an array `[lanes, ...]`, and the address of the array."""
NAME = "run"
"""The name of the function in its module."""
BETWEEN_POLLS = 1 << 17
"""So many steps, of 1 to 1,000 ns each, a lane makes before Python may handle signals: a poll takes under 1 us."""

ENDED, NEEDS_ROOM, STOPPED, NEEDS_TAPE = range(4)
"""Why lanes do not run on, in `control`: all have ended; one needs larger stacks; a stop; one needs a longer tape."""
STATUS, REACHED, FAILED, STOP, THREAD, TAPE, TAPE_BYTES = range(7)
"""Places of `control`: int64. The run writes the first three, and reads whether to `STOP`, and where its tape lies."""
SIZES_KEPT = 64
"""For so many numbers of lanes at most it is known where the outputs lie."""
CONTROL = 8
"""The number of places of `control`."""


@dataclass(frozen=True)
class Result:
    """An array that the function writes, `[lanes, ...]`."""

    leaf: Leaf
    number: Number
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Outputs:
    """Layout of the arrays that a run writes, in one piece of memory: dtypes, sizes, offsets from its beginning."""

    arrays: tuple[tuple[np.dtype, tuple[int, ...]], ...]
    offsets: tuple[int, ...]
    bytes: int


class Interface:
    """Arguments and results of a native function; one that `counts` counts how often blocks run."""

    def __init__(self, program: Program, counts: bool):
        self.program, self.counts, self.storage = program, counts, Storage(program)
        self.given = [each for name in program.parameters for each in self.storage.leaves(name)]
        self.shared = [
            ((name, place), by_dtype(type_.dtype), type_.shape)
            for name in program.shared
            for place, type_ in enumerate(leaves(program.shared_types[name]))
        ]
        self.results = [Result(*each) for each in self.storage.results]
        self.shown = [Result(*each) for name in self.storage.shown for each in self.storage.leaves(name)]

        self.failures, self.steps = 0, 1
        """The places of these among the outputs: int32 of every lane, see `Exits`."""
        self.result_places = range(2, 2 + len(self.results))
        self.shown_places = range(self.result_places.stop, self.result_places.stop + len(self.shown))
        self.executions = self.shown_places.stop
        self._outputs: dict[int, Outputs] = {}

    def outputs(self, lanes: int) -> Outputs:
        """The outputs of so many lanes."""
        found = self._outputs.get(lanes)
        if found is None:
            if len(self._outputs) >= SIZES_KEPT:
                self._outputs = {}
            found = self._outputs[lanes] = self._laid_out(lanes)
        return found

    def _laid_out(self, lanes: int) -> Outputs:
        arrays: list[tuple[np.dtype, tuple[int, ...]]] = [(np.dtype(np.int32), (lanes,))] * 2
        arrays += [(np.dtype(each.number.dtype), (lanes, *each.sizes)) for each in (*self.results, *self.shown)]
        arrays += [(np.dtype(np.int64), (len(self.program.blocks),))] * self.counts
        offsets, end = [], 0
        for dtype, sizes in arrays:
            offsets.append(end)
            end += (dtype.itemsize * math.prod(sizes) + ALIGNED - 1) // ALIGNED * ALIGNED
        return Outputs(tuple(arrays), tuple(offsets), end)

    @property
    def types(self) -> list[ir.Type]:
        """The types of the function's arguments, each of 64 bits."""
        arrays = len(self.storage.frames) + len(self.given) + len(self.shared) + 2
        arrays += len(self.results) + len(self.shown) + self.counts
        return [POINTER, INT64, INT64, INT64, POINTER, POINTER] + [POINTER] * arrays


@dataclass(frozen=True)
class Function:
    """The text of a module with the native function `run`, and the bytes of memory that a thread works in there."""

    text: str
    arena_bytes: int


def build(
    interface: Interface,
    module: Module,
    pieces: Mapping[tuple[int, int], PieceCode],
    captured: Sequence[np.ndarray],
    limits: Limits,
) -> Function:
    """The native function of a program whose pieces are in `module`, the entry of which takes `captured` arrays last.

    `UnsupportedError` if there is something in it of which no native code is made.
    """
    return Builder(interface, module, pieces, captured, limits).build()


class Builder:
    """Emits the native function of an interface."""

    def __init__(
        self,
        interface: Interface,
        module: Module,
        pieces: Mapping[tuple[int, int], PieceCode],
        captured: Sequence[np.ndarray],
        limits: Limits,
    ):
        self.interface, self.storage = interface, interface.storage
        self.hlo, self.pieces, self.captured, self.limits = module, pieces, captured, limits
        self.module = ir.Module(name=interface.program.name)

    def build(self) -> Function:
        """Emit everything."""
        self.poll = self._poll()
        lanes, code = self._lanes()
        self._run(lanes)
        return Function(str(self.module), code.arena_bytes)

    # -- Python --------------------------------------------------------------------------------------------------------

    def _declared(self, name: str, result: ir.Type, *arguments: ir.Type) -> Any:
        return ir.Function(self.module, ir.FunctionType(result, arguments), name)

    def _poll(self) -> Any:
        """`poll(control)`: whether the lane is to stop, once Python has handled signals."""
        save = self._declared("PyEval_SaveThread", POINTER)
        restore = self._declared("PyEval_RestoreThread", ir.VoidType(), POINTER)
        check = self._declared("PyErr_CheckSignals", INT32)
        poll = self._declared("poll", INT32, POINTER)
        poll.linkage = "internal"
        poll.attributes.add("noinline")
        builder = ir.IRBuilder(poll.append_basic_block("entry"))
        (control,) = poll.args
        thread = place(builder, control, THREAD)
        builder.call(restore, [builder.load(thread, typ=POINTER)])
        found = builder.call(check, [])
        builder.store(builder.call(save, []), thread)
        told = builder.trunc(builder.load(place(builder, control, STOP), typ=INT64), INT32)
        builder.ret(builder.or_(found, told))
        self.save, self.restore = save, restore
        return poll

    def _run(self, lanes: Any) -> None:
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), self.interface.types), NAME)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        thread = place(builder, function.args[0], THREAD)
        builder.store(builder.call(self.save, []), thread)
        builder.call(lanes, function.args)
        builder.call(self.restore, [builder.load(thread, typ=POINTER)])
        builder.ret_void()

    # -- lanes ---------------------------------------------------------------------------------------------------------

    def _lanes(self) -> tuple[Any, Code]:
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), self.interface.types), "lanes")
        function.linkage = "internal"
        for argument in function.args:
            if argument.type == POINTER:
                argument.add_attribute("noalias")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        control, first, behind, capacity, arena, calls, *rest = function.args
        arrays = iter(rest)
        code = Code(builder, arena)
        stacks = {group: next(arrays) for group in self.storage.frames}
        given = {leaf: (number, sizes, next(arrays)) for leaf, number, sizes in self.interface.given}
        shared = {leaf: _shared(code, number, sizes, next(arrays)) for leaf, number, sizes in self.interface.shared}
        failures, all_steps = next(arrays), next(arrays)
        results, shown = [next(arrays) for _ in self.interface.results], [next(arrays) for _ in self.interface.shown]
        executions = next(arrays) if self.interface.counts else None
        lane, work, steps, limit = (code.variable(INT64) for _ in range(4))
        failure = code.variable(INT32)
        ended, room, stopped, left = (
            function.append_basic_block(name) for name in ("ended", "room", "stopped", "left")
        )
        most = BETWEEN_POLLS if self.limits.max_steps is None else min(BETWEEN_POLLS, self.limits.max_steps)

        def poll(now: Any) -> Any:
            """The number of steps at which to ask again, or -1: to stop."""
            further = builder.add(now, ir.Constant(INT64, BETWEEN_POLLS))
            if self.limits.max_steps is not None:
                bound = ir.Constant(INT64, self.limits.max_steps)
                further = builder.select(builder.icmp_signed("<", further, bound), further, bound)
            is_over = builder.icmp_signed("!=", builder.call(self.poll, [control]), ir.Constant(INT32, 0))
            return builder.select(is_over, ir.Constant(INT64, -1), further)

        body = Lane(
            code,
            self.storage,
            self.hlo,
            self.pieces,
            self.limits,
            Exits(ended, room, stopped, failure, steps, limit),
            shared=shared,
            captured=self._captured(code),
            stacks=stacks,
            calls=calls,
            capacity=capacity,
            poll=poll,
            executions=executions,
        )
        builder.store(first, lane)
        builder.store(ir.Constant(INT64, 0), work)
        head, start = function.append_basic_block("lane"), function.append_basic_block("start")
        builder.branch(head)
        builder.position_at_end(head)
        number = builder.load(lane, typ=INT64)
        builder.store(number, place(builder, control, REACHED))
        builder.cbranch(builder.icmp_signed("<", number, behind), start, left)
        builder.position_at_end(start)
        builder.store(ir.Constant(INT64, most), limit)
        body.start({leaf: row_of(code, *each, number) for leaf, each in given.items()})
        self.blocks(body)

        builder.position_at_end(ended)
        number, told = builder.load(lane, typ=INT64), builder.load(failure, typ=INT32)
        _store(builder, INT32, failures, number, told)
        made = builder.load(steps, typ=INT64)
        _store(builder, INT32, all_steps, number, builder.trunc(made, INT32))
        self.end(body, number, told, given, results)
        failed, fine = function.append_basic_block("has_failed"), function.append_basic_block("fine")
        builder.cbranch(builder.icmp_signed("!=", told, ir.Constant(INT32, 0)), failed, fine)
        builder.position_at_end(failed)
        builder.store(ir.Constant(INT64, 1), place(builder, control, FAILED))
        builder.branch(fine)
        builder.position_at_end(fine)
        # Messages are of lanes that have failed, and of those that print.
        for result, pointer in zip(self.interface.shown, shown, strict=True):
            hand_out(code, body.top(*self._held(result)), result, pointer, number)
        builder.store(builder.add(number, ir.Constant(INT64, 1)), lane)
        done = builder.add(builder.add(builder.load(work, typ=INT64), made), ir.Constant(INT64, 1))
        builder.store(done, work)
        ask = function.append_basic_block("ask")
        builder.cbranch(builder.icmp_signed("<", done, ir.Constant(INT64, BETWEEN_POLLS)), head, ask)
        builder.position_at_end(ask)
        builder.store(ir.Constant(INT64, 0), work)
        is_over = builder.icmp_signed("!=", builder.call(self.poll, [control]), ir.Constant(INT32, 0))
        beyond = builder.load(lane, typ=INT64)
        builder.store(beyond, place(builder, control, REACHED))
        builder.cbranch(is_over, stopped, head)

        for label, status in ((left, ENDED), (room, NEEDS_ROOM), (stopped, STOPPED)):
            builder.position_at_end(label)
            builder.store(ir.Constant(INT64, status), place(builder, control, STATUS))
            builder.ret_void()
        return function, code

    def _captured(self, code: Code) -> dict[int, Array]:
        """The arrays that the entry of the module takes last, by number."""
        first = len(self.hlo.entry.parameters) - len(self.captured)
        arrays = [(by_dtype(array.dtype.name), array) for array in self.captured]
        return {
            first + place: code.table(number, array.shape, array.ravel().tolist())
            for place, (number, array) in enumerate(arrays)
        }

    def blocks(self, body: Lane) -> None:
        """Run a lane, which has begun, to its end."""
        block.emit(body)

    def end(self, body: Lane, lane: Any, failure: Any, given: Mapping[Leaf, Row], results: Sequence[Any]) -> None:
        """Write the results of a lane that has ended, for arguments whose arrays are `given`."""
        for result, pointer in zip(self.interface.results, results, strict=True):
            hand_out(body.code, body.top(*self._held(result)), result, pointer, lane)

    def _held(self, result: Result) -> tuple[Leaf, Number, tuple[int, ...]]:
        """A result as the lane holds it: a weak float is wider there."""
        name, place = result.leaf
        return result.leaf, by_dtype(self.storage.types(name)[place].dtype), result.sizes


def place(builder: Any, control: Any, number: int) -> Any:
    """The address of a place of `control`."""
    return builder.gep(control, [ir.Constant(INT64, number)], inbounds=True, source_etype=INT64)


def _store(builder: Any, type_: ir.Type, pointer: Any, place: Any, value: Any) -> None:
    builder.store(value, builder.gep(pointer, [place], inbounds=True, source_etype=type_))


def hand_out(code: Code, array: Array, result: Result, pointer: Any, lane: Any) -> None:
    """Write a lane's array to its row of a result."""
    target = _row_pointer(code, result.number, result.sizes, pointer, lane)
    if array.number == result.number and array.sizes:
        code.write(array, target)
        return

    def one(index: Sequence[Index]) -> None:
        value = elementwise.convert(code.builder, array.number, result.number, array.at(index))
        code.store(result.number, value, target, code.offset(result.sizes, index))

    code.each(result.sizes, one)


def _row_pointer(code: Code, number: Number, sizes: Sequence[int], pointer: Any, lane: Any) -> Any:
    """The address of a lane's row of an array `[lanes, ...]`."""
    size = number.bytes * Array(number, tuple(sizes), lambda index: None).count
    return code.builder.gep(pointer, [code.times(lane, size)], inbounds=True, source_etype=BYTE)


def row_of(code: Code, number: Number, sizes: tuple[int, ...], pointer: Any, lane: Any) -> Array:
    """A lane's row of an array `[lanes, ...]`."""
    row = code.memory(number, sizes, _row_pointer(code, number, sizes, pointer, lane))
    return row if sizes else scalar(number, row.value)


def _shared(code: Code, number: Number, sizes: tuple[int, ...], pointer: Any) -> Array:
    array = code.memory(number, sizes, pointer)
    return array if sizes else scalar(number, array.value)
