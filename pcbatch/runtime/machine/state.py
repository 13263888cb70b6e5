"""The machine's state: flat dictionaries of arrays, by lane `[lanes, ...]` or by example `[examples, ...]`.

By lane, keys for every lane: `example` (which example it holds), `pc` (where it waits), `fault` (fault site plus one,
or 0), `steps` (loop turns plus calls so far), and in programs with calls `depth` (entries on its stack of program
counters) and `calls` (that stack; the label at its bottom is FINISH). For every variable `v` and every leaf of its
type: `top v 0` is the top, `stack v 0` the stack, and `pointer v` says how many entries the stack holds below the top.
Variables that are pushed and popped together share one pointer, named after the first of them.

A program counter is the number of a block of the program, or else: START, the lane is to begin its example; FINISH, it
has returned; FREE, it holds no example, whatever `example` says; and behind these, it has failed in a block. In the
order of these numbers: blocks, START, FINISH, FREE, failed.

Programs that fork (`machine.forking`) have keys more for every lane: `parent` and `slot`, which lane it was forked by,
for which call of the group, -1 for none; `base`, the live calls of those before it; and for call 0, 1, .. of a group
`child 0`, the lane that runs it, and `arrived 0`, whether that has returned. What a forked call gives lies in the tops
of the lane that has run it, until the lane that waits for it has gone on.

By example, what goes in: `input p 0` for every leaf of every parameter; and what comes out: `status` (LaneStatus),
`site` (the fault site, or -1), `place` (the block in which it failed, or -1), `steps`, `result r 0` for the results,
and `shown v 0` for the values that messages of faults show. Results are of no account where the status is not OK, what
is shown where nothing failed.

A "register" has a top only. A "cached stack" keeps the top apart; entries `0 .. pointer - 1` of the stack lie below
it. A "stack" has no top apart: it is entry `pointer` of the stack.

Where a layout `packs`, the numbers of one dtype that are pushed and popped together lie side by side in one array,
`frames v int32`, named after the variable whose pointer they share: `[lanes, entries, variables]`.

All stacks have the same number of entries, one more than their *capacity*, the live calls that they have room for: for
every lane `room`. So a state can leave the machine, be given longer stacks (`Layout.grown`), and go on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pcbatch.ir.analysis.effects import can_fault, is_framed, is_step, written
from pcbatch.ir.analysis.parallel_call_groups import Group, groups
from pcbatch.ir.machine import Block, Piece, Program, PushJump, Return
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.costs.device import CPU

# -- limits ------------------------------------------------------------------------------------------------------------
# The limits of a lane, beyond which it fails, and the growth of its stacks up to them.

DEFAULT_MAX_DEPTH = 8192
"""Live calls that a lane may have unless `max_depth` says otherwise: a limit against recursion without end."""

FIRST_CAPACITY, GROWTH = CPU.first_capacity, CPU.growth
"""Initial capacity of stacks, in live calls, where `max_depth` allows more; and the factor by which they grow."""

LARGEST = 2**31 - 2
"""Depths and steps are counted in int32."""


@dataclass(frozen=True)
class Limits:
    """`max_depth` live calls, `max_steps` loop turns and calls (None: no limit).

    `roomy` says that stacks have room for `max_depth` calls from the start, so that no lane ever waits for room.
    """

    max_depth: int
    max_steps: int | None
    roomy: bool = False

    @classmethod
    def of(cls, max_depth: int | None, max_steps: int | None) -> Limits:
        """The limits that a user's options mean."""
        depth = DEFAULT_MAX_DEPTH if max_depth is None else max_depth
        return cls(depth, max_steps, roomy=depth <= FIRST_CAPACITY)

    @property
    def largest_capacity(self) -> int:
        """The capacity of the largest stacks, in calls: `max_depth`, made even so that entries are odd in number."""
        return self.max_depth + self.max_depth % 2

    @property
    def first_capacity(self) -> int:
        """The capacity of the stacks, in calls, of a program that has never run."""
        return self.largest_capacity if self.roomy else FIRST_CAPACITY

    def sizes(self, after: int, until: int) -> list[int]:
        """The capacities that stacks grow through from `after` to `until`, the first left out."""
        found = []
        while after < until:
            after = min(after * GROWTH, self.largest_capacity)
            found.append(after)
        return found


