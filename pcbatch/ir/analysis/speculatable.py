"""The statements so cheap that they may run for lanes that did not ask for them: operators, and nothing else.

Such a statement cannot fault, costs about as much as its values have elements, and is a plain assignment to names, so
that a pass can take it apart. A division, a power with a computed exponent, a shift and an index may fault; a call of
anything but a few built-ins may cost what it likes. By a literal `//`, `%` and shifts cannot fault; but by another one
than a power of two `//` and `%` are some ten operators.
"""

from __future__ import annotations

from functools import lru_cache

from pcbatch.ir import program as ir
from pcbatch.ir.expression_printer import COMPARISONS
from pcbatch.ir.expressions import Apply, Constant, Expression, Input, Items, Name, Operator, path_of, walk
from pcbatch.ir.payload import PSEUDO_BUILTINS, Cast, Choose, Compute, Copy, Payload, Truth

_BUILTINS = frozenset({"abs", "bool", "float", "max", "min"})
_OPERATORS = frozenset({"+", "-", "*", "&", "|", "^"})
_BESIDE_LITERALS = frozenset({"/", "**"})
"""Operators that cannot fail with a literal on their right that is not zero."""
_BESIDE_POWERS_OF_TWO = frozenset({"//", "%"})
"""Operators that cannot fail, and are a shift or a mask of an int, with a power of two on their right."""
_SHIFTS = frozenset({"<<", ">>"})
"""Operators that cannot fail with a literal on their right that is not negative."""
_FREE = frozenset({"if", "[]"})
"""Operators that compute nothing."""


def is_cheap(op: ir.Op, externs: tuple[str, ...], *, never_fails: bool = False) -> bool:
    """Return whether `op` assigns operators' results to names and can neither fault nor call anything.

    `externs` are the free names of its function: a built-in of one of these names is another one's. Where it is known
    by the types of its operands that it `never_fails`, a division, a shift and an index are operators like others.
    """
    match op:
        case ir.Primitive(code=Compute() as code):
            return bool(op.outputs) and _is_plain(code, never_fails) and externs_apart(code.expression, externs)
        case ir.Primitive(code=Copy() | Cast() | Truth() | Choose()):
            return True
        case ir.Primitive(code=Constant(value)):
            return value is not None
    return False


def externs_apart(expression: Expression, externs: tuple[str, ...]) -> bool:
    """Return whether an expression calls nothing that goes by one of these names."""
    return all(name not in externs for name in called(expression))


@lru_cache(maxsize=4096)
def called(expression: Expression) -> tuple[str, ...]:
    """Return the functions that an expression calls: free names, dotted ones as text, and "" for all else."""
    functions = (each.function for each in walk(expression) if isinstance(each, Apply))
    return tuple(path_of(each) or "" for each in functions if not isinstance(each, Operator))


def calls_opaque(op: ir.Op, externs: tuple[str, ...]) -> bool:
    """Return whether `op` may be expensive: it calls an unknown function, or multiplies matrices."""
    if not isinstance(op, ir.Primitive) or not isinstance(op.code, Compute):
        return False
    names = [name for name in called(op.code.expression) if name not in PSEUDO_BUILTINS]
    return any(name in externs or name not in _BUILTINS for name in names) or any(
        isinstance(node, Apply) and node.function == Operator("@") for node in walk(op.code.expression)
    )


@lru_cache(maxsize=4096)
def work(code: Payload) -> int:
    """Count the operators of `code`: its cost for each element."""
    if not isinstance(code, Compute):
        return 0
    functions = (each.function for each in walk(code.expression) if isinstance(each, Apply))
    return sum(isinstance(each, Operator) and each.symbol not in _FREE for each in functions)


@lru_cache(maxsize=4096)
def _is_plain(code: Compute, never_fails: bool) -> bool:
    match code:
        case Compute(value, None):
            return _is_total(value, never_fails)
        case Compute(Items("tuple", values), pattern):
            is_flat = pattern is not None and not any(pattern) and len(pattern) == len(values)
            return is_flat and all(_is_total(each, never_fails) for each in values)
    return False


def _is_beside(number: object, is_shift: bool) -> bool:
    """Return whether an int may be shifted by this literal, or divided by it as in a shift."""
    return type(number) is int and number >= 0 and (is_shift or number.bit_count() == 1)


def _is_total(node: Expression, never_fails: bool) -> bool:
    """Return whether evaluating `node` can neither fault nor call anything unknown."""

    def are_total(*nodes: Expression) -> bool:
        return all(_is_total(each, never_fails) for each in nodes)

    match node:
        case Constant(value):
            return isinstance(value, (bool, int, float))
        case Input() | Name():
            return True
        case Apply(Operator("[]"), (value, Constant())):
            return never_fails and are_total(value)
        case Apply(Operator("[]")):
            return False
        case Apply(Operator("if" | "and" | "or" | "not"), arguments) | Apply(Operator(), (_,) as arguments):
            return are_total(*arguments)
        case Apply(Operator(symbol), (left, right)):
            if not are_total(left, right):
                return False
            if never_fails:
                return symbol not in ("@", "in", "not in")
            if symbol in _BESIDE_LITERALS:
                return isinstance(right, Constant) and bool(right.value)
            if symbol in _BESIDE_POWERS_OF_TWO | _SHIFTS:
                return isinstance(right, Constant) and _is_beside(right.value, symbol in _SHIFTS)
            return symbol in _OPERATORS or symbol in COMPARISONS
        case Apply(Name("__free__" | "__index__" | "__last__" | "__next__" | "__place__"), arguments, ()):
            return never_fails and are_total(*arguments)
        case Apply(Name(name), arguments, ()):
            return name in _BUILTINS and are_total(*arguments)
    return False
