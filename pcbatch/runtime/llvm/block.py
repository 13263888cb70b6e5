"""Blocks of a machine program as LLVM's, control as jumps.

The program counter is where the code is. A call pushes the number of the place that it comes back to, a return jumps
to the one that it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import llvmlite.ir as ir

from pcbatch.ir.analysis import effects
from pcbatch.runtime.llvm.lane import Lane
from pcbatch.runtime.llvm.one_lane import OneLane
from pcbatch.runtime.llvm.stacks import Leaf
from pcbatch.runtime.llvm.types import BYTE, INT32, INT64, Number


def emit(lane: Lane, make: Callable[..., BlockCode] | None = None) -> None:
    """All blocks that a lane can come to, from where the builder stands: there it begins. `make` makes each."""
    builder, order = lane.builder, sorted(effects.reachable(lane.program))
    labels = {number: builder.append_basic_block(lane.program.blocks[number].label) for number in order}
    builder.branch(labels[0])
    for number in order:
        builder.position_at_end(labels[number])
        with lane.code.scratch():
            (make or BlockCode)(lane, number, labels).emit()


class BlockCode(OneLane):
    """One block of one lane that begins and ends in this function."""

    def __init__(self, lane: Lane, number: int, labels: Mapping[int, Any]):
        super().__init__(lane, number, labels, lane.executions)
        self.lane = lane

    def _fields(self, name: str, above: int) -> Iterator[tuple[Leaf, Number, tuple[int, ...], Any]]:
        group = self.storage.group(name)
        count, frame = self.builder.load(self.lane.pointers[group], typ=INT64), self.storage.frames[group]
        place = self.code.times(self.code.add(count, above), frame.bytes)
        entry = self.builder.gep(self.lane.stacks[group], [place], inbounds=True, source_etype=BYTE)
        for leaf, number, sizes in self.storage.leaves(name):
            at = ir.Constant(INT64, frame.fields[leaf].offset)
            yield leaf, number, sizes, self.builder.gep(entry, [at], inbounds=True, source_etype=BYTE)

    def _move(self, group: str, by: int) -> None:
        address = self.lane.pointers[group]
        self.builder.store(self.code.add(self.builder.load(address, typ=INT64), by), address)

    def _fail(self, code: Any) -> None:
        base = self.number << self.storage.site_bits
        self.builder.store(self.builder.add(code, ir.Constant(INT32, base)), self.lane.exits.code)
        self.builder.branch(self.lane.exits.ended)

    def _call(self, back: int, site: int) -> None:
        builder = self.builder
        depth = builder.load(self.lane.depth, typ=INT64)
        self._call_fits(depth, site)
        self._step()
        if len(self.storage.returns) > 1:
            number = ir.Constant(INT32, self.storage.returns.index(back))
            builder.store(number, self._called_from(depth))
        builder.store(builder.add(depth, ir.Constant(INT64, 1)), self.lane.depth)

    def _called_from(self, depth: Any) -> Any:
        return self.builder.gep(self.lane.calls, [depth], inbounds=True, source_etype=INT32)

    def _call_fits(self, depth: Any, site: int) -> None:
        """Check that one more call is allowed, and has room; `depth` calls are live."""
        builder, lane = self.builder, self.lane
        full, fits = (builder.append_basic_block(name) for name in ("full", "fits"))
        builder.cbranch(builder.icmp_signed("<", depth, lane.capacity), fits, full)
        builder.position_at_end(full)
        deep = builder.append_basic_block("too_deep")
        most = ir.Constant(INT64, lane.limits.max_depth)
        builder.cbranch(builder.icmp_signed(">=", depth, most), deep, lane.exits.room)
        builder.position_at_end(deep)
        self._fail(ir.Constant(INT32, site + 1))
        builder.position_at_end(fits)

    def _step(self) -> None:
        builder, exits = self.builder, self.lane.exits
        steps, limit = builder.load(exits.steps, typ=INT64), builder.load(exits.limit, typ=INT64)
        ask, counted = (builder.append_basic_block(name) for name in ("ask", "counted"))
        builder.cbranch(builder.icmp_signed("<", steps, limit), counted, ask)
        builder.position_at_end(ask)
        if self.lane.limits.max_steps is not None:
            over, other = (builder.append_basic_block(name) for name in ("too_many", "other"))
            most = ir.Constant(INT64, self.lane.limits.max_steps)
            builder.cbranch(builder.icmp_signed(">=", steps, most), over, other)
            builder.position_at_end(over)
            self._fail(ir.Constant(INT32, self.block.steps_site + 1))
            builder.position_at_end(other)
        further = self.lane.poll(steps)
        builder.store(further, exits.limit)
        builder.cbranch(builder.icmp_signed("<", further, ir.Constant(INT64, 0)), exits.stopped, counted)
        builder.position_at_end(counted)
        builder.store(builder.add(steps, ir.Constant(INT64, 1)), exits.steps)

    def _return(self) -> None:
        builder, lane, returns = self.builder, self.lane, self.storage.returns
        if not returns:
            builder.branch(lane.exits.ended)
            return
        depth = builder.load(lane.depth, typ=INT64)
        back = builder.append_basic_block("back")
        builder.cbranch(builder.icmp_signed("==", depth, ir.Constant(INT64, 0)), lane.exits.ended, back)
        builder.position_at_end(back)
        below = builder.sub(depth, ir.Constant(INT64, 1))
        builder.store(below, lane.depth)
        if len(returns) == 1:
            builder.branch(self._label(returns[0]))
            return
        place = builder.load(self._called_from(below), typ=INT32)
        switch = builder.switch(place, self._label(returns[-1]))
        for number, to in enumerate(returns[:-1]):
            switch.add_case(ir.Constant(INT32, number), self._label(to))
