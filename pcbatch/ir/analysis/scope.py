"""The names that are variables, in contrast to free names (globals, closures, builtins)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pcbatch.ir.expressions import resolved
from pcbatch.ir.payload import Compute
from pcbatch.ir.program import Coded, Function, Op, Program, reads, writes


def variables_of(function: Function) -> tuple[str, ...]:
    """Parameters, everything that an op writes or that a Store, Call, Branch or Fault reads, and results.

    In order of first appearance. What a piece of code merely reads does not become a variable by that.
    """
    found: list[str] = list(function.parameters)
    for block in function.blocks:
        for node in (*block.ops, block.terminator):
            if not isinstance(node, Coded):
                found += reads(node)
            found += writes(node)
    return tuple(dict.fromkeys([*found, *function.results]))


def scope(program: Program, function: Function) -> frozenset[str]:
    """The names that are variables in the code of `function`: its own in "cfg", the whole program's in "stack"."""
    functions = (function,) if program.dialect == "cfg" else program.functions
    return frozenset(name for each in functions for name in variables_of(each))


def with_inputs(op: Op, variables: Collection[str]) -> Op:
    """`op`, as it is read from a text, with the names that are `variables` as its inputs."""
    if not isinstance(op, Coded) or not isinstance(op.code, Compute):
        return op
    expression, inputs = resolved(op.code.expression, variables)
    return replace(op, inputs=inputs, code=Compute(expression, op.code.pattern))
