"""A function under construction: its builder, loops, and the memory that it works in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import llvmlite.ir as ir

from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.types import BYTE, INT32, INT64, Number, by_name

Index = Any
"""A place along an axis: a Python int where it is known, else a value of 64 bits."""

WRITTEN_OUT, LONGEST_TEXT = 8, 48
"""Loops over so many elements at most are written out, so that LLVM keeps short arrays in registers, unless that makes
more than so many numbers."""
ON_STACK = 4096
"""Arrays of so many bytes at most lie on the thread's stack, where LLVM knows that nothing else refers to them."""
ARRAYS = "arrays"
"""The metadata of a module that goes through the elements of arrays, one lane after another."""
STACK = 1 << 18
"""Maximal number of bytes of the thread's stack that a function takes: a thread may have half a megabyte."""


@dataclass(frozen=True)
class Array:
    """Numbers of one type: `at(index)` computes or reads one of them.

    `cost` is about how many instructions that takes. Where the array lies in memory, `pointer` is where; it is `owned`
    if nobody needs it as it is once its last use is over. `reads` are the pointers of memory that `at` reads, `here`
    those of them that it reads at its own index alone.
    """

    number: Number
    sizes: tuple[int, ...]
    at: Callable[[Sequence[Index]], Any]
    cost: int = 0
    pointer: Any = None
    owned: bool = False
    reads: frozenset[Any] = frozenset()
    here: frozenset[Any] = frozenset()

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.sizes)

    @property
    def value(self) -> Any:
        """The number of an array without axes."""
        return self.at(())


def _stored(number: Number, value: Any) -> ir.Constant:
    return number.stored(int(value)) if number.kind == "bool" else number.constant(value)


Value = Array | tuple[Any, ...]
"""The result of an operation: an array, or a tuple of such values."""


def lent(value: Value) -> Value:
    """A value whose arrays somebody else may still need as they are."""
    return replace(value, owned=False) if isinstance(value, Array) else tuple(map(lent, value))


def scalar(number: Number, value: Any) -> Array:
    """An array without axes whose number is computed already."""
    return Array(number, (), lambda index: value)


def untyped(address: Any) -> Any:
    """Return an address as LLVM has them; llvmlite types it by its use."""
    address.type = ir.PointerType()
    return address


