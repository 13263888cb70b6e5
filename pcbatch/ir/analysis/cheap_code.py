"""Which statements are so plain that they may run for lanes that did not ask for them: operators, and nothing else.

Such a statement cannot fault, costs about as much as its values have elements, and is a plain assignment to names, so
that a pass can take it apart. A division, a power with a computed exponent, a shift and an index may fault; a call of
anything but a few built-ins may cost what it likes. By a literal `//`, `%` and shifts cannot fault; but by another one
than a power of two `//` and `%` are some ten operators.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from pcbatch.ir import program as ir
from pcbatch.ir.code import Code
from pcbatch.ir.payload import Cast, Choose, Constant, Copy, Payload, Truth
from pcbatch.ir.pseudo_builtins import PSEUDO_BUILTINS

_BUILTINS = frozenset({"abs", "bool", "float", "max", "min"})
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)
_BESIDE_LITERALS = (ast.Div, ast.Pow)
"""Operators that cannot fail with a literal on their right that is not zero."""
_BESIDE_POWERS_OF_TWO = (ast.FloorDiv, ast.Mod)
"""Operators that cannot fail, and are a shift or a mask of an int, with a power of two on their right."""
_SHIFTS = (ast.LShift, ast.RShift)
"""Operators that cannot fail with a literal on their right that is not negative."""
_UNARY = (ast.Not, ast.USub, ast.UAdd, ast.Invert)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def is_cheap(op: ir.Op, externs: tuple[str, ...], *, never_fails: bool = False) -> bool:
    """Whether `op` assigns operators' results to names and can neither fault nor call anything.

    `externs` are the free names of its function: a built-in of one of these names is another one's. Where it is known
    by the types of its operands that it `never_fails`, a division, a shift and an index are operators like others.
    """
    match op:
        case ir.Primitive(code=Code() as code):
            return all(name not in externs for name in called(code)) and _is_plain(code, never_fails)
        case ir.Primitive(code=Copy() | Cast() | Truth() | Choose()):
            return True
        case ir.Primitive(code=Constant(value)):
            return value is not None
    return False


@lru_cache(maxsize=4096)
def called(code: Code) -> tuple[str, ...]:
    """The names that `code` calls, dotted ones and other expressions as text."""
    return tuple(ast.unparse(node.func) for node in _nodes(code) if isinstance(node, ast.Call))


def _nodes(code: Code) -> Iterator[ast.AST]:
    return (node for statement in code.body for node in ast.walk(statement))


def calls_opaque(op: ir.Op, externs: tuple[str, ...]) -> bool:
    """Whether `op` calls something that nothing is known of, or multiplies matrices: what may be expensive."""
    if not isinstance(op, ir.Primitive) or not isinstance(op.code, Code):
        return False
    names = [name for name in called(op.code) if name not in PSEUDO_BUILTINS]
    return any(name in externs or name not in _BUILTINS for name in names) or any(
        isinstance(node, ast.MatMult) for node in _nodes(op.code)
    )


@lru_cache(maxsize=4096)
def work(code: Payload) -> int:
    """How many operators `code` has: what it costs for each element."""
    if not isinstance(code, Code):
        return 0
    return sum(isinstance(node, (ast.operator, ast.unaryop, ast.cmpop, ast.boolop)) for node in _nodes(code))


@lru_cache(maxsize=4096)
def _is_plain(code: Code, never_fails: bool) -> bool:
    match code.assignment:
        case ast.Name(), value:
            return _is_total(value, never_fails)
        case ast.Tuple(elts=targets), ast.Tuple(elts=values):
            return (
                len(targets) == len(values)
                and all(isinstance(t, ast.Name) for t in targets)
                and all(_is_total(each, never_fails) for each in values)
            )
    return False


def _is_beside(number: object, is_shift: bool) -> bool:
    """Whether a literal is one that an int may be shifted by, or divided by in a shift."""
    return type(number) is int and (is_shift or number.bit_count() == 1)


def _is_total(node: ast.expr, never_fails: bool) -> bool:
    """Whether evaluating `node` can neither fault nor call anything unknown."""

    def are_total(*nodes: ast.expr) -> bool:
        return all(_is_total(each, never_fails) for each in nodes)

    match node:
        case ast.Constant(value=value):
            return isinstance(value, (bool, int, float))
        case ast.Name():
            return True
        case ast.BinOp(left=left, op=operator, right=right):
            if not are_total(left, right):
                return False
            if never_fails:
                return not isinstance(operator, ast.MatMult)
            if isinstance(operator, _BESIDE_LITERALS):
                return isinstance(right, ast.Constant) and bool(right.value)
            if isinstance(operator, (*_BESIDE_POWERS_OF_TWO, *_SHIFTS)):
                return isinstance(right, ast.Constant) and _is_beside(right.value, isinstance(operator, _SHIFTS))
            return isinstance(operator, _OPERATORS)
        case ast.UnaryOp(op=operator, operand=operand):
            return isinstance(operator, _UNARY) and are_total(operand)
        case ast.BoolOp(values=values):
            return are_total(*values)
        case ast.Compare(left=left, ops=operators, comparators=others):
            return all(isinstance(o, _COMPARISONS) for o in operators) and are_total(left, *others)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return are_total(test, body, orelse)
        case ast.Subscript(value=value, slice=ast.Constant()):
            return never_fails and are_total(value)
        case ast.Call(func=ast.Name(id="__free__" | "__index__" | "__place__"), args=arguments, keywords=[]):
            return never_fails and are_total(*arguments)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return name in _BUILTINS and are_total(*arguments)
    return False
