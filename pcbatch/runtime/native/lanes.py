"""A program over all its lanes, one after another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.costs.estimate import block_costs
from pcbatch.runtime.native.code import EXECUTIONS, Code
from pcbatch.runtime.native.fitness import is_better_jumped_over
from pcbatch.runtime.native.registers import Registers

ENDS = ("fault", "steps")
"""The keys of the numbers that say how each lane has ended."""


class Lanes:
    """The program over all lanes, one after another: from `[lanes, ...]` arrays to `[lanes, ...]` arrays."""

    at_once = 1
    """How many lanes run at a time."""

    def __init__(self, backend: Backend, registers: Registers, max_steps: int | None):
        self.backend, self.registers, self.max_steps = backend, registers, max_steps
        self.program = registers.program
        self.estimates = block_costs(self.program, backend)
        self.row_costs = [
            math.inf if is_better_jumped_over(self.program, backend, block) else cost
            for block, cost in zip(self.program.blocks, self.estimates, strict=True)
        ]

    @property
    def work(self) -> float:
        """The estimated work of a step."""
        return sum(self.estimates)

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

    def run(
        self, lanes: int, bounds: Array, arrays: Sequence[Array], counts: bool = False, carried: Sequence[Array] = ()
    ) -> list[Array]:
        """`outputs` of some of `lanes` lanes, one after another; of the others anything.

        `bounds` are the first lane, the one behind the last, a budget, and whether the first lane is in the middle of
        its program. A lane costs its steps and one more; none begins once the budget is used up. `arrays` are the
        leaves of parameters and shared operands, `carried` is what every lane holds in the end, if it is to be kept.

        After the outputs: the lane that would be next, whether it was stopped in the middle, and whether any has
        failed; if it `counts`, how often each block has run; and what is `carried` on. Where that is nothing, a lane
        may cost as much again as the budget, but what one has done that costs more is lost.
        """
        backend, registers, program = self.backend, self.registers, self.program
        goes_on = bool(carried)
        remaining = iter(arrays)
        inputs = {key: next(remaining) for name in program.parameters for key in registers.keys("top", name)}
        shared = {name: [next(remaining) for _ in leaves(program.shared_types[name])] for name in program.shared}
        outputs = self.outputs
        first, behind, budget, began = (backend.element(bounds, [backend.constant(place)]) for place in range(4))
        code = Code(backend, registers, self.max_steps, self.row_costs, shared, first < 0, counts, goes_on)
        if goes_on:
            before = dict(zip(self.carried, carried, strict=True))
        else:
            before = {key: backend.zeros(registers.entries, type_) for key, type_ in registers.stacks.items()}
        if counts:
            before[EXECUTIONS] = backend.zeros(len(program.blocks), TensorType("int64"))

        def is_left(now: State) -> Array:
            return backend.both(now["lane"] < behind, now["budget"] > 0)

        def one(now: State) -> State:
            lane = now["lane"]
            given = {key: backend.element(array, [lane]) for key, array in inputs.items()}
            state = {**code.start({key: now[key] for key in stays}), **given}
            limit = now["budget"] + budget
            if goes_on:
                has_begun = now["began"] > 0
                state |= {key: backend.choose(has_begun, now[key], state[key]) for key in registers.types}
                limit = state["steps"] + now["budget"]
            end = code.run({**state, "steps": state["steps"] - limit, "limit": limit})
            end = {**end, "steps": end["steps"] + limit}
            kept, done = self.kept(end), code.has_ended(end)
            written = {f"all {key}": backend.with_element(now[f"all {key}"], [lane], kept[key]) for key in outputs}
            left = now["budget"] - (end["steps"] - state["steps"]) - 1
            after = {**written, **{key: end[key] for key in before}}
            if counts and not goes_on:
                after[EXECUTIONS] = backend.choose(done, end[EXECUTIONS], now[EXECUTIONS])
            is_next = backend.cast(done, "int32")
            budget_left = backend.choose(done, left, backend.constant(0))
            moved = {"lane": lane + is_next, "began": 1 - is_next, "budget": budget_left}
            return {**after, **moved, "failed": failed_too(backend, now["failed"], kept)}

        stays = [*registers.stacks, *([EXECUTIONS] if counts else [])]
        blank = {f"all {key}": backend.zeros(lanes, type_) for key, type_ in outputs.items()}
        start = {"lane": first, "began": began, "budget": budget, "failed": backend.constant(0)}
        end = backend.while_loop(is_left, one, {**start, **blank, **before})
        more = [*([EXECUTIONS] if counts else []), *(self.carried if goes_on else [])]
        return [end[key] for key in (*(f"all {key}" for key in outputs), "lane", "began", "failed", *more)]

    @cached_property
    def carried(self) -> dict[str, TensorType]:
        """What a lane that was stopped holds, by key: registers, then stacks."""
        return {**self.registers.types, **self.registers.stacks}

    def nothing_carried(self) -> list[Array]:
        """Arrays in the place of what is carried, for a lane that is to begin."""
        backend, registers = self.backend, self.registers
        blank = [backend.zeros_of(type_) for type_ in registers.types.values()]
        return [*blank, *(backend.zeros(registers.entries, type_) for type_ in registers.stacks.values())]

    def kept(self, end: State) -> State:
        """The `outputs` of one lane at its end."""
        registers, found = self.registers, {key: end[key] for key in ENDS}
        for what, names in (("result", self.program.results), ("shown", registers.shown)):
            for name in names:
                tops = [end[key] for key in registers.keys("top", name)]
                found.update(zip(registers.keys(what, name), tops, strict=True))
        types = self.outputs
        return {key: self.backend.cast(value, types[key].dtype) for key, value in found.items()}


def failed_too(backend: Backend, failed: Array, kept: State) -> Array:
    """1 where a lane has failed already, or the one whose outputs are `kept`; else 0."""
    return backend.choose(backend.equal(kept["fault"], 0), failed, backend.constant(1))
