"""Expressions as Python's text, with parentheses where Python needs them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pcbatch.ir.expressions import (
    Apply,
    Attribute,
    Constant,
    Delayed,
    Expression,
    Inner,
    Input,
    Items,
    Name,
    Names,
    Operator,
    Slice,
    Starred,
    Written,
)

# -- operators ---------------------------------------------------------------------------------------------------------
# Python's operators, a row for each: the one table of all that read, print, evaluate and translate operators.

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


# -- expression printer ------------------------------------------------------------------------------------------------

_TEST, _OR, _AND, _BITS, _ATOM = 0, 1, 2, 5, 13


@lru_cache(maxsize=16384)
def print_expression(expression: Expression, inputs: Names = ()) -> str:
    """The text of an expression of `inputs`."""
    return _Printer(inputs).text(expression)


class _Printer:
    def __init__(self, inputs: Names):
        self.inputs = inputs

    def text(self, node: Expression, least: int = _TEST) -> str:
        """Print an expression for a place that requires one that binds at `least` so tightly."""
        found, binds = self._bound(node)
        return found if binds >= least else f"({found})"

    def _bound(self, node: Expression) -> tuple[str, int]:
        """A text, and how tightly it binds."""
        match node:
            case Input(place):
                return self.inputs[place] if place < len(self.inputs) else "?", _ATOM
            case Name(name):
                return name, _ATOM
            case Constant(text=text):
                return text, FACTOR if text.startswith("-") else _ATOM
            case Apply(Operator(symbol), arguments):
                return self._operator(symbol, arguments)
            case Apply(function, arguments, keywords) if not isinstance(function, Operator):
                named = [f"**{self.text(v)}" if name is None else f"{name}={self.text(v)}" for name, v in keywords]
                return f"{self.text(function, _ATOM)}({', '.join([*map(self.text, arguments), *named])})", _ATOM
            case Attribute(Constant(text=text), name) if text.isdigit():
                return f"({text}).{name}", _ATOM
            case Attribute(value, name):
                return f"{self.text(value, _ATOM)}.{name}", _ATOM
            case Items("tuple", items):
                return f"({self._listed(items)})", _ATOM
            case Items(kind, items, keys):
                return self._bracketed(kind, items, keys), _ATOM
            case Slice(start, stop, step):
                parts = ["" if each is None else self.text(each) for each in (start, stop, step)]
                return ":".join(parts if step is not None else parts[:2]), _TEST
            case Starred(value):
                return f"*{self.text(value, _BITS)}", _TEST
            case Delayed(value):
                return f"lambda: {self.text(value)}", _TEST
            case Written(parts, is_closed):
                return self._written(parts), _ATOM if is_closed else _TEST
        raise TypeError(f"no expression: {node!r}")

    def _operator(self, symbol: str, arguments: tuple[Expression, ...]) -> tuple[str, int]:
        match arguments:
            case (condition, true, false) if symbol == "if":
                return f"{self.text(true, _OR)} if {self.text(condition, _OR)} else {self.text(false)}", _TEST
            case (whole, index) if symbol == "[]":
                is_bare = isinstance(index, Items) and index.kind == "tuple" and index.items
                return f"{self.text(whole, _ATOM)}[{self._listed(index.items) if is_bare else self.text(index)}]", _ATOM  # type: ignore[union-attr]
            case _ if symbol in ("and", "or"):
                binds = _AND if symbol == "and" else _OR
                return f" {symbol} ".join(self.text(each, binds + 1) for each in arguments), binds
            case (value,) if symbol == "not":
                return f"not {self.text(value, NOT)}", NOT
            case (value,):
                return f"{symbol}{self.text(value, FACTOR)}", FACTOR
            case (left, right) if symbol == "**":
                return f"{self.text(left, _ATOM)} ** {self.text(right, FACTOR)}", POWER
            case (left, right):
                binds = BINARY[symbol].binds
                is_chain = binds == COMPARISON
                return f"{self.text(left, binds + is_chain)} {symbol} {self.text(right, binds + 1)}", binds
        raise TypeError(f"no operator: {symbol} of {len(arguments)}")

    def _listed(self, items: tuple[Expression, ...]) -> str:
        return ", ".join(map(self.text, items)) + ("," if len(items) == 1 else "")

    def _bracketed(self, kind: str, items: tuple[Expression, ...], keys: tuple[Expression | None, ...]) -> str:
        texts = [self.text(each) for each in items]
        if kind == "dict":
            named = zip(keys, texts, strict=True)
            texts = [f"**{text}" if key is None else f"{self.text(key)}: {text}" for key, text in named]
        brackets = "[]" if kind == "list" else "{}"
        return f"{brackets[0]}{', '.join(texts)}{brackets[1]}"

    def _written(self, parts: tuple[str | Input | Name | Inner, ...]) -> str:
        """A text, whose own variables have names that it does not read."""
        found = [each if isinstance(each, str | Inner) else self.text(each) for each in parts]
        read = {text for text, each in zip(found, parts, strict=True) if isinstance(each, Input | Name)}
        own: dict[int, str] = {}
        for each in parts:
            if isinstance(each, Inner) and each.number not in own:
                name = each.name
                while name in read or name in own.values():
                    name += "_"
                own[each.number] = name
        return "".join(own[each.number] if isinstance(each, Inner) else each for each in found)