# -- state -------------------------------------------------------------------------------------------------------------

HELD = ("register", "cached stack")
"""Storage kinds of variables whose tops lie apart."""
STACKED = ("stack", "cached stack")
"""The storage kinds of variables with stacks."""


@dataclass(frozen=True)
class Layout:
    """The arrays of a program's state, and the meaning of its program counters."""

    program: Program

    @cached_property
    def has_calls(self) -> bool:
        """True if the program needs a stack of program counters at all."""
        return any(isinstance(block.terminator, PushJump) for block in self.program.blocks)

    @cached_property
    def is_framed(self) -> bool:
        """True if a lane's stacks are never longer than its stack of program counters."""
        return is_framed(self.program)

    # -- program counters ----------------------------------------------------------------------------------------------

    @cached_property
    def start(self) -> int:
        """START. Program counters below it are the program's blocks."""
        return len(self.program.blocks)

    @property
    def finish(self) -> int:
        """FINISH, the label at the bottom of every stack of program counters."""
        return self.start + 1

    @property
    def free(self) -> int:
        """FREE. Program counters beyond it are those of lanes that have failed."""
        return self.start + 2

    def failed(self, number: int) -> int:
        """The program counter of a lane that has failed in block `number`."""
        return self.free + 1 + number

    # -- forked calls --------------------------------------------------------------------------------------------------

    @cached_property
    def groups(self) -> list[Group]:
        """The groups of calls that may be forked."""
        return groups(self.program)

    @cached_property
    def slots(self) -> int:
        """The number of calls in the largest group; 0 where there are no groups."""
        return max((len(group.members) for group in self.groups), default=0)

    @cached_property
    def joins(self) -> dict[int, Group]:
        """The groups by the numbers of their join blocks."""
        return {group.join: group for group in self.groups}

    @property
    def handed(self) -> int:
        """HANDED, the label at the bottom of the stack of program counters of a lane that runs a forked call."""
        return -1

    @cached_property
    def in_slot(self) -> dict[str, tuple[int, str]]:
        """The sources of values in slots: the place of the call in its group, and the callee's variable."""
        calls = ((place, member.call) for group in self.groups for place, member in enumerate(group.members))
        return {name: (place, variable) for place, call in calls for name, variable in call.results}

    @cached_property
    def by_example(self) -> list[str]:
        """The keys of inputs that blocks read where they came in."""
        names = [name for name in self.program.parameters if self.storage(name) == "example"]
        return [key for name in names for key in self.keys("input", name)]

    # -- variables -----------------------------------------------------------------------------------------------------

    def leaves(self, name: str) -> list[TensorType]:
        """The tensor types that variable `name` is made of."""
        return list(leaves(self.program.types[name]))

    def storage(self, name: str) -> str | None:
        """The storage kind of `name`, None for a temporary."""
        return self.program.storage.get(name)

    def tops(self, name: str) -> list[str]:
        """The keys of the tops of `name`; none for a "stack", whose top lies in the stack, or by example."""
        is_apart = self.storage(name) in (*HELD, None)
        return [f"top {name} {i}" for i, _ in enumerate(self.leaves(name))] if is_apart else []

    def stacks(self, name: str) -> list[str]:
        """Return the keys of the stacks of `name`; none for a variable without stacks."""
        has_some = self.storage(name) in STACKED
        return [f"stack {name} {i}" for i, _ in enumerate(self.leaves(name))] if has_some else []

    def keys(self, what: str, name: str) -> list[str]:
        """The keys of the arrays of `name`: "input", "result" or "shown", by example, or, say, "slot 0", by lane."""
        return [f"{what} {name} {i}" for i, _ in enumerate(self.leaves(name))]

    def pointer(self, name: str) -> str:
        """The key of the stack pointer of `name`."""
        return f"pointer {self.program.pointers.get(name, name)}"

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """The variables that messages of faults show."""
        return tuple(dict.fromkeys(name for site in self.program.faults for name in site.arguments))

    # -- arrays --------------------------------------------------------------------------------------------------------

    @cached_property
    def arrays(self) -> dict[str, ArraySpec]:
        """The contents of every array by lane, by key, in the order in which states are passed on."""
        found = dict.fromkeys(("pc", "example", "fault", "steps"), NUMBER)
        if self.has_calls:
            found |= {"depth": NUMBER, "calls": ArraySpec(TensorType("int32"), stacked=True)}
        if self.groups:
            found |= dict.fromkeys(("parent", "slot", "base"), NUMBER)
            for slot in range(self.slots):
                found |= dict.fromkeys((f"child {slot}", f"arrived {slot}"), NUMBER)
        if self.has_calls or {*self.program.storage.values()} & {*STACKED}:
            found["room"] = NUMBER
        for name, storage in self.program.storage.items():
            types = self.leaves(name)
            found.update(zip(self.tops(name), map(ArraySpec, types), strict=False))  # no keys for a "stack"
            if storage in STACKED:
                found[self.pointer(name)] = NUMBER
                for key, type_ in zip(self.stacks(name), types, strict=True):
                    found[key] = ArraySpec(type_, stacked=True)
        return found

    @cached_property
    def carried(self) -> list[str]:
        """The keys of the arrays that blocks may read or change: all but which examples the lanes hold."""
        return [key for key in self.arrays if key != "example"]

    @cached_property
    def pointers(self) -> list[str]:
        """The keys of all stack pointers."""
        return [key for key in self.arrays if key.startswith("pointer ")]

    @cached_property
    def inputs(self) -> dict[str, ArraySpec]:
        """The contents of every array of inputs, by key, in the order of the program's parameters."""
        names = self.program.parameters
        return {key: ArraySpec(t) for n in names for key, t in zip(self.keys("input", n), self.leaves(n), strict=True)}

    @cached_property
    def outputs(self) -> dict[str, ArraySpec]:
        """The contents of every array of outputs, by key, in the order in which they are passed on."""
        found = dict.fromkeys(("status", "site", "place", "steps"), NUMBER)
        for name in self.program.results:
            given = [TensorType(type_.returned, type_.shape) for type_ in self.leaves(name)]
            found.update(zip(self.keys("result", name), map(ArraySpec, given), strict=True))
        for name in self.shown:
            found.update(zip(self.keys("shown", name), map(ArraySpec, self.leaves(name)), strict=True))
        return found

    @cached_property
    def elements(self) -> int:
        """The number of elements kept for a lane and its example, with stacks of the initial size."""
        stacked = CPU.first_capacity + 1
        held = [*self.arrays.values(), *self.inputs.values(), *self.outputs.values()]
        return sum((stacked if each.stacked else 1) * math.prod(each.value.shape) for each in held)

    @cached_property
    def all_stacks(self) -> list[str]:
        """The keys of all stacks, that of program counters included."""
        return [key for key, held in self.arrays.items() if held.stacked]

    # -- states --------------------------------------------------------------------------------------------------------

    def free_lanes(self, backend: Backend, lanes: Any, capacity: Any, examples: Array | None = None) -> State:
        """Return so many lanes that are free and new: all else but the bottoms of their stacks reads zero.

        The stacks have room for `capacity` live calls: an int, or an int32 scalar. `examples`, an int32 scalar, if that
        is given, is how many there are, which is not known when the program is compiled.
        """
        # An odd number of entries: with a power of two the lanes' rows lie a power of two apart and fall into the
        # same few sets of the cache (128 floats, 64 lanes: 32 us a trip at depth 256 instead of 11).
        entries = capacity + 1
        state = {
            key: backend.zeros(lanes, held.type, entries if held.stacked else None) for key, held in self.arrays.items()
        }
        if examples is not None:
            state = dict(zip(state, backend.made_apart([*state.values()], examples), strict=True))
        state["pc"] = state["pc"] + self.free
        if "room" in state:
            # An array, as reading it off a stack's shape inside the loop makes XLA copy that stack in every block.
            state["room"] = state["room"] + capacity
        if self.has_calls:
            state["calls"] = state["calls"] + self.finish
        return state

    def capacity(self, backend: Backend, state: State) -> Any:
        """Return the capacity of the stacks of `state`, in live calls: an int where known, else an int32 scalar."""
        return backend.lanes_of(state[self.all_stacks[0]], 1) - 1 if self.all_stacks else 0

    def grown(self, backend: Backend, state: State, capacity: Any) -> State:
        """`state` with stacks that have room for `capacity` live calls, more than they had."""
        longer = {key: backend.lengthen(state[key], capacity + 1) for key in self.all_stacks}
        return {**state, **longer, "room": state["room"] * 0 + capacity}

    def read(self, backend: Backend, state: State, name: str) -> list[Array]:
        """The tops of variable `name`, one array for each leaf of its type."""
        if self.storage(name) == "example":
            return [backend.load(state[key], [], state["example"]) for key in self.keys("input", name)]
        if self.storage(name) != "stack":
            return [state[key] for key in self.tops(name)]
        tops = [backend.load(state[key], [state[self.pointer(name)]]) for key in self.stacks(name)]
        return [from_stored(backend, *each) for each in zip(tops, self.leaves(name), strict=True)]


