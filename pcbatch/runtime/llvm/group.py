"""The native function that runs lanes in groups, see `together`: a lane that has ended makes room for another one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import llvmlite.ir as ir

from pcbatch.ir.machine import Piece, Program
from pcbatch.runtime.llvm import elementwise, simd_tile
from pcbatch.runtime.llvm.code import Array, Code, scalar
from pcbatch.runtime.llvm.hlo import Instruction, Module, TupleShape
from pcbatch.runtime.llvm.interface import ENDED, FAILED, REACHED, STATUS, STOPPED, Arguments, Interface, Result, place
from pcbatch.runtime.llvm.lane import Limits, Places, Setting
from pcbatch.runtime.llvm.library_calls import call
from pcbatch.runtime.llvm.operations import ALIKE
from pcbatch.runtime.llvm.simd_tile import BETWEEN_POLLS, Group, GroupBlock, Labels
from pcbatch.runtime.llvm.stacks import Storage
from pcbatch.runtime.llvm.types import BIT, INT64, Number, by_dtype, by_name

MOST_BLOCKS = 16
"""Programs with more blocks have lanes too far apart to run together."""
WASTE = 48
"""Number of a lane's turns that idle places of ended lanes may cost before others take them. An exchange takes about as
long as three turns of a whole group of short ones."""
GROUPS = 16
"""The fewest groups of lanes that a core takes at a time: as lanes end, the last group runs ever emptier."""
MOST_NUMBERS = 64
"""Maximal number of elements of a lane: a group's lie in registers and near memory then.
Single numbers that are no state take no place."""


def may_be_for_groups(program: Program) -> bool:
    """True if lanes of a program run together unless its operations forbid it: it has no stacks, and few blocks."""
    storage = Storage(program)
    return not (storage.frames or storage.has_calls or len(program.blocks) > MOST_BLOCKS)


def is_for_groups(program: Program, module: Module) -> bool:
    """True if lanes of a program run together: it has no stacks, and its operations do the same for all lanes."""
    if not may_be_for_groups(program):
        return False
    storage = Storage(program)
    items = [item for block in program.blocks for item in block.body]
    variables = [(name, *each) for name in program.types for each in storage.leaves(name)]
    kept = [sizes for name, _, _, sizes in variables if sizes or name in program.storage]
    numbers = sum(map(math.prod, kept))
    if numbers > MOST_NUMBERS or not all(number.has_vectors for _, _, number, _ in variables):
        return False
    return all(isinstance(item, Piece) for item in items) and all(map(_is_alike, module.instructions()))


def _is_alike(instruction: Instruction) -> bool:
    if isinstance(instruction.shape, TupleShape):
        return instruction.opcode in ALIKE
    if not by_name(instruction.shape.dtype).has_vectors or math.prod(instruction.shape.sizes) > MOST_NUMBERS:
        return False
    if instruction.opcode == "power":
        return by_name(instruction.shape.dtype).is_float
    return instruction.opcode in ALIKE or elementwise.is_elementwise(instruction.opcode)


class Groups:
    """The function under construction."""

    def __init__(
        self,
        function: Any,
        interface: Interface,
        module: Module,
        pieces: Mapping[tuple[int, int], Places],
        limits: Limits,
        lanes: int,
        poll: Any,
        captured: Callable[[Code], Mapping[int, Array]],
    ):
        self.interface, self.limits, self.lanes, self.function = interface, limits, lanes, function
        self.arguments = given = Arguments.of(interface, function)
        self.builder = builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.code = code = Code(builder, given.arena, lanes)
        storage = Storage(interface.program, lanes)
        self.numbers = {each[0]: each for name in interface.program.types for each in storage.leaves(name)}
        setting = Setting(
            code,
            storage,
            module,
            pieces,
            limits,
            shared={leaf: code.shared(array) for leaf, array in given.shared(code).items()},
            captured={number: code.shared(array) for number, array in captured(code).items()},
        )
        self.group = Group(setting, poll=(poll, given.control))
        self.number_of = code.reserved(by_dtype("int64"), lanes)
        """The memory of the lanes' numbers."""
        self.next, self.occupied = code.variable(INT64), code.variable(self.group.bits)
        self.wasted, self.is_in_order = code.variable(INT64), code.variable(BIT)
        code.arena_base = code.arena_bytes

    def build(self) -> Code:
        """Emit everything."""
        group, builder, function, given = self.group, self.builder, self.function, self.arguments
        names = [group.program.blocks[number].label for number in group.order]
        blocks = {n: function.append_basic_block(name) for n, name in zip(group.order, names, strict=True)}
        after = {n: function.append_basic_block(f"before_{name}") for n, name in zip(group.order, names, strict=True)}
        end, starting, stopped, left = (function.append_basic_block(n) for n in ("met", "starting", "stopped", "left"))
        following = {
            number: next((after[each] for each in group.order if each >= number), end)
            for number in range(group.order[-1] + 2)
        }
        labels = Labels(stopped, blocks, following)
        self.begin()
        builder.branch(starting)
        simd_tile.emit(group, labels, self.block)

        builder.position_at_end(end)
        ended = builder.load(group.ended, typ=group.bits)
        wasted = builder.add(builder.load(self.wasted, typ=INT64), builder.zext(group.count(ended), INT64))
        builder.store(wasted, self.wasted)
        enough = builder.icmp_signed(">=", wasted, ir.Constant(INT64, WASTE))
        nobody = builder.icmp_unsigned("==", group.all_waiting(), group.no_bits())
        builder.cbranch(builder.or_(enough, nobody), starting, following[0])

        builder.position_at_end(starting)
        self._exchange(labels, left)
        builder.position_at_end(left)
        self.leave(starting)
        ended_here = builder.block
        for label, status, reached in ((ended_here, ENDED, given.behind), (stopped, STOPPED, given.first)):
            builder.position_at_end(label)
            builder.store(ir.Constant(INT64, status), place(builder, given.control, STATUS))
            builder.store(reached, place(builder, given.control, REACHED))
            builder.ret_void()
        return self.code

    def block(self, group: Group, number: int, labels: Labels) -> GroupBlock:
        """The code of a block."""
        return GroupBlock(group, number, labels)

    def leave(self, starting: Any) -> None:
        """Emit what is done where no lane runs and none has been started; `starting` is where others are."""

    def begin(self) -> None:
        """Emit the initial state, in which no lane has been started."""
        group, builder = self.group, self.builder
        zeros = [(address, number) for address, number in ((group.failure, group.few), (group.steps, group.few))]
        zeros.append((group.earlier_steps, group.many))
        zeros += [(register, self.numbers[leaf][1]) for leaf, register in group.registers.items()]
        for address, number in zeros:
            builder.store(number.constant(0), address)
        for address in (*group.waiting.values(), self.occupied):
            builder.store(group.no_bits(), address)
        builder.store(ir.Constant(group.bits, -1), group.ended)
        builder.store(ir.Constant(INT64, 0), self.wasted)
        builder.store(ir.Constant(BIT, 0), self.is_in_order)
        builder.store(self.arguments.first, self.next)
        most = BETWEEN_POLLS if self.limits.max_steps is None else min(BETWEEN_POLLS, self.limits.max_steps)
        builder.store(ir.Constant(INT64, 0), group.turns)
        builder.store(ir.Constant(INT64, most), group.limit)

    # -- from group to group -------------------------------------------------------------------------------------------

    def _exchange(self, labels: Labels, left: Any) -> None:
        """Hand out the results of lanes that have ended, and start others in their places."""
        group, builder, code = self.group, self.builder, self.code
        with code.scratch():
            ended, occupied = (builder.load(each, typ=group.bits) for each in (group.ended, self.occupied))
            done = builder.and_(ended, occupied)
            with code.when(builder.icmp_unsigned("!=", done, group.no_bits())):
                self._hand_out(done)
            filled = self.filled(ended)
            with code.when(builder.icmp_unsigned("!=", filled, group.no_bits())):
                self._start(filled)
            builder.store(group.no_bits(), group.ended)
            builder.store(ir.Constant(INT64, 0), self.wasted)
            builder.store(builder.or_(builder.and_(occupied, builder.not_(ended)), filled), self.occupied)
            group.add(group.waiting[0], filled)
            turns = builder.add(builder.load(group.turns, typ=INT64), ir.Constant(INT64, 1))
            builder.store(turns, group.turns)
            limit = builder.load(group.limit, typ=INT64)
            if self.limits.max_steps is not None:  # a lane that starts now may make so many
                most = builder.add(turns, ir.Constant(INT64, self.limits.max_steps))
                limit = builder.select(builder.icmp_signed("<", most, limit), most, limit)
                builder.store(limit, group.limit)
            active = group.all_waiting()
            with code.when(builder.icmp_signed(">=", turns, limit)):
                group.ask(active, labels)
            nobody = builder.icmp_unsigned("==", active, group.no_bits())
            builder.cbranch(nobody, left, labels.following[0])

    def filled(self, ended: Any) -> Any:
        """Number the free places as lanes as far as there are some: the bits of those that are to start."""
        group, builder = self.group, self.builder
        address = self.code.variable(group.bits, group.no_bits())
        with self._each(ended, self.is_more) as (slot, bit):
            number = builder.load(self.next, typ=INT64)
            builder.store(number, self._at(self.number_of, INT64, slot))
            builder.store(builder.add(number, ir.Constant(INT64, 1)), self.next)
            group.add(address, bit)
        filled = builder.load(address, typ=group.bits)
        old = builder.load(self.is_in_order, typ=BIT)
        nothing = builder.icmp_unsigned("==", filled, group.no_bits())
        builder.store(builder.select(nothing, old, self.is_whole(filled)), self.is_in_order)
        return filled

    def is_whole(self, bits: Any) -> Any:
        return self.builder.icmp_unsigned("==", bits, ir.Constant(self.group.bits, -1))

    def is_more(self) -> Any:
        """Return whether another lane is to be started."""
        return self.builder.icmp_signed("<", self.builder.load(self.next, typ=INT64), self.arguments.behind)

    @contextmanager
    def _each(self, bits: Any, while_: Callable[[], Any] | None = None) -> Iterator[tuple[Any, Any]]:
        """Code for each bit that is set, from the lowest on: its place, and itself."""
        group, builder = self.group, self.builder
        rest = self.code.variable(group.bits, bits)
        head, body, end = (builder.append_basic_block(name) for name in ("each", "slot", "all"))
        builder.branch(head)
        builder.position_at_end(head)
        left = builder.load(rest, typ=group.bits)
        goes_on = builder.icmp_unsigned("!=", left, group.no_bits())
        builder.cbranch(goes_on if while_ is None else builder.and_(goes_on, while_()), body, end)
        builder.position_at_end(body)
        lowest = builder.and_(left, builder.neg(left))
        slot = call(builder, f"llvm.cttz.i{self.lanes}", group.bits, left, ir.Constant(ir.IntType(1), 1))
        yield (slot if self.lanes == 64 else builder.zext(slot, INT64)), lowest
        builder.store(builder.xor(left, lowest), rest)
        builder.branch(head)
        builder.position_at_end(end)

    def _at(self, pointer: Any, type_: Any, offset: Any) -> Any:
        return self.builder.gep(pointer, [offset], inbounds=True, source_etype=type_)

    def _lane(self, slot: Any) -> Any:
        return self.builder.load(self._at(self.number_of, INT64, slot), typ=INT64)

    def _spilled(self, number: Number, value: Any) -> Any:
        """The memory to which a vector is written, so that its numbers have addresses."""
        pointer = self.code.room(number, 1)
        self.code.store(number, value, pointer)
        return pointer

    def _hand_out(self, done: Any) -> None:
        """Write the results of lanes to their rows."""
        group, builder, code, given = self.group, self.builder, self.code, self.arguments
        codes = builder.load(group.failure, typ=group.few.type)
        few = by_dtype("int32")
        steps = builder.trunc(group.all_steps(), group.few.type)
        failing = builder.and_(group.flags_of(done), builder.icmp_signed("!=", codes, group.few.constant(0)))
        with code.when(code.any(failing)):
            builder.store(ir.Constant(INT64, 1), place(builder, given.control, FAILED))
        rows = [(scalar(group.few, each), few, to) for each, to in ((codes, given.failures), (steps, given.steps))]
        for result, target in self.handed_out():
            rows.append((group.top(*self.numbers[result.leaf]), result.number, target))
        self.rows_out(done, builder.load(self.is_in_order, typ=BIT), rows)

    def handed_out(self) -> list[tuple[Result, Any]]:
        """The results that are written where a lane ends, with their arrays."""
        given, interface = self.arguments, self.interface
        return [*zip(interface.results, given.results, strict=True), *zip(interface.shown, given.shown, strict=True)]

    def rows_out(self, lanes: Any, is_in_order: Any, rows: Sequence[tuple[Array, Number, Any]]) -> None:
        """Write arrays of some lanes to these lanes' rows of others, of such numbers.

        Where all are and `is_in_order`, their lanes follow one another.
        """
        builder = self.builder

        def each() -> None:
            memory = [a.pointer if a.sizes else self._spilled(a.number, a.value) for a, _, _ in rows]
            with self._each(lanes) as (slot, _):
                lane = self._lane(slot)
                for (array, number, target), source in zip(rows, memory, strict=True):
                    self._row_out(array, number, source, target, slot, lane)

        if any(array.sizes for array, _, _ in rows):
            each()
            return
        with builder.if_else(builder.and_(self.is_whole(lanes), is_in_order)) as (then, else_):
            with then:
                first = self._lane(ir.Constant(INT64, 0))
                for array, number, target in rows:
                    wide = elementwise.convert(builder, array.number, number.wide(self.lanes), array.value)
                    self._store_whole(number, wide, target, first)
            with else_:
                each()

    def _store_whole(self, number: Number, value: Any, target: Any, first: Any) -> None:
        """Write the numbers of lanes that follow one another to an array of scalars."""
        wide = number.wide(self.lanes)
        if number.kind == "bool":
            value = self.builder.zext(value, wide.stored)
        self.builder.store(value, self._at(target, number.stored, first), align=number.bytes)

    def _row_out(self, array: Array, number: Number, source: Any, target: Any, slot: Any, lane: Any) -> None:
        held = array.number.narrow

        def one(index: Sequence[Any]) -> None:
            at = code.offset(array.sizes, index)
            value = code.load(held, source, code.add(code.times(at, self.lanes), slot))
            value = elementwise.convert(self.builder, held, number, value)
            code.store(number, value, target, code.add(code.times(lane, array.count), at))

        code = self.code
        code.each(array.sizes, one)

    def _start(self, filled: Any) -> None:
        """Begin lanes in the places that are filled: parameters are as they were given, all else is 0."""
        group, builder = self.group, self.builder
        flags = group.flags_of(filled)
        given = {leaf: each[2] for leaf, each in self.arguments.arrays().items() if leaf in self.numbers}
        rows = [(source, group.top(*self.numbers[leaf])) for leaf, source in given.items()]
        for leaf, array in zip(given, self.rows_in(filled, ir.Constant(BIT, 1), rows), strict=True):
            if not array.sizes:
                builder.store(array.value, group.registers[leaf])
        zeros = [(address, number) for address, number in ((group.failure, group.few), (group.steps, group.few))]
        zeros.append((group.earlier_steps, group.many))
        for leaf, number, sizes in self.numbers.values():
            if leaf in group.registers and leaf not in given:
                zeros.append((group.registers[leaf], number))
            elif sizes and leaf not in given and leaf[0] in group.storage.under_predicates:
                self._clear(number, sizes, group.memory[leaf], flags)
        for address, number in zeros:
            old = builder.load(address, typ=number.type)
            builder.store(builder.select(flags, number.constant(0), old), address)

    def rows_in(self, lanes: Any, is_in_order: Any, rows: Sequence[tuple[Any, Array]]) -> list[Array]:
        """Arrays with some lanes' rows of others at such addresses; the inverse of `rows_out`."""
        builder, code = self.builder, self.code
        memory = [array.pointer if array.sizes else self._spilled(array.number, array.value) for _, array in rows]

        def each() -> None:
            with self._each(lanes) as (slot, _):
                lane = self._lane(slot)
                for (source, array), target in zip(rows, memory, strict=True):
                    self._row_in(array, source, target, slot, lane)

        if any(array.sizes for _, array in rows):
            each()
        else:
            with builder.if_else(builder.and_(self.is_whole(lanes), is_in_order)) as (then, else_):
                with then:
                    first = self._lane(ir.Constant(INT64, 0))
                    for (source, array), target in zip(rows, memory, strict=True):
                        code.store(array.number, self._load_whole(array.number.narrow, source, first), target)
                with else_:
                    each()
        arrays = [array for _, array in rows]
        return [
            array if array.sizes else scalar(array.number, code.load(array.number, at))
            for array, at in zip(arrays, memory, strict=True)
        ]

    def _load_whole(self, number: Number, source: Any, first: Any) -> Any:
        """The numbers of lanes that follow one another in an array of scalars."""
        wide = number.wide(self.lanes)
        found = self.builder.load(self._at(source, number.stored, first), typ=wide.stored, align=number.bytes)
        return self.builder.trunc(found, wide.type) if number.kind == "bool" else found

    def _row_in(self, array: Array, source: Any, target: Any, slot: Any, lane: Any) -> None:
        number = array.number.narrow

        def one(index: Sequence[Any]) -> None:
            at = code.offset(array.sizes, index)
            value = code.load(number, source, code.add(code.times(lane, array.count), at))
            code.store(number, value, target, code.add(code.times(at, self.lanes), slot))

        code = self.code
        code.each(array.sizes, one)

    def _clear(self, number: Number, sizes: Sequence[int], pointer: Any, flags: Any) -> None:
        def one(index: Sequence[Any]) -> None:
            at = self.code.offset(sizes, index)
            old = self.code.load(number, pointer, at)
            self.code.store(number, self.builder.select(flags, number.constant(0), old), pointer, at)

        self.code.each(sizes, one)
