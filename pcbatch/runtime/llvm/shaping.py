"""HLO's operations that move numbers: to other places, other sizes, into other arrays and out of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ir

from pcbatch.runtime.llvm import elementwise
from pcbatch.runtime.llvm.code import Array, Index, scalar
from pcbatch.runtime.llvm.computation import CHEAP, Evaluation, Operations
from pcbatch.runtime.llvm.hlo import Instruction, UnsupportedError
from pcbatch.runtime.llvm.types import INT64, by_name


def _view(of: Array, sizes: Sequence[int], index_of: Any, cost: int = 0) -> Array:
    """An array whose numbers are those of another one, at other places."""
    sizes = tuple(sizes)
    if not sizes:
        return scalar(of.number, of.at(index_of(())))
    return Array(of.number, sizes, lambda index: of.at(index_of(index)), of.cost + cost, reads=of.reads)


def _broadcast(evaluation: Evaluation, instruction: Instruction) -> Array:
    sizes, axes = instruction.array.sizes, instruction.numbers("dimensions")
    (name,) = instruction.operands
    array = evaluation.reread(name) if math.prod(sizes) > evaluation.array(name).count else evaluation.array(name)
    return _view(array, sizes, lambda index: tuple(index[axis] for axis in axes))


def _reshape(evaluation: Evaluation, instruction: Instruction) -> Array:
    sizes = instruction.array.sizes
    (name,) = instruction.operands
    array = evaluation.array(name)
    return reshaped(evaluation, array, sizes)


def reshaped(evaluation: Evaluation, array: Array, sizes: tuple[int, ...]) -> Array:
    """The same numbers in other sizes."""
    if array.sizes == sizes:
        return array
    if array.pointer is not None:
        evaluation.code.flush()
        return evaluation.code.memory(array.number, sizes, array.pointer, array.owned)
    if [size for size in array.sizes if size != 1] == [size for size in sizes if size != 1]:
        old = [axis for axis, size in enumerate(array.sizes) if size != 1]
        new = [axis for axis, size in enumerate(sizes) if size != 1]
        rank = len(array.sizes)

        def index_of(index: Sequence[Index]) -> tuple[Index, ...]:
            found: list[Index] = [0] * rank
            for to, of in zip(old, new, strict=True):
                found[to] = index[of]
            return tuple(found)

        return _view(array, sizes, index_of)
    stored = evaluation.code.stored(array)
    return evaluation.code.memory(stored.number, sizes, stored.pointer, owned=True)


def _transpose(evaluation: Evaluation, instruction: Instruction) -> Array:
    axes = instruction.numbers("dimensions")
    array = evaluation.array(instruction.operands[0])

    def index_of(index: Sequence[Index]) -> tuple[Index, ...]:
        found: list[Index] = [0] * len(axes)
        for place, axis in zip(index, axes, strict=True):
            found[axis] = place
        return tuple(found)

    return _view(array, instruction.array.sizes, index_of)


def _slice(evaluation: Evaluation, instruction: Instruction) -> Array:
    code, parts = evaluation.code, instruction.attributes["slice"].strip("{}").split(",")
    bounds = [[int(number) for number in part.strip(" []").split(":")] for part in parts if part.strip()]
    array = evaluation.array(instruction.operands[0])

    def index_of(index: Sequence[Index]) -> tuple[Index, ...]:
        steps = [bound[2] if len(bound) > 2 else 1 for bound in bounds]
        return tuple(
            code.add(code.times(place, step), bound[0]) for place, step, bound in zip(index, steps, bounds, strict=True)
        )

    return _view(array, instruction.array.sizes, index_of)


def _reverse(evaluation: Evaluation, instruction: Instruction) -> Array:
    code, axes = evaluation.code, instruction.numbers("dimensions")
    array = evaluation.array(instruction.operands[0])

    def index_of(index: Sequence[Index]) -> tuple[Index, ...]:
        return tuple(
            code.add(code.times(place, -1), array.sizes[axis] - 1) if axis in axes else place
            for axis, place in enumerate(index)
        )

    return _view(array, array.sizes, index_of)


def _iota(evaluation: Evaluation, instruction: Instruction) -> Array:
    code, of = evaluation.code, evaluation.code.number(instruction.array.dtype)
    axis = int(instruction.attributes["iota_dimension"])
    whole = by_name("s64")

    def at(index: Sequence[Index]) -> Any:
        place = index[axis]
        if isinstance(place, int):
            return of.constant(place)
        return code.spread(of, elementwise.convert(code.builder, whole, of.narrow, place))

    return Array(of, instruction.array.sizes, at)


def _pad(evaluation: Evaluation, instruction: Instruction) -> Array:
    """Pad each axis by `low_high` or `low_high_interior`; negative numbers cut off. A number has no axes."""
    code, sizes = evaluation.code, instruction.array.sizes
    array, filling = (evaluation.array(name) for name in instruction.operands)
    if not sizes:
        return array
    axes = [[int(number) for number in part.split("_")] for part in instruction.attributes["padding"].split("x")]
    pointer = code.room(array.number, math.prod(sizes))
    value = filling.value

    def fill(index: Sequence[Index]) -> None:
        code.store(array.number, value, pointer, code.offset(sizes, index))

    code.each(sizes, fill)
    firsts, counts = [], []
    for (low, _, *interior), old, new in zip(axes, array.sizes, sizes, strict=True):
        step = 1 + (interior[0] if interior else 0)
        first = max(0, -(low // step)) if low < 0 else 0
        behind = min(old, (new - low + step - 1) // step)
        firsts.append(first)
        counts.append(max(0, behind - first))

    def one(index: Sequence[Index]) -> None:
        source = [code.add(place, first) for place, first in zip(index, firsts, strict=True)]
        steps = [1 + (each[2] if len(each) > 2 else 0) for each in axes]
        target = [
            code.add(code.times(place, step), each[0]) for place, step, each in zip(source, steps, axes, strict=True)
        ]
        code.store(array.number, array.at(source), pointer, code.offset(sizes, target))

    code.each(counts, one)
    return code.memory(array.number, sizes, pointer, owned=True)


def _concatenate(evaluation: Evaluation, instruction: Instruction) -> Array:
    code, sizes = evaluation.code, instruction.array.sizes
    (axis,) = instruction.numbers("dimensions")
    arrays = [evaluation.array(name) for name in instruction.operands]
    if len(arrays) == 1:
        return arrays[0]
    pointer, start = code.room(arrays[0].number, math.prod(sizes)), 0
    for array in arrays:

        def one(index: tuple[Index, ...], array: Array = array, start: int = start) -> None:
            place = (*index[:axis], code.add(index[axis], start), *index[axis + 1 :])
            code.store(array.number, array.at(index), pointer, code.offset(sizes, place))

        code.each(array.sizes, one)
        start += array.sizes[axis]
    return code.memory(arrays[0].number, sizes, pointer, owned=True)


def _starts(evaluation: Evaluation, names: Sequence[str], old: Sequence[int], new: Sequence[int]) -> list[Index]:
    """The start of a part of an array, clamped so that all of it lies inside."""
    found = []
    for name, size, part in zip(names, old, new, strict=True):
        start = evaluation.array(name)
        found.append(evaluation.code.clamped(start.number, start.value, size - part))
    return found


def _dynamic_slice(evaluation: Evaluation, instruction: Instruction) -> Array:
    code, (name, *starts) = evaluation.code, instruction.operands
    array, sizes = evaluation.array(name), instruction.array.sizes
    first = _starts(evaluation, starts, array.sizes, sizes)
    return _view(array, sizes, lambda index: tuple(code.add(*each) for each in zip(index, first, strict=True)), 1)


def _dynamic_update_slice(evaluation: Evaluation, instruction: Instruction) -> Array:
    code, (name, update_name, *starts) = evaluation.code, instruction.operands
    update = evaluation.array(update_name)
    first = _starts(evaluation, starts, evaluation.array(name).sizes, update.sizes)
    before = evaluation.array(name)
    if update.count == 1:
        update = Array(update.number, update.sizes, _fixed(update.at((0,) * len(update.sizes))))
    elif before.pointer is not None and before.pointer in update.reads:
        update = evaluation.stored(update_name) if update.pointer is None else _copied(evaluation, update)
    array = evaluation.taken(name)

    def one(index: Sequence[Index]) -> None:
        place = [code.add(*each) for each in zip(index, first, strict=True)]
        code.store(array.number, update.at(index), array.pointer, code.offset(array.sizes, place))

    code.each(update.sizes, one)
    return code.memory(array.number, array.sizes, array.pointer, owned=True)


def _fixed(value: Any) -> Any:
    return lambda index: value


def _copied(evaluation: Evaluation, array: Array) -> Array:
    pointer = evaluation.code.room(array.number, array.count)
    evaluation.code.write(array, pointer)
    return evaluation.code.memory(array.number, array.sizes, pointer, owned=True)


# -- rows at places that are computed ---------------------------------------------------------------------------------


def _batch_index(index: Sequence[Index], outside: Sequence[int]) -> list[Index]:
    """The places along all axes but those `outside`."""
    return [place for axis, place in enumerate(index) if axis not in outside]


def _of_indices(evaluation: Evaluation, indices: Array, axis: int, batch: Sequence[Index], number: int) -> Any:
    """Return a number of an index vector, which lies along an `axis` of `indices`, perhaps one that is not there."""
    place = [*batch] if axis == len(indices.sizes) else [*batch[:axis], number, *batch[axis:]]
    return evaluation.code.wide(indices.number, indices.at(place))


def _gather(evaluation: Evaluation, instruction: Instruction) -> Array:
    code, (name, indices_name) = evaluation.code, instruction.operands
    array, indices, sizes = evaluation.array(name), evaluation.reread(indices_name), instruction.array.sizes
    offsets, collapsed = instruction.numbers("offset_dims"), instruction.numbers("collapsed_slice_dims")
    starts, parts = instruction.numbers("start_index_map"), instruction.numbers("slice_sizes")
    batching, of_batch = (
        instruction.numbers("operand_batching_dims"),
        instruction.numbers("start_indices_batching_dims"),
    )
    axis = int(instruction.attributes["index_vector_dim"])
    whole = [each for each in range(len(array.sizes)) if each not in collapsed and each not in batching]

    def at(index: Sequence[Index]) -> Any:
        batch = _batch_index(index, offsets)
        place: list[Index] = [0] * len(array.sizes)
        for number, to in enumerate(starts):
            start = _of_indices(evaluation, indices, axis, batch, number)
            place[to] = code.clamped(by_name("s64"), start, array.sizes[to] - parts[to])
        for to, of in zip(batching, of_batch, strict=True):
            place[to] = batch[of if of < axis else of - 1]
        for to, of in zip(whole, offsets, strict=True):
            place[to] = code.add(place[to], index[of])
        return array.at(place)

    if not sizes:
        return scalar(array.number, at(()))
    cost = array.cost + CHEAP * len(starts)
    return Array(array.number, sizes, at, cost, reads=array.reads | indices.reads)


def _scatter(evaluation: Evaluation, instruction: Instruction) -> Array:
    code, builder = evaluation.code, evaluation.code.builder
    if len(instruction.operands) != 3:
        raise UnsupportedError("a scatter of several arrays")
    name, indices_name, updates_name = instruction.operands
    windows, inserted = instruction.numbers("update_window_dims"), instruction.numbers("inserted_window_dims")
    starts = instruction.numbers("scatter_dims_to_operand_dims")
    batching = instruction.numbers("input_batching_dims")
    of_batch = instruction.numbers("scatter_indices_batching_dims")
    axis = int(instruction.attributes["index_vector_dim"])
    before = evaluation.array(name)
    for each in (indices_name, updates_name):
        if before.pointer is not None and before.pointer in evaluation.array(each).reads:
            evaluation.values[each] = _copied(evaluation, evaluation.array(each))
    indices, updates = evaluation.reread(indices_name), evaluation.array(updates_name)
    array = evaluation.taken(name)
    whole = [each for each in range(len(array.sizes)) if each not in inserted and each not in batching]
    parts = dict.fromkeys(range(len(array.sizes)), 1) | {
        to: updates.sizes[of] for to, of in zip(whole, windows, strict=True)
    }

    def one(index: Sequence[Index]) -> None:
        batch = _batch_index(index, windows)
        place: list[Index] = [0] * len(array.sizes)
        inside: Any = ir.Constant(ir.IntType(1), 1)
        for number, to in enumerate(starts):
            start = _of_indices(evaluation, indices, axis, batch, number)
            last = ir.Constant(INT64, array.sizes[to] - parts[to])
            inside = builder.and_(inside, builder.icmp_unsigned("<=", start, last))
            place[to] = start
        for to, of in zip(batching, of_batch, strict=True):
            place[to] = batch[of if of < axis else of - 1]
        for to, of in zip(whole, windows, strict=True):
            place[to] = code.add(place[to], index[of])
        with code.when(inside):
            at = code.offset(array.sizes, place)
            old, new = scalar(array.number, code.load(array.number, array.pointer, at)), updates.at(index)
            found = evaluation.inner(instruction.computation(), [old, scalar(updates.number, new)])
            assert isinstance(found, Array)
            code.store(array.number, found.value, array.pointer, at)

    code.each(updates.sizes, one)
    return code.memory(array.number, array.sizes, array.pointer, owned=True)


SHAPING: Operations = {
    "broadcast": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "reverse": _reverse,
    "iota": _iota,
    "pad": _pad,
    "concatenate": _concatenate,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter,
}
