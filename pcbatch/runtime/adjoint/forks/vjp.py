"""The forward and backward pass of a program that forks; see `vjp`: here are the parts that know of other lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pcbatch.ir.machine import Chunks, Program
from pcbatch.runtime.adjoint.backward_sweep import Replay
from pcbatch.runtime.adjoint.forks.segments import TOLD, FlatLegs, ForkedSegments
from pcbatch.runtime.adjoint.forks.tape import ForkedTapes
from pcbatch.runtime.adjoint.forward import Forward
from pcbatch.runtime.adjoint.vjp import TapedProgram, TapedRun
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.forking import Forking
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.pool_sizing import Pools
from pcbatch.runtime.machine.segments import Snapshot


class ForkedForward(Forward):
    """The forward pass, taped, of one program that forks."""

    tells = 2

    segments: ForkedSegments

    def begin(self, arrays: Sequence[Array], lanes: int | None, fixed: int | None) -> tuple[Snapshot, Sequence[Array]]:
        """See `Forward`; the program is given on how many lanes the run begins, too."""
        *given, width, capacity, every = arrays
        inputs = dict(zip(self.layout.inputs, given, strict=False))
        return self.segments.begin(inputs, Pool(width, lanes), capacity, every), self.operands(arrays)

    def pool(self, arrays: Sequence[Array], lanes: int | None) -> Pool:
        """See `Forward`."""
        return Pool(None, lanes)

    def operands(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """See `Forward`."""
        inputs = dict(zip(self.layout.inputs, arrays, strict=False))
        return [*(inputs[key] for key in self.layout.by_example), *arrays[len(self.layout.inputs) : -3]]

    def told(self, last: Snapshot) -> list[Array]:
        """Return the statistics of forked calls, and the final number of lanes."""
        return [last.state[TOLD], self.backend.constant(0) + self.segments.lanes(last)]

    @cached_property
    def operand_specs(self) -> list[Spec]:
        """See `Forward`."""
        return self.segments.legs.operand_specs


class ForkedWay(TapedProgram):
    """Runs one program that forks taped; `pools` has the numbers of lanes.

    Tapes have room for so many `rows` of a block, which `are_likely` to be enough, if other runs have said so.
    """

    has_width = True

    def __init__(self, program: Program, context: Context, *, pools: Pools, rows: int, are_likely: bool, **given: Any):
        super().__init__(program, context, capacity=pools.capacity, **given)
        self.pools, self.rows, self._are_likely = pools, rows, are_likely

    @cached_property
    def _legs(self) -> FlatLegs:
        return FlatLegs(self.context)

    @cached_property
    def tapes(self) -> ForkedTapes:
        """See `TapedProgram`."""
        return ForkedTapes(self.context, self.rows, self._trips.size, self._sizes, self._sources, self._are_likely)

    @cached_property
    def segments(self) -> ForkedSegments:
        """See `TapedProgram`."""
        return ForkedSegments(self.context, self.tapes, self._legs, self.pools.limit)

    @cached_property
    def forward(self) -> ForkedForward:
        """See `TapedProgram`."""
        return ForkedForward(self.segments, self.put_aside, self.name_of, jit=self.jit, statistics=self.statistics)

    def _distinctions(self) -> tuple[Any, ...]:
        """See `TapedProgram`."""
        return *super()._distinctions(), self.rows, self._are_likely, self.pools.limit

    @cached_property
    def replay(self) -> Replay:
        """See `TapedProgram`."""
        order = self._trips.routes.order
        return Replay(self.tapes, self.chunked, by_lane=self.by_lane, order=order)

    @cached_property
    def _trips(self) -> Forking:
        """Trips of any pool."""
        return Forking(self.context, self._legs.loop.row_costs, Pool(1, 1))

    def chunked(self, lanes: Any) -> Program:
        """The program with the chunks in which its blocks run, whatever the number of lanes."""
        blocks = enumerate(self.program.blocks)
        chunked = (replace(block, chunks=Chunks(self._trips.size(number))) for number, block in blocks)
        return replace(self.program, blocks=tuple(chunked))

    def _first_size(self, lanes: Any, room: int | None) -> list[Array]:
        """See `TapedProgram`: the number of lanes, and the capacity of stacks."""
        assert room is not None, "runs whose length is not known make their calls in sequence"
        size = self.pools.exactly(room)
        return [self._count(size.pool.lanes), self._count(size.capacity)]

    def _note_capacity(self, capacity: int, outcome: Outcome) -> None:
        """See `TapedProgram`: `pools` knows it."""

    def _completed(self, taped: TapedRun, arrays: Sequence[Array]) -> TapedRun:
        """See `TapedProgram`."""
        inputs = dict(zip(self.layout.inputs, arrays, strict=False))
        told, lanes = taped.told
        return replace(taped, operands=[inputs[key] for key in self.layout.by_example], lanes=lanes, told=[told])

    def _pool(self, examples: Any) -> Pool:
        """See `TapedProgram`."""
        return Pool(None, examples)
