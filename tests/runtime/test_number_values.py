"""What operators and functions make of Python's numbers, against Python itself, on ordinary and on awkward values.

Each function runs on many examples at once, by pfor in a graph and under XLA. Ints are equal, in int32's wrapping;
floats are Python's to rounding; a lane fails exactly where Python raises.
"""

import math
import struct

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.ir.expression_parser import parse_expression
from pcbatch.ir.operators import print_expression
from pcbatch.lowering.codegen.pieces import Translation
from pcbatch.runtime.backends.tensorflow import equivalents, ops
from pcbatch.runtime.backends.tensorflow.weak import Weak
from tests.runtime.lanes import for_all_lanes

NAMESPACE = {"math": math, "_ops": ops}
RAISED = (ZeroDivisionError, ValueError, OverflowError)

INTS = [0, 1, -1, 2, -2, 7, -7, 31, 32, 2**31 - 1, -(2**31), -(2**31) + 1, 46341]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    1.5,
    0.1,
    3.7,
    -1e-300,
    1e300,
    2.0**31,
    -(2.0**31),
    2.675,
    -1.005,
    0.125,
    250.0,
    8.0,
    1000.0,
    math.nextafter(1000.0, 0.0),
    1e22,
    1e-5,
    1.7e308,
    math.inf,
    -math.inf,
    math.nan,
]

