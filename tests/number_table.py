"""What Python's operators give for every pair of dtypes, found by tracing, and the table of docs/numbers.md."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import tensorflow as tf

from pcbatch.errors import PcbatchError
from pcbatch.ir.expression_parser import parse_expression
from pcbatch.ir.operators import print_expression
from pcbatch.ir.types import TensorType
from pcbatch.lowering.codegen.pieces import Translation
from pcbatch.runtime.backends.tensorflow import ops, private
from pcbatch.runtime.backends.tensorflow.structures import type_of, wrap

WEAK = {"int": TensorType("int32", (), True), "float": TensorType("float64", (), True)}
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
TYPES = {**WEAK, **{dtype: TensorType(dtype) for dtype in DTYPES}}
"""What stands in the table for each kind of operand: a Python number, or a tensor of a dtype."""

GROUPS = {
    "`+` `-`": ("+", "-"),
    "`*`": ("*",),
    "`/`": ("/",),
    "`//` `%`": ("//", "%"),
    "`**`": ("**",),
    "`==` `!=`": ("==", "!="),
    "`<` `<=` `>` `>=`": ("<", "<=", ">", ">="),
    "`&` `|` `^`": ("&", "|", "^"),
    "`<<` `>>`": ("<<", ">>"),
}
"""Operators that give the same for every pair of operands, by the heading of their table."""
UNARY = {"`-x`": "-x", "`+x`": "+x", "`~x`": "~x", "`not x`": "not x", "`abs(x)`": "abs(x)"} | {
    f"`{name}(x)`": f"{name}(x)" for name in ("int", "float", "bool", "round")
}
REFUSED = "-"


def _outcome(code: str, operands: dict[str, TensorType]) -> str:
    """The type of `code`, "int" and "float" for Python's numbers; `REFUSED` where it is an error."""
    text = print_expression(Translation(lambda status, message: 0).of(parse_expression(code)))
    with private.new_graph("piece").as_default(), ops.recording():
        placeholders = {n: wrap(tf.compat.v1.placeholder(t.dtype, ()), t) for n, t in operands.items()}
        scope = {"_ops": ops, **placeholders}
        try:
            found = type_of(eval(text, scope))
        except (TypeError, ValueError, PcbatchError):
            return REFUSED
    assert isinstance(found, TensorType)
    return next((name for name, type_ in WEAK.items() if type_ == found), found.dtype)


@functools.cache
def binary(symbol: str, left: str, right: str) -> str:
    """What `left symbol right` gives."""
    return _outcome(f"a {symbol} b", {"a": TYPES[left], "b": TYPES[right]})


@functools.cache
def unary(code: str, operand: str) -> str:
    """What `code`, in which the operand is `x`, gives."""
    return _outcome(code, {"x": TYPES[operand]})


def markdown() -> str:
    """The tables, as the page has them."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    for heading, symbols in GROUPS.items():
        yield from _table(
            f"### {heading}", "left \\ right", {n: [binary(symbols[0], n, other) for other in TYPES] for n in TYPES}
        )
    yield from _table(
        "### One operand", "", {heading: [unary(code, n) for n in TYPES] for heading, code in UNARY.items()}
    )


def _table(heading: str, corner: str, rows: dict[str, list[str]]) -> Iterator[str]:
    yield from (heading, "", f"| {corner} | {' | '.join(TYPES)} |", f"|---{'|---' * len(TYPES)}|")
    yield from (f"| **{name}** | {' | '.join(cells)} |" for name, cells in rows.items())
    yield ""
