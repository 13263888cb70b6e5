"""The way back of one lane, or of a group: the records on its tape from the last to the first, each undone.

See `adjoint.block_vjp`, which does it for many lanes: what a run has done to values is done to gradients the other way
round. Here a number's gradient is a register, an array's lies in memory of the lane's own, those by the entries of
stacks lie on stacks of the same shape. In a group all are vectors, of which only those lanes change that took part.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import llvmlite.ir as ir

from pcbatch.ir.machine import Piece, Push, Store
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.adjoint.block_vjp_info import Names
from pcbatch.runtime.adjoint.tape import Tapes, index_field, predicate_field, residual_field
from pcbatch.runtime.llvm import elementwise
from pcbatch.runtime.llvm.code import Array, Code, Index, scalar
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.lane import Lane
from pcbatch.runtime.llvm.lane_tape import Record, Tape
from pcbatch.runtime.llvm.operations import ALIKE, OPERATIONS, evaluate
from pcbatch.runtime.llvm.simd_tile import Group
from pcbatch.runtime.llvm.stacks import Leaf, Storage
from pcbatch.runtime.llvm.types import BYTE, INT32, INT64, Number, by_dtype


@dataclass(frozen=True)
class BackCode:
    """Place of a piece's derivative in the entry of an HLO module: its first parameter, and its results by name."""

    first: int
    reads: Mapping[int, str]
    """The gradients by leaves of its reads, by number."""
    elements: Sequence[tuple[Sequence[str], str]]
    parts: Sequence[str]


def sums_of(tapes: Tapes) -> Iterator[tuple[Leaf, TensorType]]:
    """The parts that pieces give of gradients by shared operands, summed over all runs of a lane."""
    for number, tape in tapes.blocks.items():
        for place, linear in tape.linear.items():
            yield from (((_sums(number, place), n), type_) for n, type_ in enumerate(linear.summed))


def _sums(number: int, place: int) -> str:
    return f"sum {number} {place}"


def active_leaves(tapes: Tapes, storage: Storage, name: str) -> Iterator[tuple[Leaf, Number, tuple[int, ...]]]:
    """The leaves of a variable to which gradients flow; `UnsupportedError` where they are numbers of no known kind."""
    if name not in tapes.activity.variables:
        return
    for (leaf, number, sizes), type_ in zip(storage.leaves(name), tapes.floats(name), strict=True):
        if type_ is None:
            continue
        if not number.is_float:
            raise UnsupportedError(f"a gradient of the dtype {number.dtype}")
        yield leaf, number, sizes


class Adjoints:
    """The gradients of a lane by the leaves of its variables, and the sums for shared operands.

    In a group those of the lanes in `mask` change; None: of all.
    """

    def __init__(self, code: Code, tapes: Tapes, storage: Storage):
        self.code, self.builder = code, code.builder
        self.mask: Any = None
        self.places: dict[Leaf, tuple[Number, tuple[int, ...], Any]] = {}
        active = sorted(tapes.activity.variables)
        of_variables = (each for name in active for each in active_leaves(tapes, storage, name))
        of_sums = ((leaf, by_dtype(type_.dtype).wide(code.lanes), type_.shape) for leaf, type_ in sums_of(tapes))
        for leaf, number, sizes in (*of_variables, *of_sums):
            count = Array(number, sizes, lambda index: None).count
            self.places[leaf] = number, sizes, code.reserved(number, count) if sizes else code.variable(number.type)
        code.arena_base = code.arena_bytes

    def value(self, leaf: Leaf) -> Array:
        """A gradient, where it lies."""
        number, sizes, address = self.places[leaf]
        if sizes:
            return self.code.memory(number, sizes, address)
        return scalar(number, self.builder.load(address, typ=number.type))

    def clear(self, leaf: Leaf) -> None:
        """Let it be zero."""
        number, sizes, _ = self.places[leaf]
        self.put(leaf, Array(number, sizes, lambda index: number.constant(0)))

    def put(self, leaf: Leaf, value: Array) -> None:
        """Let it be this value."""
        number, sizes, address = self.places[leaf]
        if sizes and self.mask is None:
            self.code.write(value, address)
            return

        def one(index: Sequence[Index]) -> None:
            self.set(number, value.at(index), address, self.code.offset(sizes, index))

        self.code.each(sizes, one)

    def set(self, number: Number, value: Any, address: Any, place: Index = 0) -> None:
        """Let a number of a gradient in memory be this value."""
        if self.mask is not None:
            value = self.builder.select(self.mask, value, self.code.load(number, address, place))
        self.code.store(number, value, address, place)

    def add(self, leaf: Leaf, value: Array) -> None:
        """Let it grow by a value, which is not made of it."""
        number, sizes, address = self.places[leaf]

        def one(index: Sequence[Index]) -> None:
            more, place = elementwise.convert(self.builder, value.number, number, value.at(index)), 0
            if sizes:
                place = self.code.offset(sizes, index)
            self.set(number, self.builder.fadd(self.code.load(number, address, place), more), address, place)

        self.code.each(sizes, one)

    def taken(self, leaf: Leaf) -> Array:
        """Move a gradient to memory of its own, and set it to zero."""
        found = self.value(leaf)
        if found.sizes:
            room = self.code.room(found.number, found.count)
            self.code.write(found, room)
            found = self.code.memory(found.number, found.sizes, room)
        self.clear(leaf)
        return found


