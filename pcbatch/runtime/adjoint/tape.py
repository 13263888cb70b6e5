"""The records of a taped run: a log of block runs, and for each active block a tape with a row for each lane.

The log has `(block, count)` of each run of an active block, or of each chunk of it. The `count` rows that the run adds
to the block's own tape say which lanes they are of, and what undoing them needs: the stack pointers, the indices of
stores, the residuals of pieces. In an array of `margin + rows + margin` rows, the first of a segment is at `margin`. A
run writes as many rows as it computes, its own first; what is behind them is written over. As many as are to be undone
together are read up to the end of a run: its own come last, and those before them are an earlier run's, sound data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pcbatch.errors import GradientError, Span
from pcbatch.ir.analysis.activity import Activity, activity, has_gradient
from pcbatch.ir.machine import Fault, Item, Piece, Store
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.backends.pieces import Linear, Signature, Wanted
from pcbatch.runtime.backends.protocol import Array, Spec, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.state import Layout

LANE = "lane"
LOG, LOGGED = "log", "logged"


Sources = tuple[frozenset[str], frozenset[str]]
"""The parameters and the shared operands by which gradients are wanted."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of tapes: so many whole `batches`, and more up to so many `rows` or `bytes` of an array.

    Where it `guesses`, no more than a lane has that runs a block as often as its longest argument has elements.
    Of so many beginnings of segments, an even number, and more up to so many bytes, `checkpointing.py` keeps track.
    """

    guesses: bool = True
    batches: int = CPU.tape_batches
    rows: int = CPU.tape_rows
    bytes: int = CPU.tape_bytes
    log: int = CPU.tape_log
    beginnings: int = CPU.tape_beginnings


@dataclass(frozen=True)
class BlockTape:
    """The tape of block `number`: the `fields` of a row by name, the derivative of each active piece by its place."""

    number: int
    fields: Mapping[str, TensorType]
    linear: Mapping[int, Linear]
    pointers: Mapping[str, str]
    """The stack pointers among the fields, each with a variable whose pointer it is."""

    def key(self, field: str) -> str:
        """The key of the array of a field in a state."""
        return f"tape {self.number} {field}"

    def predicate(self, place: int) -> str | None:
        """The key of the array that says which rows have taken part in an item, None where all have."""
        field = predicate_field(place)
        return self.key(field) if field in self.fields else None

    @property
    def used(self) -> str:
        """The key of how many rows there are."""
        return f"used {self.number}"

    @property
    def keys(self) -> list[str]:
        """The keys of all that a run of the block adds to, the log included."""
        return [*map(self.key, self.fields), self.used, LOG, LOGGED]


def index_field(place: int, axis: int) -> str:
    """The field of an index of the store at `place` of a block's body."""
    return f"index {place} {axis}"


def residual_field(place: int, number: int) -> str:
    """The field of a residual of the piece at `place` of a block's body."""
    return f"residual {place} {number}"


def predicate_field(place: int) -> str:
    """The field of whether a row has taken part in the item at `place` of a block's body, which has a predicate."""
    return f"predicate {place}"


def child_field(what: str, slot: int) -> str:
    """The field of the lane that runs call `slot` of the group that a block has "forked", or has "joined"."""
    return f"{what} {slot}"


def changed_by(item: Item) -> tuple[str, ...]:
    """The variables that an item of a block's body changes."""
    return item.writes if isinstance(item, Piece) else (item.array,)


