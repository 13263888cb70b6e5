"""One run of one block: its pops, computations, pushes and writes, for the rows that take part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Branch, Fault, Jump, Piece, PushJump, Return, Store
from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.pieces import Leaves, Signature
from pcbatch.runtime.backends.protocol import Array, State, repeated
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.state import to_stored
from pcbatch.runtime.machine.values import Rows, Values

Computed = tuple[list[list[Array]], Array | None]
"""The result of a piece for its rows: the leaves of each output, and fault sites plus one, if it has checks."""
RunPiece = Callable[[], Computed]


class Execution(Values):
    """One run of one block: the values it has seen and made, `[rows, ...]`, and the rows that still take part."""

    def __init__(
        self,
        context: Context,
        number: int,
        state: State,
        shared: Mapping[str, Leaves],
        rows: Rows,
    ):
        super().__init__(context, number, state, shared, rows)
        self.limits, self.spread_live, self.note = context.limits, context.spread_live, context.note
        self.is_apart = context.is_deterministic and rows.lanes is not None
        self.failed_before = False
        self.forkable: Array | None = None  # the rows for which the arguments of later calls could be computed
        self.written: dict[str, tuple[Array, Array]] = {}  # by key: the rows that are written, and what
        self.item = 0  # the place of what runs, in the block's body

    def execute(self) -> None:
        """Run the block."""
        if self.rows.turns is not None and self.block.deferred is not None:
            self.values[self.block.deferred.turn] = [self.rows.turns]
        self.pop()
        for place, item in enumerate(self.block.body):
            self.item = place
            match item:
                case Piece():
                    self.piece(item)
                case Store():
                    self.store(item)
        self.leave()
        self.write()

    def updates(self) -> State:
        """The arrays of the state that the block has changed, as they are after it."""
        masks, values = zip(*self.written.values(), strict=True)  # there is always the program counter
        rows = self.rows.put_each([self.state[key] for key in self.written], masks, values)
        return {**self.whole, **dict(zip(self.written, rows, strict=True))}

    # -- the body ------------------------------------------------------------------------------------------------------

    def fail(self, mask: Array, code: Array) -> None:
        """Stop the moving rows of `mask`; `code` is a fault site plus one."""
        mask = self.moving & mask
        known = self.written["fault"][1] if "fault" in self.written else self.old("fault")
        self.written["fault"] = (self.entered, self.backend.where(mask, code, known))
        self.moving = self.moving & ~mask
        self.failed_before = True

    def piece(self, piece: Piece) -> None:
        types = self.layout.program.types
        signature = Signature(
            reads=[types[name] for name in piece.reads],
            shared=[self.layout.program.shared_types[name] for name in piece.shared],
            writes=[types[name] for name in piece.writes],
        )
        leaves = [self.read(name) for name in piece.reads]
        shared = [self.shared[name] for name in piece.shared]
        taking_part = self.taking_part(piece)

        def vectorized() -> Computed:
            return self.computed(piece, signature, self.fed(leaves, taking_part), shared, taking_part)

        run = partial(self.apart, vectorized, piece) if self.is_apart else vectorized
        may_be_none = self.spread_live and (self.failed_before or piece.predicate is not None)
        if may_be_none or self.item in self.rows.dear:
            outputs, site = self.if_any(taking_part, run, piece)
        else:
            outputs, site = run()
        self.seen(outputs[len(piece.writes) :])
        for name, output in zip(piece.writes, outputs, strict=False):
            self.values[name] = output if piece.predicate is None else self.chosen(taking_part, output, name)
            self.changed.add(name)
        if site is not None and piece.speculative:
            fits = (site <= 0) if piece.predicate is None else (site <= 0) | ~taking_part
            self.forkable = fits if self.forkable is None else self.forkable & fits
        elif site is not None:
            self.fail((site > 0) & taking_part, site)

    def computed(
        self,
        piece: Piece,
        signature: Signature,
        reads: Sequence[Leaves],
        shared: Sequence[Leaves],
        taking_part: Array,
    ) -> Computed:
        """Compute the piece: return the leaves of its outputs, and its fault sites; see `Pieces.vectorize`."""
        lanes = self.backend.lanes_of(self.moving)
        return self.backend.vectorize(piece, signature, reads, shared, lanes, taking_part, self.note)

    def given(self, piece: Piece) -> list[list[TensorType]]:
        """The types of the leaves that `computed` gives."""
        return [self.layout.leaves(name) for name in piece.writes]

    def seen(self, arrays: Sequence[Leaves]) -> None:
        """Receive the results of `computed` beyond the piece's writes; for a store, its indices."""

    def taking_part(self, item: Piece | Store) -> Array:
        """The moving rows for which the predicate of `item` holds."""
        if item.predicate is None:
            return self.moving
        (holds,) = self.read(item.predicate)
        return self.moving & holds

    def chosen(self, mask: Array, new: Sequence[Array], name: str) -> list[Array]:
        """Return `new` for the rows of `mask`, and for the others the old value of `name`, or zeros without one."""
        if name in self.values or self.layout.storage(name) is not None:
            before = self.read(name)
        else:
            lanes = self.backend.lanes_of(self.moving)
            before = [self.backend.zeros(lanes, type_) for type_ in self.layout.leaves(name)]
        return [self.backend.where(mask, leaf, old) for leaf, old in zip(new, before, strict=True)]

    def fed(self, leaves: Sequence[Sequence[Array]], taking_part: Array) -> Sequence[Sequence[Array]]:
        """`leaves` as a piece may see them: where operations can raise, junk rows get the values of one taking part."""
        if not self.spread_live or self.are_all(taking_part):
            return leaves
        lanes = self.backend.lanes_of(taking_part)
        lane = self.backend.lane_numbers(lanes)
        first = self.backend.min(self.backend.where(taking_part, lane, lane * 0 + (lanes - 1)))
        source = self.backend.where(taking_part, lane, first)
        return [[self.backend.load(leaf, [], source) for leaf in group] for group in leaves]

    def if_any(self, taking_part: Array, run: RunPiece, piece: Piece) -> Computed:
        """Run a piece only where there is a row whose values it can be fed, else give zeros."""
        blank = self.blank(piece)
        found = self.backend.cond(self.backend.any(taking_part), lambda: self.flat(run(), blank), blank)
        return self.grouped(found, piece)

    def apart(self, run: RunPiece, piece: Piece) -> Computed:
        """Run a piece in a loop of one turn: a compiler's code for it then does not depend on its surroundings.

        There are the arrays of all lanes, from which rows are gathered: gathering that is fused with the piece could
        round otherwise in another batch.
        """
        blank = self.blank(piece)
        once = self.backend.any(self.entered)  # true, which the compiler cannot know
        found = repeated(self.backend, once, lambda go, _: (go & False, self.flat(run(), blank)), blank)
        return self.grouped(found, piece)

    def blank(self, piece: Piece) -> list[Array]:
        """Return zeros for all leaves of a piece's results, and no fault site."""
        lanes = self.backend.lanes_of(self.moving)
        types = [*(type_ for group in self.given(piece) for type_ in group), TensorType("int32")]
        return [self.backend.zeros(lanes, type_) for type_ in types]

    def flat(self, computed: Computed, blank: Sequence[Array]) -> list[Array]:
        """Flatten the result of a piece to the form of `blank`."""
        outputs, site = computed
        return [*(leaf for group in outputs for leaf in group), blank[-1] if site is None else site]

    def grouped(self, arrays: Sequence[Array], piece: Piece) -> Computed:
        """The inverse of `flat`."""
        *outputs, site = arrays
        remaining = iter(outputs)
        groups = [[next(remaining) for _ in group] for group in self.given(piece)]
        return groups, site if piece.sites else None

    def store(self, store: Store) -> None:
        """`array[indices..] = value` for the moving lanes, negative indices as in Python."""
        (array_type,) = self.layout.leaves(store.array)
        (value,) = self.read(store.value)
        value = self.backend.cast(value, array_type.dtype)  # a weak number takes the array's dtype
        taking_part = self.taking_part(store)
        inside, indices = taking_part, []
        for name, size in zip(store.indices, array_type.shape, strict=False):
            (index,) = self.read(name)
            if self.layout.leaves(name)[0].dtype != "int32":
                index = self.backend.cast(index, "int64")  # so that `size` and `-size` fit, whatever the index's dtype
            if store.site is not None:
                inside = inside & ~self.backend.any((index < -size) | (index >= size), by_lane=True)
            indices.append(self.backend.cast(self.backend.where(index < 0, index + size, index), "int32"))
        if store.site is not None:
            self.fail(taking_part & ~inside, self.backend.constant(store.site + 1))
        self.seen([indices])
        if store.array in self.changed or any(push.variable == store.array for push in self.block.pushes):
            (array,) = self.read(store.array)
            self.values[store.array] = [self.backend.masked_store(array, indices, inside, value)]
            self.changed.add(store.array)
            return
        # In place, so that it costs the element, not the array.
        if self.layout.storage(store.array) == "stack":
            (key,) = self.layout.stacks(store.array)
            indices = [self.pointer(store.array), *indices]
            value = to_stored(self.backend, value, array_type)
        else:
            (key,) = self.layout.tops(store.array)
        self.whole[key] = self.rows.store(self.now(key), indices, inside, value)
        self.values.pop(store.array, None)

    def are_all(self, mask: Array) -> bool:
        """Return whether `mask` is known to hold for all rows: there are no junk rows then."""
        return self.rows.all_take_part and mask is self.entered

    # -- the end of the block ------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Move the program counters of the lanes that have not failed."""
        self.writing = self.moving
        match self.block.terminator:
            case Fault(site=site):  # the lane's tops are still written: the fault's message may show them
                self.fail(self.moving, self.backend.constant(site + 1))
            case PushJump(site=site):
                depth = self.old("depth")
                depth = depth + self.old("base") if self.layout.groups else depth
                self.fail(depth > self.limits.max_depth, self.backend.constant(site + 1))
        if effects.is_step(self.block):
            if self.limits.max_steps is not None:
                over = self.old("steps") >= self.limits.max_steps
                self.fail(over, self.backend.constant(self.block.steps_site + 1))
            self.written["steps"] = (self.moving, self.old("steps") + 1)
        if not isinstance(self.block.terminator, Fault):
            self.writing = self.moving
        target = self.target()
        if effects.can_fault(self.block, self.limits.max_steps):
            target = self.backend.where(self.moving, target, self.backend.constant(self.layout.failed(self.number)))
        self.written["pc"] = (self.entered, target)

    def target(self) -> Array:
        """Return the next block of the moving lanes; push and pop their stacks of program counters."""
        match self.block.terminator:
            case Jump(target=target):
                return self.place(target)
            case Branch() as branch:
                return self.place(branch)
            case PushJump(target=target, back=back):
                return self.called(target, back)
            case Return() if self.layout.has_calls:
                shorter = self.old("depth") - 1
                self.written["depth"] = (self.moving, shorter)
                return self.rows.load(self.state["calls"], [shorter])
            case Return() | Fault():
                return self.backend.constant(self.layout.finish)
        raise TypeError(f"not a terminator: {self.block.terminator!r}")

    def called(self, target: int | Branch, back: int) -> Array:
        """Return the block that a call jumps to; push the stack of program counters."""
        depth = self.old("depth")
        self.whole["calls"] = self.rows.store(self.state["calls"], [depth], self.moving, depth * 0 + back)
        self.written["depth"] = (self.moving, depth + 1)
        return self.place(target)

    def place(self, target: int | Branch) -> Array:
        """The number of the block that `target` means for every row."""
        if isinstance(target, int):
            return self.backend.constant(target)
        if self.rows.turns is not None:  # all turns are run at once
            return self.backend.constant(target.false)
        (chosen,) = self.read(target.condition)
        return self.backend.where(chosen, self.backend.constant(target.true), self.backend.constant(target.false))

    def write(self) -> None:
        """Push the saved values, then give the written variables their new tops."""
        entries = self.entries()  # all are read before the first push writes a stack
        for name, pushed in entries.items():
            for place, entry in enumerate(pushed):
                self.store_entry(name, place, entry)
        for name in dict.fromkeys((*self.block.pops, *entries)):
            key = self.layout.pointer(name)
            count = sum(push.variable == name for push in self.block.pushes)
            self.written[key] = (self.writing, self.pointer(name) + count)
        if self.rows.turns is not None and self.block.deferred is not None:
            self.changed.discard(self.block.deferred.turn)
        for name in sorted(self.changed):
            storage = self.layout.storage(name)
            if storage == "stack" and name not in entries:
                self.store_entry(name, 0, self.values[name])
            is_kept = storage is not None and name not in self.block.dead
            for key, value in zip(self.layout.tops(name) if is_kept else [], self.values[name], strict=False):
                self.written[key] = (self.writing, value)
