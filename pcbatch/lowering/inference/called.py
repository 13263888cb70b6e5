"""Calls of objects of the user's in a piece, `o(x)`: they are calls of methods, which the frontend must know.

    o = Opt(0.1)
    y = o(x)                    # may change `o`, and branch on `x`: `o.__call__(x)`
    y = layers.first(x)         # a method, or an object that is an attribute

Which of the two it is, is known when it runs. The program is built anew where it is an object.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from pcbatch.errors import InPlaceError
from pcbatch.ir import records
from pcbatch.ir.called import CALL, name_of_class, text_of_call
from pcbatch.ir.code import Code
from pcbatch.ir.pseudo_builtins import CHANGED, TAKEN
from pcbatch.lowering.codegen.builtins import BUILTINS, OPS
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.syntax import parse

LOOK = "_pcb_called"
"""The name by which a traced piece knows the function below."""
_CALLING = frozenset({BUILTINS[CHANGED], BUILTINS[TAKEN]})


@lru_cache(maxsize=4096)
def noted(code: Code, variables: frozenset[str], number: int) -> Code:
    """The translated `code`, in which look `number` is at what it calls of the `variables`."""
    noting = _Noting(variables | _bound_in(code), number)
    tree = noting.visit(parse(code.text))
    return Code(ast.unparse(ast.fix_missing_locations(tree))) if noting.has_found else code


class _Noting(ast.NodeTransformer):
    def __init__(self, names: Collection[str], number: int):
        self.names, self.number = names, number
        self.has_found = False

    def visit_Call(self, node: ast.Call) -> ast.Call:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name), args=[whole, method, *_]) if (
                owner == OPS and name in _CALLING and isinstance(method, ast.Constant)
            ):
                called = ast.Attribute(whole, str(method.value), ast.Load())
                if self._is_asked(called):
                    node.args[0] = self._look(called, whole, method)
            case ast.Call(func=called) if not _is_of(OPS, called) and self._is_asked(called):
                node.func = self._look(called, called)
        self.generic_visit(node)
        return node

    def _is_asked(self, called: ast.expr) -> bool:
        root = _path(called)
        while isinstance(root, ast.Attribute | ast.Subscript):
            if isinstance(root, ast.Attribute) and root.attr == CALL:
                return False
            root = root.value
        is_lookup = isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id == LOOK
        is_own = root.id in self.names if isinstance(root, ast.Name) else not isinstance(root, ast.Lambda)
        return is_own and not is_lookup

    def _look(self, called: ast.expr, *given: ast.expr) -> ast.Call:
        self.has_found = True
        text = text_of_call(_path(called))
        return ast.Call(ast.Name(LOOK), [ast.Constant(self.number), ast.Constant(text), *given], [])


def _path(node: ast.expr) -> ast.expr:
    """What is called, elements that are looked up by an operation being elements again."""
    match node:
        case ast.Call(func=ast.Attribute(attr="getitem"), args=[whole, index, *_]) if _is_of(OPS, node.func):
            return ast.Subscript(_path(whole), index)
        case ast.Attribute(value=value, attr=name):
            return ast.Attribute(_path(value), name)
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(_path(value), index)
    return node


def _is_of(owner: str, node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == owner


def _bound_in(code: Code) -> frozenset[str]:
    nodes = [node for each in code.body for node in ast.walk(each)]
    stored = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return frozenset(stored | {each.arg for each in nodes if isinstance(each, ast.arg)})


def look(backend: Backend, known: Collection[str], text: str, whole: Any, method: str | None = None) -> None:
    """InPlaceError if `whole`, or what is its `method`, is an object that is called, and that a lane can keep.

    Unless that is `known`.
    """
    called = whole if method is None else getattr(whole, method, None)
    if not records.is_called(called):
        return
    if records.fields_of(called) is not None:
        try:
            backend.type_of(called)
        except TypeError:
            return
    text += name_of_class(next(base for base in type(called).__mro__ if CALL in vars(base)))
    if text not in known:
        raise InPlaceError("PCB423", "an object is called", "call its method by name, `o.__call__(..)`", text)
