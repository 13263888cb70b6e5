"""The native function of a program: lanes one after another or in groups, on the memory of arguments and results.

    run([control, first, behind, capacity, arena, calls, stacks.., parameters.., shared.., failures, steps, results..,
        shown.., executions])

runs the lanes from `first` to before `behind`. Its argument is the address of all of these, each of 64 bits: so a call
costs the same for any number of arrays. It holds Python's global lock when it is called, and gives it up while
lanes run; now and then it takes the lock again and lets Python handle signals, so that Ctrl-C ends a run at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ir
import numpy as np

from pcbatch.runtime.llvm import block, elementwise
from pcbatch.runtime.llvm.code import Array, Code, Index, scalar
from pcbatch.runtime.llvm.group import Groups, is_for_groups
from pcbatch.runtime.llvm.hlo import Module
from pcbatch.runtime.llvm.interface import (
    ENDED,
    FAILED,
    LANES,
    NAME,
    NEEDS_ROOM,
    POINTER,
    REACHED,
    STATUS,
    STOP,
    STOPPED,
    THREAD,
    Arguments,
    Interface,
    Result,
    place,
)
from pcbatch.runtime.llvm.lane import Exits, Lane, Limits, Places, Setting
from pcbatch.runtime.llvm.stacks import Leaf
from pcbatch.runtime.llvm.types import BYTE, INT32, INT64, Number, by_dtype

BETWEEN_POLLS = 1 << 17
"""Number of steps, of 1 to 1,000 ns each, of a lane before Python may handle signals: a poll takes under 1 us."""
FEWEST = 4
"""Number of lanes up to which they run one after another, where more would run in groups."""


@dataclass(frozen=True)
class Function:
    """The text of a module with the native function `run`, and the bytes of memory that a thread works in there."""

    text: str
    arena_bytes: int


def build(
    interface: Interface,
    module: Module,
    pieces: Mapping[tuple[int, int], Places],
    captured: Sequence[np.ndarray],
    limits: Limits,
    width: int = 1,
) -> Function:
    """The native function of a program whose pieces are in `module`, the entry of which takes `captured` arrays last.

    Where lanes can run together, many of them do in groups of the `width`. `UnsupportedError` if there is something in
    the program of which no native code is made.
    """
    return Builder(interface, module, pieces, captured, limits).build(width)


class Builder:
    """Emits the native function of an interface."""

    def __init__(
        self,
        interface: Interface,
        module: Module,
        pieces: Mapping[tuple[int, int], Places],
        captured: Sequence[np.ndarray],
        limits: Limits,
    ):
        self.interface, self.storage = interface, interface.storage
        self.hlo, self.pieces, self.captured, self.limits = module, pieces, captured, limits
        self.module = ir.Module(name=interface.program.name)

    def build(self, width: int) -> Function:
        """Emit everything."""
        self.poll = self._poll()
        if width > 1 and self.is_for_groups():
            lanes, arena_bytes = self.together(width)
        else:
            lanes = self.function(LANES)
            arena_bytes = self.one_by_one(lanes).arena_bytes
        self._run(lanes)
        return Function(str(self.module), arena_bytes)

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
        held = builder.load(thread, typ=POINTER)

        def told() -> Any:
            return builder.trunc(builder.load(place(builder, control, STOP), typ=INT64), INT32)

        with builder.if_then(builder.icmp_unsigned("==", held, ir.Constant(POINTER, None))):
            builder.ret(told())
        builder.call(restore, [held])
        found = builder.call(check, [])
        builder.store(builder.call(save, []), thread)
        builder.ret(builder.or_(found, told()))
        self.save, self.restore = save, restore
        return poll

    def _run(self, lanes: Any) -> None:
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [POINTER]), NAME)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        (words,), types = function.args, enumerate(self.interface.types)
        given = [builder.load(place(builder, words, number), typ=type_) for number, type_ in types]
        thread = place(builder, given[0], THREAD)
        builder.store(builder.call(self.save, []), thread)
        builder.call(lanes, given)
        builder.call(self.restore, [builder.load(thread, typ=POINTER)])
        builder.ret_void()

    def function(self, name: str) -> Any:
        """A new function that runs lanes."""
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), self.interface.types), name)
        if name == LANES:
            function.attributes.add("noinline")
        else:
            function.linkage = "internal"
        return function

    # -- lanes ---------------------------------------------------------------------------------------------------------

    def is_for_groups(self) -> bool:
        """True if many lanes run in groups."""
        return not self.interface.counts and is_for_groups(self.interface.program, self.hlo)

    def in_groups(self, function: Any, width: int) -> Groups:
        """The function that runs lanes in groups of this width, to be built."""
        parts = self.interface, self.hlo, self.pieces, self.limits
        return Groups(function, *parts, width, self.poll, self.captured_in)

    def together(self, width: int) -> tuple[Any, int]:
        """The function that runs many lanes in groups, and the bytes of its arena."""
        one_by_one, groups, function = (self.function(name) for name in ("one_by_one", "groups", LANES))
        codes = self.one_by_one(one_by_one), self.in_groups(groups, width).build()
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        _, first, behind, *_ = function.args
        many = builder.icmp_signed(">=", builder.sub(behind, first), ir.Constant(INT64, FEWEST))
        with builder.if_else(many) as branches:
            for branch, chosen in zip(branches, (groups, one_by_one), strict=True):
                with branch:
                    builder.call(chosen, function.args)
        builder.ret_void()
        return function, max(code.arena_bytes for code in codes)

    def one_by_one(self, function: Any) -> Code:
        """The function that runs lanes one after another."""
        given = Arguments.of(self.interface, function)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        control, first, behind = given.control, given.first, given.behind
        code = Code(builder, given.arena)
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

        shared, captured = given.shared(code), self.captured_in(code)
        body = Lane(
            Setting(code, self.storage, self.hlo, self.pieces, self.limits, shared, captured),
            Exits(ended, room, stopped, failure, steps, limit),
            stacks=given.stacks,
            calls=given.calls,
            capacity=given.capacity,
            poll=poll,
            executions=given.executions,
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
        body.start({leaf: row_of(code, *each, number) for leaf, each in given.arrays().items()})
        self.blocks(body)

        builder.position_at_end(ended)
        number, told = builder.load(lane, typ=INT64), builder.load(failure, typ=INT32)
        _store(builder, INT32, given.failures, number, told)
        made = builder.load(steps, typ=INT64)
        _store(builder, INT32, given.steps, number, builder.trunc(made, INT32))
        self.end(body, number, told, given)
        failed, fine = function.append_basic_block("has_failed"), function.append_basic_block("fine")
        builder.cbranch(builder.icmp_signed("!=", told, ir.Constant(INT32, 0)), failed, fine)
        builder.position_at_end(failed)
        builder.store(ir.Constant(INT64, 1), place(builder, control, FAILED))
        builder.branch(fine)
        builder.position_at_end(fine)
        self.show(body, number, given)
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
        return code

    def captured_in(self, code: Code) -> dict[int, Array]:
        """The arrays that pieces hold, as tables of a function."""
        return captured_arrays(code, self.hlo, self.captured)

    def blocks(self, body: Lane) -> None:
        """Run a lane, which has begun, to its end."""
        block.emit(body)

    def end(self, body: Lane, lane: Any, failure: Any, given: Arguments) -> None:
        """Write the results of a lane that has ended."""
        for result, pointer in zip(self.interface.results, given.results, strict=True):
            hand_out(body.code, body.top(*self._held(result)), result, pointer, lane)

    def show(self, body: Lane, lane: Any, given: Arguments) -> None:
        """Write what messages show of a lane: of one that has failed, or that prints."""
        for result, pointer in zip(self.interface.shown, given.shown, strict=True):
            hand_out(body.code, body.top(*self._held(result)), result, pointer, lane)

    def _held(self, result: Result) -> tuple[Leaf, Number, tuple[int, ...]]:
        """A result as the lane holds it: a weak float is wider there."""
        name, place = result.leaf
        return result.leaf, by_dtype(self.storage.types(name)[place].dtype), result.sizes


def _store(builder: Any, type_: ir.Type, pointer: Any, place: Any, value: Any) -> None:
    builder.store(value, builder.gep(pointer, [place], inbounds=True, source_etype=type_))


def captured_arrays(code: Code, module: Module, captured: Sequence[np.ndarray]) -> dict[int, Array]:
    """The arrays that the entry of a module takes last, by number."""
    first = len(module.entry.parameters) - len(captured)
    arrays = [(by_dtype(array.dtype.name), array) for array in captured]
    return {
        first + at: code.table(number, array.shape, array.ravel().tolist()) for at, (number, array) in enumerate(arrays)
    }


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