class WayBack:
    """Code that undoes all that a lane, or a group, has recorded on a `tape`."""

    def __init__(
        self,
        lane: Lane | Group,
        tapes: Tapes,
        tape: Tape,
        every: Mapping[int, Record],
        derivatives: Mapping[tuple[int, int], BackCode],
        adjoints: Adjoints,
    ):
        self.lane, self.tapes, self.tape, self.every = lane, tapes, tape, every
        self.derivatives, self.adjoints = derivatives, adjoints
        self.code, self.builder = lane.code, lane.builder

    def clear(self) -> None:
        """Let all gradients be zero; stacks are empty at the end of a lane."""
        for leaf in self.adjoints.places:
            self.adjoints.clear(leaf)

    def emit(self) -> None:
        """Undo everything."""
        builder = self.builder
        labels = ("undo", "record", "undone")
        head, record, end = (builder.append_basic_block(name) for name in labels)
        builder.branch(head)
        builder.position_at_end(head)
        is_empty = builder.icmp_signed("==", builder.load(self.tape.end, typ=INT64), ir.Constant(INT64, 0))
        builder.cbranch(is_empty, end, record)
        builder.position_at_end(record)
        ways = self.ways()
        labels_of = {kind: builder.append_basic_block(f"undo_{kind}") for kind in ways}
        if len(ways) == 1:
            builder.branch(*labels_of.values())
        elif ways:
            *others, last = labels_of
            switch = builder.switch(self.tape.last(), labels_of[last])
            for kind in others:
                switch.add_case(ir.Constant(INT32, kind), labels_of[kind])
        else:
            builder.branch(end)
        for kind, label in labels_of.items():
            builder.position_at_end(label)
            with self.code.scratch():
                ways[kind]()
            builder.branch(head)
        builder.position_at_end(end)

    def ways(self) -> dict[int, Callable[[], None]]:
        """Emitters of what undoes the last record, by its kind."""
        return {each.kind: partial(self._undo, number) for number, each in self.every.items()}

    def _undo(self, number: int) -> None:
        record = self.every[number]
        self.tape.remove(record)
        self.adjoints.mask = self.mask(record)
        _Undoing(self, number).emit()
        self.adjoints.mask = None

    def mask(self, record: Record) -> Any:
        """The flags of the lanes that the record at the end of the tape is of; None: of the only one."""
        return None


def adjoint_group(group: str) -> str:
    """The name of the stacks with the gradients by the entries of others."""
    return f"{group}~"


