"""Tools of the passes over the "cfg" dialect: blocks of one function, predecessors, fresh names, casts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import Facts, Variables, definitely_assigned, liveness, variables_of
from pcbatch.ir.payload import Cast
from pcbatch.ir.types import TensorType, Type, leaves


@dataclass(frozen=True)
class Graph:
    """One "cfg" function with its passes' queries."""

    function: ir.Function

    @cached_property
    def blocks(self) -> dict[str, ir.Block]:
        """Blocks by label, in layout order."""
        return {block.label: block for block in self.function.blocks}

    @cached_property
    def arrivals(self) -> Counter[str]:
        """The number of edges to each label. One more leads to the entry, from outside, and to a block that syncs.

        For where lanes wait for the others, a block has to begin.
        """
        edges = Counter(label for block in self.function.blocks for label in ir.successors(block.terminator))
        edges.update([self.function.entry, *(block.label for block in self.function.blocks if block.sync)])
        return edges

    @cached_property
    def live(self) -> dict[str, Facts[Variables]]:
        """Liveness of the function's variables."""
        return liveness(self.function)

    @cached_property
    def assigned(self) -> dict[str, Facts[Variables]]:
        """The variables that have a value on every way to each block, and behind it."""
        return definitely_assigned(self.function)

    @cached_property
    def types(self) -> Mapping[str, Type | None]:
        """Type of each variable; None where it is not known."""
        return {variable.name: variable.type for variable in self.function.variables}

    @cached_property
    def is_typed(self) -> bool:
        """Return whether types have been inferred."""
        return any(type_ is not None for type_ in self.types.values())

    @cached_property
    def uses(self) -> Counter[str]:
        """The number of ops and terminators that read each variable."""
        nodes = (node for block in self.function.blocks for node in (*block.ops, block.terminator))
        return Counter(name for node in nodes for name in ir.reads(node))

    def fresh_names(self) -> Iterator[str]:
        """Names `t0, t1, ..` that nothing in the function has."""
        ops = [op for block in self.function.blocks for op in block.ops]
        taken = {*variables_of(self.function), *self.function.externs, *(name for op in ops for name in ir.reads(op))}
        taken.update(word for op in ops if isinstance(op, ir.Coded) for word in ir.words(op))
        return (name for name in (f"t{number}" for number in count()) if name not in taken)

    def rebuilt(self, blocks: Iterable[ir.Block], types: Mapping[str, Type | None] | None = None) -> ir.Function:
        """The function with other blocks; new variables are made ones, listed with `types` where types are known."""
        function = replace(self.function, blocks=tuple(blocks))
        before, now = frozenset(variables_of(self.function)), variables_of(function)
        made = tuple(name for name in now if name in self.function.made or name not in before)
        function = replace(function, made=made)
        if not self.function.variables:
            return function
        known = {**self.types, **(types or {})}
        order = dict.fromkeys([*(v.name for v in self.function.variables if v.name in now), *now])
        return replace(function, variables=tuple(ir.Variable(name, known.get(name)) for name in order))


def may_be_cast(type_: Type) -> bool:
    """Return whether a value of this type may have been cast: some number in it may stand where weaker ones did."""
    return any(t.shape == () and t.dtype != "bool" and t != TensorType("int32", (), weak=True) for t in leaves(type_))


def is_own_cast(op: ir.Op | ir.Terminator, name: str) -> bool:
    """Return whether `op` is `name = cast name`, which gives a value that was weaker the type of its variable."""
    return isinstance(op, ir.Primitive) and isinstance(op.code, Cast) and op.outputs == op.inputs == (name,)


def settled_at(ops: tuple[ir.Op, ...], place: int) -> tuple[tuple[ir.Op, ...], tuple[ir.Op, ...]] | None:
    """Split `ops` in front of `place`, such that the first part's results have the types of its variables.

    The casts of it move from the second part into the first; None where the second reads a value as it was before.
    """
    before, behind = [*ops[:place]], [*ops[place:]]
    for name in dict.fromkeys(name for op in ops[:place] for name in ir.writes(op)):
        touching = [op for op in behind if name in (*ir.reads(op), *ir.writes(op))]
        writing = next((at for at, op in enumerate(touching) if name in ir.writes(op)), 0)
        if touching and is_own_cast(touching[writing], name):
            if writing:
                return None
            before.append(touching[0])
            del behind[next(at for at, op in enumerate(behind) if op is touching[0])]
    return tuple(before), tuple(behind)


def makes_tail_call(ops: tuple[ir.Op, ...], terminator: ir.Terminator) -> bool:
    """Return whether these would make a tail call: which calls are is a fact of the source, and stays so."""
    return bool(ops) and isinstance(ops[-1], ir.Call) and isinstance(terminator, ir.Return)
