"""HLO's operations that combine many numbers: reductions, windows, products of matrices, sorts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ir

from pcbatch.runtime.llvm import elementwise
from pcbatch.runtime.llvm.code import Array, Code, Index, Value, scalar
from pcbatch.runtime.llvm.computation import Evaluation, Operations, flat
from pcbatch.runtime.llvm.hlo import Instruction, TupleShape, UnsupportedError
from pcbatch.runtime.llvm.types import INT64, Number

SHORT = 64
"""Rows of so many numbers at most are sorted by insertion, which needs no memory."""


class Combining:
    """The accumulators of a reduction, and the computation by which numbers are added to them."""

    def __init__(self, evaluation: Evaluation, instruction: Instruction, numbers: Sequence[Number]):
        self.evaluation, self.code, self.numbers = evaluation, evaluation.code, numbers
        self.computation = evaluation.module.computations[instruction.computation()]
        root = self.computation.root
        is_sum = root.opcode == "add" and len(numbers) == 1 and numbers[0].is_float
        self.is_sum = is_sum and set(root.operands) == {each.name for each in self.computation.parameters}
        self.addresses = [self.code.variable(number.type) for number in numbers]

    def start(self, values: Sequence[Any]) -> None:
        """Begin with these values."""
        for address, value in zip(self.addresses, values, strict=True):
            self.code.builder.store(value, address)

    def now(self) -> list[Any]:
        """The accumulated values."""
        found = zip(self.addresses, self.numbers, strict=True)
        return [self.code.builder.load(address, typ=number.type) for address, number in found]

    def add(self, values: Sequence[Any]) -> None:
        """Take one more number of each kind."""
        self.start(self.combined(self.now(), values))

    def combined(self, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        """Apply the computation to two numbers of each kind."""
        if self.is_sum:  # numbers that are summed may be summed in any order
            return [self.code.builder.fadd(left[0], right[0], flags=elementwise.SUMMING)]
        given = [scalar(*each) for each in zip((*self.numbers, *self.numbers), (*left, *right), strict=True)]
        found = self.evaluation.inner(self.computation.name, given)
        return [leaf.value for leaf in flat(found)]


def _made(evaluation: Evaluation, numbers: Sequence[Number], sizes: Sequence[int], body: Any) -> list[Array]:
    """Arrays whose numbers `body(index)` computes, one of each at a time."""
    code = evaluation.code
    if not sizes:
        return [scalar(number, value) for number, value in zip(numbers, body(()), strict=True)]
    pointers = [code.room(number, math.prod(sizes)) for number in numbers]

    def one(index: Sequence[Index]) -> None:
        for number, pointer, value in zip(numbers, pointers, body(index), strict=True):
            code.store(number, value, pointer, code.offset(sizes, index))

    code.each(sizes, one)
    return [code.memory(number, sizes, each, owned=True) for number, each in zip(numbers, pointers, strict=True)]


def _sizes(instruction: Instruction) -> tuple[int, ...]:
    shape = instruction.shape
    first = shape.items[0] if isinstance(shape, TupleShape) else shape
    assert not isinstance(first, TupleShape), "a reduction to tuples of tuples"
    return first.sizes


def _as_said(instruction: Instruction, arrays: Sequence[Array]) -> Value:
    return tuple(arrays) if isinstance(instruction.shape, TupleShape) else arrays[0]


def _reduce(evaluation: Evaluation, instruction: Instruction) -> Value:
    code, count = evaluation.code, len(instruction.operands) // 2
    arrays = [evaluation.array(name) for name in instruction.operands[:count]]
    initial = [evaluation.array(name).value for name in instruction.operands[count:]]
    axes, old = instruction.numbers("dimensions"), arrays[0].sizes
    kept = [axis for axis in range(len(old)) if axis not in axes]
    combining = Combining(evaluation, instruction, [array.number for array in arrays])

    def reduced(index: Sequence[Index]) -> list[Any]:
        combining.start(initial)

        def one(inner: Sequence[Index]) -> None:
            place: list[Index] = [0] * len(old)
            for axis, each in (*zip(kept, index, strict=True), *zip(axes, inner, strict=True)):
                place[axis] = each
            combining.add([array.at(place) for array in arrays])

        code.each([old[axis] for axis in axes], one)
        return combining.now()

    found = _made(evaluation, combining.numbers, [old[axis] for axis in kept], reduced)
    return _as_said(instruction, found)


def _window(text: str, key: str, rank: int, usual: int) -> list[list[int]]:
    matched = re.search(rf"\b{key}=([\d_x-]+)", text)
    parts = matched[1].split("x") if matched else [str(usual)] * rank
    return [[int(number) for number in part.split("_")] for part in parts]


def _reduce_window(evaluation: Evaluation, instruction: Instruction) -> Value:
    code, builder, count = evaluation.code, evaluation.code.builder, len(instruction.operands) // 2
    arrays = [evaluation.reread(name) for name in instruction.operands[:count]]
    initial = [evaluation.array(name).value for name in instruction.operands[count:]]
    old, new, text = arrays[0].sizes, _sizes(instruction), instruction.attributes["window"]
    rank = len(old)
    sizes = [each[0] for each in _window(text, "size", rank, 1)]
    strides = [each[0] for each in _window(text, "stride", rank, 1)]
    pads = [each if len(each) == 2 else [0, 0] for each in _window(text, "pad", rank, 0)]
    dilations = [each[0] for each in _window(text, "rhs_dilate", rank, 1)]
    if any(each != [1] for each in _window(text, "lhs_dilate", rank, 1)):
        raise UnsupportedError("a window over spread out numbers")
    combining = Combining(evaluation, instruction, [array.number for array in arrays])
    running = _running_axis(old, new, sizes, strides, pads, dilations)
    if running is not None:
        return _as_said(instruction, _running(code, arrays, initial, combining, *running))

    def windowed(index: Sequence[Index]) -> list[Any]:
        combining.start(initial)

        def one(inner: Sequence[Index]) -> None:
            place, inside = [], ir.Constant(ir.IntType(1), 1)
            for axis in range(rank):
                first = code.add(code.times(index[axis], strides[axis]), -pads[axis][0])
                at = code.add(first, code.times(inner[axis], dilations[axis]))
                place.append(at)
                if pads[axis] != [0, 0]:
                    size = code.place(old[axis])
                    inside = builder.and_(inside, builder.icmp_unsigned("<", code.place(at), size))
            with code.when(inside):
                combining.add([array.at(place) for array in arrays])

        code.each(sizes, one)
        return combining.now()

    return _as_said(instruction, _made(evaluation, combining.numbers, new, windowed))


def _running_axis(
    old: Sequence[int],
    new: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[Sequence[int]],
    dilations: Sequence[int],
) -> tuple[int, bool] | None:
    """The axis along which windows hold all numbers up to each place, and whether from behind; else None."""
    axes = [axis for axis, size in enumerate(sizes) if size != 1]
    if len(axes) != 1 or [*old] != [*new] or set(strides) != {1} or set(dilations) != {1}:
        return None
    (axis,) = axes
    size = sizes[axis]
    if size != old[axis] or any(pad[0] or pad[1] for each, pad in enumerate(pads) if each != axis):
        return None
    return {(size - 1, 0): (axis, False), (0, size - 1): (axis, True)}.get((pads[axis][0], pads[axis][1]))


def _running(
    code: Code, arrays: Sequence[Array], initial: Sequence[Any], combining: Combining, axis: int, backwards: bool
) -> list[Array]:
    """Cumulative sums and the like, each number from the one before it."""
    sizes, numbers = arrays[0].sizes, combining.numbers
    pointers = [code.room(number, math.prod(sizes)) for number in numbers]

    def row(others: Sequence[Index]) -> None:
        combining.start(initial)

        def one(index: Sequence[Index]) -> None:
            at = code.add(code.times(index[0], -1), sizes[axis] - 1) if backwards else index[0]
            place = [*others[:axis], at, *others[axis:]]
            combining.add([array.at(place) for array in arrays])
            for number, pointer, value in zip(numbers, pointers, combining.now(), strict=True):
                code.store(number, value, pointer, code.offset(sizes, place))

        code.each([sizes[axis]], one)

    code.each([size for each, size in enumerate(sizes) if each != axis], row)
    return [code.memory(number, sizes, each, owned=True) for number, each in zip(numbers, pointers, strict=True)]


def _dot(evaluation: Evaluation, instruction: Instruction) -> Array:
    code, builder = evaluation.code, evaluation.code.builder
    left, right = (evaluation.reread(name) for name in instruction.operands)
    number = left.number
    if number != right.number or not (number.is_float or number.kind in ("signed", "unsigned")) or number.bits == 16:
        raise UnsupportedError(f"a product of {number.name} and {right.number.name}")
    summed = instruction.numbers("lhs_contracting_dims"), instruction.numbers("rhs_contracting_dims")
    batch = instruction.numbers("lhs_batch_dims"), instruction.numbers("rhs_batch_dims")
    free = [
        [axis for axis in range(len(array.sizes)) if axis not in (*taken, *shared)]
        for array, taken, shared in zip((left, right), summed, batch, strict=True)
    ]
    address = code.variable(number.type)

    def product(index: Sequence[Index]) -> list[Any]:
        builder.store(number.constant(0), address)
        places: list[list[Index]] = [[0] * len(left.sizes), [0] * len(right.sizes)]
        start = len(batch[0]) + len(free[0])
        for place, shared, own, of_own in zip(
            places, batch, free, (index[len(batch[0]) : start], index[start:]), strict=True
        ):
            for axis, at in (*zip(shared, index, strict=False), *zip(own, of_own, strict=True)):
                place[axis] = at

        def one(inner: Sequence[Index]) -> None:
            for place, axes in zip(places, summed, strict=True):
                for axis, at in zip(axes, inner, strict=True):
                    place[axis] = at
            factors = left.at(places[0]), right.at(places[1])
            total = builder.load(address, typ=number.type)
            if number.is_float:
                more = builder.fmul(*factors, flags=elementwise.SUMMING)
                builder.store(builder.fadd(total, more, flags=elementwise.SUMMING), address)
            else:
                builder.store(builder.add(total, builder.mul(*factors)), address)

        code.each([left.sizes[axis] for axis in summed[0]], one)
        return [builder.load(address, typ=number.type)]

    return _made(evaluation, [number], instruction.array.sizes, product)[0]


# -- sorting -----------------------------------------------------------------------------------------------------------


def _sort(evaluation: Evaluation, instruction: Instruction) -> Value:
    code = evaluation.code
    arrays = [evaluation.taken(name) for name in instruction.operands]
    (axis,) = instruction.numbers("dimensions")
    sizes = arrays[0].sizes
    sorting = _Sorting(evaluation, instruction, arrays, axis)

    def row(others: Sequence[Index]) -> None:
        sorting.row([*others[:axis], 0, *others[axis:]])

    code.each([size for each, size in enumerate(sizes) if each != axis], row)
    found = [code.memory(array.number, array.sizes, array.pointer, owned=True) for array in arrays]
    return _as_said(instruction, found)


class _Sorting:
    """Sorts rows of arrays together, in place and stably, by the computation that says which of two comes first."""

    def __init__(self, evaluation: Evaluation, instruction: Instruction, arrays: Sequence[Array], axis: int):
        self.evaluation, self.code, self.builder = evaluation, evaluation.code, evaluation.code.builder
        self.arrays, self.size = arrays, arrays[0].sizes[axis]
        self.computation = instruction.computation()
        self.stride = math.prod(arrays[0].sizes[axis + 1 :])
        self.first: Index = 0
        if self.size > SHORT:
            raise UnsupportedError(f"a sort of more than {SHORT} numbers")

    def row(self, first: Sequence[Index]) -> None:
        """Sort the row that begins at a place, by insertion: each number goes down as far as it comes before others."""
        code, builder = self.code, self.builder
        if self.size < 2:
            return
        self.first = code.offset(self.arrays[0].sizes, first)
        with code.loop(self.size, first=1) as place:
            moving = self.load(place)
            head, move, end = (builder.append_basic_block(name) for name in ("insert", "move", "inserted"))
            before = builder.block
            builder.branch(head)
            builder.position_at_end(head)
            hole = builder.phi(INT64)
            hole.add_incoming(place, before)
            compare = builder.append_basic_block("compare")
            builder.cbranch(builder.icmp_signed(">", hole, code.place(0)), compare, end)
            builder.position_at_end(compare)
            under = builder.sub(hole, code.place(1))
            other = self.load(under)
            builder.cbranch(self.comes_first(moving, other), move, end)
            builder.position_at_end(move)
            self.store(other, hole)
            hole.add_incoming(under, builder.block)
            builder.branch(head)
            builder.position_at_end(end)
            self.store(moving, hole)

    def load(self, place: Index) -> list[Any]:
        """The numbers at a place of the row."""
        at = self.code.add(self.first, self.code.times(place, self.stride))
        return [self.code.load(array.number, array.pointer, at) for array in self.arrays]

    def store(self, values: Sequence[Any], place: Index) -> None:
        at = self.code.add(self.first, self.code.times(place, self.stride))
        for array, value in zip(self.arrays, values, strict=True):
            self.code.store(array.number, value, array.pointer, at)

    def comes_first(self, left: Sequence[Any], right: Sequence[Any]) -> Any:
        """Compare numbers: true if the first come before the others."""
        given = [
            scalar(array.number, value) for array, *both in zip(self.arrays, left, right, strict=True) for value in both
        ]
        found = self.evaluation.inner(self.computation, given)
        assert isinstance(found, Array), "a comparison gives a bool"
        return found.value


REDUCING: Operations = {"reduce": _reduce, "reduce-window": _reduce_window, "dot": _dot, "sort": _sort}
