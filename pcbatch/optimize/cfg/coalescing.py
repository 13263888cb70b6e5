"""Variables of which one only takes over the value of the other become one, and the copy goes away.

    b0: x_1 = copy x; jump b1              b0: jump b1
    b1: x_2 = x_1 - 1              -->     b1: x = x - 1
        x_1 = copy x_2; jump b1, turn          jump b1, turn

A program comes with a variable for each value, and with copies where ways meet. Without these a block is often empty,
and no block at all (`jump_threading`). The values of one variable of the user's are kept in one as far as they can be:
a stack of a lane's takes room. What stays apart: variables that are needed at the same time, those of other
types, and those that the user knows by different names. Results are no variables that calls would have to save, and
calls that give them stay what they are: which are tail calls is a fact of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import Interference, copies, live_after_each_op, variables_of
from pcbatch.ir.rewrite import renamed
from pcbatch.optimize.cfg.control_flow import Graph


def coalesce_copies(program: ir.Program) -> ir.Program:
    """Give variables one name of which one is a copy of the other, as far as their values never meet."""
    return replace(program, functions=tuple(map(_coalesced, program.functions)))


def _coalesced(function: ir.Function) -> ir.Function:
    blocks = sorted(function.blocks, key=lambda block: not _only_copies(block))  # these are the ones to get rid of
    graph, made = Graph(function), frozenset(function.made)
    pairs = [*copies(blocks), *_of_one_name(function)]
    if not pairs:
        return function
    met = {*function.parameters, *(name for pair in pairs for name in pair)}
    names = [name for name in variables_of(function) if name in met]
    found = _interference(graph, names)
    order = sorted(
        names,  # callers hand over parameters by their names, which therefore stay
        key=lambda name: (name not in function.parameters, name in made, name not in function.results),
    )
    for pair in pairs:
        kept, merged = sorted((found.now[name] for name in pair), key=order.index)
        if kept != merged and _may_be_one(graph, kept, merged) and not found.are_apart(kept, merged):
            found.merge(kept, merged)
    changed = found.changed
    if not changed:
        return function

    def rewritten(block: ir.Block) -> ir.Block:
        ops = (renamed(op, changed, changed) for op in block.ops)
        kept = tuple(op for op in ops if not (isinstance(op, ir.Primitive) and ir.is_identity(op)))
        return replace(block, ops=kept, terminator=renamed(block.terminator, changed, changed))

    results = tuple(changed.get(name, name) for name in function.results)
    return Graph(replace(function, results=results)).rebuilt(map(rewritten, function.blocks))


def _of_one_name(function: ir.Function) -> Iterator[tuple[str, str]]:
    """Pairs of variables that the user knows by one name: each with all that come before it."""
    known: dict[str, list[str]] = {}
    made = frozenset(function.made)
    for name in variables_of(function):
        if name not in made:
            others = known.setdefault(_known_as(name), [])
            yield from ((other, name) for other in others)
            others.append(name)


def _interference(graph: Graph, names: Sequence[str]) -> Interference:
    function, found = graph.function, Interference(names)
    found.meet(function.parameters, {*function.parameters, *function.results, *graph.live[function.entry].start})
    found.meet_in(function, graph.live)
    for block in function.blocks:
        for op, after in zip(block.ops, live_after_each_op(block, graph.live[block.label].end), strict=True):
            if isinstance(op, ir.Call):
                found.meet(function.results, {*after, *op.outputs})
    return found


def _only_copies(block: ir.Block) -> bool:
    return all(isinstance(op, ir.Primitive) and ir.is_copy(op) for op in block.ops)


def _may_be_one(graph: Graph, one: str, other: str) -> bool:
    """Return whether two variables are of one type, and of one name as the user knows them."""
    if graph.types.get(one) != graph.types.get(other):
        return False
    made = graph.function.made
    return one in made or other in made or _known_as(one) == _known_as(other)


def _known_as(name: str) -> str:
    """The name that a value was given: the front end numbers the values of one."""
    return re.sub(r"(_\d+)+$", "", name)
