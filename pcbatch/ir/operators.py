"""Python's operators, a row for each: the one table of all that read, print, evaluate and translate operators."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NOT, COMPARISON, FACTOR, POWER = 3, 4, 11, 12
"""Numbers for how tightly operators bind, as in Python's grammar; `or` and `and` have 1 and 2."""


@dataclass(frozen=True)
class Row:
    """An operator, by its `symbol` in the IR.

    `node` is the class of Python's trees, `ops` the backend's function ("" where there is none), `python` its meaning
    on values that are known. Classes define it by `method`, without underscores, and by `reflected` for what stands on
    the right. It `binds` so tightly, and `may_fail` a lane.
    """

    symbol: str
    node: str
    ops: str
    python: Callable[..., Any]
    binds: int
    method: str = ""
    reflected: str = ""
    may_fail: bool = False


def _arithmetic(symbol: str, node: str, ops: str, binds: int, method: str, *, may_fail: bool = False) -> Row:
    python = getattr(operator, f"__{method}__")
    return Row(symbol, node, ops, python, binds, method, f"r{method}", may_fail)


def _comparison(symbol: str, node: str, ops: str, method: str, reflected: str) -> Row:
    return Row(symbol, node, ops, getattr(operator, method), COMPARISON, method, reflected)


_BINARY = (
    _arithmetic("+", "Add", "add", 9, "add"),
    _arithmetic("-", "Sub", "subtract", 9, "sub"),
    _arithmetic("*", "Mult", "multiply", 10, "mul"),
    _arithmetic("/", "Div", "divide", 10, "truediv", may_fail=True),
    _arithmetic("//", "FloorDiv", "floordiv", 10, "floordiv", may_fail=True),
    _arithmetic("%", "Mod", "mod", 10, "mod", may_fail=True),
    _arithmetic("**", "Pow", "power", POWER, "pow", may_fail=True),
    _arithmetic("<<", "LShift", "left_shift", 8, "lshift", may_fail=True),
    _arithmetic(">>", "RShift", "right_shift", 8, "rshift", may_fail=True),
    _arithmetic("&", "BitAnd", "bit_and", 7, "and"),
    _arithmetic("|", "BitOr", "bit_or", 5, "or"),
    _arithmetic("^", "BitXor", "bit_xor", 6, "xor"),
    _arithmetic("@", "MatMult", "matrix_product", 10, "matmul"),
    _comparison("==", "Eq", "equal", "eq", "eq"),
    _comparison("!=", "NotEq", "not_equal", "ne", "ne"),
    _comparison("<", "Lt", "less", "lt", "gt"),
    _comparison("<=", "LtE", "less_equal", "le", "ge"),
    _comparison(">", "Gt", "greater", "gt", "lt"),
    _comparison(">=", "GtE", "greater_equal", "ge", "le"),
    Row("in", "In", "contains", lambda item, whole: item in whole, COMPARISON),
    Row("not in", "NotIn", "lacks", lambda item, whole: item not in whole, COMPARISON),
    Row("is", "Is", "", operator.is_, COMPARISON),
    Row("is not", "IsNot", "", operator.is_not, COMPARISON),
)
_UNARY = (
    Row("-", "USub", "negative", operator.neg, FACTOR),
    Row("+", "UAdd", "positive", operator.pos, FACTOR),
    Row("~", "Invert", "", operator.invert, FACTOR),
    Row("not", "Not", "negate", operator.not_, NOT),
)
BINARY = {row.symbol: row for row in _BINARY}
"""Operators of two operands, by their symbols."""
UNARY = {row.symbol: row for row in _UNARY}
"""Operators of one operand, by their symbols."""
BY_NODE = {row.node: row for row in (*_BINARY, *_UNARY)}
"""All, by the names of the classes of Python's trees."""
ARITHMETIC = [row for row in _BINARY if row.binds != COMPARISON]
"""Operators of two operands that are no comparisons."""
COMPARISONS = {row.symbol: row for row in _BINARY if row.binds == COMPARISON and row.method}
"""Comparisons of what two operands contain."""
