"""Blocks for several lanes at a time: each number is a vector, and a block computes it for the lanes that are there.

Lanes that go to another block than others wait there: a bit of that block's `waiting` is set. After a block come those
behind it, in the order of the program, so that lanes whose ways part meet again where these join. A loop goes on
while enough lanes are in it; then those that have left it come, and lanes that have ended make room for others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ir

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Branch, Fault, Jump, Piece, Return
from pcbatch.runtime.llvm.body import Body
from pcbatch.runtime.llvm.code import Array, Index, scalar
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.lane import Places, Setting, State
from pcbatch.runtime.llvm.library_calls import call
from pcbatch.runtime.llvm.operations import ALIKE
from pcbatch.runtime.llvm.types import INT64, by_name

BETWEEN_POLLS = 1 << 15
"""Steps that lanes make together before Python may handle signals."""


@dataclass(frozen=True)
class Labels:
    """Labels of the exit for lanes that are to stop, of blocks, and of each block's successor."""

    stopped: Any
    blocks: Mapping[int, Any]
    following: Mapping[int, Any]
    """Label, by number, of the first block from there on for which a lane waits."""


class Group(State):
    """The state of several lanes, for the code of their blocks."""

    def __init__(self, setting: Setting, poll: Any):
        super().__init__(setting)
        code = self.code
        self.poll = poll
        self.order = sorted(effects.reachable(self.program))
        self.bits, self.flags = ir.IntType(code.lanes), ir.VectorType(ir.IntType(1), code.lanes)
        self.few, self.many = (by_name(name).wide(code.lanes) for name in ("s32", "s64"))
        self.waiting = {number: code.variable(self.bits) for number in self.order}
        self.ended = code.variable(self.bits)
        self.failure, self.steps = code.variable(self.few.type), code.variable(self.few.type)
        self.earlier_steps = code.variable(self.many.type)
        self.turns, self.limit = code.variable(INT64), code.variable(INT64)

    # -- bits ----------------------------------------------------------------------------------------------------------

    def bits_of(self, flags: Any) -> Any:
        """Flags of lanes as an integer."""
        return self.builder.bitcast(flags, self.bits)

    def flags_of(self, bits: Any) -> Any:
        """The flags that an integer holds."""
        return self.builder.bitcast(bits, self.flags)

    def count(self, bits: Any) -> Any:
        """The number of bits that are set."""
        return call(self.builder, f"llvm.ctpop.i{self.code.lanes}", self.bits, bits)

    def no_bits(self) -> Any:
        return ir.Constant(self.bits, 0)

    def add(self, place: Any, bits: Any) -> None:
        """Set more bits at a place."""
        self.builder.store(self.builder.or_(self.builder.load(place, typ=self.bits), bits), place)

    def all_waiting(self) -> Any:
        """The lanes that wait for some block."""
        found = self.no_bits()
        for place in self.waiting.values():
            found = self.builder.or_(found, self.builder.load(place, typ=self.bits))
        return found

    # -- steps ---------------------------------------------------------------------------------------------------------

    def all_steps(self) -> Any:
        """The steps of each lane so far, of 64 bits."""
        builder = self.builder
        new = builder.sext(builder.load(self.steps, typ=self.few.type), self.many.type)
        return builder.add(builder.load(self.earlier_steps, typ=self.many.type), new)

    def ask(self, active: Any, labels: Labels) -> None:
        """Let Python handle signals, and fix when to ask again: before one of the lanes may not make a step more."""
        builder = self.builder
        goes_on = builder.append_basic_block("goes_on")
        told = builder.icmp_signed("!=", builder.call(self.poll[0], [self.poll[1]]), ir.Constant(ir.IntType(32), 0))
        builder.cbranch(told, labels.stopped, goes_on)
        builder.position_at_end(goes_on)
        total, further = self.all_steps(), ir.Constant(INT64, BETWEEN_POLLS)
        builder.store(total, self.earlier_steps)
        builder.store(self.few.constant(0), self.steps)
        if self.limits.max_steps is not None:
            left = builder.sub(self.many.constant(self.limits.max_steps), total)
            left = builder.select(self.flags_of(active), left, self.many.constant(BETWEEN_POLLS))
            least = call(builder, f"llvm.vector.reduce.smin.{self.many.suffix}", INT64, left)
            further = builder.select(builder.icmp_signed("<", least, further), least, further)
        builder.store(builder.add(builder.load(self.turns, typ=INT64), further), self.limit)


def emit(group: Group, labels: Labels, make: Callable[[Group, int, Labels], GroupBlock]) -> None:
    """Emit all blocks, and the way from each to the next. `make` makes each."""
    builder = group.builder
    for number in group.order:
        builder.position_at_end(labels.following[number])
        waiting = builder.load(group.waiting[number], typ=group.bits)
        is_next = builder.icmp_unsigned("!=", waiting, group.no_bits())
        builder.cbranch(is_next, labels.blocks[number], labels.following[number + 1])
        builder.position_at_end(labels.blocks[number])
        with group.code.scratch():
            make(group, number, labels).emit()


