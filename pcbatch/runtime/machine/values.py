"""The values that a block reads and pushes: rows of the state, stack entries, variables at each point of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pcbatch.ir.analysis import effects
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.state import from_stored, to_stored

# -- rows --------------------------------------------------------------------------------------------------------------
# The rows that a block computes: one for each lane of the batch, or one for each of a few lanes gathered for it.


@dataclass(frozen=True)
class Rows:
    """The lane of each row, and the rows that take part.

    `lanes` is int32 `[rows]`, or None where row i is lane i; `mask` bool `[rows]`; where all rows are known to take
    part, `all_take_part`. Arrays of the state are `[lanes, ...]`, what a block computes is `[rows, ...]`.
    """

    backend: Backend
    lanes: Array | None
    mask: Array
    all_take_part: bool = False
    turns: Array | None = None
    """The turn of a deferred block for each row, int32 `[rows]`; several rows may then be of one lane."""
    dear: frozenset[int] = frozenset()
    """The places, in the block's body, of pieces that are computed only if a row takes part."""

    @classmethod
    def of_all(cls, backend: Backend, mask: Array, dear: frozenset[int] = frozenset()) -> Rows:
        """A row for every lane; those of `mask` (bool `[lanes]`) take part."""
        return cls(backend, None, mask, dear=dear)

    @classmethod
    def everyone(cls, backend: Backend, mask: Array) -> Rows:
        """A row for every lane, which takes part; all of `mask` holds."""
        return cls(backend, None, mask, all_take_part=True)

    @classmethod
    def chunk(cls, backend: Backend, order: Array, count: Array, first: Array, size: int) -> Rows:
        """`size` rows for the lanes `order[first], order[first + 1], ..`, of which the first `count` are to run.

        `order` is int32 `[lanes]`, `first < count` are int32 scalars. Rows that are left over take no part; they repeat
        the last of these lanes, which is in this chunk: its values are those of a lane that runs.
        """
        lanes, mask = _some(backend, order, count, first, size)
        return cls(backend, lanes, mask)

    @classmethod
    def turns_of_lanes(cls, backend: Backend, order: Array, count: Array, first: Array, size: int, most: int) -> Rows:
        """The same for turns of lanes: `order` has numbers of turns, each lane having `most` of them."""
        numbers, mask = _some(backend, order, count, first, size)
        return cls(backend, numbers // most, mask, turns=numbers % most)

    def take(self, array: Array) -> Array:
        """The rows of an array of the state."""
        return array if self.lanes is None else self.backend.load(array, [], self.lanes)

    def load(self, array: Array, indices: Sequence[Array]) -> Array:
        """`array[lane, i, j, ..]` for every row."""
        return self.backend.load(array, indices, self.lanes)

    def store(self, array: Array, indices: Sequence[Array], mask: Array, value: Array) -> Array:
        """`array` of the state with `array[lane, i, j, ..] = value[row]` for the rows of `mask`."""
        return self.backend.masked_store(array, indices, mask, value, self.lanes)

    def put(self, array: Array, mask: Array, value: Array) -> Array:
        """`array` of the state with whole rows of `value` (or a scalar) for the lanes of the rows of `mask`."""
        if self.lanes is None:
            return self.backend.where(mask, value, array)
        return self.store(array, [], mask, self.backend.where(mask, value, value))

    def put_each(self, arrays: Sequence[Array], masks: Sequence[Array], values: Sequence[Array]) -> list[Array]:
        """`put` for each."""
        if self.all_take_part:
            return [
                value if mask is self.mask and len(value.shape) == len(array.shape) else self.put(array, mask, value)
                for array, mask, value in zip(arrays, masks, values, strict=True)
            ]
        if self.lanes is None:
            return self.backend.where(masks, values, arrays)
        return [self.put(*each) for each in zip(arrays, masks, values, strict=True)]


def _some(backend: Backend, order: Array, count: Array, first: Array, size: int) -> tuple[Array, Array]:
    """`size` entries of `order` from `first` on, and which are of the first `count`; for others the last of these."""
    places = backend.lane_numbers(size) + first
    mask = places < count
    last = count + backend.constant(-1)
    return backend.load(order, [], backend.where(mask, places, last)), mask


# -- values ------------------------------------------------------------------------------------------------------------


class Values:
    """The values that one run of one block has seen and made, `[rows, ...]`, and the state that it found."""

    def __init__(
        self,
        context: Context,
        number: int,
        state: State,
        shared: Mapping[str, Leaves],
        rows: Rows,
    ):
        self.backend, self.layout = context.backend, context.layout
        self.number, self.block = number, context.program.blocks[number]
        self.state, self.shared, self.rows = state, shared, rows
        self.entered = rows.mask
        self.moving = rows.mask  # the rows whose lanes have not failed in this block
        self.writing = rows.mask  # the rows whose lanes are given what the block has made
        self.taken: dict[str, Array] = {}  # the rows of arrays of the state
        self.whole: State = {}  # arrays of the state of which elements were written
        self.values: dict[str, list[Array]] = {}  # what the block has read, popped and written
        self.changed: set[str] = set()  # names in `values` whose value differs from the state's top

    # -- reading -------------------------------------------------------------------------------------------------------

    def now(self, key: str) -> Array:
        """The array `key` of the state, `[lanes, ...]`, as this block has left it so far."""
        return self.whole[key] if key in self.whole else self.state[key]

    def old(self, key: str) -> Array:
        """The rows of the array `key` of the state as the block found it."""
        if key not in self.taken:
            self.taken[key] = self.rows.take(self.state[key])
        return self.taken[key]

    def pointer(self, name: str) -> Array:
        """The stack pointer of `name` after the pops, meaningful for the rows that entered."""
        return self.old(self.layout.pointer(name)) - Counter(self.block.pops)[name]

    def entry(self, name: str) -> list[Array]:
        """Return the entry at the stack pointer of `name`."""
        entries = [self.rows.load(self.now(key), [self.pointer(name)]) for key in self.layout.stacks(name)]
        return [from_stored(self.backend, *each) for each in zip(entries, self.layout.leaves(name), strict=True)]

    def read(self, name: str) -> list[Array]:
        """The leaves of the value that `name` has at this point of the block."""
        if name not in self.values:
            match self.layout.storage(name):
                case "stack":
                    self.values[name] = self.entry(name)
                case "slot":
                    self.values[name] = self.of_child(name)
                case "example":
                    inputs = (self.state[key] for key in self.layout.keys("input", name))
                    self.values[name] = [self.backend.load(each, [], self.old("example")) for each in inputs]
                case _:
                    self.values[name] = [self.top(key) for key in self.layout.tops(name)]
        return self.values[name]

    def of_child(self, name: str) -> list[Array]:
        """Return the result of a forked call: the tops of the lane that has run it."""
        slot, variable = self.layout.in_slot[name]
        lanes = self.old(f"child {slot}")
        return [self.backend.load(self.state[key], [], lanes) for key in self.layout.tops(variable)]

    def top(self, key: str) -> Array:
        """The rows of a top as the block has left it so far."""
        return self.rows.take(self.whole[key]) if key in self.whole else self.old(key)

    def pop(self) -> None:
        """Give every variable of `pops` the newest entry of its stack."""
        for name in dict.fromkeys(self.block.pops):
            if self.layout.storage(name) == "cached stack":
                self.values[name] = self.entry(name)
                self.changed.add(name)
        # What a push of an unnamed value saves: the tops as they are now, before the body writes them.
        self.after_pops = {
            p.variable: self.read(p.variable) for p in self.block.pushes if self.needs_old_top(p.variable)
        }

    def needs_old_top(self, name: str) -> bool:
        """Return whether the pushes of `name` save or keep the top that it has before the body runs."""
        unnamed = any(push.variable == name and push.saved is None for push in self.block.pushes)
        return unnamed or name not in effects.written(self.block)

    # -- pushing -------------------------------------------------------------------------------------------------------

    def entries(self) -> dict[str, list[list[Array]]]:
        """Return the pushed entries of each stack, from its pointer upwards; the top of a "stack" comes last."""
        entries: dict[str, list[list[Array]]] = {}
        for push in self.block.pushes:
            name = push.variable
            value = self.after_pops[name] if push.saved is None else self.read(push.saved)
            entries.setdefault(name, []).append(value)
        for name, pushed in entries.items():
            if self.layout.storage(name) == "stack":
                pushed.append(self.values[name] if name in self.changed else self.after_pops[name])
        return entries

    def store_entry(self, name: str, above: int, entry: Sequence[Array]) -> None:
        """Write `entry` into the writing lanes' stacks of `name`, `above` entries above the pointer."""
        place = self.pointer(name) + above
        for key, type_, value in zip(self.layout.stacks(name), self.layout.leaves(name), entry, strict=True):
            stored = to_stored(self.backend, value, type_)
            self.whole[key] = self.rows.store(self.now(key), [place], self.writing, stored)
