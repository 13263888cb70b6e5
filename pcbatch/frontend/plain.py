"""The user's function as plain Python, with stores to arrays made on copies: tensors cannot be changed in place.

`a[i] = v` becomes `a = store(a, i, v)`; everything else runs as it was written, closures and globals
shared with it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any

import gast

from pcbatch.frontend.scope import is_builtin
from pcbatch.frontend.source import FunctionSource

STORE = "_pcb_store"


def plain_function(
    function: FunctionType,
    source: FunctionSource,
    store: Callable[..., Any],
    builtins: Mapping[str, Callable[..., Any]],
) -> Callable[..., Any]:
    """`function` itself if it needs no help, else a twin of it.

    In the twin `store(array, index, value)` gives a new array for a store, and calls of the built-ins in `builtins`,
    which do not know the array library's values, go to the functions given for them.
    """
    helped = {name: each for name, each in builtins.items() if is_builtin(source.scope, name) and name in source.names}
    definition = _Twin(helped).visit(gast.gast_to_ast(source.tree))
    used = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    given = {_alias(name): each for name, each in helped.items()} | ({STORE: store} if STORE in used else {})
    if not given:
        return function
    definition.decorator_list = []
    definition.returns = None
    definition.name = "_pcb_twin"  # not the function's own name, which must stay what it is for recursive calls
    # Nested in a function whose parameters are the closure's names, the twin sees them as free variables.
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: _cell(value) for name, value in given.items()}
    outer = ast.parse(f"def outer({', '.join(cells)}): pass")
    outer.body[0].body = [definition]  # type: ignore[attr-defined]
    code = compile(ast.fix_missing_locations(outer), source.file, "exec")
    inner = _code_named(_code_named(code, "outer"), "_pcb_twin")
    closure = tuple(cells[name] for name in inner.co_freevars)
    twin = FunctionType(inner, function.__globals__, function.__name__, function.__defaults__, closure)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


def _alias(name: str) -> str:
    return f"_pcb_{name}"


def _cell(value: Any) -> Any:
    return (lambda: value).__closure__[0]  # type: ignore[index]


def _code_named(code: CodeType, name: str) -> CodeType:
    return next(const for const in code.co_consts if isinstance(const, CodeType) and const.co_name == name)


class _Twin(ast.NodeTransformer):
    """Rewrites assignments with subscripts among their targets, and calls of helped built-ins."""

    def __init__(self, helped: Mapping[str, Any]) -> None:
        self.helped = helped
        self.numbers = itertools.count()

    def visit_Name(self, node: ast.Name) -> ast.Name:
        name = _alias(node.id) if node.id in self.helped else node.id
        return ast.copy_location(ast.Name(name, node.ctx), node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        stores: list[ast.stmt] = []
        targets = [self._target(target, stores) for target in node.targets]
        return [ast.copy_location(ast.Assign(targets, node.value), node), *stores] if stores else node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Subscript):
            return node
        array, index = node.target.value, node.target.slice
        old = ast.Subscript(array, index, ast.Load())
        return self._store(array, index, ast.BinOp(old, node.op, node.value), node)

    def _target(self, target: ast.expr, stores: list[ast.stmt]) -> ast.expr:
        if isinstance(target, (ast.Tuple, ast.List)):
            target.elts = [self._target(element, stores) for element in target.elts]
        elif isinstance(target, ast.Subscript):
            name = f"_pcb_value{next(self.numbers)}"
            stores.append(self._store(target.value, target.slice, ast.Name(name, ast.Load()), target))
            return ast.copy_location(ast.Name(name, ast.Store()), target)
        return target

    def _store(self, array: ast.expr, index: ast.expr, value: ast.expr, place: ast.AST) -> ast.stmt:
        assert isinstance(array, ast.Name), "the frontend refuses stores into anything but a name"
        call = ast.Call(ast.Name(STORE, ast.Load()), [ast.Name(array.id, ast.Load()), index, value], [])
        statement = ast.Assign([ast.Name(array.id, ast.Store())], call)
        return ast.fix_missing_locations(ast.copy_location(statement, place))