@dataclass(frozen=True)
class ArraySpec:
    """The contents of an array for each lane or example: one value of `type`, or, `stacked`, a stack of them."""

    value: TensorType
    stacked: bool = False

    @property
    def type(self) -> TensorType:
        """The type of an element. XLA scatters bools six times slower than bytes, so stacks of bools are bytes."""
        return TensorType("uint8", self.value.shape) if self.stacked and self.value.dtype == "bool" else self.value


NUMBER = ArraySpec(TensorType("int32"))


def to_stored(backend: Backend, value: Array, type_: TensorType) -> Array:
    """`value` as it is kept inside a stack."""
    return backend.cast(value, "uint8") if type_.dtype == "bool" else value


def from_stored(backend: Backend, entry: Array, type_: TensorType) -> Array:
    """The inverse of `to_stored`."""
    return backend.cast(entry, "bool") if type_.dtype == "bool" else entry


# The arrays of the state that each block writes.
#
# A guard `cond(someone waits, block, identity)` may only carry what its block writes, for XLA copies what else passes
# through; so the machine must know each block's writes beforehand.


def changes(layout: Layout, number: int, max_steps: int | None) -> tuple[str, ...]:
    """The keys of the state that block `number` may change, sorted."""
    block = layout.program.blocks[number]
    keys = {"pc"}
    if can_fault(block, max_steps):
        keys.add("fault")
    if is_step(block):
        keys.add("steps")
    match block.terminator:
        case PushJump(fork=None):
            keys |= {"depth", "calls"}
        case Return() if layout.has_calls:
            keys.add("depth")
    pushed = {push.variable for push in block.pushes}
    for name in {*block.pops, *pushed}:
        keys.add(layout.pointer(name))
    for name in {*block.pops, *written(block)}:
        if layout.storage(name) is not None and name not in block.dead:
            keys.update(layout.tops(name))
    for name in pushed:
        keys.update(layout.stacks(name))
    for name in written(block):
        if layout.storage(name) == "stack":
            keys.update(layout.stacks(name))
    return tuple(sorted(keys))


def in_place(layout: Layout, block: Block) -> set[str]:
    """The keys of the state of which `block` writes elements at most, however long the arrays are."""
    pushed = {push.variable for push in block.pushes}
    pieces = [item for item in block.body if isinstance(item, Piece)]
    computed = {*block.pops, *pushed, *(name for piece in pieces for name in piece.writes)}
    stored = set(written(block)) - computed
    return {
        *layout.all_stacks,
        *(key for name in stored if layout.storage(name) for key in layout.tops(name)),
    }
