"""The native function that gives the gradients of lanes: they run once more, recorded, and are undone right away.

    run([control, first, behind, capacity, arena, calls, stacks.., parameters.., seeds.., shared.., failures, steps,
        gradients by parameters.., sums..])

So a tape is never longer than one lane's, or than that of a stretch of groups of lanes, which lies in near memory. The
run whose gradient is asked for is a plain one. A lane that fails has gradients of zeros. Sums are what gradients by
shared operands are made of, `[lanes, ...]` too: whoever adds them up does so in an order that does not depend on
threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import llvmlite.ir as ir

from pcbatch.ir.machine import Program
from pcbatch.ir.types import leaves
from pcbatch.runtime.adjoint.tape import Tapes
from pcbatch.runtime.backends.pieces import Hlo, Linear
from pcbatch.runtime.llvm import block
from pcbatch.runtime.llvm import interface as native
from pcbatch.runtime.llvm.code import Code, scalar
from pcbatch.runtime.llvm.function import Builder, Function, hand_out, row_of
from pcbatch.runtime.llvm.group import Groups
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.interface import LANES, POINTER, Arguments, Interface, Result, place
from pcbatch.runtime.llvm.lane import Lane, PieceCode, Places
from pcbatch.runtime.llvm.lane_tape import Record, RecordingBlock, RecordingGroupBlock, Tape, records
from pcbatch.runtime.llvm.lane_vjp import Adjoints, BackCode, WayBack, active_leaves, adjoint_group, sums_of
from pcbatch.runtime.llvm.simd_tile import Group, GroupBlock, Labels
from pcbatch.runtime.llvm.stacks import Frame, Storage
from pcbatch.runtime.llvm.translation import Translation
from pcbatch.runtime.llvm.types import BIT, INT32, INT64, Number, by_dtype

STRETCH = 1 << 18
"""Bytes of a group's tape beyond which no lane starts before what is on it is undone: a core's near memory."""


@dataclass(frozen=True)
class StorageBothWays(Storage):
    """Storage layout of a lane of a program, and of the gradients by the entries of its stacks."""

    tapes: Tapes = field(kw_only=True)

    @cached_property
    def frames(self) -> dict[str, Frame]:
        """The frames, with a group beside each for the gradients of its leaves."""
        found = dict(super().frames)
        for group, frame in super().frames.items():
            names = dict.fromkeys(name for name, _ in frame.fields)
            fields = [each for name in names for each in active_leaves(self.tapes, self, name)]
            if fields:
                found[adjoint_group(group)] = Frame.of(fields)
        return found


def _seed(number: int) -> str:
    """The name among the arguments of the gradients by a leaf of the results."""
    return f"seed {number}"


class BackwardInterface(Interface):
    """Arguments and results of the function: leaves of results that gradients flow to have `seeds`, by their number."""

    def __init__(self, program: Program, tapes: Tapes):
        super().__init__(program, counts=False)
        self.tapes, self.storage = tapes, StorageBothWays(program, tapes=tapes)
        active = {leaf for name in program.results for leaf, _, _ in active_leaves(tapes, self.storage, name)}
        self.seeds = {n: each for n, each in enumerate(self.storage.results) if each[0] in active}
        self.given += [((_seed(n), 0), number, sizes) for n, (_, number, sizes) in self.seeds.items()]
        parameters = [Result(*each) for name in program.parameters for each in active_leaves(tapes, self.storage, name)]
        sums = [Result(leaf, by_dtype(type_.dtype), type_.shape) for leaf, type_ in sums_of(tapes)]
        self.results, self.shown, self.by_parameters = [*parameters, *sums], [], len(parameters)
        self.result_places = range(2, 2 + len(self.results))
        self.shown_places = range(self.result_places.stop, self.result_places.stop)
        self.executions = self.shown_places.stop

    @cached_property
    def sum_bytes(self) -> int:
        """The bytes of a lane's sums."""
        types = (type_ for _, type_ in sums_of(self.tapes))
        return sum(type_.bytes for type_ in types)