class Tapes:
    """The tapes of one program."""

    owner = LANE
    """The field that says whose row it is: by whose soundness it counts, to whose gradients it adds."""

    def __init__(self, context: Context, sizes: Sizes | None = None, sources: Sources | None = None):
        self.context, self.backend, self.program = context, context.backend, context.program
        self.layout: Layout = context.layout
        self.sizes = Sizes() if sizes is None else sizes
        self.activity: Activity = activity(self.program, *(sources or (None, None)))
        self._check()

    def _check(self) -> None:
        """Refuse programs without gradients here: GradientError PCB606."""
        types = {**self.program.types, **self.program.shared_types}
        for name in sorted(self.activity.variables | self.activity.shared):
            if any(leaf.dtype.startswith("complex") for leaf in leaves(types[name])):
                raise GradientError(
                    f"PCB606: a gradient through the batched call of {self.program.name!r} flows through the complex "
                    f"numbers of `{name}`\n  help: complex numbers have gradients within a line; between calls, "
                    f"branches and loops keep their real and their imaginary parts"
                )

    @cached_property
    def blocks(self) -> dict[int, BlockTape]:
        """The tapes by block; of a block in which every lane fails nothing comes back."""
        numbers = (n for n in self.activity.blocks if not isinstance(self.program.blocks[n].terminator, Fault))
        return {number: self._tape(number) for number in numbers}

    def floats(self, name: str) -> list[TensorType | None]:
        """The leaves of variable `name`, None for those that have no gradient."""
        return [leaf if has_gradient(leaf) else None for leaf in self.layout.leaves(name)]

    def shared_floats(self, name: str) -> list[TensorType | None]:
        """The same of a shared operand."""
        return [leaf if has_gradient(leaf) else None for leaf in leaves(self.program.shared_types[name])]

    def shared_keys(self, name: str) -> list[tuple[str, TensorType | None]]:
        """The key of the gradient by each leaf of a shared operand; no type where it has none."""
        return [(f"shared {name} {n}", leaf) for n, leaf in enumerate(self.shared_floats(name))]

    def _tape(self, number: int) -> BlockTape:
        block, active = self.program.blocks[number], self.activity.variables
        fields = {LANE: TensorType("int32")}
        linear: dict[int, Linear] = {}
        touched = {*block.pops, *(push.variable for push in block.pushes)}
        for place, item in enumerate(block.body):
            if item.predicate is not None and not active.isdisjoint(changed_by(item)):
                fields[predicate_field(place)] = TensorType("bool")
            match item:
                case Piece(reads=reads, writes=writes):
                    touched |= {*reads, *writes}
                    if self.activity.is_active(item):
                        linear[place] = found = self._linear(item)
                        kept = enumerate(found.residuals)
                        fields |= {residual_field(place, n): type_ for n, type_ in kept}
                case Store(array=array, indices=indices, value=value):
                    touched |= {array, value}
                    if array in active:
                        types = [leaf for name in indices for leaf in leaves(self.program.types[name])]
                        fields |= {
                            index_field(place, axis): TensorType("int32", type_.shape)
                            for axis, type_ in enumerate(types)
                        }
        stacked = (name for name in sorted(touched & active) if self.layout.storage(name) in ("stack", "cached stack"))
        pointers = {self.layout.pointer(name): name for name in stacked}
        fields |= self._more_fields(number)
        fields |= dict.fromkeys(pointers, TensorType("int32"))
        return BlockTape(number, fields, linear, pointers)

    def _more_fields(self, number: int) -> dict[str, TensorType]:
        """Return the fields in a block's rows for its dealings with other lanes."""
        return {}

    def _linear(self, piece: Piece) -> Linear:
        program, active = self.program, self.activity
        signature = Signature(
            reads=[program.types[name] for name in piece.reads],
            shared=[program.shared_types[name] for name in piece.shared],
            writes=[program.types[name] for name in piece.writes],
        )
        wanted = Wanted(
            reads=tuple(name in active.variables for name in piece.reads),
            shared=tuple(name in active.shared for name in piece.shared),
            writes=tuple(name in active.variables for name in piece.writes),
        )
        return self.backend.linearize(piece, signature, wanted)

    @cached_property
    def bytes_by_span(self) -> dict[int, dict[Span, int]]:
        """The bytes kept of a row of each block, by the source that makes them, or where the block begins."""
        found: dict[int, dict[Span, int]] = {}
        for number, tape in self.blocks.items():
            block, kept = self.program.blocks[number], Counter[Span]()
            pieces = [item for item in block.body if isinstance(item, Piece)]
            first = next((span for piece in pieces for span in piece.spans if span is not None), block.span)
            rest = sum(type_.bytes for type_ in tape.fields.values())
            for linear in tape.linear.values():
                for type_, origin in zip(linear.residuals, linear.origins, strict=True):
                    if origin.span is not None:
                        kept[origin.span] += type_.bytes
                        rest -= type_.bytes
            if first is not None:
                kept[first] += rest
            found[number] = dict(kept)
        return found

    # -- arrays --------------------------------------------------------------------------------------------------------

    def _room(self, tape: BlockTape) -> tuple[int, int]:
        """Return the room of a tape in rows: a multiple of the number of lanes, and a number to add."""
        widest = max(max(type_.bytes, 1) for type_ in tape.fields.values())
        return self.sizes.batches, min(self.sizes.rows, self.sizes.bytes // widest)

    def rows(self, tape: BlockTape, lanes: Any) -> Any:
        """Return the number of rows of a tape."""
        batches, more = self._room(tape)
        return lanes * (batches + self._most(tape)) + min(more, self._guessed(lanes))

    def _most(self, tape: BlockTape) -> int:
        """Return the number of a lane's rows beyond one in a run of the block: those of deferred turns."""
        deferred = self.program.blocks[tape.number].deferred
        return 0 if deferred is None else deferred.most

    def _guessed(self, lanes: Any) -> int:
        """Return a likely sufficient number of rows beyond whole batches."""
        if isinstance(lanes, int) and self.sizes.guesses and self._longest:
            return max(CPU.tape_least, lanes * (self._longest - self.sizes.batches))
        return self.sizes.rows

    def are_short(self, lanes: Any) -> bool:
        """Return whether some tape is smaller, for so many lanes, than its limit."""
        return any(self._guessed(lanes) < self._room(tape)[1] for tape in self.blocks.values())

    def are_likely_enough(self, lanes: int) -> bool:
        """Return whether so many lanes are likely to need one segment, each running a block as often as is guessed."""
        rows = lanes * self._longest
        return rows > 0 and all(rows <= self.rows(tape, lanes) for tape in self.blocks.values())

    @cached_property
    def _longest(self) -> int:
        """The length of the longest argument of a lane along its first axis; 0 if all are numbers."""
        shapes = [leaf.shape for name in self.program.parameters for leaf in leaves(self.program.types[name])]
        return max((shape[0] for shape in shapes if shape), default=0)

    def margin(self, tape: BlockTape, lanes: Any) -> Any:
        """Return the number of rows in a tape's arrays before the first that is kept, and behind the last.

        No run of a block computes more.
        """
        compaction = self.context.compaction
        if compaction is not None and self._most(tape):
            return lanes + compaction.device.deferred_most
        return lanes + compaction.device.chunk_most if compaction is not None and compaction.always else lanes

    def length(self, tape: BlockTape, lanes: Any) -> Any:
        """Return the number of rows in a tape's arrays."""
        return self.rows(tape, lanes) + self.margin(tape, lanes) * 2

    def apart_at_once(self, lanes: Any) -> Any:
        """Return the number of rows processed together where gradients are kept apart by lane; at most `length`."""
        return lanes

    @cached_property
    def types(self) -> dict[str, TensorType]:
        """The type of a row in each array of the tapes, by key."""
        tapes = self.blocks.values()
        return {tape.key(field): type_ for tape in tapes for field, type_ in tape.fields.items()}

    @property
    def scalars(self) -> list[str]:
        """The keys of the counts."""
        return [*(tape.used for tape in self.blocks.values()), LOGGED]

    @cached_property
    def keys(self) -> list[str]:
        """The keys of all that a segment leaves behind, in the order in which it is passed on."""
        return [*self.specs(None)]

    def specs(self, lanes: int | None) -> dict[str, Spec]:
        """The dtypes and shapes of the arrays of `keys`."""
        found: dict[str, Spec] = {}
        for tape in self.blocks.values():
            count = None if lanes is None else self.length(tape, lanes)
            found |= {tape.key(name): (type_.dtype, (count, *type_.shape)) for name, type_ in tape.fields.items()}
        found |= dict.fromkeys(self.scalars, ("int32", ()))
        return {**found, LOG: ("int32", (None if lanes is None else self._entries(lanes), 2))}

    def _entries(self, lanes: Any) -> Any:
        """Return the number of the log's entries: if not full, it has enough for another run, in however many chunks.

        There is a last one, where nobody reads, for a run of no lanes.
        """
        most = max(map(self._most, self.blocks.values()), default=0)
        return lanes * (1 + most) + (self.sizes.log + 1)

    def blank(self, lanes: Any, examples: Array) -> State:
        """Empty tapes of a run of so many `examples`, which are not known when it is compiled."""
        backend = self.backend
        found: State = {}
        for tape in self.blocks.values():
            count = self.length(tape, lanes)
            found |= {tape.key(name): backend.zeros(count, type_) for name, type_ in tape.fields.items()}
        found = dict(zip(found, backend.made_apart([*found.values()], examples), strict=True))
        found |= {key: backend.constant(0) for key in self.scalars}
        return {**found, LOG: backend.zeros(self._entries(lanes), TensorType("int32", (2,)))}

    def has_room(self, tape: BlockTape, state: State, lanes: Any) -> Array:
        """Return a scalar bool: whether another run of the block, of however many lanes, can be recorded."""
        fits = state[tape.used] + lanes * max(1, self._most(tape)) <= self.rows(tape, lanes)
        return fits & (state[LOGGED] < self.sizes.log)
