"""The state of a lane while it runs, its beginning and its end.

Numbers are registers, arrays lie in memory of the lane's own, stacks in memory that one lane
leaves to the next.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ir

from pcbatch.ir.machine import Step
from pcbatch.runtime.llvm.code import Array, Code, Index, scalar
from pcbatch.runtime.llvm.hlo import Module
from pcbatch.runtime.llvm.stacks import Leaf, Storage
from pcbatch.runtime.llvm.types import INT32, INT64, Number


@dataclass(frozen=True)
class PieceCode:
    """Place of a piece in the entry of an HLO module: its first parameter, and its results by name, `site` last."""

    first: int
    results: tuple[str, ...]
    has_site: bool
    kept: tuple[str, ...] = ()
    """The results that the way back needs."""


@dataclass(frozen=True)
class StepCode:
    """A step of a piece, and the place of its function in the entry of an HLO module."""

    step: Step
    place: PieceCode


Places = PieceCode | Sequence[StepCode]
"""The place of a piece as a whole, or those of its steps."""


@dataclass(frozen=True)
class Limits:
    """`max_depth` live calls, `max_steps` loop turns and calls (None: no limit)."""

    max_depth: int
    max_steps: int | None


@dataclass(frozen=True)
class Exits:
    """Labels for a lane that has ended, needs larger stacks, or is to stop; and the registers that it reports."""

    ended: Any
    room: Any
    stopped: Any
    code: Any
    """The address of the word that tells of a failure: its site plus one, and its block (`Storage.site_bits`); or 0."""
    steps: Any
    limit: Any
    """The address of the number of steps at which the lane is to ask whether it may go on."""


@dataclass(frozen=True)
class Setting:
    """The function that blocks are code of, their program and its pieces.

    `shared` are the arrays that all lanes share, by leaf, `captured` those that pieces hold, by the number of the
    parameter that takes them.
    """

    code: Code
    storage: Storage
    module: Module
    pieces: Mapping[tuple[int, int], Places]
    limits: Limits
    shared: Mapping[Leaf, Array]
    captured: Mapping[int, Array]


class State:
    """The variables of a lane, or of several that run together, for the code of blocks: of some `names`, or of all.

    Variables that are `fixed` lie where they came in. Between two blocks a temporary number is 0, and has no register.
    """

    def __init__(self, setting: Setting, names: Iterable[str] | None = None, fixed: Collection[str] = ()):
        self.setting, self.code, self.storage = setting, setting.code, setting.storage
        self.builder, self.program, self.limits = self.code.builder, self.storage.program, setting.limits
        self.registers: dict[Leaf, Any] = {}
        self.memory: dict[Leaf, Any] = {}
        code, storage = self.code, self.storage
        for name in self.program.types if names is None else names:
            for leaf, number, sizes in storage.leaves(name):
                if not sizes and name in self.program.storage:
                    self.registers[leaf] = code.variable(number.type)
                elif sizes and name not in fixed:
                    self.memory[leaf] = code.reserved(number, math.prod(sizes))
        code.arena_base = code.arena_bytes

    def clear(self, number: Number, sizes: Sequence[int], pointer: Any) -> None:
        """Fill an array with zeros."""

        def one(index: Sequence[Index]) -> None:
            self.code.store(number, number.constant(0), pointer, self.code.offset(sizes, index))

        self.code.each(sizes, one)

    def top(self, leaf: Leaf, number: Number, sizes: tuple[int, ...]) -> Array:
        """The value of a variable between two blocks."""
        if sizes:
            return self.code.memory(number, sizes, self.memory[leaf])
        register = self.registers.get(leaf)
        return scalar(number, number.constant(0) if register is None else self.builder.load(register, typ=number.type))


class Lane(State):
    """The state of one lane.

    `stacks` are the addresses of the stacks, by group, `calls` that of the places to come back to, `capacity` for how
    many live calls there is room. `executions` is where each block is counted, None where that is not wanted.
    """

    def __init__(
        self,
        setting: Setting,
        exits: Exits,
        *,
        stacks: Mapping[str, Any],
        calls: Any,
        capacity: Any,
        poll: Any,
        executions: Any = None,
    ):
        code, storage = setting.code, setting.storage
        super().__init__(setting, fixed={name for name in storage.program.parameters if name not in storage.written})
        self.exits, self.stacks, self.calls, self.capacity = exits, stacks, calls, capacity
        self.poll, self.executions = poll, executions
        self.depth = code.variable(INT64)
        self.pointers = {group: code.variable(INT64) for group in storage.frames}

    # -- beginning and end ---------------------------------------------------------------------------------------------

    def start(self, given: Mapping[Leaf, Array]) -> None:
        """Begin a lane whose parameters are `given`, and go to its first block."""
        code = self.code
        for address in (self.depth, *self.pointers.values(), self.exits.steps):
            self.builder.store(ir.Constant(INT64, 0), address)
        self.builder.store(ir.Constant(INT32, 0), self.exits.code)
        for name in self.program.types:
            for leaf, number, sizes in self.storage.leaves(name):
                if leaf in self.registers:
                    value = given[leaf].value if leaf in given else number.constant(0)
                    self.builder.store(value, self.registers[leaf])
                elif leaf in given and leaf in self.memory:
                    code.write(given[leaf], self.memory[leaf])
                elif leaf in given:
                    self.memory[leaf] = given[leaf].pointer
                elif sizes and name in self.storage.under_predicates:
                    self.clear(number, sizes, self.memory[leaf])
