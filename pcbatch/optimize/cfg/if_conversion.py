"""A branch around plain operators becomes a choice of values: both arms are computed, and no lane has to wait.

    if x < 0:                branch t0 b1 b2           t1 = -x; y = choose t0, t1, x
        y = -x        <--    b1: y = -x; jump b3
    else:                    b2: y = x; jump b3
        y = x

A guarded block costs about a microsecond in every trip, and under "earliest" each arm costs a trip of its own; a few
operators on a few numbers cost next to nothing. Only arms that can neither fault nor call anything are taken (Allen,
Kennedy, Porterfield, Warren, "Conversion of control dependence to data dependence", POPL 1983).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.speculatable import is_cheap, work
from pcbatch.ir.payload import Cast, Choose, Copy
from pcbatch.ir.rewrite import renamed
from pcbatch.ir.types import TensorType
from pcbatch.optimize.cfg.control_flow import Graph

MAX_WORK = 64
"""The most operators times elements that an arm may cost a lane that does not take it."""


def convert_branches(program: ir.Program) -> ir.Program:
    """Turn branches around cheap arms into choices."""
    return replace(program, functions=tuple(map(_selected, program.functions)))


def _selected(function: ir.Function) -> ir.Function:
    while (changed := next(_changed(Graph(function)), None)) is not None:
        function = changed
    return function


@dataclass(frozen=True)
class Diamond:
    """A branch whose two arms, one of which may be empty, meet again (`join` None: each goes on by itself)."""

    branch: ir.Branch
    true: tuple[ir.Op, ...]
    false: tuple[ir.Op, ...]
    join: ir.Terminator | None
    labels: frozenset[str]
    """The labels of the arms' blocks."""


def diamond(graph: Graph, block: ir.Block) -> Diamond | None:
    """The diamond that starts at the end of `block`, if there is one."""
    branch = block.terminator
    if not isinstance(branch, ir.Branch) or branch.true == branch.false:
        return None
    true, false = graph.blocks[branch.true], graph.blocks[branch.false]
    alone = [arm for arm in (true, false) if graph.arrivals[arm.label] == 1 and arm is not block]
    ends = {ir.Jump, ir.Return}
    if len(alone) == 2 and true.terminator == false.terminator and type(true.terminator) in ends:
        return Diamond(branch, true.ops, false.ops, true.terminator, frozenset((true.label, false.label)))
    if true in alone and true.terminator == ir.Jump(false.label):
        return Diamond(branch, true.ops, (), true.terminator, frozenset((true.label,)))
    if false in alone and false.terminator == ir.Jump(true.label):
        return Diamond(branch, (), false.ops, false.terminator, frozenset((false.label,)))
    return None


def _changed(graph: Graph) -> Iterator[ir.Function]:
    """The function with one branch turned into selects, for each branch for which that can be done."""
    for block in graph.function.blocks:
        found = diamond(graph, block)
        if found is None:
            continue
        outputs = selectable(graph, found)
        if outputs is None:
            continue
        chosen = replace(
            block,
            ops=(*block.ops, *choices(graph, found, outputs, graph.fresh_names())),
            terminator=found.join or block.terminator,
        )
        rest = (each for each in graph.function.blocks if each.label not in found.labels)
        yield graph.rebuilt(chosen if each is block else each for each in rest)


def selectable(graph: Graph, found: Diamond) -> tuple[str, ...] | None:
    """The variables to choose between where the arms meet, if both arms may run for all lanes; else None."""
    if not all(is_cheap(op, graph.function.externs) for op in (*found.true, *found.false)):
        return None
    live = frozenset(graph.function.results)
    if isinstance(found.join, ir.Jump):
        live = graph.live[found.join.target].start
    outputs = tuple(dict.fromkeys(name for op in (*found.true, *found.false) for name in ir.writes(op) if name in live))
    types = [graph.types.get(name) for name in outputs]
    if not all(isinstance(type_, TensorType) for type_ in types):
        return None
    largest = max((prod(type_.shape) for type_ in types if isinstance(type_, TensorType)), default=1)
    for arm in (found.true, found.false):
        ops = [op for op in arm if isinstance(op, ir.Primitive) and not isinstance(op.code, Cast)]
        if sum(max(1, work(op.code)) for op in ops) * largest > MAX_WORK:
            return None
    condition = found.branch.condition
    return tuple(sorted(outputs, key=lambda name: name == condition))  # what is read by all others is written last


def choices(graph: Graph, found: Diamond, outputs: tuple[str, ...], fresh: Iterator[str]) -> Iterator[ir.Op]:
    """Both arms on names of their own, then each output's choice.

    Where both arms end by casting an output, its choice is cast; of two values a weaker one gives way in any case.
    """
    condition = found.branch.condition
    arms: list[dict[str, str]] = []
    cast = frozenset(outputs)
    for arm in (found.true, found.false):
        ops, weaker = _without_last_casts(arm)
        cast &= weaker
        names: dict[str, str] = {}
        for op in ops:
            own = {name: next(fresh) for name in op.outputs}
            if isinstance(op.code, Copy) and op.inputs[0] not in outputs:
                own = {op.outputs[0]: names.get(op.inputs[0], op.inputs[0])}  # nothing to be put on a name of its own
            else:
                yield renamed(op, names, own)
            names.update(own)
        arms.append(names)
    for name in outputs:
        true, false = (names.get(name, name) for names in arms)
        span = next(op.span for op in (*found.true, *found.false) if name in ir.writes(op))
        yield ir.Primitive((name,), (condition, true, false), Choose(), span)
        if name in cast and (type_ := graph.types[name]) is not None:
            yield ir.Primitive((name,), (name,), Cast(type_), span)


def _without_last_casts(arm: tuple[ir.Op, ...]) -> tuple[list[ir.Primitive], frozenset[str]]:
    """An arm without the casts that it ends with, and the variables that then hold weaker values."""
    ops = [op for op in arm if isinstance(op, ir.Primitive)]
    last: list[ir.Primitive] = []
    weaker: set[str] = set()
    while ops and isinstance(ops[-1].code, Cast) and not any(ops[-1].outputs == op.inputs for op in last):
        op = ops.pop()
        if op.outputs != op.inputs:
            last.append(replace(op, code=Copy()))
        weaker |= {*op.outputs}
    return [*ops, *reversed(last)], frozenset(weaker)