class GroupBlock(Body):
    """One block of a group: `moving` are the flags of the lanes in it, `chosen` of those that run an item."""

    operations = ALIKE

    def __init__(self, group: Group, number: int, labels: Labels):
        super().__init__(group, number)
        self.group, self.labels = group, labels
        self._flags = self.code.variable(group.flags)
        self.chosen: Any = None
        self.item = 0
        """The place of the item in hand."""

    def emit(self) -> None:
        """The whole block."""
        group = self.group
        arrived = self.builder.load(group.waiting[self.number], typ=group.bits)
        self.builder.store(group.no_bits(), group.waiting[self.number])
        self.builder.store(group.flags_of(arrived), self._flags)
        for place, item in enumerate(self.block.body):
            if not isinstance(item, Piece):
                raise UnsupportedError("stores at places that differ between lanes")
            self.item = place
            self.guarded(item, group.setting.pieces[self.number, place])
        self.leave()

    def guarded(self, piece: Piece, place: Places) -> None:
        """A piece; where its predicate does not hold numbers are as they were."""
        if piece.predicate is None:
            self.piece(piece, place)
            return
        numbers = [each for name in piece.writes for each in self.storage.leaves(name) if not each[2]]
        before = {each[0]: self._leaf(*each).value for each in numbers}
        self.chosen = self.bool_of(piece.predicate)
        self.piece(piece, place)
        for leaf, number, _ in numbers:
            found = self.builder.select(self.chosen, self.now[leaf].value, before[leaf])
            self.now[leaf] = scalar(number, found)
        self.chosen = None

    def moving(self) -> Any:
        """The flags of the lanes that are in the block."""
        return self.builder.load(self._flags, typ=self.group.flags)

    def _running(self) -> Any:
        """The flags of the lanes that run the present item."""
        moving = self.moving()
        return moving if self.chosen is None else self.builder.and_(moving, self.chosen)

    def _settle(self, array: Array, target: Any) -> None:
        running = self._running()

        def one(index: Sequence[Index]) -> None:
            place = self.code.offset(array.sizes, index)
            old = self.code.load(array.number, target, place)
            found = self.builder.select(running, array.at(index), old)
            self.code.store(array.number, found, target, place)

        self.code.each(array.sizes, one)

    # -- failures ------------------------------------------------------------------------------------------------------

    def _check(self, site: Any) -> None:
        wrong = self.builder.icmp_signed(">", site, self.group.few.constant(0))
        failing = self.builder.and_(self._running(), wrong)
        with self.code.when(self.code.any(failing)):
            self._fail(failing, site)

    def _fail(self, failing: Any, code: Any) -> None:
        """Lanes end here with a failure: a fault site plus one."""
        group, builder = self.group, self.builder
        base = group.few.constant(self.number << self.storage.site_bits)
        old = builder.load(group.failure, typ=group.few.type)
        builder.store(builder.select(failing, builder.add(code, base), old), group.failure)
        group.add(group.ended, group.bits_of(failing))
        builder.store(builder.and_(self.moving(), builder.not_(failing)), self._flags)

    # -- the end of the block ------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Let the block take effect, and send the lanes on."""
        group, terminator = self.group, self.block.terminator
        match terminator:
            case Fault(site=site):
                self._commit()
                self._fail(self.moving(), group.few.constant(site + 1))
                self.builder.branch(self.labels.following[self.number + 1])
            case Branch():
                self._commit()
                self._go(terminator)
            case Jump(target=target):
                if effects.is_step(self.block):
                    self._step()
                self._commit()
                self._go(target)
            case Return():
                if effects.is_step(self.block):
                    self._step()
                self._commit()
                group.add(group.ended, group.bits_of(self.moving()))
                self.builder.branch(self.labels.following[self.number + 1])
            case _:
                raise UnsupportedError("calls of lanes that run together")

    def _commit(self) -> None:
        moving = self.moving()
        for leaf, array in self.now.items():
            name, _ = leaf
            if not array.sizes and name in self.program.storage:
                place = self.group.registers[leaf]
                old = self.builder.load(place, typ=array.number.type)
                self.builder.store(self.builder.select(moving, array.value, old), place)

    def _go(self, target: int | Branch) -> None:
        """Jump to the next block for which lanes wait, but back through a loop for which enough of them do."""
        group, builder, moving = self.group, self.builder, self.moving()
        if isinstance(target, int) or target.true == target.false:
            targets = [target if isinstance(target, int) else target.true]
            group.add(group.waiting[targets[0]], group.bits_of(moving))
        else:
            condition, targets = self.bool_of(target.condition), [target.true, target.false]
            for number, flags in zip(targets, (condition, builder.not_(condition)), strict=True):
                group.add(group.waiting[number], group.bits_of(builder.and_(moving, flags)))
        for number in (each for each in targets if each <= self.number):
            count = group.count(builder.load(group.waiting[number], typ=group.bits))
            onward = builder.append_basic_block("onward")
            enough = ir.Constant(group.bits, self.code.lanes * 3 // 4)
            builder.cbranch(builder.icmp_unsigned(">=", count, enough), self.labels.blocks[number], onward)
            builder.position_at_end(onward)
        builder.branch(self.labels.following[self.number + 1])

    def _step(self) -> None:
        """Count a loop turn; now and then ask whether lanes may go on."""
        group, builder = self.group, self.builder
        turns, limit = (builder.load(each, typ=INT64) for each in (group.turns, group.limit))
        with self.code.when(builder.icmp_signed(">=", turns, limit)):
            most = group.limits.max_steps
            if most is not None:
                full = builder.icmp_signed(">=", group.all_steps(), group.many.constant(most))
                self._fail(builder.and_(self.moving(), full), group.few.constant(self.block.steps_site + 1))
            group.ask(builder.or_(group.all_waiting(), group.bits_of(self.moving())), self.labels)
        builder.store(builder.add(turns, ir.Constant(INT64, 1)), group.turns)
        one = builder.sext(self.moving(), group.few.type)
        builder.store(builder.sub(builder.load(group.steps, typ=group.few.type), one), group.steps)
