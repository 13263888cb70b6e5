"""What occurs in a program: kinds of ops and terminators in its IR, constructs in its source."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import call_graph
from tests.harness import CORPUS, NAMES

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
    ast.With: "with",
    ast.Lambda: "lambda",
    ast.ListComp: "comprehension",
    ast.GeneratorExp: "generator",
}
LOOPS = (ast.While, ast.For)


TRUTH = ("twin", "batch", "status", "message")
"""Functions of a corpus program that are not compiled."""


@cache
def of_corpus() -> dict[str, frozenset[str]]:
    """The names of what occurs in the source of each corpus program: nodes of its syntax, and what is made of them."""
    found = {}
    for name in NAMES:
        tree = ast.parse((CORPUS / f"{name}.py").read_text(encoding="utf-8"))
        kinds = (ast.FunctionDef, ast.ClassDef)
        tree.body = [node for node in tree.body if isinstance(node, kinds) and node.name not in TRUTH]
        found[name] = _of_source(tree)
    return found


def of_function(function: Callable[..., Any]) -> frozenset[str]:
    """The same of the source of one function."""
    return _of_source(ast.parse(textwrap.dedent(inspect.getsource(function))))


def _of_source(tree: ast.Module) -> frozenset[str]:
    kinds = {type(node).__name__ for node in ast.walk(tree)}
    return frozenset({*kinds, *features(tree, ()), *_of_calls(_called(tree))})


def _called(tree: ast.AST) -> dict[str, set[str]]:
    """The names that each function calls."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {
        function.name: {
            node.func.id
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        for function in functions
    }


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
        yield from _of_calls(call_graph(program))


def _of_calls(graph: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Kinds of recursion among functions, by the names that each calls."""
    if any(name in callees for name, callees in graph.items()):
        yield "self-recursion"
    if any(name in graph.get(callee, ()) for name, callees in graph.items() for callee in callees if callee != name):
        yield "mutual recursion"


SCOPES = (ast.Lambda, ast.ListComp, ast.GeneratorExp)


def _bound(scope: ast.AST) -> set[str]:
    """The names of a lambda's parameters, or of the variables of a comprehension."""
    if isinstance(scope, ast.Lambda):
        return {arg.arg for arg in (*scope.args.args, *scope.args.kwonlyargs)}
    targets = [each.target for each in getattr(scope, "generators", ())]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _of_scopes(function: ast.FunctionDef) -> Iterator[str]:
    """What occurs of scopes inside a function, and of names that mean one thing in it and another thing outside."""
    nodes = list(ast.walk(function))
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {arg.arg for arg in function.args.args}
    for node in nodes:
        if isinstance(node, SCOPES):
            bound = _bound(node)
            yield from ["hidden variable"] * bool(bound & own)
            yield from ["hidden global"] * bool(bound & {"LIMIT", "STEP", "SCALE"})
            yield from ["scope in a scope"] * any(isinstance(n, SCOPES) for n in ast.walk(node) if n is not node)
        match node:
            case ast.Lambda(args=ast.arguments(defaults=[_, *_]) | ast.arguments(kw_defaults=[_, *_])):
                yield "default of a lambda"
            case ast.comprehension(ifs=[_, *_]):
                yield "comprehension condition"
            case ast.Assign(value=ast.Lambda()):
                yield "kept lambda"
            case ast.Assign(value=ast.GeneratorExp()):
                yield "kept generator"
            case ast.Assign(value=ast.Name()):
                yield "copy"
            case ast.withitem(optional_vars=ast.expr()):
                yield "with as"
            case ast.With(body=body):
                yield from ["with in a with"] * any(isinstance(each, ast.With) for each in body)
                yield from ["rebinding in a with"] * bool(_rebound(body))
            case ast.Name(id="TABLE"):
                yield "captured array"
            case ast.Name(id="STEP" | "WEIGHTS"):
                yield "captured Variable"
            case ast.Name(id="y" | "z"):
                yield "wild float"
            case ast.Name(id="w"):
                yield "wide int"
            case ast.Assign(targets=[ast.Name(id="zs")]):
                yield "second name of an array"
    for statements in (getattr(node, "body", None) for node in nodes):
        if isinstance(statements, list):
            pairs = itertools.pairwise(statements)
            yield from ["copy, then a scope that hides it"] * any(_hides(first, second) for first, second in pairs)


def _rebound(body: list[ast.stmt]) -> set[str]:
    """Names that a straight line reads before it assigns them, and reads again afterwards."""
    read: set[str] = set()
    changed: set[str] = set()
    found: set[str] = set()
    for statement in body:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        loads = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        found |= loads & changed
        read |= loads
        changed |= {node.id for node in names if isinstance(node.ctx, ast.Store)} & read
    return found


def _hides(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether one statement copies a variable and the next one has an inner variable of its name."""
    match first:
        case ast.Assign(targets=[ast.Name()], value=ast.Name(id=source)):
            return any(isinstance(node, SCOPES) and source in _bound(node) for node in ast.walk(second))
    return False


def _of_function(function: ast.FunctionDef, names: set[str]) -> Iterator[str]:
    def calls(node: ast.AST) -> list[ast.Call]:
        every = (n for n in ast.walk(node) if isinstance(n, ast.Call))
        return [call for call in every if isinstance(call.func, ast.Name) and call.func.id in names]

    yield from _of_scopes(function)
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
