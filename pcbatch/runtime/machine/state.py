"""The machine's state: one flat dictionary of arrays laid out `[lanes, ...]`.

Keys, for every lane: `pc` (the block it waits at; the number of blocks means finished, more means failed), `fault`
(fault site plus one, or 0), `steps` (loop turns plus calls so far), and in programs with calls `depth` (entries on its
stack of program counters) and `calls` (that stack; its bottom is the number of the place that ends the program). For
every variable `v` and every leaf of its type: `top v 0` is the top, `stack v 0` the stack, and `pointer v` says how
many entries the stack holds below the top. Variables that are pushed and popped together share one pointer, named after
the first of them.

A "register" has a top only. A "cached stack" keeps the top apart; entries `0 .. pointer - 1` of the stack lie below
it. A "stack" has no top apart: it is entry `pointer` of the stack.

All stacks have the same number of entries, one more than their *capacity*, the live calls that they have room for: for
every lane `room`. So a state can leave the machine, be given longer stacks (`Layout.grown`), and go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pcbatch.ir.analysis.frames import is_framed
from pcbatch.ir.machine import Program, PushJump
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State


@dataclass(frozen=True)
class Held:
    """What an array of the state holds for each lane: one value of `type`, or, `stacked`, a stack of them."""

    value: TensorType
    stacked: bool = False

    @property
    def type(self) -> TensorType:
        """The type of an element. XLA scatters bools six times slower than bytes, so stacks of bools are bytes."""
        return TensorType("uint8", self.value.shape) if self.stacked and self.value.dtype == "bool" else self.value


@dataclass(frozen=True)
class Layout:
    """Which arrays a program's state has."""

    program: Program

    @cached_property
    def has_calls(self) -> bool:
        """Whether the program needs a stack of program counters at all."""
        return any(isinstance(block.terminator, PushJump) for block in self.program.blocks)

    @cached_property
    def is_framed(self) -> bool:
        """Whether a lane's stacks are never longer than its stack of program counters."""
        return is_framed(self.program)

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
        return self._pointers[name]

    @cached_property
    def _pointers(self) -> dict[str, str]:
        """The key of the stack pointer of every variable that has a stack."""
        first: dict[tuple[tuple[int, int], ...], str] = {}
        found = {}
        for name, storage in self.program.storage.items():
            if storage != "register":
                moves = [([push.variable for push in block.pushes], block.pops) for block in self.program.blocks]
                together = tuple((pushed.count(name), popped.count(name)) for pushed, popped in moves)
                found[name] = f"pointer {first.setdefault(together, name)}"
        return found

    @cached_property
    def arrays(self) -> dict[str, Held]:
        """What every array of the state holds, by key, in the order in which states are passed on."""
        number = Held(TensorType("int32"))
        found = dict.fromkeys(("pc", "fault", "steps"), number)
        if self.has_calls:
            found |= {"depth": number, "calls": Held(TensorType("int32"), stacked=True)}
        if self.has_calls or set(self.program.storage.values()) - {"register"}:
            found["room"] = number
        for name, storage in self.program.storage.items():
            types = self.leaves(name)
            found.update(zip(self.tops(name), map(Held, types), strict=False))  # no keys for a "stack"
            if storage != "register":
                found[self.pointer(name)] = number
                found.update((key, Held(t, stacked=True)) for key, t in zip(self.stacks(name), types, strict=True))
        return found

    @cached_property
    def all_stacks(self) -> list[str]:
        """The keys of all stacks, that of program counters included."""
        return [key for key, held in self.arrays.items() if held.stacked]

    def start(self, backend: Backend, lanes: Any, inputs: Mapping[str, Sequence[Array]], capacity: Any) -> State:
        """The state of lanes that wait at the entry block with `inputs` (leaves by parameter); all else reads zero.

        The stacks have room for `capacity` live calls: an int, or an int32 scalar.
        """
        given = {key: leaf for name, group in inputs.items() for key, leaf in zip(self.tops(name), group, strict=False)}
        state = {}
        for key, held in self.arrays.items():
            # An odd number of entries: with a power of two the lanes' rows lie a power of two apart and fall into the
            # same few sets of the cache (128 floats, 64 lanes: 32 us a trip at depth 256 instead of 11).
            entries = capacity + 1 if held.stacked else None
            state[key] = given[key] if key in given else backend.zeros(lanes, held.type, entries)
        if "room" in state:
            # An array, as reading it off a stack's shape inside the loop makes XLA copy that stack in every block.
            state["room"] = state["room"] + capacity
        if self.has_calls:
            state["depth"] = state["depth"] + 1
            state["calls"] = state["calls"] + self.finished
        for name, group in inputs.items():
            if self.storage(name) == "stack":
                everyone = state["pc"] == 0
                for key, type_, value in zip(self.stacks(name), self.leaves(name), group, strict=True):
                    first = to_stored(backend, value, type_)
                    state[key] = backend.masked_store(state[key], [state["pc"]], everyone, first)
        return state

    def capacity(self, backend: Backend, state: State) -> Any:
        """How many live calls the stacks of `state` have room for: an int where known, else an int32 scalar."""
        return backend.entries_of(state[self.all_stacks[0]]) - 1 if self.all_stacks else 0

    def grown(self, backend: Backend, state: State, capacity: Any) -> State:
        """`state` with stacks that have room for `capacity` live calls, more than they had."""
        longer = {key: backend.lengthen(state[key], capacity + 1) for key in self.all_stacks}
        return {**state, **longer, "room": state["room"] * 0 + capacity}

    def read(self, backend: Backend, state: State, name: str) -> list[Array]:
        """The tops of variable `name`, one array for each leaf of its type."""
        if self.storage(name) != "stack":
            return [state[key] for key in self.tops(name)]
        return load_entry(backend, [state[k] for k in self.stacks(name)], state[self.pointer(name)], self.leaves(name))


def to_stored(backend: Backend, value: Array, type_: TensorType) -> Array:
    """`value` as it is kept inside a stack."""
    return backend.cast(value, "uint8") if type_.dtype == "bool" else value


def load_entry(
    backend: Backend,
    stacks: Sequence[Array],
    index: Array,
    types: Sequence[TensorType],
    rows: Array | None = None,
) -> list[Array]:
    """Entry `index[row]` of the stack of every row's lane, leaf by leaf; `rows` as in `Arrays.load`."""
    entries = [backend.load(stack, [index], rows) for stack in stacks]
    return [
        backend.cast(entry, "bool") if type_.dtype == "bool" else entry
        for entry, type_ in zip(entries, types, strict=True)
    ]