@dataclass(frozen=True)
class BackwardTranslation(Translation):
    """A program whose pieces and their derivatives are known as HLO."""

    tapes: Tapes = field(kw_only=True)

    @cached_property
    def derivatives(self) -> dict[tuple[int, int], Linear]:
        """The derivatives of pieces, by block and place; `UnsupportedError` if one needs all rows together."""
        found = {(number, at): each for number, tape in self.tapes.blocks.items() for at, each in tape.linear.items()}
        if any(each.deltas for each in found.values()):
            raise UnsupportedError("the gradient by an array that all lanes multiply by, or look up in")
        if any(None in type_.shape for each in found.values() for type_ in (*each.residuals, *each.summed)):
            raise UnsupportedError("arrays of sizes that are not known")
        return {key: found[key] for key in self.every if key in found}

    @cached_property
    def _hlo(self) -> Hlo:
        return self.lowered([self.derivatives.get(key) for key in self.every])

    @cached_property
    def pieces(self) -> dict[tuple[int, int], Places]:
        """The place of each piece in the module, with its residuals."""
        return self._places[0]

    @cached_property
    def backward(self) -> dict[tuple[int, int], BackCode]:
        """The place of each derivative."""
        return self._places[1]

    @cached_property
    def _places(self) -> tuple[dict[tuple[int, int], Places], dict[tuple[int, int], BackCode]]:
        results, first = iter(self.results if self.every else ()), 0
        pieces: dict[tuple[int, int], Places] = {}
        backward = {}
        for key, (piece, signature) in self.every.items():
            linear = self.derivatives.get(key)
            given = sum(1 for type_ in signature.writes for _ in leaves(type_)) + bool(piece.sites)
            names = tuple(next(results) for _ in range(given))
            kept = () if linear is None else tuple(next(results) for _ in linear.residuals)
            pieces[key] = PieceCode(first, names, bool(piece.sites), kept)
            first += sum(1 for type_ in (*signature.reads, *signature.shared) for _ in leaves(type_))
        for key, linear in self.derivatives.items():
            _, signature = self.every[key]
            reads = {number: next(results) for number in linear.reads_of}
            elements = [([next(results) for _ in range(each.depth)], next(results)) for each in linear.elements]
            backward[key] = BackCode(first, reads, elements, [next(results) for _ in linear.summed])
            first += len(linear.residuals) + sum(1 for type_ in signature.shared for _ in leaves(type_))
            first += len(linear.seeds_of)
        return pieces, backward

    def both_ways(self) -> Function:
        """The native function."""
        builder = _Builder(BackwardInterface(self.program, self.tapes), *self.parts, self.limits)
        builder.derivatives = self.backward
        return builder.build(self.width)


class _Builder(Builder):
    """Emits the function: lanes, or groups of them, that are recorded, then undone."""

    interface: BackwardInterface
    derivatives: Mapping[tuple[int, int], BackCode]

    def is_for_groups(self) -> bool:
        """The same; elements at places that differ by lane have gradients lane by lane alone."""
        return super().is_for_groups() and not any(each.elements for each in self.derivatives.values())

    def together(self, width: int) -> tuple[Any, int]:
        """The same; few lanes, too, so that a lane has the same bits in any batch."""
        function = self.function(LANES)
        return function, self.in_groups(function, width).build().arena_bytes

    def in_groups(self, function: Any, width: int) -> Groups:
        parts = self.interface, self.hlo, self.pieces, self.limits
        return _GroupsBothWays(self.derivatives, function, *parts, width, self.poll, self.captured_in)

    def blocks(self, body: Lane) -> None:
        """Run a lane, which has begun, to its end, recorded."""
        control = body.builder.function.args[0]
        self.every = records(self.interface.tapes)
        self.tape = _tape(body.code, control)
        self.adjoints = Adjoints(body.code, self.interface.tapes, self.storage)
        block.emit(body, partial(RecordingBlock, self.tape, self.every))
        _leave_full(self.tape, control)

    def end(self, body: Lane, lane: Any, failure: Any, given: Arguments) -> None:
        """Undo a lane that has ended, and write its gradients: zeros, if it has failed."""
        code, builder, adjoints = body.code, body.builder, self.adjoints
        way = WayBack(body, self.interface.tapes, self.tape, self.every, self.derivatives, adjoints)
        way.clear()
        undo, done = (builder.append_basic_block(name) for name in ("sound", "has_gradients"))
        builder.cbranch(builder.icmp_signed("==", failure, ir.Constant(failure.type, 0)), undo, done)
        builder.position_at_end(undo)
        arrays = given.arrays()
        for number, (leaf, _, _) in self.interface.seeds.items():
            adjoints.add(leaf, row_of(code, *arrays[_seed(number), 0], lane))
        way.emit()
        builder.branch(done)
        builder.position_at_end(done)
        for result, pointer in zip(self.interface.results, given.results, strict=True):
            hand_out(code, adjoints.value(result.leaf), result, pointer, lane)


