"""Lambdas and generators read the variables around them when they run: what they read must not be assigned meanwhile.

    a = 2.0
    scaled = lambda q: a * q
    a = 3.0                          # Python: `scaled` sees this one, too
    return scaled(x)

A variable of the IR is what its name means at one place, so such an assignment is refused as long as the lambda may
still run. A forward analysis follows the lambdas; its facts say which variable may hold one that reads which other.
What a call gives that takes one may hold it as well. That is known when the call is traced: a check stands before the
assignment that such a result is plain data (`__plain__`).
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pcbatch.errors import Diagnostic, Note, Span
from pcbatch.ir.analysis.dataflow import Analysis, live_after_each_op, liveness, solve
from pcbatch.ir.code import Code
from pcbatch.ir.program import Block, Coded, Function, Op, Primitive, reads, writes

PLAIN = "__plain__"
"""The pseudo-builtin `__plain__(y, "a", 7)`, which refuses a `y` that could call a lambda of line 7 that reads `a`."""


@dataclass(frozen=True)
class Held:
    """A variable may hold a lambda or a generator that reads `read`, made at `span`; perhaps only through a call."""

    holder: str
    read: str
    span: Span | None
    perhaps: bool = False


Facts = frozenset[Held]


def late_reads(function: Function) -> tuple[list[Diagnostic], Function]:
    """A diagnostic for each assignment of what a lambda or a generator reads that may still run.

    Also the function, with checks of what calls have given that took such a one.
    """
    if not any(isinstance(op, Coded) and op.code.late for block in function.blocks for op in block.ops):
        return [], function
    variables = frozenset({*function.parameters, *(n for b in function.blocks for op in b.ops for n in writes(op))})
    nothing: Facts = frozenset()

    def through(block: Block, facts: Facts) -> Facts:
        for op in block.ops:
            facts = _after(op, facts, variables)
        return facts

    start = solve(function.blocks, Analysis("forward", {}, nothing, frozenset.union, through))
    live = liveness(function)
    found: dict[Span | None, Diagnostic] = {}
    blocks: list[Block] = []
    for block in function.blocks:
        facts = start[block.label].start
        ops: list[Op] = []
        for op, needed in zip(block.ops, live_after_each_op(block, live[block.label].end), strict=True):
            facts = _after(op, facts, variables)
            clashes = sorted((e for e in facts if e.read in writes(op) and e.holder in needed), key=repr)
            for each in clashes:
                if not each.perhaps:
                    found.setdefault(op.span, _refusal(each, op))
            doubtful = [each for each in clashes if each.perhaps]
            ops += [_check(each) for each in doubtful if each.holder not in writes(op)]
            ops.append(op)
            ops += [_check(each) for each in doubtful if each.holder in writes(op)]
            facts = facts.difference(doubtful)
        blocks.append(replace(block, ops=tuple(ops)))
    return list(found.values()), replace(function, blocks=tuple(blocks))


def _refusal(held: Held, op: Op) -> Diagnostic:
    where = "" if held.span is None else f" of line {held.span.line}"
    return Diagnostic(
        "PCB210",
        f"`{held.read}` is assigned here, and the lambda or generator{where} that reads it may still run",
        op.span,
        "Python would show it this value",
        f"give this value another name; or keep the old one, `lambda .., {held.read}={held.read}: ..`",
        () if held.span is None else (Note(held.span, f"made here; it reads `{held.read}` each time it runs"),),
    )


def _check(held: Held) -> Primitive:
    line = 0 if held.span is None else held.span.line
    return Primitive((), (held.holder,), Code(f"{PLAIN}({held.holder}, {held.read!r}, {line})"), held.span)


# -- the effect of an op -----------------------------------------------------------------------------------------------


def _after(op: Op, facts: Facts, variables: frozenset[str]) -> Facts:
    """What holds after `op`."""
    kept = {each for each in facts if each.holder not in writes(op)}
    if isinstance(op, Coded) and op.outputs and (op.code.late or any(each.holder in reads(op) for each in facts)):
        reader = _Reader(op, facts, variables)
        for statement in op.code.body:
            match statement:
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                    values
                ) and not any(isinstance(each, ast.Starred) for each in (*targets, *values)):
                    pairs = list(zip(targets, values, strict=True))
                case ast.Assign(targets=targets, value=value):
                    pairs = [(target, value) for target in targets]
                case ast.With(items=[ast.withitem(context_expr=value, optional_vars=ast.expr() as target)]):
                    pairs = [(target, value)]
                case _:
                    pairs = []
            for target, value in pairs:
                kept.update(reader.held(target, value))
    return frozenset(kept)


class _Reader:
    """Which lambdas and generators the values in one statement may hold."""

    def __init__(self, op: Coded, facts: Facts, variables: frozenset[str]):
        self.span, self.facts, self.variables = op.span, facts, variables

    def held(self, target: ast.expr, value: ast.expr) -> Iterator[Held]:
        """What the names in `target` hold when it is assigned `value`."""
        surely = isinstance(target, ast.Name)
        names = {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
        for read, span, perhaps in self._in(value):
            yield from (Held(name, read, span, perhaps or not surely) for name in names)

    def _in(self, node: ast.expr) -> Iterator[tuple[str, Span | None, bool]]:
        """What is read late by what the value of `node` may hold, where that was made, and whether that is doubtful."""
        match node:
            case ast.Lambda() | ast.GeneratorExp() | ast.Name():
                yield from self._inside(node, perhaps=False)
            case ast.IfExp(body=body, orelse=orelse):
                yield from itertools.chain(self._in(body), self._in(orelse))
            case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
                yield from itertools.chain.from_iterable(map(self._in, parts))
            case ast.NamedExpr(value=value) | ast.Starred(value=value):
                yield from self._in(value)
            case _:
                yield from self._inside(node, perhaps=True)

    def _inside(self, node: ast.expr, *, perhaps: bool) -> Iterator[tuple[str, Span | None, bool]]:
        code = Code(ast.unparse(node))
        yield from ((name, self.span, perhaps) for name in code.late & self.variables)
        for each in self.facts:
            if each.holder in code.reads:
                yield each.read, each.span, perhaps or each.perhaps