INT_CODE = [
    *(f"a {symbol} b" for symbol in ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=")),
    *(
        "a << (b % 40)",
        "a >> (b % 40)",
        "a << b",
        "a >> b",
        "a ** (b % 6)",
        "(a % 5) ** b",
        "7 // b",
        "a % -3",
    ),
    *("-a", "+a", "~a", "abs(a)", "int(a)", "float(a)", "bool(a)", "not a", "round(a)", "round(a, -1)", "round(a, 2)"),
    *(
        "divmod(a, b)[0]",
        "divmod(a, b)[1]",
        "min(a, b)",
        "max(a, b, 3)",
        "sum((a, b))",
        "pow(a, 2)",
        "a and b",
        "a or b",
    ),
    *(
        "a if b else 3",
        "a < b < 5",
        "math.isqrt(a)",
        "math.floor(a)",
        "math.sqrt(a)",
        "math.hypot(a, b)",
        "math.atan2(a, b)",
    ),
]
FLOAT_CODE = [
    *(f"a {symbol} b" for symbol in ("+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=")),
    *("a * 2 + 1", "3 // a", "a % 3", "a / 0", "abs(a) ** 0.5", "max(-1e9, min(1e9, a)) ** 2"),
    *("-a", "abs(a)", "int(a)", "float(a)", "bool(a)", "not a", "round(a)"),
    *(f"round(a, {digits})" for digits in (0, 1, 2, 15, 25, 300, -1, -2, -308)),
    *("int(math.log10(a)) + 1", "int(math.log2(a))", "math.pow(a, 2)", "math.pow(10, a)"),
    *("divmod(a, b)[0]", "divmod(a, b)[1]", "min(a, b)", "max(a, b)", "sum((a, b))", "a and b", "a or b", "a < b < 5"),
    *("math.copysign(a, b)", "math.fmod(a, b)", "math.hypot(a, b)", "math.atan2(a, b)", "math.log(abs(a) + 1, 3)"),
    *("math.pow(abs(a), b)",),
]
MATH = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "degrees",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "floor",
    "isfinite",
    "isinf",
    "isnan",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "radians",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
FLOAT_CODE += [f"math.{name}(a)" for name in MATH if hasattr(math, name)]  # cbrt and exp2 came with Python 3.11


def python(code, a, b):
    """Python's own value, None where it raises."""
    try:
        return eval(code, {"math": math}, {"a": a, "b": b})
    except RAISED:
        return None


def compiled(code):
    """The function of `a` and `b` that `code` is in a piece."""
    translation = Translation(
        lambda status, message: 0, equivalent=lambda path: equivalents.equivalent(eval(path, NAMESPACE))
    )
    text = print_expression(translation.of(parse_expression(code)))

    def function(a, b):
        return eval(text, {**NAMESPACE, "a": a, "b": b})

    return function


def evaluated(codes, left, right, jit):
    """For each of `codes` its values and whether the lanes fail, on the examples in `left` and `right`."""
    functions = [compiled(code) for code in codes]

    def one(a, b):
        a, b = Weak(a), Weak(b)
        found = []
        for function in functions:
            with ops.recording() as recorder:
                value = function(a, b)
            value = value.value if isinstance(value, Weak) else tf.convert_to_tensor(value)
            found += [value, recorder.site() > 0]
        return found

    outputs = tf.function(lambda: for_all_lanes(one, [left, right]), jit_compile=jit, autograph=False)()
    numbers = [output.numpy() for output in outputs]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def wrong(codes, pairs, outcomes, expected, tolerance):
    """Every example whose value is not Python's, or where one of lane and Python fails and the other does not."""
    found = []
    for code, (values, failed) in zip(codes, outcomes, strict=True):
        for (a, b), value, fault in zip(pairs, values.tolist(), failed, strict=True):
            wanted = expected(code, a, b)
            if isinstance(wanted, float):
                same = math.isclose(value, wanted, rel_tol=tolerance.get(code, 4e-15), abs_tol=1e-300) or (
                    math.isnan(value) and math.isnan(wanted)
                )
                if code in EXACT:
                    same = struct.pack("d", value) == struct.pack("d", wanted) or (math.isnan(value) and same)
            else:
                same = wanted is None or value == wanted
            if fault != (wanted is None) or not same:
                found.append((code, a, b, value, bool(fault), wanted))
    return found


def wrapped(number):
    return (number + 2**31) % 2**32 - 2**31


def of_ints(code, a, b):
    """Python's value as int32 has it."""
    if code == "(a % 5) ** b" and b > 40:
        expected = pow(a % 5, b, 2**32)
    elif code == "a << b" and b > 40:
        expected = 0
    else:
        expected = python(code, a, b)
        if code == "(a % 5) ** b" and b < 0:
            expected = None  # no int
    return wrapped(expected) if type(expected) is int else expected


def of_floats(code, a, b):
    """Python's value, 3.11's for `math.pow(0.0, -math.inf)`, which raised before; None for what int32 cannot hold."""
    if code == "math.pow(abs(a), b)" and (a, b) == (0.0, -math.inf):
        return math.inf
    expected = python(code, a, b)
    return None if type(expected) is int and wrapped(expected) != expected else expected


@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
def test_ints(jit):
    rng = np.random.default_rng(0)
    some = [*INTS, *(int(n) for n in rng.integers(-(2**31), 2**31, 6)), *(int(n) for n in rng.integers(-9, 9, 6))]
    pairs = [(a, b) for a in some for b in some]
    left, right = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    assert wrong(INT_CODE, pairs, evaluated(INT_CODE, left, right, jit), of_ints, {}) == []


@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
def test_floats(jit):
    rng = np.random.default_rng(1)
    some = [*FLOATS, *(float(x) for x in rng.normal(size=5) * 3), *(float(x) for x in rng.uniform(-1, 1, 5))]
    pairs = [(a, b) for a in some for b in some]
    left, right = (np.array(column, np.float64) for column in zip(*pairs, strict=True))
    assert wrong(FLOAT_CODE, pairs, evaluated(FLOAT_CODE, left, right, jit), of_floats, TOLERANCE) == []


EXACT = {code for code in FLOAT_CODE if code.startswith("round(a, ")} | {"a % b", "a % 3", "min(a, b)", "max(a, b)"}
"""Functions whose result is Python's to the last bit, the sign of zero included."""
TOLERANCE = {"math.lgamma(a)": 1e-12, "math.pow(abs(a), b)": 1e-14}
"""Relative tolerance where TensorFlow's function is less exact than C's."""
