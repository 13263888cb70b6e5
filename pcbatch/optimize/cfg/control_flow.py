"""What the passes over the "cfg" dialect share: blocks of one function, who comes before whom, fresh names, commits."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import Facts, Variables, liveness
from pcbatch.ir.analysis.scope import variables_of
from pcbatch.ir.payload import Cast
from pcbatch.ir.types import TensorType, Type, leaves


@dataclass(frozen=True)
class Graph:
    """One "cfg" function with what its passes ask of it."""

    function: ir.Function

    @cached_property
    def blocks(self) -> dict[str, ir.Block]:
        """Blocks by label, in layout order."""
        return {block.label: block for block in self.function.blocks}

    @cached_property
    def arrivals(self) -> Counter[str]:
        """How many edges lead to each label. One more leads to the entry, from outside, and to a block that syncs.

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
    def types(self) -> Mapping[str, Type | None]:
        """Type of each variable; None where it is not known."""
        return {variable.name: variable.type for variable in self.function.variables}

    @cached_property
    def is_typed(self) -> bool:
        """Whether types have been inferred."""
        return any(type_ is not None for type_ in self.types.values())

    @cached_property
    def definitions(self) -> Counter[str]:
        """How many ops assign each variable; a parameter has one more."""
        written = (name for block in self.function.blocks for op in block.ops for name in ir.writes(op))
        return Counter([*self.function.parameters, *written])

    @cached_property
    def uses(self) -> Counter[str]:
        """How many ops and terminators read each variable."""
        nodes = (node for block in self.function.blocks for node in (*block.ops, block.terminator))
        return Counter(name for node in nodes for name in ir.reads(node))

    def fresh_names(self) -> Iterator[str]:
        """Names `t0, t1, ..` that nothing in the function has."""
        ops = [op for block in self.function.blocks for op in block.ops]
        taken = {*variables_of(self.function), *self.function.externs, *(name for op in ops for name in ir.reads(op))}
        taken.update(word for op in ops if isinstance(op, ir.Coded) for word in ir.statement(op).words)
        return (name for name in (f"t{number}" for number in count()) if name not in taken)

    def rebuilt(self, blocks: Iterable[ir.Block], types: Mapping[str, Type | None] | None = None) -> ir.Function:
        """The function with other blocks and, where it lists its variables, these listed anew; `types` of new ones."""
        function = replace(self.function, blocks=tuple(blocks))
        if not self.function.variables:
            return function
        known = {**self.types, **(types or {})}
        named = set(variables_of(function))
        order = dict.fromkeys([*(v.name for v in self.function.variables if v.name in named), *variables_of(function)])
        return replace(function, variables=tuple(ir.Variable(name, known.get(name)) for name in order))

    def commits(self, ops: tuple[ir.Op, ...], read: Variables) -> tuple[ir.Op, ...] | None:
        """Ops that give variables assigned by `ops`, and `read` behind them, the types that a block's end would give.

        At the end of a block a variable takes its type: a weak 7 becomes the float32 that the other assignments of
        the variable call for. Where the end of a block is taken away, this must still happen. None where it cannot.
        """
        last = {name: op for op in ops for name in ir.writes(op)}
        weaker = [name for name in last if name in read and self._may_be_weaker(name, ops)]
        if not all(isinstance(self.types[name], TensorType) for name in weaker):
            return None
        return tuple(
            ir.Primitive((name,), (name,), Cast(type_), last[name].span)
            for name in weaker
            if (type_ := self.types[name]) is not None
        )

    def _may_be_weaker(self, name: str, ops: tuple[ir.Op, ...]) -> bool:
        """Whether the value that `ops` leave in `name` may be of a weaker type than the variable has."""
        type_ = self.types.get(name)
        if type_ is None or self.definitions[name] == 1 or not any(map(_is_wide_number, leaves(type_))):
            return False
        sure: dict[str, bool] = {}
        for op in ops:
            value = ir.assigned_value(op)
            sure.update(dict.fromkeys(ir.writes(op), value is not None and self._surely(type_, value, sure)))
        return not sure[name]

    def _surely(self, type_: Type, node: ast.expr, sure: Mapping[str, bool]) -> bool:
        """Whether the value of an expression is surely of `type_`: a weak operand gives way to one that is."""
        match node:
            case ast.Name(id=name):
                return sure.get(name, self.types.get(name) == type_)
            case ast.BinOp(left=left, right=right) if not isinstance(node.op, (ast.LShift, ast.RShift)):
                return self._surely(type_, left, sure) or self._surely(type_, right, sure)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert(), operand=operand):
                return self._surely(type_, operand, sure)
            case ast.Call(func=ast.Name(id="__cast__")):
                return True
            case ast.IfExp(body=body, orelse=orelse):
                return self._surely(type_, body, sure) or self._surely(type_, orelse, sure)
        return False


def _is_wide_number(type_: TensorType) -> bool:
    """Whether a number of this type may stand where weaker ones were assigned."""
    return type_.shape == () and type_.dtype != "bool" and type_ != TensorType("int32", (), weak=True)


def makes_tail_call(ops: tuple[ir.Op, ...], terminator: ir.Terminator) -> bool:
    """Whether these would make a tail call: which calls are is a fact of the source, and stays so."""
    return bool(ops) and isinstance(ops[-1], ir.Call) and isinstance(terminator, ir.Return)
