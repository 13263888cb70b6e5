"""The adjoint of one run of one block: gradients flow back along the flow of values.

For each active variable there is the gradient by its top, and by each entry of its stack, of every lane, laid out as
the values are: `top v 0`, `stack v 0`. A run is undone from its end to its beginning. Along the way `adjoints` holds
the gradients of its rows by the values that names have at that point of the block; where a name got its value, its
gradient is taken, and what it had before starts with none:

    piece y.. = f(x..)     x's gradients grow by what the piece's derivative makes of y's; where f has no such x, the
                           piece is late, and y's gradients are kept for the end
    store a[i] = v         v's grows by that of the element, which becomes zero
    push of s on v         s's grows by that of the new entry
    piece y = .. if p      where p does not hold, y's gradient stays that by the value that it had before
    pop of v               the entry that was removed gets what the top has, and the top nothing
    fork of f(v = s)       s's grows by that of `v` in the lane that has run the call, where it becomes zero
    join, s = r of it      that of `r` in the lane that has run the call is that of s

What all lanes of an example read where it came in has its gradient by example, to which rows add.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pcbatch.ir.machine import Piece, Push, Store
from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.block_vjp_info import Names, keys
from pcbatch.runtime.adjoint.tape import LANE, child_field, index_field, predicate_field, residual_field
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.machine.values import Rows

Adjoint = list[Array | None]
"""Gradients by the leaves of a value, `[rows, ...]`; None for zeros, and for leaves that have none."""


class BlockVjp:
    """One run of a block, on its way back: `rows` say which lanes it was of, `taped` has the fields of their rows."""

    def __init__(
        self, names: Names, state: State, rows: Rows, taped: Mapping[str, Array], shared: Mapping[str, Leaves]
    ):
        self.names, self.tapes, self.tape = names, names.tapes, names.tape
        self.backend, self.layout = self.tapes.backend, self.tapes.layout
        self.state, self.rows, self.taped, self.shared = dict(state), rows, taped, shared
        self.adjoints: dict[str, Adjoint] = {}
        self.read: list[Array] = []
        """Values read from the state, to be computed before the state is written."""
        self.deltas: dict[int, Sequence[Array]] = {}
        self.parts: dict[int, Sequence[Array]] = {}
        self.seeds: dict[int, Sequence[Array]] = {}

    def undo(self) -> State:
        """Return the gradients as they are before the run; `deltas` and `parts` have the pieces' other results.

        And `seeds` has those of late pieces, which give nothing yet.
        """
        for name in self.names.whole:
            self.adjoints[name] = [None for _ in self.layout.leaves(name)] if self.adds else self.at_end(name)
        for slot, variable, name in self.names.given:
            self.add(name, self.of_child(slot, variable))
        saved = self.entries()
        for push, entry in saved:
            if push.saved is not None:
                self.add(push.saved, entry)
        for place, item in reversed([*enumerate(self.names.block.body)]):
            match item:
                case Piece():
                    self.piece(place, item)
                case Store() if place in self.names.stores:
                    self.store(place, item)
        for push, entry in saved:
            if push.saved is None:
                self.add(push.variable, entry)
        here = self.backend.once_there(self.rows.mask, self.read)
        for slot, variable, _ in self.names.given:
            self.empty(slot, variable, here)
        for name in self.names.whole:
            if self.adds:
                self.add_to_lanes(name)
            else:
                self.put(name, here)
        for slot, variable, name in self.names.handed:
            self.hand(slot, variable, self.taken(name), here)
        for name in self.names.of_example:
            self.add_to_example(name)
        return {key: self.state[key] for key in self.names.keys}

    # -- gradients of rows ---------------------------------------------------------------------------------------------

    def add(self, name: str, more: Adjoint) -> None:
        """Let the gradient by `name` grow, if it is active."""
        if name not in self.tapes.activity.variables:
            return
        known = self.adjoints.get(name)
        if known is None:
            self.adjoints[name] = list(more)
            return
        pairs = zip(known, more, strict=True)
        self.adjoints[name] = [
            (new if old is None else old) if old is None or new is None else old + new for old, new in pairs
        ]

    def taken(self, name: str) -> Adjoint:
        """The gradient by `name`, which has got its value here."""
        found = self.adjoints.get(name)
        self.adjoints[name] = [None for _ in self.layout.leaves(name)]
        return self.adjoints[name] if found is None else found

    def zeros(self, type_: TensorType) -> Array:
        """Return a zero gradient for each row."""
        return self.backend.zeros(self.backend.lanes_of(self.rows.mask), type_)

    def filled(self, name: str, adjoint: Adjoint) -> list[Array]:
        """The gradients by the leaves that have some."""
        pairs = zip(adjoint, self.tapes.floats(name), strict=True)
        return [self.zeros(leaf) if each is None else each for each, leaf in pairs if leaf is not None]

    # -- the state -----------------------------------------------------------------------------------------------------

    def stacks(self, name: str) -> list[str | None]:
        """The keys of the gradients by the stacks of `name`."""
        pairs = zip(self.layout.stacks(name), self.tapes.floats(name), strict=True)
        return [None if leaf is None else key for key, leaf in pairs]

    def place(self, name: str, above: int) -> Array:
        """The entry so far above the stack pointer that `name` had after the pops."""
        return self.taped[self.layout.pointer(name)] + above

    def entry(self, name: str, above: int) -> Adjoint:
        """The gradient by an entry of a stack."""
        place = self.place(name, above)
        found = [None if key is None else self.rows.load(self.state[key], [place]) for key in self.stacks(name)]
        self.read += [each for each in found if each is not None]
        return found

    def put_entry(self, name: str, above: int, adjoint: Adjoint, here: Array) -> None:
        """Let it be this from now on, of the rows that are `here`."""
        place = self.place(name, above)
        stacks = (key for key in self.stacks(name) if key is not None)
        for key, value in zip(stacks, self.filled(name, adjoint), strict=True):
            self.state[key] = self.rows.store(self.state[key], [place], here, value)

    def at_end(self, name: str) -> Adjoint:
        """The gradient by the value that `name` has after the run."""
        if self.layout.storage(name) == "stack":
            return self.entry(name, sum(push.variable == name for push in self.names.pushes))
        pairs = zip(self.layout.tops(name), self.tapes.floats(name), strict=True)
        found = [None if leaf is None else self.rows.take(self.state[key]) for key, leaf in pairs]
        self.read += [each for each in found if each is not None]
        return found

    def entries(self) -> list[tuple[Push, Adjoint]]:
        """The gradients by the entries that the run has pushed."""
        count: Counter[str] = Counter()
        found = []
        for push in self.names.pushes:
            found.append((push, self.entry(push.variable, count[push.variable])))
            count[push.variable] += 1
        return found

    def put(self, name: str, here: Array) -> None:
        """Write the gradient by the value that `name` had when the block found it, of the rows that are `here`."""
        adjoint, popped = self.adjoints[name], self.names.popped[name]
        none: Adjoint = [None for _ in adjoint]
        is_stack = self.layout.storage(name) == "stack"
        if popped or is_stack:
            self.put_entry(name, 0, adjoint, here)
        for above in range(1, popped + is_stack):  # what was popped and not looked at
            self.put_entry(name, above, none, here)
        if not is_stack:
            pairs = zip(self.layout.tops(name), self.tapes.floats(name), strict=True)
            tops = (key for key, leaf in pairs if leaf is not None)
            for key, value in zip(tops, self.filled(name, none if popped else adjoint), strict=True):
                self.state[key] = self.rows.put(self.state[key], here, value)

    # -- other lanes ---------------------------------------------------------------------------------------------------

    def of_child(self, slot: int, variable: str) -> Adjoint:
        """Return the gradient by an argument of a forked call."""
        lanes = self.taped[child_field("forked", slot)]
        keys = (None if leaf is None else key for key, leaf in self.tops(variable))
        found = [None if key is None else self.backend.load(self.state[key], [], lanes) for key in keys]
        self.read += [each for each in found if each is not None]
        made = self.made("forked", slot)
        return found if made is None else self.only(made, variable, found)

    def made(self, what: str, slot: int) -> Array | None:
        """Return which rows made a call of the group, None if all: for other rows the lane itself stands as callee."""
        field = child_field(what, slot)
        return self.taped[field] != self.taped[LANE] if field in self.names.conditional else None

    def empty(self, slot: int, variable: str, here: Array) -> None:
        """Let the lane that has run it have none any more."""
        lanes, made = self.taped[child_field("forked", slot)], self.made("forked", slot)
        here = here if made is None else here & made
        for key, leaf in self.tops(variable):
            if leaf is not None:
                self.state[key] = self.backend.masked_store(self.state[key], [], here, self.zeros(leaf), lanes)

    def hand(self, slot: int, variable: str, adjoint: Adjoint, here: Array) -> None:
        """Give the gradient by a forked call's result to the lane that has run it."""
        if any(each is not None for each in adjoint):
            lanes, made = self.taped[child_field("joined", slot)], self.made("joined", slot)
            here = here if made is None else here & made
            keys = [key for key, leaf in self.tops(variable) if leaf is not None]
            for key, value in zip(keys, self.filled(variable, adjoint), strict=True):
                self.state[key] = self.backend.masked_store(self.state[key], [], here, value, lanes)

    def tops(self, variable: str) -> list[tuple[str, TensorType | None]]:
        """The keys of the gradients by the tops of a variable, without a type where there is none."""
        return [*zip(self.layout.tops(variable), self.tapes.floats(variable), strict=True)]

    @property
    def adds(self) -> bool:
        """True if rows are deferred turns: several may be of one lane, of which they only read."""
        return self.names.block.deferred is not None

    def add_to_lanes(self, name: str) -> None:
        """Let the gradients by a variable that rows have read grow."""
        pairs = zip(self.layout.tops(name), self.taken(name), strict=True)
        for key, value in ((key, value) for key, value in pairs if value is not None):
            self.state[key] = self.backend.masked_store(
                self.state[key], [], self.rows.mask, value, self.rows.lanes, adds=True
            )

    def add_to_example(self, name: str) -> None:
        """Add to the gradients by variables that lie by example."""
        pairs = zip(self.layout.keys("input", name), self.taken(name), strict=True)
        for key, value in ((key, value) for key, value in pairs if value is not None):
            self.state[key] = self.backend.masked_store(
                self.state[key], [], self.rows.mask, value, self.owners, adds=True
            )

    @property
    def owners(self) -> Array:
        """The example of each row."""
        return self.taped[self.tapes.owner]

    # -- predicates ----------------------------------------------------------------------------------------------------

    def taking_part(self, place: int) -> Array:
        """The rows that have taken part in the item at `place` of the body."""
        holds = self.taped.get(predicate_field(place))
        return self.rows.mask if holds is None else self.rows.mask & holds

    def only(self, mask: Array, name: str, adjoint: Adjoint) -> Adjoint:
        """A gradient by `name` in the rows of `mask`, none in the others: not even what is none times infinity."""
        pairs = zip(adjoint, self.layout.leaves(name), strict=True)
        return [None if each is None else self.backend.where(mask, each, self.zeros(leaf)) for each, leaf in pairs]

    # -- the body ------------------------------------------------------------------------------------------------------

    def piece(self, place: int, piece: Piece) -> None:
        """Undo a piece."""
        active = self.tapes.activity.variables
        coming = {name: self.taken(name) for name in piece.writes if name in active}
        if piece.predicate is not None:
            mask = self.taking_part(place)
            for name, adjoint in coming.items():
                self.adjoints[name] = self.only(~mask, name, adjoint)
                coming[name] = self.only(mask, name, adjoint)
        linear = self.tape.linear.get(place)
        if linear is None or not any(each is not None for adjoint in coming.values() for each in adjoint):
            return
        seeds = [self.filled(name, adjoint) for name, adjoint in coming.items()]
        if linear.is_late:
            self.seeds[place] = [leaf for each in seeds for leaf in each]
            return
        residuals = [self.taped[residual_field(place, n)] for n, _ in enumerate(linear.residuals)]
        lanes = self.backend.lanes_of(self.rows.mask)
        shared = [self.shared[name] for name in piece.shared]
        back = linear.backward(residuals, shared, seeds, lanes)
        self.deltas[place], self.parts[place] = back.deltas, back.parts
        for n, (name, adjoint) in enumerate(zip(piece.reads, back.reads, strict=True)):
            if all(each.read != n for each in linear.elements):
                self.add(name, adjoint if piece.predicate is None else self.only(mask, name, adjoint))
        for each, (indices, gradient) in zip(linear.elements, back.elements, strict=True):
            self.element_read(piece.reads[each.read], indices, gradient, self.taking_part(place))

    def element_read(self, array: str, indices: Sequence[Array], gradient: Array, mask: Array) -> None:
        """Let the gradient by an element of an array grow, of the rows of `mask`."""
        key, at = self.of_array(array, indices)
        if key is not None and self.layout.storage(array) == "example":
            self.state[key] = self.backend.masked_store(self.state[key], at, mask, gradient, self.owners, adds=True)
            return
        if key is not None and self.adds:
            self.state[key] = self.backend.masked_store(self.state[key], at, mask, gradient, self.rows.lanes, adds=True)
            return
        if key is not None:
            known = self.backend.load(self.state[key], at, self.rows.lanes)
            self.state[key] = self.rows.store(self.state[key], at, mask, known + gradient)
            return
        (type_,) = self.layout.leaves(array)
        (whole,) = self.adjoints.get(array, [None])
        whole = self.zeros(type_) if whole is None else whole
        known = self.backend.load(whole, indices)
        self.adjoints[array] = [self.backend.masked_store(whole, indices, mask, known + gradient)]

    def of_array(self, array: str, indices: Sequence[Array]) -> tuple[str | None, list[Array]]:
        """The key of the gradients by an array of which there are elements alone, and where an element is in it.

        None where the block has the gradient by the whole array.
        """
        if array not in self.names.by_element:
            return None, [*indices]
        if self.layout.storage(array) == "stack":
            (key,) = self.layout.stacks(array)
            return key, [self.place(array, 0), *indices]
        (key,) = (key for key, _ in keys(self.tapes, array) if not key.startswith("stack "))
        return key, [*indices]

    def store(self, place: int, store: Store) -> None:
        """Undo a store: the element's gradient is the value's."""
        (value,) = self.layout.leaves(store.value)
        indices = [self.taped[index_field(place, axis)] for axis, _ in enumerate(store.indices)]
        key, at = self.of_array(store.array, indices)
        mask = self.taking_part(place)
        if key is not None:
            element = self.backend.load(self.state[key], at, self.rows.lanes)
            here = self.backend.once_there(mask, [element])
            self.state[key] = self.rows.store(self.state[key], at, here, self._nothing(store.array, element))
        else:
            (whole,) = self.adjoints.get(store.array, [None])
            if whole is None:
                return
            element = self.backend.load(whole, indices)
            self.adjoints[store.array] = [
                self.backend.masked_store(whole, indices, mask, self._nothing(store.array, element))
            ]
        if store.value in self.tapes.activity.variables:
            given = self.backend.cast(self.backend.unspread(element, value.shape), value.dtype)
            self.add(store.value, [given] if store.predicate is None else self.only(mask, store.value, [given]))

    def _nothing(self, array: str, element: Array) -> Array:
        """Zeros in place of elements of an array."""
        (type_,) = self.layout.leaves(array)
        return self.zeros(TensorType(type_.dtype, tuple(element.shape[1:])))
