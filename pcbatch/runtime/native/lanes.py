"""A program over all its lanes, one after another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from pcbatch.ir.machine import Block, Piece
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.costs.estimate import block_costs
from pcbatch.runtime.native.code import EXECUTIONS, Code
from pcbatch.runtime.native.registers import Registers

ENDS = ("fault", "steps")
"""The keys of the numbers that say how each lane has ended."""


class Lanes:
    """The program over all lanes, one after another: from `[lanes, ...]` arrays to `[lanes, ...]` arrays."""

    def __init__(self, backend: Backend, registers: Registers, max_steps: int | None):
        self.backend, self.registers, self.max_steps = backend, registers, max_steps
        self.program = registers.program
        costs = zip(block_costs(self.program, backend), map(self._has_loop, self.program.blocks), strict=True)
        self.row_costs = [math.inf if has_loop else cost for cost, has_loop in costs]

    def _has_loop(self, block: Block) -> bool:
        """Whether a block has a loop inside, which must not be run for the values of a lane that waits elsewhere."""
        types, same = self.program.types, self.program.shared_types
        pieces = (item for item in block.body if isinstance(item, Piece))
        return any(self.backend.has_loop(p, [types[n] for n in p.reads], [same[n] for n in p.shared]) for p in pieces)

    @cached_property
    def outputs(self) -> dict[str, TensorType]:
        """What is kept of every lane, by key, `ENDS` first."""
        registers = self.registers
        found = {key: registers.types[key] for key in ENDS}
        for name in self.program.results:
            given = [TensorType(type_.returned, type_.shape) for type_ in registers.leaves(name)]
            found.update(zip(registers.keys("result", name), given, strict=True))
        for name in registers.shown:
            found.update(zip(registers.keys("shown", name), registers.leaves(name), strict=True))
        return found

    def run(self, lanes: int, bounds: Array, arrays: Sequence[Array], counts: bool) -> list[Array]:
        """`outputs` of those of `lanes` lanes from the first to before the second of two `bounds`; zeros of the others.

        `arrays` are the leaves of parameters and shared operands. Last, if it `counts`, how often each block has run.
        """
        backend, registers, program = self.backend, self.registers, self.program
        remaining = iter(arrays)
        inputs = {key: next(remaining) for name in program.parameters for key in registers.keys("top", name)}
        shared = {name: [next(remaining) for _ in leaves(program.shared_types[name])] for name in program.shared}
        outputs = self.outputs
        first, behind = (backend.element(bounds, [backend.constant(place)]) for place in range(2))
        code = Code(backend, registers, self.max_steps, self.row_costs, shared, first < 0, counts)
        stays = {key: backend.zeros(registers.entries, type_) for key, type_ in registers.stacks.items()}
        if counts:
            stays[EXECUTIONS] = backend.zeros(len(program.blocks), TensorType("int64"))

        def is_left(carried: State) -> Array:
            return carried["lane"] < behind

        def one(carried: State) -> State:
            lane = carried["lane"]
            given = {key: backend.element(array, [lane]) for key, array in inputs.items()}
            end = code.run({**code.start({key: carried[key] for key in stays}), **given})
            kept = self.kept(end)
            written = {key: backend.with_element(carried[key], [lane], kept[key]) for key in outputs}
            return {"lane": lane + 1, **written, **{key: end[key] for key in stays}}

        blank = {key: backend.zeros(lanes, type_) for key, type_ in outputs.items()}
        end = backend.while_loop(is_left, one, {"lane": first, **blank, **stays})
        return [end[key] for key in (*outputs, *([EXECUTIONS] if counts else []))]

    def kept(self, end: State) -> State:
        """The `outputs` of one lane at its end."""
        registers, found = self.registers, {key: end[key] for key in ENDS}
        for what, names in (("result", self.program.results), ("shown", registers.shown)):
            for name in names:
                tops = [end[key] for key in registers.keys("top", name)]
                found.update(zip(registers.keys(what, name), tops, strict=True))
        types = self.outputs
        return {key: self.backend.cast(value, types[key].dtype) for key, value in found.items()}
