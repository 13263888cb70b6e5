"""The operations of HLO of which native code is made."""

from __future__ import annotations

from collections.abc import Sequence

from pcbatch.runtime.llvm.code import Array, Code
from pcbatch.runtime.llvm.computation import BASIC, Arguments, Evaluation, Operations
from pcbatch.runtime.llvm.hlo import Module
from pcbatch.runtime.llvm.hlo_control import CONTROL
from pcbatch.runtime.llvm.reducing import REDUCING
from pcbatch.runtime.llvm.shaping import SHAPING

OPERATIONS: Operations = {**BASIC, **SHAPING, **REDUCING, **CONTROL}
ALIKE: Operations = {
    opcode: OPERATIONS[opcode]
    for opcode in (
        *("broadcast", "call", "concatenate", "constant", "dot", "get-tuple-element", "iota", "optimization-barrier"),
        *("pad", "parameter", "reduce", "reduce-window", "reshape", "reverse", "slice", "transpose", "tuple"),
    )
}
"""Operations that do the same at the same places for all lanes, whatever their numbers are."""


def evaluate(
    code: Code, module: Module, names: Sequence[str], arguments: Arguments, operations: Operations
) -> list[Array]:
    """Evaluate some results of a module's entry for these arguments; they are arrays."""
    found = Evaluation(code, module, module.entry, arguments, operations).results(names)
    assert all(isinstance(each, Array) for each in found), "a result that is a tuple"
    return [each for each in found if isinstance(each, Array)]
