"""The tape of a lane, or of a group of lanes, in native code: records of the blocks that gradients flow through.

    tape   ::= record*
    record ::= field*, bits, number of its kind     as many bytes as records of its kind have: a multiple of 8

The number comes last, since the way back reads the tape from its end. Before it are the bits of the group's lanes that
have run the block. The fields are those of `adjoint.tape` that one lane needs, in a group as vectors: residuals of
pieces, predicates, indices of stores. Stack pointers are counted back instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import llvmlite.ir as ir

from pcbatch.ir.machine import Piece, Store
from pcbatch.runtime.adjoint.tape import LANE, Tapes, index_field, predicate_field, residual_field
from pcbatch.runtime.llvm.block import BlockCode
from pcbatch.runtime.llvm.body import Body
from pcbatch.runtime.llvm.code import Array, Code
from pcbatch.runtime.llvm.lane import Lane, Places
from pcbatch.runtime.llvm.simd_tile import Group, GroupBlock, Labels
from pcbatch.runtime.llvm.types import BYTE, INT32, INT64, Number, by_dtype

WORD = 8
"""Bytes that fields are aligned to at most, and that the bits and the number of a record take."""
BITS, KIND = -8, -4
"""The places of these, of 32 bits each, before the end of a record."""


@dataclass(frozen=True)
class Record:
    """Layout of the records of one kind: the type and offset of each field, and the bytes with bits and number."""

    kind: int
    fields: Mapping[str, tuple[Number, tuple[int, ...], int]]
    bytes: int

    @classmethod
    def of(cls, kind: int, fields: Mapping[str, tuple[Number, tuple[int, ...]]]) -> Record:
        """The layout of records of these fields: large numbers first, so that all are aligned."""
        found, end = {}, 0
        for name, (number, sizes) in sorted(fields.items(), key=lambda each: -each[1][0].bytes):
            found[name] = number, sizes, end
            end += number.bytes * math.prod(sizes)
        return cls(kind, found, (end + WORD - 1) // WORD * WORD + WORD)


def records(tapes: Tapes, lanes: int = 1) -> dict[int, Record]:
    """The layouts of records, by block."""
    found = {}
    for kind, (number, tape) in enumerate(sorted(tapes.blocks.items())):
        fields = {name: type_ for name, type_ in tape.fields.items() if name not in (LANE, *tape.pointers)}
        types = {name: (by_dtype(type_.dtype).wide(lanes), type_.shape) for name, type_ in fields.items()}
        found[number] = Record.of(kind, types)
    return found


@dataclass(frozen=True)
class Tape:
    """The tape of what runs: the addresses of its memory, of `bytes` bytes, and of the offset of its end."""

    code: Code
    memory: Any
    bytes: Any
    end: Any
    full: Any
    """The label for a lane whose next record does not fit."""

    def reserve(self, record: Record) -> None:
        """Go on if there is room for another record."""
        builder = self.code.builder
        last = builder.add(builder.load(self.end, typ=INT64), ir.Constant(INT64, record.bytes))
        fits = builder.append_basic_block("on_tape")
        builder.cbranch(builder.icmp_signed("<=", last, self.bytes), fits, self.full)
        builder.position_at_end(fits)

    def finish(self, record: Record, bits: Any = None) -> None:
        """Let a record whose fields are written count, of a group's lanes with these bits."""
        builder = self.code.builder
        start = builder.load(self.end, typ=INT64)
        builder.store(ir.Constant(INT32, record.kind), self._at(start, record.bytes + KIND))
        if bits is not None:
            wide = builder.zext(bits, INT32) if bits.type.width < INT32.width else bits
            builder.store(wide, self._at(start, record.bytes + BITS))
        builder.store(builder.add(start, ir.Constant(INT64, record.bytes)), self.end)

    def last(self) -> Any:
        """The kind of the last record."""
        return self.code.builder.load(self._at(self.code.builder.load(self.end, typ=INT64), KIND), typ=INT32)

    def bits(self, record: Record, type_: ir.Type) -> Any:
        """The bits of the record that begins at the end of the tape."""
        builder = self.code.builder
        found = builder.load(self._at(builder.load(self.end, typ=INT64), record.bytes + BITS), typ=INT32)
        return builder.trunc(found, type_) if type_.width < INT32.width else found

    def remove(self, record: Record) -> None:
        """Take the last record, of this layout, from the tape; its fields can be read until another is added."""
        builder = self.code.builder
        builder.store(builder.sub(builder.load(self.end, typ=INT64), ir.Constant(INT64, record.bytes)), self.end)

    def field(self, record: Record, name: str) -> tuple[Number, tuple[int, ...], Any]:
        """A field of the record that begins at the end of the tape: its numbers, sizes and address."""
        number, sizes, offset = record.fields[name]
        return number, sizes, self._at(self.code.builder.load(self.end, typ=INT64), offset)

    def _at(self, start: Any, offset: int) -> Any:
        place = self.code.add(start, offset)
        return self.code.builder.gep(self.memory, [place], inbounds=True, source_etype=BYTE)