def _tape(code: Code, control: Any) -> Tape:
    """An empty tape, in the memory that `control` tells."""
    builder = code.builder
    memory = builder.load(place(builder, control, native.TAPE), typ=POINTER)
    room = builder.load(place(builder, control, native.TAPE_BYTES), typ=INT64)
    end, full = code.variable(INT64, ir.Constant(INT64, 0)), builder.append_basic_block("tape_is_full")
    return Tape(code, memory, room, end, full)


def _leave_full(tape: Tape, control: Any) -> None:
    """Leave where the tape is full."""
    builder = tape.code.builder
    builder.position_at_end(tape.full)
    builder.store(ir.Constant(INT64, native.NEEDS_TAPE), place(builder, control, native.STATUS))
    builder.ret_void()


class _GroupsBothWays(Groups):
    """Emits the function that runs lanes in groups, recorded, and undoes what many of them have done.

    A tape holds a stretch of lanes. Those that start and end while others run are on it, too: undone, a lane's end is
    where its gradients begin, and its start is where they are handed out.
    """

    interface: BackwardInterface

    def __init__(self, derivatives: Mapping[tuple[int, int], BackCode], *parts: Any):
        super().__init__(*parts)
        code, tapes = self.code, self.interface.tapes
        self.tape, self.every = _tape(code, self.arguments.control), records(tapes, self.lanes)
        self.exchange = Record.of(len(self.every), _exchanged(self.lanes))
        self.adjoints = Adjoints(code, tapes, self.group.storage)
        self.way = _GroupWayBack(self, derivatives)

    def block(self, group: Group, number: int, labels: Labels) -> GroupBlock:
        return RecordingGroupBlock(self.tape, self.every, group, number, labels)

    def begin(self) -> None:
        super().begin()
        self._reached(self.arguments.first)

    def _reached(self, lane: Any) -> None:
        """Lanes before this one need not run again, whatever happens."""
        self.builder.store(lane, place(self.builder, self.arguments.control, native.REACHED))

    def handed_out(self) -> list[tuple[Result, Any]]:
        return []  # gradients are not known yet

    def is_more(self) -> Any:
        """The same; the stretch ends where its tape is long."""
        is_short = self.builder.icmp_signed(
            "<", self.builder.load(self.tape.end, typ=INT64), ir.Constant(INT64, STRETCH)
        )
        return self.builder.and_(super().is_more(), is_short)

    def filled(self, ended: Any) -> Any:
        """The same, recorded: lanes that have ended, before others take their places, and these."""
        group, builder, tape = self.group, self.builder, self.tape
        tape.reserve(self.exchange)
        codes = builder.load(group.failure, typ=group.few.type)
        sound = builder.and_(ended, builder.load(self.occupied, typ=group.bits))
        fine = group.bits_of(builder.icmp_signed("==", codes, group.few.constant(0)))
        in_order = builder.load(self.is_in_order, typ=BIT)
        numbers = self.code.load(group.many, self.number_of)
        found = super().filled(ended)
        noted = {"sound": builder.and_(sound, fine), "filled": found}
        for name, bits in noted.items():
            wide = builder.zext(bits, INT32)
            self.code.store(_FEW, wide, tape.field(self.exchange, name)[2])
        self.code.store(group.many, numbers, tape.field(self.exchange, "lanes")[2])
        self.code.store(_FEW, builder.zext(in_order, INT32), tape.field(self.exchange, "in order")[2])
        tape.finish(self.exchange)
        return found

    def leave(self, starting: Any) -> None:
        """Undo the stretch, and begin the next one."""
        group, builder = self.group, self.builder
        after = builder.load(self.next, typ=INT64)
        self.way.clear()
        self.way.emit()
        again, over = (builder.append_basic_block(name) for name in ("next_stretch", "all_stretches"))
        self._reached(after)
        is_over = builder.icmp_signed(">=", after, self.arguments.behind)
        builder.cbranch(is_over, over, again)
        builder.position_at_end(again)
        builder.store(ir.Constant(group.bits, -1), group.ended)
        builder.store(group.no_bits(), self.occupied)
        builder.branch(starting)
        _leave_full(self.tape, self.arguments.control)
        builder.position_at_end(over)


