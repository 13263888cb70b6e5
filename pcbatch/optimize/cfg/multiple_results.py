"""A function that makes a tuple for those who take it apart gives the parts.

    b1: result = (x, y)                    b1: result_0 = x
        return                                 result_1 = y
    ..                              -->        return
    b5: t0 = call f(n)                     ..
        a, b = t0                          b5: a, b = call f(n)

A tuple of a lane's values is kept part by part in any case. But a part that goes by a name of its own need not be
copied where the tuple is made, nor where it is taken apart. The entry's tuple is taken apart by the caller of the
batch. Where a tuple comes or goes as a whole, it stays one; so that tail calls stay what they are, that holds for all
functions that return each other's results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import variables_of
from pcbatch.ir.expressions import Expression, Items, Starred
from pcbatch.ir.payload import Cast, Copy, Payload, Unpack, explicit
from pcbatch.ir.types import StructType, Type
from pcbatch.optimize.cfg.control_flow import Graph, is_own_cast, may_be_cast


def return_multiple_results(program: ir.Program) -> ir.Program:
    """Give functions whose only result is a tuple, made at each return and taken apart by all callers, one per part."""
    graphs = [Graph(function) for function in program.functions]
    parts = {graph.function.name: _types_of_parts(graph) for graph in graphs}
    parts = {name: types for name, types in parts.items() if len(types) > 1}
    found = [each for graph in graphs for each in _obstacles(graph, parts)]
    while kept := [(one, other) for one, other in found if (one in parts) != (other in parts)]:
        for one, other in kept:
            parts.pop(one, None)
            parts.pop(other, None)
    if not parts:
        return program
    return replace(program, functions=tuple(_rewritten(graph, parts) for graph in graphs))


def _types_of_parts(graph: Graph) -> tuple[Type, ...]:
    """The types of the parts of the function's only result, if that is a tuple."""
    if len(graph.function.results) == 1:
        match graph.types.get(graph.function.results[0]):
            case StructType(kind="tuple", items=items):
                return items
    return ()


def _obstacles(graph: Graph, parts: Mapping[str, tuple[Type, ...]]) -> Iterator[tuple[str, str]]:
    """Pairs of functions of which both give parts or neither; one that must give a whole is paired with ""."""
    function, results = graph.function, graph.function.results
    for block in function.blocks:
        for op, after in zip_longest(block.ops, block.ops[1:]):
            is_result = bool({*results}.intersection(ir.writes(op)))
            if isinstance(op, ir.Call) and is_result:
                yield function.name, op.function
            elif isinstance(op, ir.Call) and op.function in parts:
                (whole,) = op.outputs
                if graph.uses[whole] != 1 or len(_targets(after, whole)) != len(parts[op.function]):
                    yield op.function, ""
            elif is_result and function.name in parts and not _gives(op, results[0], parts[function.name]):
                yield function.name, ""
    if function.name in parts:
        nodes = [node for block in function.blocks for node in (*block.ops, block.terminator)]
        if any(results[0] in ir.reads(node) and not is_own_cast(node, results[0]) for node in nodes):
            yield function.name, ""


def _gives(op: ir.Op, result: str, parts: tuple[Type, ...]) -> bool:
    """Return whether `op` makes a tuple of so many parts, or casts it."""
    return is_own_cast(op, result) or len(_elements(op)) == len(parts)


def _rewritten(graph: Graph, parts: Mapping[str, tuple[Type, ...]]) -> ir.Function:
    """The function with results, and calls, part by part."""
    function, results = graph.function, graph.function.results
    types = dict(zip(_names(graph, parts), parts.get(function.name, ()), strict=True))
    new = tuple(types)

    fresh = graph.fresh_names()
    own: dict[str, Type] = {}

    def given(target: str, type_: Type) -> str:
        """The variable that gets a part: `target`, or one of the part's type from which that is made."""
        if graph.types[target] in (None, type_):
            return target
        name = next(fresh)
        own[name] = type_
        return name

    def is_sure(element: tuple[Payload, tuple[str, ...]], type_: Type, old: tuple[ir.Op, ...]) -> bool:
        """Return whether an element of a tuple that `old` makes is a variable whose value is surely of this type."""
        payload, inputs = element
        if payload != Copy() or graph.types.get(inputs[0]) != type_:
            return False
        return not any(is_own_cast(op, inputs[0]) for op in old)

    def ops(old: tuple[ir.Op, ...]) -> Iterator[ir.Op]:
        weaker: list[str] = []
        following = zip_longest(old, old[1:])
        for op, after in following:
            if isinstance(op, ir.Call) and op.function in parts:
                if op.outputs == results:
                    yield replace(op, outputs=new)
                else:
                    targets = _targets(after, op.outputs[0])
                    names = [given(*pair) for pair in zip(targets, parts[op.function], strict=True)]
                    yield replace(op, outputs=tuple(names))
                    pairs = zip(targets, names, strict=True)
                    yield from (ir.Primitive((t,), (g,), Copy(), op.span) for t, g in pairs if t != g)
                    next(following)
            elif new and is_own_cast(op, *results):
                yield from (ir.Primitive((name,), (name,), Cast(types[name]), op.span) for name in weaker)
            elif new and ir.writes(op) == results:
                elements = [explicit(each, op.inputs, function.externs) for each in _elements(op)]  # type: ignore[union-attr]
                made = dict(zip(new, elements, strict=True))
                weaker = [n for n, each in made.items() if may_be_cast(types[n]) and not is_sure(each, types[n], old)]
                yield from (ir.Primitive((name,), inputs, code, op.span) for name, (code, inputs) in made.items())
            else:
                yield op

    blocks = [replace(block, ops=tuple(ops(block.ops))) for block in function.blocks]
    made = (*function.made, *new)
    return Graph(replace(function, results=new or results, made=made)).rebuilt(blocks, {**types, **own})


def _names(graph: Graph, parts: Mapping[str, tuple[Type, ...]]) -> Iterator[str]:
    """Names for the new results of the function, which nothing in it has."""
    function = graph.function
    taken = {*variables_of(function), *function.externs, *graph.uses}
    for place in range(len(parts.get(function.name, ()))):
        name = f"{function.results[0]}_{place}"
        while name in taken:
            name += "_"
        taken.add(name)
        yield name


def _targets(op: ir.Op | None, whole: str) -> tuple[str, ...]:
    """`("a", "b")` if `op` is `a, b = whole`; nothing if it is anything else."""
    match op:
        case ir.Primitive(outputs, inputs, Unpack(pattern)) if inputs == (whole,):
            return outputs if not any(pattern) else ()
    return ()


def _elements(op: ir.Op) -> tuple[Expression, ...]:
    """The elements of the tuple that `op` makes; nothing if it does anything else."""
    match ir.assigned_value(op):
        case Items("tuple", elements):
            return () if any(isinstance(element, Starred) for element in elements) else elements
    return ()