class Recording(Body):
    """A block whose runs are recorded, if gradients flow through it."""

    tape: Tape
    record: Record | None
    item: int

    def emit(self) -> None:
        """Emit the block, after reserving room on the tape for its record."""
        if self.record is not None:
            self.tape.reserve(self.record)
        super().emit()

    def leave(self) -> None:
        """Complete the record, and leave the block."""
        if self.record is not None:
            self.tape.finish(self.record, self.running_bits())
        super().leave()

    def running_bits(self) -> Any:
        """The bits of a group's lanes that run the block; None for a lane."""
        return None

    def keep(self, values: Sequence[Array]) -> None:
        """The residuals of a piece are on the tape."""
        for place, value in enumerate(values):
            found = self.field(residual_field(self.item, place))
            assert found is not None, "a block with residuals is recorded"
            number, sizes, address = found
            if value.number != number or value.sizes != sizes:
                raise AssertionError(f"a residual of {value.number.dtype}{value.sizes} for {number.dtype}{sizes}")
            self.code.write(value, address)

    def note_predicate(self, item: Piece | Store) -> None:
        """The predicate of an item is on the tape."""
        if item.predicate is not None and (found := self.field(predicate_field(self.item))) is not None:
            number, _, address = found
            self.code.store(number, self.bool_of(item.predicate), address)

    def field(self, name: str) -> tuple[Number, tuple[int, ...], Any] | None:
        """A field of the record in hand, as `Tape.field` has it; None where there is none."""
        if self.record is None or name not in self.record.fields:
            return None
        return self.tape.field(self.record, name)


class RecordingBlock(Recording, BlockCode):
    """A block of one lane."""

    def __init__(self, tape: Tape, every: Mapping[int, Record], lane: Lane, number: int, labels: Mapping[int, Any]):
        super().__init__(lane, number, labels)
        self.tape, self.record = tape, every.get(number)

    @contextmanager
    def guarded(self, item: Piece | Store) -> Iterator[None]:
        """Guard the item, and record its predicate."""
        self.note_predicate(item)
        with super().guarded(item):
            yield

    def store(self, store: Store) -> None:
        """Store, and record the indices."""
        super().store(store)
        ((_, _, sizes),) = self.storage.leaves(store.array)
        indices = [each for name in store.indices for each in self.read(name)]
        for axis, (index, size) in enumerate(zip(indices, sizes, strict=False)):
            found = self.field(index_field(self.item, axis))
            if found is not None:
                self.code.each(index.sizes, partial(self._note_index, index, size, found[2]))

    def _note_index(self, index: Array, size: int, address: Any, place: Sequence[Any]) -> None:
        position, _ = self.position(index, place, size)
        narrow = self.builder.trunc(position, INT32)
        self.code.store(by_dtype("int32"), narrow, address, self.code.offset(index.sizes, place))


class RecordingGroupBlock(Recording, GroupBlock):
    """A block of several lanes; what is recorded of lanes that are not in it is of no account."""

    def __init__(self, tape: Tape, every: Mapping[int, Record], group: Group, number: int, labels: Labels):
        super().__init__(group, number, labels)
        self.tape, self.record = tape, every.get(number)

    def guarded(self, piece: Piece, place: Places) -> None:
        """The piece, after its predicate."""
        self.note_predicate(piece)
        super().guarded(piece, place)

    def running_bits(self) -> Any:
        return self.group.bits_of(self.moving())