@dataclass
class Code:
    """The body of one function. Small temporary arrays lie on its stack, large ones in the `arena` it is handed.

    Numbers are vectors of them where it works on several `lanes` at a time.
    """

    builder: Any
    arena: Any
    lanes: int = 1
    arena_bytes: int = 0
    """The bytes of the arena that the function needs."""
    on_stack: int = ON_STACK
    stack: int = STACK
    before_loops: Callable[[], None] | None = None
    """Writes what is yet to be written to memory; asked for before other code may read it, or branch."""
    _used: int = 0
    _stack: int = 0
    _element: tuple[Sequence[Index], dict[Any, Any]] | None = None
    """An index, and the numbers that are known there: of memory by its pointer, of other arrays by a key of theirs."""

    # -- numbers -------------------------------------------------------------------------------------------------------

    def number(self, name: str) -> Number:
        """The type that HLO calls so, as this function computes with it."""
        return by_name(name).wide(self.lanes)

    def spread(self, number: Number, value: Any) -> Any:
        """Convert one number to this function's form: in a vector the same for all lanes."""
        if number.lanes == 1:
            return value
        if isinstance(value, ir.Constant):
            return number.constant(value.constant)
        zero = ir.Constant(INT32, 0)
        found = self.builder.insert_element(ir.Constant(number.type, ir.Undefined), value, zero)
        first = ir.Constant(ir.VectorType(INT32, number.lanes), [zero] * number.lanes)
        return self.builder.shuffle_vector(found, found, first)

    def shared(self, array: Array) -> Array:
        """An array that is the same for all lanes."""
        number = array.number.wide(self.lanes)
        if number.lanes == 1:
            return array

        def at(index: Sequence[Index]) -> Any:
            return self.spread(number, array.at(index))

        return Array(number, array.sizes, at, array.cost + 1) if array.sizes else scalar(number, at(()))

    def any(self, flags: Any) -> Any:
        """Return whether some of the flags of a vector is set, or the only one is."""
        if self.lanes == 1:
            return flags
        bits = self.builder.bitcast(flags, ir.IntType(self.lanes))
        return self.builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    # -- numbers of places ---------------------------------------------------------------------------------------------

    def place(self, index: Index) -> Any:
        """An index as a value."""
        return ir.Constant(INT64, index) if isinstance(index, int) else index

    def add(self, left: Index, right: Index) -> Index:
        """The sum of two indices."""
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if left == 0 and isinstance(left, int):
            return right
        if right == 0 and isinstance(right, int):
            return left
        return self.builder.add(self.place(left), self.place(right), flags=("nsw",))

    def times(self, left: Index, right: int) -> Index:
        """An index times a number."""
        if isinstance(left, int):
            return left * right
        return left if right == 1 else self.builder.mul(left, self.place(right), flags=("nsw",))

    def offset(self, sizes: Sequence[int], index: Sequence[Index]) -> Index:
        """The place in memory of an element, row by row."""
        found: Index = 0
        for size, place in zip(sizes, index, strict=True):
            found = self.add(self.times(found, size), place)
        return found

    def wide(self, number: Number, value: Any) -> Any:
        """An integer as an index."""
        if number.bits == 64:
            return value
        return (self.builder.sext if number.is_signed else self.builder.zext)(value, INT64)

    def clamped(self, number: Number, value: Any, most: int) -> Index:
        """An integer as an index between 0 and `most`."""
        if most <= 0:
            return 0
        builder, index, zero, last = self.builder, self.wide(number, value), self.place(0), self.place(most)
        if number.is_signed:
            index = builder.select(builder.icmp_signed("<", index, zero), zero, index)
        return builder.select(builder.icmp_unsigned(">", index, last), last, index)

    # -- memory --------------------------------------------------------------------------------------------------------

    def variable(self, type_: ir.Type, initial: Any = None) -> Any:
        """The address of a register that is written more than once."""
        with self.builder.goto_entry_block():
            address = self.builder.alloca(type_)
        if initial is not None:
            self.builder.store(initial, address)
        return address

    def room(self, number: Number, count: int) -> Any:
        """The address of uninitialised memory for so many numbers, until `scratch` ends."""
        size = number.bytes * count
        if self._fits_on_stack(size):
            return self._on_stack(number, count)
        start = self._used
        self._used = (start + size + 63) // 64 * 64
        self.arena_bytes = max(self.arena_bytes, self._used)
        return self.builder.gep(self.arena, [self.place(start)], inbounds=True, source_etype=BYTE)

    def reserved(self, number: Number, count: int) -> Any:
        """The address of memory that stays the function's own to its end."""
        assert not self._used, "inside scratch memory"
        if self._fits_on_stack(number.bytes * count):
            return self._on_stack(number, count)
        with self.builder.goto_entry_block():
            start = self.arena_bytes
            self.arena_bytes = (start + number.bytes * count + 63) // 64 * 64
            return self.builder.gep(self.arena, [self.place(start)], inbounds=True, source_etype=BYTE)

    def _fits_on_stack(self, size: int) -> bool:
        return size <= self.on_stack and self._stack + size <= self.stack

    def _on_stack(self, number: Number, count: int) -> Any:
        self._stack += number.bytes * count
        with self.builder.goto_entry_block():
            address = self.builder.alloca(ir.ArrayType(number.stored, max(count, 1)))
        address.align = 64 if number.lanes > 1 else 32 if number.bytes * count >= 32 else 8
        return untyped(address)

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Reserve `room` inside behind the present reservation; at the end it is free again."""
        before, self._used = self._used, self._used or self.arena_base
        yield
        self._used = before

    arena_base: int = 0
    """The place in the arena at which temporary arrays begin, once all is reserved."""

    def load(self, number: Number, pointer: Any, offset: Index = 0) -> Any:
        """The number at a place of memory."""
        loaded = self.builder.load(self._at(number, pointer, offset), typ=number.stored, align=min(number.bytes, 8))
        return self.builder.trunc(loaded, number.type) if number.kind == "bool" else loaded

    def store(self, number: Number, value: Any, pointer: Any, offset: Index = 0) -> None:
        """Write a number to a place of memory."""
        if number.kind == "bool":
            value = self.builder.zext(value, number.stored)
        self.builder.store(value, self._at(number, pointer, offset), align=min(number.bytes, 8))

    def _at(self, number: Number, pointer: Any, offset: Index) -> Any:
        if isinstance(offset, int) and offset == 0:
            return pointer
        return self.builder.gep(pointer, [self.place(offset)], inbounds=True, source_etype=number.stored)

    def memory(self, number: Number, sizes: Sequence[int], pointer: Any, owned: bool = False) -> Array:
        """The array that lies at `pointer`."""
        sizes = tuple(sizes)

        def at(index: Sequence[Index]) -> Any:
            return self.load(number, pointer, self.offset(sizes, index))

        return Array(number, sizes, at, 1, pointer, owned, frozenset([pointer]))

    def table(self, number: Number, sizes: Sequence[int], numbers: Sequence[Any]) -> Array:
        """The array of numbers that never change, row by row."""
        if number.kind == "bits":
            raise UnsupportedError(f"a constant of the dtype {number.dtype}")
        sizes = tuple(sizes)
        if not sizes:
            return scalar(number, number.constant(numbers[0]))
        if number.lanes > 1:
            return self.shared(self.table(number.narrow, sizes, numbers))
        elements = [_stored(number, each) for each in numbers]
        data = ir.Constant(ir.ArrayType(number.stored, len(elements)), elements)
        table = ir.GlobalVariable(self.builder.module, data.type, self.builder.module.get_unique_name("table"))
        table.initializer, table.global_constant, table.linkage, table.align = data, True, "private", 32
        address = untyped(table)
        found = self.memory(number, sizes, address)

        def at(index: Sequence[Index]) -> Any:
            if all(isinstance(place, int) for place in index):
                return number.constant(numbers[int(self.offset(sizes, index))])
            return found.at(index)

        return Array(number, sizes, at, 1, address, reads=found.reads)

    def write(self, array: Array, pointer: Any) -> None:
        """Write all numbers of an array to memory, row by row, that it does not read anything else of."""
        if array.pointer is not None and array.count > WRITTEN_OUT:
            self.copy(array.pointer, pointer, array.count * array.number.bytes)
            return

        self.write_together([(array, pointer, True)])

    def write_together(self, arrays: Sequence[tuple[Array, Any, bool]]) -> None:
        """Write arrays of the same sizes to memory in one loop, those for which it says so.

        Each may read the memory of those before it at its own index, where it finds their numbers without it.
        """
        sizes = arrays[0][0].sizes

        def one(index: Sequence[Index]) -> None:
            before, numbers = self._element, dict[Any, Any]()
            self._element = index, numbers
            for array, pointer, is_written in arrays:
                numbers[pointer] = number = array.at(index)
                if is_written:
                    self.store(array.number, number, pointer, self.offset(sizes, index))
            self._element = before

        self.each(sizes, one, len(arrays))

    def once(self, key: Any, index: Sequence[Index], make: Callable[[], Any]) -> Any:
        """The number with this key at an index: where arrays are written there, it is computed once for all of them."""
        if self._element is None or self._element[0] is not index:
            return make()
        numbers = self._element[1]
        if key not in numbers:
            numbers[key] = make()
        return numbers[key]

    def flush(self) -> None:
        """Write to memory what is yet to be written."""
        if self.before_loops is not None:
            write, self.before_loops = self.before_loops, None
            write()

    def copy(self, source: Any, target: Any, size: int) -> None:
        """Copy `size` bytes of memory to other memory."""
        self.flush()
        module, name = self.builder.module, "llvm.memcpy.p0.p0.i64"
        declared = module.globals.get(name)
        if declared is None:
            types = [ir.PointerType(), ir.PointerType(), INT64, ir.IntType(1)]
            declared = ir.Function(module, ir.FunctionType(ir.VoidType(), types), name)
        self.builder.call(declared, [target, source, self.place(size), ir.Constant(ir.IntType(1), 0)])

    def stored(self, array: Array) -> Array:
        """The array in memory of its own, unless it is in memory already."""
        if array.pointer is not None:
            return array
        pointer = self.room(array.number, array.count)
        self.write(array, pointer)
        return self.memory(array.number, array.sizes, pointer, owned=True)

    # -- control -------------------------------------------------------------------------------------------------------

    @contextmanager
    def loop(self, count: Index, first: Index = 0) -> Iterator[Any]:
        """Code for each index from `first` to before `count`, of which there is one at least."""
        self.flush()
        self._goes_through_arrays()
        builder = self.builder
        before, body = builder.block, builder.append_basic_block("loop")
        builder.branch(body)
        builder.position_at_end(body)
        index = builder.phi(INT64)
        index.add_incoming(self.place(first), before)
        yield index
        following = builder.add(index, self.place(1), flags=("nsw",))
        index.add_incoming(following, builder.block)
        end = builder.append_basic_block("end")
        builder.cbranch(builder.icmp_signed("<", following, self.place(count)), body, end)
        builder.position_at_end(end)

    def each(self, sizes: Sequence[int], body: Callable[[tuple[Index, ...]], None], numbers: int = 1) -> None:
        """Code for each index of an array of these sizes, row by row, which makes so many numbers there."""
        self.flush()
        total = math.prod(sizes)
        if total == 0:
            return
        if sizes:
            self._goes_through_arrays()
        self._nested(tuple(sizes), body, (), written_out=total <= min(WRITTEN_OUT, LONGEST_TEXT // numbers))

    def _goes_through_arrays(self) -> None:
        if self.lanes == 1:  # LLVM can make vectors of what is done with elements
            self.builder.module.add_named_metadata(ARRAYS)

    def _nested(
        self,
        sizes: tuple[int, ...],
        body: Callable[[tuple[Index, ...]], None],
        index: tuple[Index, ...],
        written_out: bool,
    ) -> None:
        if not sizes:
            body(index)
        elif written_out or sizes[0] == 1:
            for place in range(sizes[0]):
                self._nested(sizes[1:], body, (*index, place), written_out)
        else:
            with self.loop(sizes[0]) as place:
                self._nested(sizes[1:], body, (*index, place), written_out)

    @contextmanager
    def when(self, condition: Any) -> Iterator[None]:
        """Code that runs where a condition holds."""
        self.flush()
        builder = self.builder
        then, end = builder.append_basic_block("then"), builder.append_basic_block("end")
        builder.cbranch(condition, then, end)
        builder.position_at_end(then)
        yield
        builder.branch(end)
        builder.position_at_end(end)
