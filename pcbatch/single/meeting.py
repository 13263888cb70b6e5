"""Operators on two raw values of one example: NumPy's scalars and arrays, Python's numbers, tensors that are watched.

The dtype in which two operands meet is that of lanes: an int or a bool beside a float has the float's, two floats or
two ints the wider of both, and Python's own numbers take what they meet. NumPy computes unless an operand is a tensor.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.operators import BINARY, COMPARISONS
from pcbatch.ir.types import wider_integer
from pcbatch.runtime.backends.tensorflow import arithmetic, operators
from pcbatch.runtime.backends.tensorflow.traced_float import TracedFloat

PYTHONS = (bool, int, float, complex, TracedFloat)
_BY_ZERO = "integer division or modulo by zero"


def is_pythons(value: Any) -> bool:
    """Return whether a number has no dtype of its own."""
    return isinstance(value, PYTHONS) and not isinstance(value, np.generic)


@dataclass(frozen=True)
class Operator:
    """A binary operator: Python's, which NumPy's values know, and that of two tensors of one dtype."""

    name: str
    python: Callable[[Any, Any], Any]
    tensors: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
    compares: bool = False


def _of_bits(bits: Callable[..., tf.Tensor], flags: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    return lambda x, y: (flags if x.dtype == tf.bool else bits)(x, y)


def _power(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return arithmetic.int_power(x, y) if x.dtype.is_integer else tf.pow(x, y)


_TENSORS: dict[str, Callable[[tf.Tensor, tf.Tensor], tf.Tensor]] = {
    "add": tf.add,
    "sub": tf.subtract,
    "mul": tf.multiply,
    "truediv": tf.math.truediv,
    "floordiv": tf.math.floordiv,
    "mod": tf.math.floormod,
    "pow": _power,
    "matmul": operators.matrix_product,
    "lshift": arithmetic.left_shift,
    "rshift": arithmetic.right_shift,
    "and": _of_bits(tf.bitwise.bitwise_and, tf.logical_and),
    "or": _of_bits(tf.bitwise.bitwise_or, tf.logical_or),
    "xor": _of_bits(tf.bitwise.bitwise_xor, tf.math.logical_xor),
    "lt": tf.less,
    "le": tf.less_equal,
    "gt": tf.greater,
    "ge": tf.greater_equal,
    "eq": tf.equal,
    "ne": tf.not_equal,
}
"""Operators of two tensors of one dtype, by their methods."""
OPERATORS: dict[str, Operator] = {
    row.method: Operator(row.method, row.python, _TENSORS[row.method], row.symbol in COMPARISONS)
    for row in BINARY.values()
    if row.method in _TENSORS
}


def dtype_of(value: Any) -> np.dtype:
    """The dtype of an array or a tensor, as NumPy has it."""
    dtype = value.dtype
    return np.dtype(dtype.as_numpy_dtype) if isinstance(dtype, tf.DType) else dtype


def _kind(dtype: np.dtype) -> str:
    return "f" if dtype.kind == "V" else dtype.kind  # bfloat16, which is no dtype of NumPy's own


@functools.cache
def met(a: np.dtype, b: np.dtype) -> np.dtype:
    """The dtype in which two arrays meet; TypeError where no int holds both."""
    kinds = _kind(a), _kind(b)
    if a == b or kinds[1] == "b":
        return a
    if kinds[0] == "b":
        return b
    are_inexact = [kind in "fc" for kind in kinds]
    if are_inexact[0] != are_inexact[1]:
        return a if are_inexact[0] else b
    if are_inexact[0]:
        if "V" in (a.kind, b.kind):
            return np.dtype(np.float32) if a.itemsize == b.itemsize else max(a, b, key=lambda dtype: dtype.itemsize)
        return np.promote_types(a, b)
    wider = wider_integer(a.name, b.name)
    if wider is None:
        raise TypeError(f"dtypes {a.name} and {b.name} differ; write tf.cast(.., tf.{a.name})")
    return np.dtype(wider)


def beside(number: Any, dtype: np.dtype) -> np.dtype:
    """The dtype in which a number of Python's and an array meet."""
    kind = _kind(dtype)
    if isinstance(number, bool):
        return dtype
    if isinstance(number, int):
        return np.dtype(np.int32) if kind == "b" else dtype
    if isinstance(number, complex):
        return dtype if kind == "c" else np.dtype(np.complex128 if dtype == np.float64 else np.complex64)
    return dtype if kind in "fc" else np.dtype(np.float32)


def wrapped(number: int, dtype: np.dtype) -> Any:
    """An int of Python's in the last bits of an integer dtype."""
    bits = 8 * dtype.itemsize
    number %= 1 << bits
    return dtype.type(number - (1 << bits) if dtype.kind == "i" and number >> (bits - 1) else number)


