"""Objects that stand for one of several: what changes in one of them would be seen by nobody.

    ps[i].move(x)               # where lanes differ in `i`, `ps[i]` is an object of its own
    (p if x > 0.0 else q).move(x)

A method that is called for its value, and a helper, may change such an object as they may one that has a name. So it is
noted where it is made, and looked at behind whatever calls something (`unchanged`).
"""

from __future__ import annotations

import ast
from functools import lru_cache

from pcbatch.ir.code import Code
from pcbatch.lowering.codegen.builtins import BUILTINS, OPS
from pcbatch.syntax import parse

NOTE = "_pcb_selected"
"""The name by which a traced piece knows the function that notes it."""
_SORTED = BUILTINS["sorted"]
_SELECTING = frozenset({"getitem", "select", "both", "either", BUILTINS["__element__"], _SORTED})
"""The operations that choose between objects, or put them in an order."""


@lru_cache(maxsize=4096)
def noted(code: Code) -> Code:
    """The translated `code`, which notes what it selects; itself where it selects nothing."""
    if not any(f"{OPS}.{name}(" in code.text for name in _SELECTING):
        return code
    return Code(ast.unparse(ast.fix_missing_locations(_Noting().visit(parse(code.text)))))


class _Noting(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        names = dict.fromkeys(_names(node))
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name), args=arguments) if (
                owner == OPS and name in _SELECTING
            ):
                is_slice = any(isinstance(part, ast.Call) and _is_slice(part) for part in arguments)
                values = ast.Dict([ast.Constant(each) for each in names], [ast.Name(each) for each in names])
                given = [node, ast.Constant(name == _SORTED or is_slice), values]
                return ast.Call(ast.Name(NOTE), given, [])
        return node


def _is_slice(call: ast.Call) -> bool:
    return ast.unparse(call.func) in ("slice", f"{OPS}.window")


def _names(node: ast.AST) -> list[str]:
    """The names that `node` reads and that are bound around it."""
    every = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id != OPS]
    own = {each.id for each in every if isinstance(each.ctx, ast.Store)}
    own |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    return [each.id for each in every if each.id not in own]
