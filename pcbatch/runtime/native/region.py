"""Native code among expensive blocks: the cheap blocks of a program, for every lane up to its next expensive one.

Lanes share an expensive block, so that runs in lockstep (`runtime.machine`). What lies between two of them is cheap,
and is run lane after lane: a lane's registers are read from the machine's state, its code runs until it comes to a
block that is left to the machine, and what it has changed is written back. Stacks stay where they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pcbatch.ir.analysis import effects
from pcbatch.ir.analysis.nesting import blocks_of, nest
from pcbatch.ir.machine import Block, Piece, Program
from pcbatch.ir.types import elements, leaves
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.limits import Limits
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.native.code import EXECUTIONS, Code, Others
from pcbatch.runtime.native.fitness import is_better_jumped_over
from pcbatch.runtime.native.memory import Memory
from pcbatch.runtime.native.registers import CALLS, Registers


def with_tops_apart(program: Program) -> Program:
    """`program` as a region needs it: the tops of all stacks lie apart from these."""
    storage = {name: "register" if kind == "register" else "cached stack" for name, kind in program.storage.items()}
    return replace(program, storage=storage)


class Region:
    """The blocks of a program that are not among `others`, as native code over the machine's state.

    `row_costs` are the estimated costs of all blocks.
    """

    def __init__(
        self, backend: Backend, layout: Layout, limits: Limits, row_costs: Sequence[float], others: frozenset[int]
    ):
        self.backend, self.layout, self.limits = backend, layout, limits
        self.program: Program = layout.program
        self.registers = Registers(self.program, limits.max_depth)
        self.others = Others(layout, others, limits.roomy)
        self.lockstep = sorted(others)
        self.numbers = sorted(blocks_of(nest(self.program, others)))
        self.blocks = [self.program.blocks[number] for number in self.numbers]
        self.dearest = max((row_costs[number] for number in self.numbers), default=1.0)
        self.row_costs = [
            math.inf if self._is_jumped_over(block) else cost
            for block, cost in zip(self.program.blocks, row_costs, strict=True)
        ]

    def _is_jumped_over(self, block: Block) -> bool:
        """Whether a block is run for a lane that waits at it only, whatever its work.

        Stacks have no room for what is pushed by who does not wait there, and what is large is moved only if it has to
        be.
        """
        if is_better_jumped_over(self.program, self.backend, block):
            return True
        names = {*block.pops, *effects.read(block), *effects.written(block)} & self.program.storage.keys()
        keys = (key for name in names for key in self.registers.keys("top", name))
        return bool(self.registers.pushed(block)) or any(key in self.in_place for key in keys)

    # -- which arrays --------------------------------------------------------------------------------------------------

    @cached_property
    def in_place(self) -> frozenset[str]:
        """The keys of what is large: it is read where a block needs it, and is no register."""
        names = [name for name in self.program.storage if elements(self.program.types[name])]
        return frozenset(
            key
            for name in names
            for what in ("top", "under")
            for key, type_ in zip(self.registers.keys(what, name), self.registers.leaves(name), strict=True)
            if math.prod(type_.shape) >= CPU.native_register
        )

    @cached_property
    def changed(self) -> list[str]:
        """The keys of the state that the code changes."""
        found = self.registers.changed(self.blocks, self.limits.max_steps)
        return [key for key in found if key in self.layout.arrays]

    @cached_property
    def groups(self) -> list[str]:
        """The groups of stacks of which the code takes or to which it adds entries."""
        return sorted({group for block in self.blocks for group in self.registers.touched(block)})

    @cached_property
    def constant(self) -> list[str]:
        """The keys of the state that the code reads and does not change."""
        touched = {name for block in self.blocks for name in (*effects.read(block), *effects.written(block))}
        names = sorted(name for name in touched if name in self.program.storage)
        found = [key for name in names for key in self.registers.keys("top", name)]
        found += [key for group in self.groups for key in self.registers.stacks_of(group)]
        found += ["depth", "room"] * (CALLS in self.groups)
        return [key for key in dict.fromkeys(found) if key not in self.changed]

    @cached_property
    def shared(self) -> list[str]:
        """The shared operands that the code reads: XLA may abort at an argument that nobody uses."""
        pieces = (item for block in self.blocks for item in block.body if isinstance(item, Piece))
        return sorted({name for piece in pieces for name in piece.shared})

    # -- the code ------------------------------------------------------------------------------------------------------

    def run(self, state: State, shared: Mapping[str, Leaves], executions: Array) -> tuple[State, Array, Array]:
        """`state` where every lane has come to a block that is left to the machine, or to its end.

        Or where it has used up what one visit may take: then it waits somewhere between. `executions` counts how
        often each block has run, by lanes. The third is an int32 that the whole program has to depend on.
        """
        given, names = [*self.changed, *self.constant], self.shared

        def code(*arrays: Array) -> list[Array]:
            executions, *rest = arrays
            now = dict(zip(given, rest, strict=False))
            remaining = iter(rest[len(given) :])
            operands = {name: [next(remaining) for _ in leaves(self.program.shared_types[name])] for name in names}
            after = self._lanes({**now, EXECUTIONS: executions}, operands)
            return [after[EXECUTIONS], *(after[key] for key in self.changed)]

        operands = [leaf for name in names for leaf in shared[name]]
        executions, *found, witness = self.backend.natively(
            code, [executions, *(state[key] for key in given), *operands], changed=1 + len(self.changed)
        )
        return {**state, **dict(zip(self.changed, found, strict=True))}, executions, witness

    def steps_of_a_visit(self, lanes: Any) -> Any:
        """How many steps each of so many lanes may make before the machine has its turn: few where they are expensive.

        A run can be stopped between two visits only.
        """
        steps = min(CPU.native_visit, int(CPU.native_chunk * CPU.native_pace / max(self.dearest, 1.0)))
        return max(steps // lanes, CPU.native_least)

    def _lanes(self, state: State, shared: Mapping[str, Leaves]) -> State:
        """One lane after another."""
        backend, carried = self.backend, [EXECUTIONS, *self.changed]
        lanes = backend.lanes_of(state["pc"])
        limit = self.steps_of_a_visit(lanes)

        def one(now: State) -> State:
            lane = now["lane"]
            memory = Memory(backend, lane, self.in_place, frozenset(self.constant), self._bytes)
            never = backend.element(now[EXECUTIONS], [backend.constant(0)]) < 0
            code = Code(
                backend,
                self.registers,
                self.limits.max_steps,
                self.row_costs,
                shared,
                never,
                memory=memory,
                others=self.others,
            )
            place = code.places.found(backend.element(now["pc"], [lane]))

            def once(go: Array, arrays: Sequence[Array]) -> tuple[Array, list[Array]]:
                before = {**state, **dict(zip(carried, arrays, strict=True))}
                after = self._one(code, before, memory, limit)
                return go & False, [after[key] for key in carried]

            can_run = self._can_run(code, memory, {**state, **now}, place)
            after = backend.repeated(can_run, once, [now[key] for key in carried])
            return {**dict(zip(carried, after, strict=True)), "lane": lane + 1}

        start = {"lane": backend.constant(0), **{key: state[key] for key in carried}}
        return {**state, **backend.while_loop(lambda now: now["lane"] < lanes, one, start)}

    def _can_run(self, code: Code, memory: Memory, state: State, place: Array) -> Array:
        """Whether the lane waits at a block of the code, and not for room on its stacks: that it gets in another run.

        It may wait for room at a block that lanes come to by jumps only, as far as the code knows.
        """
        backend, places = self.backend, code.places
        is_inside = place < places.count
        calling = [int(code.can_lack_room(number)) for number in places.of]
        if not any(calling):
            return is_inside
        is_calling = backend.element(backend.array(calling, "int32"), [place]) > 0
        lacks_room = is_calling & ~code.has_room(memory.load(state, "depth", []), memory.load(state, "room", []))
        return is_inside & ~lacks_room

    def _one(self, code: Code, before: State, memory: Memory, limit: int) -> State:
        """The state after one lane's code."""
        backend, places = self.backend, code.places
        in_registers = [key for key in (*self.changed, *self.constant) if self._is_register(key)]
        registers = {key: memory.load(before, key, []) for key in in_registers}
        steps = registers.get("steps")
        state = {**before, **registers, "pc": places.found(registers["pc"])}
        if steps is not None:
            state |= {"limit": steps + limit, "steps": backend.constant(-limit)}
        else:
            state |= {"steps": backend.constant(-1), "limit": backend.constant(0)}
        end = code.run(code.reloaded(state, self.groups))
        end = {**end, "pc": places.counter(end["pc"]), "steps": backend.add(end["steps"], end["limit"])}
        after = {key: memory.stored(before, key, [], end[key]) for key in self.changed if self._is_register(key)}
        return {**{key: end[key] for key in (EXECUTIONS, *self.changed)}, **after}

    def _is_register(self, key: str) -> bool:
        """Whether an array of the state holds a register of each lane."""
        return key not in self.in_place and not self.layout.arrays[key].stacked

    @cached_property
    def _bytes(self) -> frozenset[str]:
        """The arrays that hold bools as bytes."""
        return frozenset(key for key, held in self.layout.arrays.items() if held.type != held.value)