def rounded(value: Any, digits: Any) -> Any:
    """A number of NumPy's to so many digits, as Python rounds."""
    found = round(value.item(), operator.index(digits))
    return wrapped(found, value.dtype) if value.dtype.kind in "iu" else type(value)(found)


def stored(value: Any, dtype: np.dtype) -> Any:
    """A raw value as NumPy stores it into an array of `dtype`: an int that is too large wraps."""
    is_int = type(value) is int and dtype.kind in "iu"
    return wrapped(value, dtype) if is_int and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max else value


def within(number: int) -> int:
    """`number`, if a lane can have it: ints of Python's have 32 bits there."""
    if not -(2**31) <= number < 2**31:
        raise OverflowError(f"cannot convert to an int of 32 bits: {number} is too large")
    return number


def _dtype(op: Operator, a: Any, b: Any) -> np.dtype:
    if is_pythons(a):
        return beside(a, dtype_of(b))
    if is_pythons(b):
        return beside(b, dtype_of(a))
    return met(dtype_of(a), dtype_of(b))


def together(a: Any, b: Any) -> tuple[Any, Any]:
    """Two raw values in the dtype in which they meet, where one of NumPy's functions takes both."""
    known = [hasattr(each, "dtype") for each in (a, b)]
    if not any(known) or any(not is_ and not is_pythons(each) for is_, each in zip(known, (a, b), strict=True)):
        return a, b
    dtype = beside(a, dtype_of(b)) if not known[0] else beside(b, dtype_of(a)) if not known[1] else None
    dtype = met(dtype_of(a), dtype_of(b)) if dtype is None else dtype
    return (a if not known[0] else _as_numpy(a, dtype)), (b if not known[1] else _as_numpy(b, dtype))


def _as_numpy(value: Any, dtype: np.dtype) -> Any:
    if is_pythons(value):
        return wrapped(value, dtype) if dtype.kind in "iu" else dtype.type(value)
    return value if value.dtype == dtype else value.astype(dtype)


def as_tensor(value: Any, dtype: np.dtype) -> tf.Tensor:
    """A raw value as a tensor of `dtype`."""
    if isinstance(value, TracedFloat):
        return tf.cast(value.value, dtype)
    if isinstance(value, (tf.Tensor, tf.Variable)):
        return tf.cast(value, dtype)
    return tf.constant(np.asarray(_as_numpy(value, dtype)))


def apply(op: Operator, a: Any, b: Any) -> Any:
    """Apply an operator to two raw values, of which one at least has a dtype."""
    dtype = _dtype(op, a, b)
    is_seen = any(isinstance(each, (tf.Tensor, tf.Variable, TracedFloat)) for each in (a, b))
    if _kind(dtype) in "iu":
        _check(op, a, b)
        if op.compares and any(is_pythons(each) for each in (a, b)):
            return op.python(a, b) if not is_seen else op.tensors(*operators.compared(a, b))
        for each in (a, b):
            _refuse_too_large(each, dtype)
    elif _counts(op, dtype) and np.ndim(a) == np.ndim(b) == 0:
        dtype = np.dtype(np.int32)
    if not is_seen:
        if op.name == "truediv" and dtype.kind in "iub":
            dtype = np.dtype(np.float64)
        if op.name in ("eq", "ne") and not _broadcast(a, b):
            return op.name == "ne"  # as TensorFlow has it, and so a batch
        return op.python(_as_numpy(a, dtype), _as_numpy(b, dtype))
    return op.tensors(as_tensor(a, dtype), as_tensor(b, dtype))


def _refuse_too_large(value: Any, dtype: np.dtype) -> None:
    """OverflowError for an int of Python's that a dtype does not have, as NumPy raises it."""
    if type(value) is int and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise OverflowError(f"Python integer {value} out of bounds for {dtype}")


def _broadcast(a: Any, b: Any) -> bool:
    """Return whether two arrays have shapes that meet."""
    pairs = zip(reversed(np.shape(a)), reversed(np.shape(b)), strict=False)
    return all(m == n or 1 in (m, n) for m, n in pairs)


def _counts(op: Operator, dtype: np.dtype) -> bool:
    """Return whether an operator takes bools for numbers."""
    return dtype.kind == "b" and not op.compares and op.name not in ("and", "or", "xor", "matmul")


def _check(op: Operator, a: Any, b: Any) -> None:
    """Raise Python's errors for ints."""
    if op.name not in ("floordiv", "mod", "pow", "lshift", "rshift") or tf.is_symbolic_tensor(b):
        return
    found = np.asarray(b)
    if op.name in ("floordiv", "mod") and not np.all(found):
        raise ZeroDivisionError(_BY_ZERO)
    if op.name == "pow" and np.any(found < 0):
        raise ValueError("Integers to negative integer powers are not allowed.")
    if op.name in ("lshift", "rshift") and np.any(found < 0):
        raise ValueError("negative shift count")
