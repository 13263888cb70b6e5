"""Constants: variables that have one value on every path, known when the program is compiled.

Such a variable *is* its value wherever statements read it: a size, an axis, a count, a text or a function. A block that
reads it begins by making it anew, so that no lane has to keep it (rematerialisation: Briggs, Cooper and Torczon, PLDI
1992):

    b0: K = 4; ..; jump b1          b0: K = 4; ..; jump b1
    b1: y = tf.ones([K])            b1: K = 4; y = tf.ones([K])

Which values these are is found with the types, over the lattice of Wegman and Zadeck: unknown, one value, a type.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir.analysis.callgraph import components
from pcbatch.ir.code import Code
from pcbatch.lowering.inference.static import Known, Static

SMALLEST, LARGEST = -(2**31), 2**31 - 1
"""Python ints beyond these are none of a lane's."""


@dataclass(frozen=True)
class Candidates:
    """The variables of a function that may be constants, and of those that name things around it, the paths of these.

    Paths are by the assignment that they stand in. A variable that is computed from itself, as a counter is, is none.
    """

    names: frozenset[str]
    paths: Mapping[str, Mapping[Span | None, str]]


def candidates(function: ir.Function) -> Candidates:
    """The variables whose values are worth looking for."""
    makers: dict[str, list[ir.Op]] = {}
    for block in function.blocks:
        for op in block.ops:
            for name in ir.writes(op):
                makers.setdefault(name, []).append(op)
    graph = {name: {each for op in ops for each in ir.reads(op) if each in makers} for name, ops in makers.items()}
    loops = {name for members in components(graph) if len(members) > 1 for name in members}
    loops |= {name for name, sources in graph.items() if name in sources}
    loops -= {name for name in loops if all(map(_is_entry, makers[name]))}
    plain = {
        name
        for name, ops in makers.items()
        if name not in loops and name not in function.parameters and all(isinstance(op, ir.Primitive) for op in ops)
    }
    paths = {name: {op.span: path for op in makers[name] if (path := _path(op)) is not None} for name in plain}
    return Candidates(
        frozenset(plain), {name: found for name, found in paths.items() if len(found) == len(makers[name])}
    )


def _is_entry(op: ir.Op) -> bool:
    """Whether `op` takes an element in a turn of a loop that is written out: a key of a dict comes from types alone."""
    match ir.assignment(op):
        case _, ast.Call(func=ast.Name(id="__element__"), args=[_, _, _]):
            return True
    return False


def _path(op: ir.Op) -> str | None:
    """The dotted path around the function that `op` gives a name to."""
    value = node = ir.assigned_value(op)
    while isinstance(node, ast.Attribute):
        node = node.value
    free = isinstance(node, ast.Name) and node.id not in ir.reads(op)
    return ast.unparse(value) if value is not None and free else None


def is_literal(value: Any) -> bool:
    """Whether a value can be written down: a number, a text, None, or a tuple of such."""
    match value:
        case bool() | str() | None:
            return True
        case int():
            return type(value) is int and SMALLEST <= value <= LARGEST
        case float():
            return type(value) is float and math.isfinite(value)
        case tuple():
            return type(value) is tuple and all(map(is_literal, value))
    return False


def remade(name: str, known: Known | None, path: str | None, span: Span | None) -> ir.Op:
    """The op that makes a constant anew, whose value is known, or which is what `path` names."""
    assert isinstance(known, Static) and (path is not None or is_literal(known.value))
    code = Code(f"{name} = {known.value!r}" if is_literal(known.value) else f"{name} = {path}")
    return ir.explicit(ir.Primitive((name,), (), code, span), (name,))
