"""The table of docs/numbers.md: Python's rules for its own numbers and bools, NumPy's for ints, TensorFlow's else."""

import operator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.goldens import check_golden
from tests.number_table import DTYPES, GROUPS, REFUSED, TYPES, UNARY, WEAK, binary, markdown, unary

pytestmark = pytest.mark.xdist_group("number table")  # the page shows what the tests of operators find out
PAGE = Path(__file__).parents[2] / "docs" / "numbers.md"
MARK = "<!-- tables -->\n"
SYMBOLS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
INTEGERS = {"uint8", "int32", "int64"}


def of_tensors(symbol, left, right):
    """What TensorFlow's own operator gives for two tensors, ints of one dtype; what it lacks apart."""
    if left != right and {left, right} <= INTEGERS:
        left = right = np.promote_types(left, right).name
    if symbol in ("<<", ">>"):
        return left if left == right and left in INTEGERS else REFUSED
    if symbol == "**" and left == right == "uint8":
        return left
    try:
        return SYMBOLS[symbol](tf.ones([], left), tf.ones([], right)).dtype.name
    except (
        TypeError,
        ValueError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
        tf.errors.UnimplementedError,
    ):
        return REFUSED


def of_numbers(symbol, left, right):
    """What Python gives for two of its own numbers."""
    a, b = ({"int": 3, "float": 2.5}[kind] for kind in (left, right))
    try:
        return type(eval(f"a {symbol} b", {"a": a, "b": b})).__name__
    except TypeError:
        return REFUSED


def counted(symbol, left, right):
    """Two operands, bools being ints but where two of them are compared or combined bit by bit."""
    if left == right == "bool" and symbol in ("==", "!=", "&", "|", "^"):
        return left, right
    return tuple("int" if each == "bool" else each for each in (left, right))


def met(left, right):
    """The dtype of two arrays together, as the first page of docs/numbers.md says it; None where no int holds both."""
    floats = [each for each in (left, right) if "float" in each]
    if len(floats) == 1:
        return floats[0]
    if "bfloat16" in floats:
        (other,) = (each for each in floats if each != "bfloat16")
        return "float32" if other == "float16" else other
    if "bool" in (left, right):
        return right if left == "bool" else left
    found = np.promote_types(left, right).name
    return found if floats or "int" in found else None


@pytest.mark.parametrize("symbol", [symbol for group in GROUPS.values() for symbol in group])
def test_operators(symbol):
    for one, other in product(TYPES, TYPES):
        left, right = counted(symbol, one, other)
        if left in WEAK and right in WEAK:
            expected = of_numbers(symbol, left, right)
        elif left in WEAK or right in WEAK:
            number, dtype = (left, right) if left in WEAK else (right, left)
            if number == "float" and dtype in INTEGERS:
                dtype = "float32"
            expected = REFUSED if dtype == "bool" else of_tensors(symbol, dtype, dtype)
        else:
            dtype = left if left == right else met(left, right)
            expected = REFUSED if dtype is None else of_tensors(symbol, dtype, dtype)
        assert binary(symbol, one, other) == expected, f"{one} {symbol} {other}"


@pytest.mark.parametrize("code", UNARY.values())
def test_operators_and_functions_of_one_number(code):
    for number, value in {"int": 3, "float": 2.5}.items():
        try:
            expected = type(eval(code, {"x": value})).__name__
        except TypeError:
            expected = REFUSED
        assert unary(code, number) == expected
    for dtype in DTYPES:
        assert unary(code, dtype) in (dtype, "int", "float", "bool", REFUSED)


def test_the_page_shows_the_table():
    text = PAGE.read_text(encoding="utf-8")
    head, mark, _ = text.partition(MARK)
    assert mark
    check_golden(PAGE, head + mark + "\n" + markdown())
