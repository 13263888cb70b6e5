"""Which operands of the user's have dtypes that do not go together: `s / n` of a float and an int."""

from __future__ import annotations

import ast
import itertools
import linecache
import re
from types import TracebackType

_MIXED = (
    re.compile(r"must have the same dtype, got tf\.(?P<left>\w+) != tf\.(?P<right>\w+)"),
    re.compile(r"Input 'y' of '\w+' Op has type (?P<right>\w+) that does not match type (?P<left>\w+) of argument 'x'"),
)
"""What TensorFlow says of two operands."""

_OPERATORS: dict[str, type[ast.operator]] = {
    "divide": ast.Div,
    "floordiv": ast.FloorDiv,
    "mod": ast.Mod,
    "multiply": ast.Mult,
    "power": ast.Pow,
}
"""What stands for operators in generated code."""
LONG = 40
"""Operands of more characters are not shown."""


def mixed(why: str, place: TracebackType | None) -> tuple[str, str] | None:
    """What to say, and what to write, where TensorFlow has said `why` of an operator at `place`, if it has."""
    found = next((match for pattern in _MIXED if (match := pattern.search(why))), None)
    if found is None:
        return None
    left, right = found["left"], found["right"]
    names = _operands(place)
    one, other = names if names is not None else ("the left operand", "the right one")
    told = f"{one} is {left} and {other} is {right}, and nothing is cast by itself"
    quotient = next((text for text, dtype in ((one, left), (other, right)) if dtype == "float64" and " / " in text), "")
    if quotient and {left, right} == {"float32", "float64"}:
        return told, f"`/` of two ints gives float64: write `tf.cast({quotient.strip('`')}, tf.float32)`"
    holds, cast = (right, one) if _rank(right) > _rank(left) else (left, other)  # a cast to an int would cut off
    text = cast.strip("`") if names is not None else ".."
    return told, f"write `tf.cast({text}, tf.{holds})`"


def _rank(dtype: str) -> tuple[int, int]:
    """Which of two dtypes holds the other: complex, float, int, bool; then the wider one."""
    kinds = ("bool", "uint", "int", "bfloat", "float", "complex")
    digits = re.sub(r"\D", "", dtype) or "0"
    return max(place for place, kind in enumerate(kinds) if dtype.startswith(kind)), int(digits)


def _operands(place: TracebackType | None) -> tuple[str, str] | None:
    """The text of both operands of the operator computed at `place` of generated code, if they are the user's."""
    node = None if place is None else _node(place)
    match node:
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            parts = [left, right]
        case ast.Call(args=[left, right, *_]):
            parts = [left, right]
        case _:
            return None
    texts = [ast.unparse(_AsWritten().visit(part)) for part in parts]
    if any("_ops" in each or len(each) > LONG for each in texts):
        return None
    return f"`{texts[0]}`", f"`{texts[1]}`"


def _node(place: TracebackType) -> ast.expr | None:
    """The operator of generated code that is computed at `place`; before Python 3.11 only where a line has just one."""
    code = place.tb_frame.f_code
    line = linecache.getline(code.co_filename, place.tb_lineno).strip()
    try:
        if not hasattr(code, "co_positions"):
            every = [each for each in ast.walk(ast.parse(line)) if isinstance(each, ast.BinOp | ast.Compare | ast.Call)]
            return every[0] if len(every) == 1 else None
        found = next(itertools.islice(code.co_positions(), place.tb_lasti // 2, None), None)
        if found is None or None in found or found[0] != found[1]:
            return None
        text = linecache.getline(code.co_filename, found[0] or 0).encode()[found[2] : found[3]].decode()
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


class _AsWritten(ast.NodeTransformer):
    """Calls of `ops` that stand for operators, as the user wrote them."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="_ops"), attr=name), args=[left, right, *_]):
                if name in _OPERATORS:
                    return ast.BinOp(left, _OPERATORS[name](), right)
        return node
