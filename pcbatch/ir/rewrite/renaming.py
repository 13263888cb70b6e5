"""The one place where the operands of ops and terminators are renamed, what they read and what they write apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar, overload

from pcbatch.ir import program as ir
from pcbatch.ir.expressions import merged
from pcbatch.ir.payload import Compute

Names = tuple[str, ...]
NodeT = TypeVar("NodeT", bound=ir.Op)
TerminatorT = TypeVar("TerminatorT", bound=ir.Terminator)


@overload
def renamed(node: NodeT, reads: Mapping[str, str], writes: Mapping[str, str]) -> NodeT: ...
@overload
def renamed(node: TerminatorT, reads: Mapping[str, str], writes: Mapping[str, str]) -> TerminatorT: ...
def renamed(node: ir.Op | ir.Terminator, reads: Mapping[str, str], writes: Mapping[str, str]) -> ir.Op | ir.Terminator:
    """`node` with the variables that it reads renamed by `reads` and those that it writes by `writes`.

    Names that a mapping lacks stay. A Store reads and writes its array under one name: ValueError if the mappings
    differ about it.
    """

    def read(names: Names) -> Names:
        return tuple(reads.get(name, name) for name in names)

    def written(names: Names) -> Names:
        return tuple(writes.get(name, name) for name in names)

    match node:
        case ir.Primitive() | ir.Enter() | ir.Push() | ir.Update():
            outputs, inputs = written(node.outputs), read(node.inputs)
            if not isinstance(node.code, Compute) or len(set(inputs)) == len(inputs):
                return replace(node, outputs=outputs, inputs=inputs)
            expression, inputs = merged(node.code.expression, inputs)
            return replace(node, outputs=outputs, inputs=inputs, code=Compute(expression, node.code.pattern))
        case ir.Store(array, indices, value):
            if read((array,)) != written((array,)):
                raise ValueError(f"{array} would be read as {read((array,))} and written as {written((array,))}")
            (array,), (value,) = read((array,)), read((value,))
            return replace(node, array=array, indices=read(indices), value=value)
        case ir.Call(outputs=outputs, arguments=arguments):
            return replace(node, outputs=written(outputs), arguments=read(arguments))
        case ir.Pop(variables=variables):
            return replace(node, variables=written(variables))
        case ir.Branch(condition=condition):
            return replace(node, condition=reads.get(condition, condition))
        case ir.Fault(arguments=arguments):
            return replace(node, arguments=read(arguments))
        case ir.Exit() | ir.Jump() | ir.Return() | ir.PushJump():
            return node
    raise TypeError(f"not an IR node: {node!r}")
