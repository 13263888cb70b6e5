"""The tape of a lane in native code: a record for each run of a block that gradients flow through.

    tape   ::= record*
    record ::= field*, number of its kind           as many bytes as records of its kind have: a multiple of 8

The number comes last, since the way back reads the tape from its end. The fields are those of `adjoint.tape` that one
lane needs: residuals of pieces, predicates, indices of stores. Stack pointers are counted back instead.
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
from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.tape import LANE, BlockTape, Tapes, index_field, predicate_field, residual_field
from pcbatch.runtime.llvm.block import BlockCode
from pcbatch.runtime.llvm.code import Array, Code
from pcbatch.runtime.llvm.lane import Lane
from pcbatch.runtime.llvm.types import BYTE, INT32, INT64, Number, by_dtype

WORD = 8
"""Bytes that fields are aligned to at most, and that the number of a record takes."""


@dataclass(frozen=True)
class Record:
    """Layout of the records of one block: the offset of each field, and the bytes with the number of their kind."""

    kind: int
    tape: BlockTape
    offsets: Mapping[str, int]
    bytes: int

    @classmethod
    def of(cls, kind: int, tape: BlockTape) -> Record:
        """The layout of a block's records: large numbers first, so that all are aligned."""
        offsets, end = {}, 0
        fields = {name: type_ for name, type_ in tape.fields.items() if name not in (LANE, *tape.pointers)}
        for name, type_ in sorted(fields.items(), key=lambda each: -by_dtype(each[1].dtype).bytes):
            offsets[name] = end
            end += by_dtype(type_.dtype).bytes * math.prod(type_.shape)
        return cls(kind, tape, offsets, (end + WORD - 1) // WORD * WORD + WORD)

    def type(self, field: str) -> TensorType:
        """The type of a field."""
        return self.tape.fields[field]


def records(tapes: Tapes) -> dict[int, Record]:
    """The layouts of records, by block."""
    return {number: Record.of(kind, tape) for kind, (number, tape) in enumerate(sorted(tapes.blocks.items()))}


@dataclass(frozen=True)
class Tape:
    """The tape of the lane that runs: the addresses of its memory, of `bytes` bytes, and of the offset of its end."""

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

    def finish(self, record: Record) -> None:
        """Let a record whose fields are written count."""
        builder = self.code.builder
        start = builder.load(self.end, typ=INT64)
        number = self._at(start, record.bytes - WORD)
        builder.store(ir.Constant(INT64, record.kind), number)
        builder.store(builder.add(start, ir.Constant(INT64, record.bytes)), self.end)

    def last(self) -> Any:
        """The kind of the last record."""
        return self.code.builder.load(self._at(self.code.builder.load(self.end, typ=INT64), -WORD), typ=INT64)

    def remove(self, record: Record) -> None:
        """Take the last record, of this layout, from the tape; its fields can be read until another is added."""
        builder = self.code.builder
        builder.store(builder.sub(builder.load(self.end, typ=INT64), ir.Constant(INT64, record.bytes)), self.end)

    def field(self, record: Record, name: str) -> tuple[Number, tuple[int, ...], Any]:
        """A field of the record that begins at the end of the tape: its numbers, sizes and address."""
        type_, start = record.type(name), self.code.builder.load(self.end, typ=INT64)
        return by_dtype(type_.dtype), type_.shape, self._at(start, record.offsets[name])

    def _at(self, start: Any, offset: int) -> Any:
        place = self.code.add(start, offset)
        return self.code.builder.gep(self.memory, [place], inbounds=True, source_etype=BYTE)


class RecordingBlock(BlockCode):
    """A block whose runs are recorded, if gradients flow through it."""

    def __init__(self, tape: Tape, every: Mapping[int, Record], lane: Lane, number: int, labels: Mapping[int, Any]):
        super().__init__(lane, number, labels)
        self.tape, self.record = tape, every.get(number)

    def emit(self) -> None:
        """Emit the block, after reserving room on the tape for its record."""
        if self.record is not None:
            self.tape.reserve(self.record)
        super().emit()

    def leave(self) -> None:
        """Complete the record, and leave the block."""
        if self.record is not None:
            self.tape.finish(self.record)
        super().leave()

    @contextmanager
    def guarded(self, item: Piece | Store) -> Iterator[None]:
        """Guard the item, and record its predicate."""
        if item.predicate is not None and (found := self._field(predicate_field(self.item))) is not None:
            number, _, address = found
            self.code.store(number, self.bool_of(item.predicate), address)
        with super().guarded(item):
            yield

    def keep(self, values: Sequence[Array]) -> None:
        """The residuals of a piece are on the tape."""
        for place, value in enumerate(values):
            found = self._field(residual_field(self.item, place))
            assert found is not None, "a block with residuals is recorded"
            number, sizes, address = found
            if value.number != number or value.sizes != sizes:
                raise AssertionError(f"a residual of {value.number.dtype}{value.sizes} for {number.dtype}{sizes}")
            self.code.write(value, address)

    def store(self, store: Store) -> None:
        """Store, and record the indices."""
        super().store(store)
        ((_, _, sizes),) = self.storage.leaves(store.array)
        indices = [each for name in store.indices for each in self.read(name)]
        for axis, (index, size) in enumerate(zip(indices, sizes, strict=False)):
            found = self._field(index_field(self.item, axis))
            if found is not None:
                self.code.each(index.sizes, partial(self._note_index, index, size, found[2]))

    def _note_index(self, index: Array, size: int, address: Any, place: Sequence[Any]) -> None:
        position, _ = self.position(index, place, size)
        narrow = self.builder.trunc(position, INT32)
        self.code.store(by_dtype("int32"), narrow, address, self.code.offset(index.sizes, place))

    def _field(self, name: str) -> tuple[Number, tuple[int, ...], Any] | None:
        if self.record is None or name not in self.record.offsets:
            return None
        return self.tape.field(self.record, name)
