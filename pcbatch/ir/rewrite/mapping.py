"""Helpers of passes that read and rebuild programs of the stack dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.scope import scope


def map_blocks(program: ir.Program, rewrite: Callable[[ir.Function, ir.Block], ir.Block]) -> ir.Program:
    """`program` with every block replaced by `rewrite(function, block)`."""
    functions = tuple(
        replace(function, blocks=tuple(rewrite(function, block) for block in function.blocks))
        for function in program.functions
    )
    return replace(program, functions=functions)


def map_variables(program: ir.Program, rewrite: Callable[[ir.Variable], ir.Variable | None]) -> ir.Program:
    """`program` with every entry of the tables of variables replaced, or dropped where `rewrite` gives None."""

    def mapped(function: ir.Function) -> ir.Function:
        new = {variable.name: rewrite(variable) for variable in function.variables}
        left = tuple(variable for variable in new.values() if variable is not None)
        return replace(function, variables=left, made=tuple(n for n in function.made if new.get(n, ...) is not None))

    return replace(program, functions=tuple(map(mapped, program.functions)))


def without_unused(program: ir.Program) -> ir.Program:
    """`program` without the entries of variables that are no longer in it."""
    left = scope(program, program.entry)
    return map_variables(program, lambda v: v if v.name in left else None)


def variables(program: ir.Program) -> dict[str, ir.Variable]:
    """All variables of the program by name."""
    return {variable.name: variable for function in program.functions for variable in function.variables}


def nodes(block: ir.Block) -> Iterator[ir.Op | ir.Terminator]:
    """The ops of a block, then its terminator."""
    yield from block.ops
    yield block.terminator


def popped(block: ir.Block) -> tuple[str, ...]:
    """The variables that `block` pops."""
    return tuple(name for op in block.ops if isinstance(op, ir.Pop) for name in op.variables)


def pushed(block: ir.Block) -> tuple[str, ...]:
    """The variables that `block` pushes."""
    return tuple(name for op in block.ops if isinstance(op, ir.Push) for name in op.outputs)


def without_pops(ops: Iterable[ir.Op], dropped: frozenset[str]) -> Iterator[ir.Op]:
    """`ops` with the variables in `dropped` no longer popped."""
    for op in ops:
        if isinstance(op, ir.Pop):
            kept = tuple(name for name in op.variables if name not in dropped)
            if kept:
                yield replace(op, variables=kept)
        else:
            yield op


def restore_storage(program: ir.Program, reason: str) -> ir.Program:
    """Variables that nothing pushes any more become registers, for `reason`."""
    still = {name for block in program.blocks() for name in pushed(block)}
    return map_variables(
        program,
        lambda v: v if v.storage != "stack" or v.name in still else replace(v, storage="register", reason=reason),
    )


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