class _Undoing:
    """One run of a block; `zero` are the leaves whose gradients are known to be zero at this point of the way back."""

    def __init__(self, way: WayBack, number: int):
        self.way, self.lane, self.tape, self.adjoints = way, way.lane, way.tape, way.adjoints
        self.code, self.builder, self.storage = way.code, way.builder, way.lane.storage
        self.number, self.record = number, way.every[number]
        self.names = Names(way.tapes, way.tapes.blocks[number])
        self.block, self.active = self.names.block, way.tapes.activity.variables
        self.zero: set[Leaf] = set()

    def emit(self) -> None:
        """Undo it."""
        mask, self.adjoints.mask = self.adjoints.mask, None  # nobody asks what temporary variables were before
        for name in sorted(self.active - self.lane.program.storage.keys() & self._touched()):
            for leaf, _, _ in self.leaves(name):
                self.adjoints.clear(leaf)
                self.zero.add(leaf)
        self.adjoints.mask = mask
        self._move_pointers(-1, [push.variable for push in self.block.pushes])
        for push in self.names.pushes:
            if push.saved is not None:
                self._add_entry(push, push.saved)
        for place, item in reversed([*enumerate(self.block.body)]):
            if self._is_undone(place, item):
                with self._guarded(place, item):
                    if isinstance(item, Piece):
                        self.piece(place, item)
                    else:
                        self.store(place, item)
        for push in self.names.pushes:
            if push.saved is None:
                self._add_entry(push, push.variable)
        for name in self.names.popped:
            self._put_entry(name)
        self._move_pointers(1, self.block.pops)

    def leaves(self, name: str) -> list[tuple[Leaf, Number, tuple[int, ...]]]:
        """The leaves of a variable that have gradients."""
        return [*active_leaves(self.way.tapes, self.storage, name)]

    def _touched(self) -> set[str]:
        found: set[str] = set()
        for item in self.block.body:
            found |= {*item.reads, *item.writes} if isinstance(item, Piece) else {item.array, item.value}
        return found | {push.saved for push in self.block.pushes if push.saved is not None}

    def _is_undone(self, place: int, item: Piece | Store) -> bool:
        if isinstance(item, Piece):
            return not item.speculative and not self.active.isdisjoint(item.writes)
        return place in self.names.stores

    @contextmanager
    def _guarded(self, place: int, item: Piece | Store) -> Iterator[None]:
        """Code that is there where an item has taken part."""
        if item.predicate is None:
            yield
            return
        number, _, address = self.tape.field(self.record, predicate_field(place))
        before, held, mask = {*self.zero}, self.code.load(number, address), self.adjoints.mask
        if mask is None:
            with self.code.when(held):
                yield
        else:
            self.adjoints.mask = self.builder.and_(mask, held)
            yield
            self.adjoints.mask = mask
        self.zero &= before

    def add(self, leaf: Leaf, value: Array) -> None:
        """Let a gradient grow."""
        if leaf in self.zero:
            self.zero.remove(leaf)
            if not value.sizes:
                number = self.adjoints.places[leaf][0]
                of = elementwise.convert(self.builder, value.number, number, value.value)
                self.adjoints.put(leaf, scalar(number, of))
                return
        self.adjoints.add(leaf, value)

    def taken(self, leaf: Leaf) -> Array:
        """A gradient, which is zero from now on."""
        found = self.adjoints.taken(leaf)
        self.zero.add(leaf)
        return found

    # -- the body ------------------------------------------------------------------------------------------------------

    def piece(self, place: int, piece: Piece) -> None:
        """Undo a piece."""
        written = [leaf for name in piece.writes for leaf, _, _ in self.leaves(name)]
        is_known = all(leaf in self.zero for leaf in written)
        seeds = [self.taken(leaf) for leaf in written]
        linear = self.names.tape.linear.get(place)
        if linear is None or is_known:
            return
        back = self.way.derivatives[self.number, place]
        fields = [self.tape.field(self.record, residual_field(place, n)) for n, _ in enumerate(linear.residuals)]
        given = [self._read(*field) for field in fields]
        for name in piece.shared:
            types = leaves(self.lane.program.shared_types[name])
            given += [self.lane.setting.shared[name, n] for n, _ in enumerate(types)]
        given += seeds
        arguments = {**self.lane.setting.captured, **{back.first + n: each for n, each in enumerate(given)}}
        names = [*back.reads.values(), *itertools.chain(*((*at, of) for at, of in back.elements)), *back.parts]
        operations = OPERATIONS if self.code.lanes == 1 else ALIKE
        found = iter(evaluate(self.code, self.lane.setting.module, names, arguments, operations))
        read = [leaf for name in piece.reads for leaf, _, _ in self.storage.leaves(name)]
        for number in back.reads:
            self.add(read[number], next(found))
        for each, (at, _) in zip(linear.elements, back.elements, strict=True):
            indices = [next(found) for _ in at]
            self._add_element(piece.reads[each.read], indices, next(found))
        for n, _ in enumerate(back.parts):
            self.add((_sums(self.number, place), n), next(found))

    def _read(self, number: Number, sizes: tuple[int, ...], address: Any) -> Array:
        array = self.code.memory(number, sizes, address)
        return array if sizes else scalar(number, array.value)

    def _add_element(self, name: str, indices: Sequence[Array], value: Array) -> None:
        """Let the gradient by an element of an array grow, or by a row of it."""
        ((leaf, number, sizes),) = self.leaves(name)
        if any(index.sizes for index in indices):
            raise UnsupportedError("the gradient by elements at positions that are no numbers")
        self.zero.discard(leaf)
        pairs = zip(indices, sizes, strict=False)
        first = [self.code.clamped(index.number, index.value, size - 1) for index, size in pairs]
        address = self.adjoints.places[leaf][2]

        def one(index: Sequence[Index]) -> None:
            place = self.code.offset(sizes, [*first, *index])
            more = self.builder.fadd(self.code.load(number, address, place), value.at(index))
            self.code.store(number, more, address, place)

        self.code.each(sizes[len(indices) :], one)

    def store(self, place: int, store: Store) -> None:
        """Undo a store: an element's gradient is the value's, and that by the element before is zero.

        Positions are all different: several of one axis come from a slice.
        """
        ((leaf, number, sizes),) = self.leaves(store.array)
        if leaf in self.zero:
            return
        fields = [self.tape.field(self.record, index_field(place, axis)) for axis in range(len(self._indices(store)))]
        outer = [size for _, of_index, _ in fields for size in of_index]
        rest = (*outer, *sizes[len(fields) :])
        address, value = self.adjoints.places[leaf][2], next(iter(self.leaves(store.value)), None)

        def one(index: Sequence[Index]) -> None:
            places, position = iter(index), []
            for kind, of_index, memory in fields:
                found = self.code.load(kind, memory, next(places) if of_index else 0)
                position.append(self.code.wide(kind, found))
            at = self.code.offset(sizes, [*position, *places])
            element = self.code.load(number, address, at)
            self.code.store(number, number.constant(0), address, at)
            if value is not None:
                of_value, kind, shape = value
                own = zip(shape, index[len(rest) - len(shape) :], strict=True)
                element = elementwise.convert(self.builder, number, kind, element)
                self._add_number(of_value, [0 if size == 1 else each for size, each in own], element)

        if value is not None:
            self.zero.discard(value[0])
        self.code.each(rest, one)

    def _indices(self, store: Store) -> list[Leaf]:
        return [leaf for name in store.indices for leaf, _, _ in self.storage.leaves(name)]

    def _add_number(self, leaf: Leaf, index: Sequence[Index], element: Any) -> None:
        """Let one number of a gradient grow."""
        number, sizes, address = self.adjoints.places[leaf]
        place = self.code.offset(sizes, index)
        if sizes:
            more = self.builder.fadd(self.code.load(number, address, place), element)
            self.code.store(number, more, address, place)
        else:
            self.builder.store(self.builder.fadd(self.builder.load(address, typ=number.type), element), address)

    # -- stacks --------------------------------------------------------------------------------------------------------

    @property
    def _alone(self) -> Lane:
        assert isinstance(self.lane, Lane), "groups have no stacks"
        return self.lane

    def _move_pointers(self, by: int, names: Sequence[str]) -> None:
        for group in {self.storage.group(name) for name in names}:
            address = self._alone.pointers[group]
            count = self.builder.load(address, typ=INT64)
            self.builder.store(self.builder.add(count, ir.Constant(INT64, by)), address)

    def _fields(self, name: str) -> Iterator[tuple[Leaf, Number, tuple[int, ...], Any]]:
        """The gradients by the leaves of the entry of a stack at its pointer, and where they lie."""
        group = self.storage.group(name)
        frame = self.storage.frames[adjoint_group(group)]
        count = self.builder.load(self._alone.pointers[group], typ=INT64)
        stack = self._alone.stacks[adjoint_group(group)]
        entry = self.builder.gep(stack, [self.code.times(count, frame.bytes)], inbounds=True, source_etype=BYTE)
        for leaf, number, sizes in self.leaves(name):
            at = ir.Constant(INT64, frame.fields[leaf].offset)
            yield leaf, number, sizes, self.builder.gep(entry, [at], inbounds=True, source_etype=BYTE)

    def _add_entry(self, push: Push, saved: str) -> None:
        """Add the gradient by a pushed entry to that of the value that was saved."""
        if saved in self.active:
            targets = self.leaves(saved)
            for (_, number, sizes, address), (leaf, _, _) in zip(self._fields(push.variable), targets, strict=True):
                self.add(leaf, self._read(number, sizes, address))

    def _put_entry(self, name: str) -> None:
        """The entry that was popped has the gradient by the top, and the top none."""
        for leaf, number, sizes, address in self._fields(name):
            value = self.adjoints.value(leaf)
            if sizes:
                self.code.write(value, address)
            else:
                self.code.store(number, value.value, address)
            self.adjoints.clear(leaf)
