"""The machine's state: one flat dictionary of arrays laid out `[lanes, ...]`.

Keys, for every lane: `pc` (the block it waits at; the number of blocks means finished, more means failed), `fault`
(fault site plus one, or 0), `steps` (loop turns plus calls so far), `example` (whose example it computes), and in
programs with calls `depth` (entries on its stack of program counters) and `calls` (that stack; its bottom is the
number of the place that ends the program). For every variable `v` and every leaf of its type: `top v 0` is the top,
`stack v 0` the stack, and `pointer v` says how many entries the stack holds below the top.

A "register" has a top only. A "cached stack" keeps the top apart; entries `0 .. pointer - 1` of the stack lie below
it. A "stack" has no top apart: it is entry `pointer` of the stack, which for that reason has one entry more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.table import Program, PushJump

State = dict[str, Array]


@dataclass(frozen=True)
class Layout:
    """Which arrays a program's state has; `capacity` is how many entries a stack has room for below the top."""

    program: Program
    capacity: int

    @cached_property
    def has_calls(self) -> bool:
        """Whether the program needs a stack of program counters at all."""
        return any(isinstance(block.terminator, PushJump) for block in self.program.blocks)

    @cached_property
    def finished(self) -> int:
        """The program counter of a lane that has nothing left to do."""
        return len(self.program.blocks)

    def failed(self, number: int) -> int:
        """The program counter of a lane that has failed in block `number`."""
        return self.finished + 1 + number

    def leaves(self, name: str) -> list[TensorType]:
        """The tensor types that variable `name` is made of."""
        return list(leaves(self.program.types[name]))

    def storage(self, name: str) -> str | None:
        """The storage kind of `name`, None for a temporary."""
        return self.program.storage.get(name)

    def tops(self, name: str) -> list[str]:
        """The keys of the tops of `name`; none for a "stack", whose top lies in the stack."""
        return [] if self.storage(name) == "stack" else [f"top {name} {i}" for i, _ in enumerate(self.leaves(name))]

    def stacks(self, name: str) -> list[str]:
        """The keys of the stacks of `name`; none for a register."""
        return (
            [] if self.storage(name) == "register" else [f"stack {name} {i}" for i, _ in enumerate(self.leaves(name))]
        )

    def pointer(self, name: str) -> str:
        """The key of the stack pointer of `name`."""
        return f"pointer {name}"

    def start(self, backend: Backend, lanes: Any, inputs: Mapping[str, Sequence[Array]], example: Array) -> State:
        """The state of lanes that wait at the entry block with `inputs` (leaves by parameter); all else reads zero."""

        def integers() -> Array:
            return backend.zeros(lanes, TensorType("int32"))

        state = {"pc": integers(), "fault": integers(), "steps": integers(), "example": example}
        if self.has_calls:
            state["depth"] = integers() + 1
            state["calls"] = backend.zeros(lanes, TensorType("int32", (self.capacity + 1,))) + self.finished
        for name, storage in self.program.storage.items():
            types = self.leaves(name)
            values = list(inputs.get(name, ())) or [backend.zeros(lanes, type_) for type_ in types]
            state.update(zip(self.tops(name), values, strict=False))  # no keys for a "stack"
            if storage == "register":
                continue
            state[self.pointer(name)] = integers()
            # An odd number of entries: with a power of two the lanes' rows lie a power of two apart and fall into the
            # same few sets of the cache (128 floats, 64 lanes: 32 us a trip at depth 256 instead of 11).
            entries = (self.capacity + (storage == "stack")) | 1
            for key, type_, value in zip(self.stacks(name), types, values, strict=True):
                stack = backend.zeros(lanes, stored_type(type_, entries))
                if storage == "stack" and name in inputs:
                    everyone = integers() == 0
                    stack = backend.masked_store(stack, [integers()], everyone, to_stored(backend, value, type_))
                state[key] = stack
        return state

    def read(self, backend: Backend, state: State, name: str) -> list[Array]:
        """The tops of variable `name`, one array for each leaf of its type."""
        if self.storage(name) != "stack":
            return [state[key] for key in self.tops(name)]
        return load_entry(backend, [state[k] for k in self.stacks(name)], state[self.pointer(name)], self.leaves(name))


def stored_type(type_: TensorType, entries: int) -> TensorType:
    """The type of one lane's stack of values of `type_`. XLA scatters bools six times slower than bytes."""
    return TensorType("uint8" if type_.dtype == "bool" else type_.dtype, (entries, *type_.shape))


def to_stored(backend: Backend, value: Array, type_: TensorType) -> Array:
    """`value` as it is kept inside a stack."""
    return backend.cast(value, "uint8") if type_.dtype == "bool" else value


def load_entry(backend: Backend, stacks: Sequence[Array], index: Array, types: Sequence[TensorType]) -> list[Array]:
    """Entry `index[lane]` of every lane's stack, leaf by leaf."""
    entries = [backend.load(stack, [index]) for stack in stacks]
    return [
        backend.cast(entry, "bool") if type_.dtype == "bool" else entry
        for entry, type_ in zip(entries, types, strict=True)
    ]
