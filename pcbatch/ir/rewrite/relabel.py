"""Number the labels of a program `b0, b1, ..` in layout order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pcbatch.ir import program as ir


def retarget(terminator: ir.Terminator, label: Callable[[str], str]) -> ir.Terminator:
    """`terminator` with every label that it names replaced by `label` of it."""
    match terminator:
        case ir.Jump(target=target):
            return replace(terminator, target=label(target))
        case ir.Branch(true=true, false=false):
            return replace(terminator, true=label(true), false=label(false))
        case ir.PushJump(target=target, back=back):
            return replace(terminator, target=label(target), back=label(back))
        case ir.Return() | ir.Fault():
            return terminator
    raise TypeError(f"not a terminator: {terminator!r}")


def relabel(program: ir.Program) -> ir.Program:
    """The same program with labels `b0, b1, ..` in layout order."""
    fresh = {block.label: f"b{number}" for number, block in enumerate(program.blocks())}
    functions = tuple(
        replace(
            function,
            blocks=tuple(
                replace(block, label=fresh[block.label], terminator=retarget(block.terminator, fresh.__getitem__))
                for block in function.blocks
            ),
        )
        for function in program.functions
    )
    return replace(program, functions=functions)
