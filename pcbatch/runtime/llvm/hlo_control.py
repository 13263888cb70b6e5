"""HLO's operations that run other computations: calls, conditionals, loops."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ir

from pcbatch.runtime.llvm.code import Array, Code, Value, lent, scalar
from pcbatch.runtime.llvm.computation import Evaluation, Operations, flat
from pcbatch.runtime.llvm.hlo import ArrayShape, Instruction, Shape
from pcbatch.runtime.llvm.types import INT32, Number, by_name


class HeldValue:
    """Values that are written in one place of the code and read in another: numbers in registers, arrays in memory."""

    def __init__(self, code: Code, leaves: Sequence[tuple[Number, tuple[int, ...]]]):
        self.code, self.leaves = code, leaves
        self.addresses = [
            code.room(number, Array(number, sizes, _nowhere).count) if sizes else code.variable(number.type)
            for number, sizes in leaves
        ]

    def write(self, arrays: Sequence[Array]) -> None:
        """Hold these; some of them may be computed from the ones held now."""
        code, own = self.code, frozenset(address for address in self.addresses)
        settled = []
        for array, address in zip(arrays, self.addresses, strict=True):
            if not array.sizes:
                array = scalar(array.number, array.value)
            elif array.pointer is None and array.reads & own:
                array = code.stored(array)
            elif array.pointer in own and array.pointer is not address:
                pointer = code.room(array.number, array.count)
                code.write(array, pointer)
                array = code.memory(array.number, array.sizes, pointer)
            settled.append(array)
        for array, address in zip(settled, self.addresses, strict=True):
            if not array.sizes:
                code.builder.store(array.value, address)
            elif array.pointer is not address:
                code.write(array, address)

    def read(self, owned: bool = False) -> list[Array]:
        """The held values; arrays may be changed if they are `owned`."""
        found = []
        for (number, sizes), address in zip(self.leaves, self.addresses, strict=True):
            if sizes:
                found.append(self.code.memory(number, sizes, address, owned))
            else:
                found.append(scalar(number, self.code.builder.load(address, typ=number.type)))
        return found


def _nowhere(index: Sequence[Any]) -> Any:
    raise AssertionError("a shape has no numbers")


def leaves(shape: Shape) -> list[tuple[Number, tuple[int, ...]]]:
    """The types and sizes of the arrays that a shape is made of."""
    if isinstance(shape, ArrayShape):
        return [(by_name(shape.dtype), shape.sizes)]
    return [leaf for item in shape.items for leaf in leaves(item)]


def packed(shape: Shape, arrays: Sequence[Array]) -> Value:
    """A value of a shape from the arrays that it is made of."""
    remaining = iter(arrays)

    def value(of: Shape) -> Value:
        return next(remaining) if isinstance(of, ArrayShape) else tuple(map(value, of.items))

    return value(shape)


def _call(evaluation: Evaluation, instruction: Instruction) -> Value:
    return evaluation.inner(instruction.computation(), [lent(evaluation.values[name]) for name in instruction.operands])


def _while(evaluation: Evaluation, instruction: Instruction) -> Value:
    code, builder, shape = evaluation.code, evaluation.code.builder, instruction.shape
    held = HeldValue(code, leaves(shape))
    held.write(flat(evaluation.values[instruction.operands[0]]))
    head, body, end = (builder.append_basic_block(name) for name in ("while", "turn", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    goes_on = evaluation.inner(instruction.computation("condition"), [packed(shape, held.read())])
    assert isinstance(goes_on, Array), "a condition is a bool"
    builder.cbranch(goes_on.value, body, end)
    builder.position_at_end(body)
    with code.scratch():
        held.write(flat(evaluation.inner(instruction.computation("body"), [packed(shape, held.read(owned=True))])))
    builder.branch(head)
    builder.position_at_end(end)
    return packed(shape, held.read(owned=True))


def _conditional(evaluation: Evaluation, instruction: Instruction) -> Value:
    code, builder, shape = evaluation.code, evaluation.code.builder, instruction.shape
    chosen, *arguments = instruction.operands
    names = re.findall(r"%([^\s,}]+)", instruction.attributes.get("branch_computations", ""))
    index = evaluation.array(chosen)
    if names:
        number, last = index.value, ir.Constant(INT32, len(names) - 1)
        number = builder.select(builder.icmp_unsigned(">", number, last), last, number)
    else:
        names = [instruction.computation(f"{which}_computation") for which in ("false", "true")]
        number = builder.zext(index.value, INT32)
    held, end = HeldValue(code, leaves(shape)), builder.append_basic_block("end")
    blocks = [builder.append_basic_block("case") for _ in names]
    switch = builder.switch(number, blocks[-1])
    for place, (name, argument, block) in enumerate(zip(names, arguments, blocks, strict=True)):
        if place < len(names) - 1:
            switch.add_case(ir.Constant(INT32, place), block)
        builder.position_at_end(block)
        with code.scratch():
            held.write(flat(evaluation.inner(name, [lent(evaluation.values[argument])])))
        builder.branch(end)
    builder.position_at_end(end)
    return packed(shape, held.read(owned=True))


CONTROL: Operations = {"call": _call, "while": _while, "conditional": _conditional}
