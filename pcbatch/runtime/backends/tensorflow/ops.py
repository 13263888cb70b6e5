"""Python's operators and built-ins for values of one lane: what generated code calls.

Every function works on tensors, weak numbers and, as Python would, on static Python values. Integer division by
zero and indices out of range are recorded (see `recorder`), never raised: the lane fails at `site`, an index into the
program's faults, and goes on with junk.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.joins import join
from pcbatch.runtime import values
from pcbatch.runtime.backends.tensorflow.indexing import getitem
from pcbatch.runtime.backends.tensorflow.recorder import Recorder, fault, recording, when
from pcbatch.runtime.backends.tensorflow.structures import leaf_tensors, type_of, wrap
from pcbatch.runtime.backends.tensorflow.weak import INT, Weak, int_power, is_number, unify

__all__ = [
    "Recorder",
    "absolute",
    "both",
    "divmod_",
    "either",
    "floordiv",
    "getitem",
    "index",
    "length",
    "maximum",
    "minimum",
    "mod",
    "negate",
    "power",
    "recording",
    "rounded",
    "select",
    "to_bool",
    "to_float",
    "to_int",
    "unpacked",
]


def is_lane_value(x: object) -> bool:
    """Whether `x` is traced (a tensor, a variable, a weak number) rather than a plain Python value."""
    return isinstance(x, (Weak, tf.Tensor, tf.Variable))


def _scalar(x: Any, what: str) -> tf.Tensor:
    """A lane value as a scalar tensor; TypeError for arrays."""
    tensor = tf.convert_to_tensor(x)
    if tensor.shape.rank != 0:
        raise TypeError(f"{what} takes a scalar, not an array of shape {tensor.shape.as_list()}")
    return tensor


# -- checked arithmetic ------------------------------------------------------------------------------------------------


def floordiv(a: Any, b: Any, site: int) -> Any:
    """`a // b`: floors; an integer divisor of zero is a fault. Floats follow `tf.math.floordiv`."""
    return _divide(operator.floordiv, lambda x, y: (tf.math.floordiv(x, y),), a, b, site)


def mod(a: Any, b: Any, site: int) -> Any:
    """`a % b` with the sign of `b`; an integer divisor of zero is a fault. Floats follow `tf.math.floormod`."""
    return _divide(operator.mod, lambda x, y: (tf.math.floormod(x, y),), a, b, site)


def divmod_(a: Any, b: Any, site: int) -> Any:
    """`(a // b, a % b)`, checked once."""
    return _divide(divmod, lambda x, y: (tf.math.floordiv(x, y), tf.math.floormod(x, y)), a, b, site)


def _divide(
    python: Callable[[Any, Any], Any], function: Callable[..., tuple[tf.Tensor, ...]], a: Any, b: Any, site: int
) -> Any:
    if not (is_lane_value(a) or is_lane_value(b)):
        if not _integer_zero(a, b):
            return python(a, b)
    elif isinstance(a, str):
        raise TypeError("a lane's value cannot be formatted into a string, except in the message of assert and raise")
    x, y, weak = unify(a, b)
    if x.dtype == tf.bool:
        raise TypeError("// and % take numbers, not bools; write tf.cast(flag, tf.int32)")
    if x.dtype.is_integer and not _never_zero(y):
        zero = tf.equal(y, 0)
        fault(tf.reduce_any(zero), site)
        y = tf.where(zero, tf.ones_like(y), y)  # the CPU kernel raises on zero, also for lanes that are not there
    results = tuple(Weak(result) if weak else result for result in function(x, y))
    return results if len(results) > 1 else results[0]


def _integer_zero(a: Any, b: Any) -> bool:
    """Whether `a // b` of static values is an int divided by zero: a lane's fault, not the compilation's."""
    integers = (int, np.integer)
    return isinstance(a, integers) and isinstance(b, integers) and b == 0


def _never_zero(y: tf.Tensor) -> bool:
    known = tf.get_static_value(y)
    return known is not None and bool(np.all(known != 0))


def power(a: Any, b: Any, site: int) -> Any:
    """`a ** b`; a negative power of an int, which is no int, is a fault unless the exponent is a literal."""
    if not (is_lane_value(a) or is_lane_value(b)) or (is_number(a) and is_number(b) and not isinstance(b, Weak)):
        return a**b
    x, y, weak = unify(a, b)
    if not x.dtype.is_integer:
        return Weak(tf.pow(x, y)) if weak else tf.pow(x, y)
    if not x.dtype.is_unsigned:
        fault(tf.reduce_any(y < 0), site)
    result = int_power(x, y)
    return Weak(result) if weak else result


# -- truth and choice --------------------------------------------------------------------------------------------------


def to_bool(x: Any) -> Any:
    """`bool(x)`: numbers are true unless zero; TypeError for arrays, whose truth is ambiguous."""
    if not is_lane_value(x):
        return bool(x)
    tensor = tf.convert_to_tensor(x)
    if tensor.shape.rank != 0:
        shape = tensor.shape.as_list()
        raise TypeError(f"the truth value of an array of shape {shape} is ambiguous; write tf.reduce_any(..)")
    return tensor if tensor.dtype == tf.bool else tf.not_equal(tensor, tf.zeros_like(tensor))


def negate(a: Any) -> Any:
    """`not a`."""
    truth = to_bool(a)
    return tf.logical_not(truth) if is_lane_value(truth) else not truth


def both(a: Any, b: Callable[[], Any]) -> Any:
    """`a and b()`: both are evaluated, but faults of `b` count only where `a` holds. Their types must join."""
    if not is_lane_value(a):
        return a and b()
    holds = to_bool(a)
    with when(holds):
        other = b()
    return _choose(holds, other, a)


def either(a: Any, b: Callable[[], Any]) -> Any:
    """`a or b()`: both are evaluated, but faults of `b` count only where `a` does not hold. Their types must join."""
    if not is_lane_value(a):
        return a or b()
    holds = to_bool(a)
    with when(tf.logical_not(holds)):
        other = b()
    return _choose(holds, a, other)


def select(condition: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """`a() if condition else b()`: faults of the arm that is not taken do not count. Their types must join."""
    holds = to_bool(condition)
    if not is_lane_value(holds):
        return a() if holds else b()
    with when(holds):
        first = a()
    with when(tf.logical_not(holds)):
        second = b()
    return _choose(holds, first, second)


def _choose(condition: tf.Tensor, a: Any, b: Any) -> Any:
    """`a` where the scalar `condition` holds, else `b`, in the join of their types."""
    type_ = join(type_of(a), type_of(b))
    assert type_ is not None  # only the join of two unknown types is unknown
    pairs = zip(leaf_tensors(a, type_), leaf_tensors(b, type_), strict=True)
    return wrap(values.pack(type_, [tf.where(condition, x, y) for x, y in pairs]), type_)


# -- built-in functions ------------------------------------------------------------------------------------------------


def minimum(*xs: Any) -> Any:
    """`min` of two or more scalars, of a tuple or list of them, or of the elements of a vector."""
    return _extreme(builtins.min, tf.less, tf.reduce_min, xs)


def maximum(*xs: Any) -> Any:
    """`max` of two or more scalars, of a tuple or list of them, or of the elements of a vector."""
    return _extreme(builtins.max, tf.greater, tf.reduce_max, xs)


def _extreme(
    python: Callable[..., Any], better: Callable[..., tf.Tensor], reduce: Callable[..., tf.Tensor], xs: tuple[Any, ...]
) -> Any:
    name = python.__name__
    if len(xs) == 1 and is_lane_value(xs[0]):
        vector = tf.convert_to_tensor(xs[0])
        if vector.shape.rank != 1:
            raise TypeError(f"{name} of one array takes a vector; write tf.reduce_{name}(x)")
        if vector.shape[0] == 0:
            raise ValueError(f"{name}() of an empty vector")
        return reduce(vector)
    found, *others = xs if len(xs) > 1 else tuple(xs[0]) or (None,)
    if not any(is_lane_value(x) for x in (found, *others)):
        return python(*xs)
    for x in (found, *others):
        if is_lane_value(x) and tf.TensorShape(x.shape).rank != 0:
            raise TypeError(f"{name} compares scalars; write tf.{name}imum(x, y) for arrays")
    for x in others:
        left, right, _ = unify(x, found)
        found = _choose(better(left, right), x, found)  # Python's own rule, which also settles what NaN and -0.0 give
    return found


def absolute(x: Any) -> Any:
    """`abs(x)`."""
    return tf.abs(x) if isinstance(x, tf.Variable) else abs(x)


def to_int(x: Any) -> Any:
    """`int(x)`: a weak int, floats truncated towards zero."""
    if not is_lane_value(x):
        return int(x)
    return Weak(tf.cast(_scalar(x, "int()"), INT))


def to_float(x: Any) -> Any:
    """`float(x)`: a weak float."""
    if not is_lane_value(x):
        return float(x)
    return Weak(tf.cast(_scalar(x, "float()"), tf.float32))


def index(x: Any) -> Any:
    """`operator.index(x)`: an integer scalar as a weak int; TypeError for floats and bools."""
    if not is_lane_value(x):
        return operator.index(x)
    scalar = _scalar(x, "range()")
    if not scalar.dtype.is_integer:
        raise TypeError(f"range() takes ints, not {scalar.dtype.name}; write int(..)")
    return Weak(tf.cast(scalar, INT))


def length(x: Any) -> int:
    """`len(x)`: the static length of the leading axis, or of a structure."""
    if not is_lane_value(x):
        return len(x)
    shape = tf.TensorShape(x.shape)
    if shape.rank == 0:
        raise TypeError("a number has no len()")
    return int(shape[0])


def rounded(x: Any, digits: int | None = None) -> Any:
    """`round(x, digits)` of a scalar: half to even; an int (weak, for floats) where `digits` is None, else like `x`.

    Decimal digits are found by scaling, so the last bit may differ from Python's own rounding.
    """
    if not is_lane_value(x):
        return round(x, digits)
    if is_lane_value(digits):
        raise TypeError("the number of digits to round to must be a constant")
    scalar = _scalar(x, "round()")
    if scalar.dtype.is_integer:
        result = _round_int(scalar, digits or 0)
    elif digits is None:
        return Weak(tf.cast(tf.round(scalar), INT))
    else:
        scale = tf.constant(10.0 ** abs(digits), scalar.dtype)
        result = tf.round(scalar * scale) / scale if digits >= 0 else tf.round(scalar / scale) * scale
    return Weak(result) if isinstance(x, Weak) else result


def _round_int(x: tf.Tensor, digits: int) -> tf.Tensor:
    """An integer rounded to a multiple of `10 ** -digits`, half to even; itself where `digits` is not negative."""
    if digits >= 0:
        return x
    unit = 10**-digits
    if unit > x.dtype.max:
        return tf.zeros_like(x)
    quotient, rest = tf.math.floordiv(x, unit), tf.math.floormod(x, unit)
    is_odd = tf.math.floormod(quotient, 2) == 1
    up = (rest > unit // 2) | ((rest == unit // 2) & is_odd & (unit % 2 == 0))
    return (quotient + tf.cast(up, x.dtype)) * unit


def unpacked(value: Any, pattern: tuple[Any, ...] | None) -> Any:
    """`value` for an assignment to a tuple of targets: tensors along their first axis, other values as Python.

    `pattern` is None for a name, a tuple of patterns for a tuple of targets. ValueError where the numbers differ.
    """
    if pattern is None:
        return value
    items = tf.unstack(value) if isinstance(value, (tf.Tensor, tf.Variable)) else list(value)
    if len(items) != len(pattern):
        raise ValueError(f"{len(items)} values for {len(pattern)} targets")
    return tuple(unpacked(item, part) for item, part in zip(items, pattern, strict=True))