_FEW = by_dtype("int32")


def _exchanged(lanes: int) -> dict[str, tuple[Number, tuple[int, ...]]]:
    """The fields of a record of lanes that have ended, and of others that have taken their places.

    These are the bits of those that have ended and not failed, the numbers of the lanes before, whether these followed
    one another, and the bits of lanes that have started.
    """
    return {**dict.fromkeys(("sound", "in order", "filled"), (_FEW, ())), "lanes": (by_dtype("int64").wide(lanes), ())}


class _GroupWayBack(WayBack):
    """The way back of a group: `sound` are the bits of the lanes that are being undone."""

    def __init__(self, groups: _GroupsBothWays, derivatives: Mapping[tuple[int, int], BackCode]):
        tapes = groups.interface.tapes
        super().__init__(groups.group, tapes, groups.tape, groups.every, derivatives, groups.adjoints)
        self.groups, self.sound = groups, self.code.variable(groups.group.bits)

    def clear(self) -> None:
        super().clear()
        self.builder.store(self.groups.group.no_bits(), self.sound)

    def mask(self, record: Record) -> Any:
        bits = self.tape.bits(record, self.groups.group.bits)
        return self.groups.group.flags_of(self.builder.and_(bits, self.builder.load(self.sound, typ=bits.type)))

    def ways(self) -> dict[int, Callable[[], None]]:
        return {**super().ways(), self.groups.exchange.kind: self._back}

    def _back(self) -> None:
        """Hand out the gradients of lanes that started here, and begin with those of lanes that ended."""
        groups, group, builder, adjoints = self.groups, self.groups.group, self.builder, self.adjoints
        self.tape.remove(groups.exchange)
        filled, sound, in_order = (self._noted(name) for name in ("filled", "sound", "in order"))
        filled, sound = (builder.trunc(each, group.bits) for each in (filled, sound))
        with self.code.when(builder.icmp_unsigned("!=", filled, group.no_bits())):
            given = zip(groups.interface.results, groups.arguments.results, strict=True)
            rows = [(adjoints.value(result.leaf), result.number, target) for result, target in given]
            groups.rows_out(filled, ir.Constant(BIT, 1), rows)
            adjoints.mask = group.flags_of(filled)
            for leaf in adjoints.places:
                adjoints.clear(leaf)
            adjoints.mask = None
        numbers, _, address = self.tape.field(groups.exchange, "lanes")
        self.code.store(numbers, self.code.load(numbers, address), groups.number_of)
        left = builder.and_(builder.load(self.sound, typ=group.bits), builder.not_(filled))
        builder.store(builder.or_(left, sound), self.sound)
        with self.code.when(builder.icmp_unsigned("!=", sound, group.no_bits())):
            self._begin(sound, builder.trunc(in_order, BIT))

    def _noted(self, name: str) -> Any:
        return self.code.load(_FEW, self.tape.field(self.groups.exchange, name)[2])

    def _begin(self, sound: Any, in_order: Any) -> None:
        """The gradients by results of these lanes are what was given."""
        groups, code = self.groups, self.code
        arrays, rows = groups.arguments.arrays(), []
        for number in groups.interface.seeds:
            held, sizes, source = arrays[_seed(number), 0]
            wide = held.wide(code.lanes)
            if sizes:
                empty = code.memory(wide, sizes, code.room(wide, math.prod(sizes)))
            else:
                empty = scalar(wide, wide.constant(0))
            rows.append((source, empty))
        self.adjoints.mask = groups.group.flags_of(sound)
        found = groups.rows_in(sound, in_order, rows)
        for (leaf, _, _), array in zip(groups.interface.seeds.values(), found, strict=True):
            self.adjoints.add(leaf, array)
        self.adjoints.mask = None
