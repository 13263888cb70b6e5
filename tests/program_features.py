"""What occurs in a program: kinds of ops and terminators in its IR, constructs in its source."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from pcbatch.ir import program as ir
from pcbatch.ir.callgraph import call_graph

CONSTRUCTS: dict[type[ast.AST], str] = {
    ast.While: "while",
    ast.For: "for",
    ast.Break: "break",
    ast.Continue: "continue",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.And: "and",
    ast.Or: "or",
    ast.Not: "not",
    ast.IfExp: "conditional expression",
    ast.Assert: "assert",
    ast.Raise: "raise",
    ast.AugAssign: "augmented assignment",
    ast.Match: "match",
    ast.NamedExpr: "walrus",
    ast.Starred: "starred",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.LShift: "shift",
    ast.BitXor: "bitwise operator",
    ast.Dict: "dict",
}
LOOPS = (ast.While, ast.For)


def features(tree: ast.Module, stages: Iterable[ir.Program]) -> set[str]:
    """The names of what occurs in the module `tree` and in any of the programs made of it."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names = {function.name for function in functions}
    found = {feature for function in functions for feature in _of_function(function, names)}
    for program in stages:
        found |= set(_of_ir(program))
    return found


def _of_ir(program: ir.Program) -> Iterator[str]:
    for block in program.blocks():
        yield from (type(op).__name__ for op in block.ops)
        yield type(block.terminator).__name__
        if isinstance(block.terminator, ir.Jump) and block.terminator.turn:
            yield "loop turn"
    if program.dialect == "cfg":
        graph = call_graph(program)
        if any(name in callees for name, callees in graph.items()):
            yield "self-recursion"
        if any(name in graph[callee] for name, callees in graph.items() for callee in callees if callee != name):
            yield "mutual recursion"


def _of_function(function: ast.FunctionDef, names: set[str]) -> Iterator[str]:
    def calls(node: ast.AST) -> list[ast.Call]:
        every = (n for n in ast.walk(node) if isinstance(n, ast.Call))
        return [call for call in every if isinstance(call.func, ast.Name) and call.func.id in names]

    callees = Counter(call.func.id for call in calls(function) if isinstance(call.func, ast.Name))
    if any(count > 1 for count in callees.values()):
        yield "two call sites"
    for node in ast.walk(function):
        if type(node) in CONSTRUCTS:
            yield CONSTRUCTS[type(node)]
        match node:
            case ast.Constant(value=value):
                yield type(value).__name__
            case ast.Subscript(value=ast.Name(id="xs" | "ys"), slice=ast.Slice()):
                yield "slice store" if isinstance(node.ctx, ast.Store) else "slice"
            case ast.Subscript(value=ast.Name(id="xs" | "ys")):
                yield "array"
            case ast.match_case(guard=ast.expr()):
                yield "guard"
            case ast.Attribute(value=ast.Name(id="p")):
                yield "field"
            case ast.Attribute(value=ast.Name(id="math")):
                yield "math"
            case ast.For(iter=ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed" as name))):
                yield name
            case ast.For(iter=ast.Name()):
                yield "loop over an array"
            case ast.For(iter=ast.Tuple()):
                yield "loop over a tuple"
            case ast.arg(arg="way"):
                yield "static parameter"
            case ast.Compare(ops=[_, _, *_]):
                yield "chained comparison"
            case ast.Assign(targets=[_, _, *_]):
                yield "chained assignment"
            case ast.Assign(targets=[ast.Tuple()]):
                yield "unpacking"
            case ast.AugAssign(target=ast.Subscript()):
                yield "augmented store"
            case ast.Return(value=value):
                if isinstance(value, ast.Tuple):
                    yield "tuple"
                if value in calls(node):
                    yield "call returned as it is"
            case ast.If(test=test) | ast.While(test=test) if calls(test):
                yield "call in a condition"
        if isinstance(node, LOOPS):
            inner = [n for n in ast.walk(node) if n is not node]
            yield from ["loop else"] * bool(node.orelse)
            yield from ["nested loops"] * any(isinstance(n, LOOPS) for n in inner)
            yield from ["early return in a loop"] * any(isinstance(n, ast.Return) for n in inner)
            yield from ["call in a loop"] * bool(calls(node))
    for call in calls(function):
        yield from ["call in a call"] * (len(calls(call)) > 1)
        yield from ["keyword arguments"] * bool(call.keywords)
