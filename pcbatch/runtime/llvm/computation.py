"""Code for the instructions of one HLO computation.

Numbers are computed as they come. An array is computed element by element where it is used, as XLA fuses loops: an
operation on arrays only says how to compute one of its numbers. It is written to memory where it would be computed
several times over, together with others of its sizes and before anything reads it that is not written there, too; and
where its operation has no such form (`shaping`, `reducing`, `hlo_control`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import llvmlite.ir as ir

from pcbatch.runtime.llvm import elementwise
from pcbatch.runtime.llvm.code import Array, Code, Index, Value, scalar
from pcbatch.runtime.llvm.hlo import Computation, Instruction, Module, TupleShape, UnsupportedError, constant
from pcbatch.runtime.llvm.types import Number

CHEAP = 4
"""An element that takes more instructions than this is computed once, if it is needed more often."""
FOR_EVER = 1 << 62
VIEWS = frozenset(["parameter", "constant", "broadcast", "reshape", "transpose", "slice", "reverse", "iota"])
"""Operations that emit no code, but for numbers of arrays that are read on the spot."""

Arguments = Sequence[Value] | Mapping[int, Value]
"""The arguments of a computation by number: those that are needed."""
Operations = Mapping[str, Callable[["Evaluation", Instruction], Value]]
"""Emitters of operations that are not elementwise, by opcode."""


class Evaluation:
    """The instructions of a `computation` that some of its results need, emitted for given arguments."""

    def __init__(
        self,
        code: Code,
        module: Module,
        computation: Computation,
        arguments: Arguments,
        operations: Operations,
    ):
        self.code, self.module, self.computation, self.operations = code, module, computation, operations
        self.values: dict[str, Value] = {}
        self._arguments = arguments
        self._uses: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._now = 0
        self._deferred: list[tuple[Array, Array]] = []
        """Arrays of the same sizes that are yet to be written, and themselves in memory."""

    def results(self, names: Sequence[str]) -> list[Value]:
        """The values of some instructions, arrays of which may be left to be computed."""
        # What is handed over comes first, so that each part of it has a last use of its own.
        order = sorted(self.computation.reached(names), key=self._is_computed)
        for place, instruction in enumerate(order):
            for operand in instruction.operands:
                self._uses[operand] = self._uses.get(operand, 0) + 1
                self._last[operand] = place
        for name in names:
            self._last[name] = FOR_EVER
        for self._now, instruction in enumerate(order):
            self.values[instruction.name] = self._shared(instruction, self.emit(instruction))
        self.code.flush()
        return [self.values[name] for name in names]

    def _is_computed(self, instruction: Instruction) -> bool:
        """True if an instruction is neither an argument nor a part of one."""
        if instruction.opcode == "get-tuple-element":
            return self._is_computed(self.computation.instructions[instruction.operands[0]])
        return instruction.opcode != "parameter"

    def result(self) -> Value:
        """The value of the whole computation."""
        return self.results([self.computation.root.name])[0]

    def _shared(self, instruction: Instruction, value: Value) -> Value:
        """`value`, in memory if it is used several times and not cheap."""
        if isinstance(value, Array) and value.sizes and value.cost > CHEAP and self._uses.get(instruction.name, 0) > 1:
            return value if value.pointer is not None else self._written(value)
        return value

    def _written(self, array: Array) -> Array:
        """The array in memory, to which it is written with others that it reads at its own index alone."""
        first = self._deferred[0][0] if self._deferred else array
        pending = {held.pointer for _, held in self._deferred}
        if first.sizes != array.sizes or pending & (array.reads - array.here):
            self._write(array.reads)
        code = self.code
        if not self._deferred:
            code.flush()
            code.before_loops = self._write
        pointer = code.room(array.number, array.count)
        memory = code.memory(array.number, array.sizes, pointer, owned=True)

        def read(index: Sequence[Index]) -> Any:
            code.flush()
            return memory.at(index)

        def at(index: Sequence[Index]) -> Any:
            return code.once(pointer, index, partial(read, index))

        held = replace(memory, at=at, here=frozenset([pointer]))
        self._deferred.append((array, held))
        return held

    def _write(self, reads: frozenset[Any] = frozenset()) -> None:
        """Write those of the deferred arrays that values to come read, or that are among these `reads`."""
        deferred, self._deferred = self._deferred, []
        self.code.before_loops = None
        needed = set(reads)
        for name, value in self.values.items():
            if self._last.get(name, -1) >= self._now:
                needed |= frozenset().union(*(leaf.reads for leaf in flat(value)))
        if needed & {held.pointer for _, held in deferred}:
            self.code.write_together([(array, held.pointer, held.pointer in needed) for array, held in deferred])

    # -- operands ------------------------------------------------------------------------------------------------------

    def array(self, name: str) -> Array:
        """An operand that is an array."""
        value = self.values[name]
        if not isinstance(value, Array):
            raise UnsupportedError("an operation on a tuple")
        return value

    def reread(self, name: str) -> Array:
        """An operand of which numbers are needed several times: in memory, unless they are cheap."""
        array = self.array(name)
        if array.cost > CHEAP and array.sizes:
            self.values[name] = array = self.code.stored(array)
        return array

    def stored(self, name: str) -> Array:
        """An operand in memory."""
        self.values[name] = array = self.code.stored(self.array(name))
        return array

    def taken(self, name: str) -> Array:
        """An operand in memory that may be changed: its own, where nobody needs it afterwards, else a copy."""
        array = self.array(name)
        if array.pointer is not None and array.owned and self.is_last_use(name):
            self.settle(array.pointer)
            return array
        pointer = self.code.room(array.number, array.count)
        self.code.write(array, pointer)
        return self.code.memory(array.number, array.sizes, pointer, owned=True)

    def is_last_use(self, name: str) -> bool:
        """True if the instruction that is emitted now is the last one to use an operand, and uses it once."""
        instruction_uses = self._last.get(name, -1) == self._now
        return instruction_uses and not any(
            other != name and self._last.get(other, -1) > self._now and self._is_alias(other, name)
            for other in self.values
        )

    def _is_alias(self, other: str, name: str) -> bool:
        """True if another value is the same memory under another name, rather than computed from it."""
        mine, theirs = self.values[name], self.values[other]
        leaves = flat(theirs)
        return isinstance(mine, Array) and any(leaf.pointer is mine.pointer for leaf in leaves)

    def settle(self, pointer: Any) -> None:
        """Compute all that is still to be read from memory that is about to change."""
        for name, value in self.values.items():
            if self._last.get(name, -1) > self._now:
                self.values[name] = self._settled(value, pointer)

    def _settled(self, value: Value, pointer: Any) -> Value:
        if isinstance(value, tuple):
            return tuple(self._settled(item, pointer) for item in value)
        is_changed = pointer in value.reads and value.pointer is not pointer
        return self.code.stored(value) if is_changed else value

    # -- operations ----------------------------------------------------------------------------------------------------

    def emit(self, instruction: Instruction) -> Value:
        """The value of an instruction whose operands have theirs."""
        opcode = instruction.opcode
        if elementwise.is_elementwise(opcode):
            return self._elementwise(instruction)
        if opcode not in VIEWS:
            self.code.flush()
        found = self.operations.get(opcode)
        if found is None:
            raise UnsupportedError(f"the operation {_called(instruction)}")
        return found(self, instruction)

    def _elementwise(self, instruction: Instruction) -> Array:
        opcode, attributes = instruction.opcode, instruction.attributes
        of, sizes = self.code.number(instruction.array.dtype), instruction.array.sizes
        operands = [self.array(name) for name in instruction.operands]
        kinds = [operand.number for operand in operands]

        def made(index: Sequence[Index]) -> Any:
            values = [operand.at(index if operand.sizes else ()) for operand in operands]
            return elementwise.emit(self.code.builder, opcode, of, kinds, values, attributes)

        if not sizes:
            return scalar(of, made(()))
        own = 20 if opcode in elementwise.COSTLY else 1
        cost = own + sum(operand.cost for operand in operands)
        reads = frozenset().union(*(operand.reads for operand in operands))
        here = reads.difference(*(operand.reads - operand.here for operand in operands))
        key = object()

        def at(index: Sequence[Index]) -> Any:
            return self.code.once(key, index, partial(made, index))

        return Array(of, sizes, at, cost, reads=reads, here=here)

    def parameter(self, instruction: Instruction) -> Value:
        """An argument of the computation."""
        return self._arguments[int(instruction.literal)]

    def constant(self, instruction: Instruction) -> Array:
        """Numbers that are written out."""
        of, sizes = self.code.number(instruction.array.dtype), instruction.array.sizes
        numbers = [_literal(of, text) for text in constant(instruction)]
        if not sizes:
            return scalar(of, of.constant(numbers[0]))
        return self.code.table(of, sizes, numbers)

    def inner(self, name: str, arguments: Sequence[Value]) -> Value:
        """The value of another computation."""
        computation = self.module.computations[name]
        return Evaluation(self.code, self.module, computation, arguments, self.operations).result()


def flat(value: Value) -> list[Array]:
    """The arrays that a value is made of."""
    if isinstance(value, Array):
        return [value]
    return [leaf for item in value for leaf in flat(item)]


def _called(instruction: Instruction) -> str:
    target = instruction.attributes.get("custom_call_target")
    return f"{instruction.opcode} of {target}" if target else instruction.opcode


def _literal(of: Number, text: str) -> complex:
    if of.kind == "bits":
        raise UnsupportedError(f"a constant of the dtype {of.dtype}")
    if of.kind == "complex":
        real, imaginary = text.strip("()").split(",")
        return complex(float(real), float(imaginary))
    if of.kind == "bool":
        return text in ("true", "1")
    if of.is_float:
        return float(text.replace("nan(", "nan ").split(" ", 1)[0])
    return int(text)


# -- tuples ------------------------------------------------------------------------------------------------------------


def _tuple(evaluation: Evaluation, instruction: Instruction) -> Value:
    return tuple(evaluation.values[name] for name in instruction.operands)


def _element(evaluation: Evaluation, instruction: Instruction) -> Value:
    whole = evaluation.values[instruction.operands[0]]
    assert isinstance(whole, tuple), "an element of what is no tuple"
    return whole[int(instruction.attributes["index"])]


def _same(evaluation: Evaluation, instruction: Instruction) -> Value:
    if isinstance(instruction.shape, TupleShape) and len(instruction.operands) > 1:
        return _tuple(evaluation, instruction)
    return evaluation.values[instruction.operands[0]]


def _size(evaluation: Evaluation, instruction: Instruction) -> Value:
    """The size of an axis, of arrays whose sizes are all known."""
    of = evaluation.code.number(instruction.array.dtype)
    (axis,) = instruction.numbers("dimensions")
    return scalar(of, of.constant(evaluation.array(instruction.operands[0]).sizes[axis]))


def _sized(evaluation: Evaluation, instruction: Instruction) -> Value:
    """An array that is said to have the size that it has."""
    array, size = (evaluation.array(name) for name in instruction.operands)
    (axis,) = instruction.numbers("dimensions")
    said = size.value
    if not isinstance(said, ir.Constant) or said.constant != array.sizes[axis]:
        raise UnsupportedError("arrays of sizes that are not known")
    return array


BASIC: Operations = {
    "parameter": Evaluation.parameter,
    "constant": Evaluation.constant,
    "tuple": _tuple,
    "get-tuple-element": _element,
    "optimization-barrier": _same,
    "get-dimension-size": _size,
    "set-dimension-size": _sized,
}
"""Operations that do not compute anything."""
