"""Which `and`, `or` and conditional expressions are asked for their truth alone: their operands need no common type.

    k and c < 2                 one of its operands, a number or a bool: a lane's value has one type
    not (k and c < 2)           the truth of both: every operand counts as a bool

So does what `if`, `while` and `assert` test, which the frontend puts into `bool(..)`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Choice = ast.BoolOp | ast.IfExp


def asked_for_truth(tree: ast.AST, means_bool: Callable[[str], bool]) -> frozenset[int]:
    """The identities of the choices in `tree` of which only the truth is used; `means_bool` says so of a name."""
    tests = (test for node in ast.walk(tree) for test in _tests(node, means_bool))
    return frozenset(id(each) for test in tests for each in _choices(test))


def _tests(node: ast.AST, means_bool: Callable[[str], bool]) -> Iterator[ast.expr]:
    """The expressions inside `node`, right below it, whose truth it asks for."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=test) | ast.IfExp(test=test):
            yield test
        case ast.Call(func=ast.Name(id=name), args=[test], keywords=[]) if means_bool(name):
            yield test
        case ast.comprehension(ifs=tests):
            yield from tests


def _choices(test: ast.expr) -> Iterator[Choice]:
    """The choices that give the value of `test`, itself among them."""
    match test:
        case ast.BoolOp(values=values):
            parts = values
        case ast.IfExp(body=body, orelse=orelse):
            parts = [body, orelse]
        case _:
            return
    yield test
    for part in parts:
        yield from _choices(part)


def is_bool(node: ast.expr, is_builtin: Callable[[str], bool]) -> bool:
    """Whether an operand is a bool by its form."""
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Constant(value=value):
            return isinstance(value, bool)
        case ast.Call(func=ast.Name(id="bool" | "any" | "all" as name)):
            return is_builtin(name)
    return False
