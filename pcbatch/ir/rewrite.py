"""Rewriting: how passes read and rebuild programs of the stack dialect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar, overload

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import scope
from pcbatch.ir.analysis.effects import read
from pcbatch.ir.expressions import Written, merged, path_of, walk
from pcbatch.ir.machine import Block, Item, Piece, Return, Store, Straight, checked_sites
from pcbatch.ir.payload import Compute
from pcbatch.ir.program import Exit, Primitive, reads, writes

# -- mapping -----------------------------------------------------------------------------------------------------------


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


# -- renaming ----------------------------------------------------------------------------------------------------------
# The one place where the operands of ops and terminators are renamed, what they read and what they write apart.

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


# -- pieces ------------------------------------------------------------------------------------------------------------
# Pieces of machine programs, made anew of some of their statements.


def is_divisible(item: Item) -> bool:
    """Tell whether an item can be taken apart: a store, or a piece of primitives that is under no condition."""
    if item.predicate is not None:
        return False
    if isinstance(item, Store):
        return True
    plain = item.function is None and not item.speculative and not item.unnamed
    return plain and all(isinstance(each.op, Primitive) for each in item.statements)


def assembled(items: Sequence[Item], wanted: Collection[str], shared: Sequence[str]) -> tuple[Item, ...]:
    """Items, of which pieces of one scope that follow each other become one, if they can be taken apart again.

    Of what their statements give, pieces write what is `wanted`, or read behind them. `shared` are the program's shared
    operands.
    """
    found: list[Item] = []
    for kind, run in groupby(items, key=_kind):
        if kind is None:
            found += run
            continue
        pieces = [item for item in run if isinstance(item, Piece)]
        known = dict.fromkeys(name for each in pieces for name in each.shared)
        statements = tuple(one for each in pieces for one in each.statements)
        found.append(replace(pieces[0], statements=statements, shared=tuple(known)))
    needed = {*wanted}
    for place, item in reversed([*enumerate(found)]):
        if isinstance(item, Piece):
            found[place] = item = _with_operands(item, needed, shared)
        needed |= {*read(Block("", (item,), Return()))}
    return tuple(found)


def _kind(item: Item) -> str | None:
    """The scope of a piece that can be taken apart; None for all else."""
    return item.scope if isinstance(item, Piece) and is_divisible(item) else None


def _with_operands(piece: Piece, wanted: Collection[str], shared: Sequence[str]) -> Piece:
    """The piece with what its statements read, write and check; one that cannot be taken apart keeps what is shared."""
    ops = [each.op for each in piece.statements if not isinstance(each.op, Exit)]
    reads_: dict[str, None] = {}
    assigned: dict[str, None] = {}
    for op in ops:
        reads_ |= dict.fromkeys(name for name in reads(op) if name not in assigned and name not in shared)
        assigned |= dict.fromkeys(writes(op))
    used = [name for name in piece.shared if not is_divisible(piece) or any(_names(op, name) for op in ops)]
    written = tuple(name for name in assigned if name in wanted)
    sites = checked_sites(piece.statements)
    return replace(piece, reads=tuple(reads_), writes=written, shared=tuple(used), sites=sites)


def _names(op: Straight, shared: str) -> bool:
    """Tell whether an op has to do with a shared operand, which may be a path in its code."""
    if shared in reads(op) or not isinstance(op, Primitive) or not isinstance(op.code, Compute):
        return shared in reads(op)
    nodes = [*walk(op.code.expression)]
    return any(isinstance(each, Written) or path_of(each) == shared for each in nodes)


# -- fresh names -------------------------------------------------------------------------------------------------------
# Names of their own for values that share a variable's name, but not its storage.


class FreshNames:
    """Gives out names that mean nothing in `program`, nor are those of captured arrays (`x_1` may stand for `x[1]`)."""

    def __init__(self, program: ir.Program):
        self.taken = set(scope(program, program.entry))
        for block in program.blocks():
            for op in block.ops:
                if isinstance(op, ir.Coded):
                    self.taken |= ir.words(op)
        self.own: dict[str, str] = {}

    def name(self, name: str) -> str:
        """The name for a value that went by `name`."""
        if name not in self.own:
            own = f"{name}_"
            while own in self.taken:
                own += "_"
            self.taken.add(own)
            self.own[name] = own
        return self.own[name]

    def listed(self, program: ir.Program) -> ir.Program:
        """`program` with the names given out in its tables of variables, each as a register behind its user's name."""

        def entries(variable: ir.Variable) -> Iterator[ir.Variable]:
            yield variable
            if variable.name in self.own:
                yield ir.Variable(self.own[variable.name], variable.type, "register")

        functions = (
            replace(
                function,
                variables=tuple(each for v in function.variables for each in entries(v)),
                made=(*function.made, *(self.own[name] for name in function.made if name in self.own)),
            )
            for function in program.functions
        )
        return replace(program, functions=tuple(functions))
