"""The functions of Python's `math` on a number of a lane, with its rules: a float of 64 bits, errors included.

As in Python the argument is a float first, so they compute in float64 whatever the dtype; the result is a weak float
that takes the dtype of the tensor it meets, or a float64 tensor where an argument was one. Where Python would raise
ValueError or OverflowError the lane fails. CPython's own rule finds them all: a NaN that no argument explains, or an
infinity from finite arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import arithmetic
from pcbatch.runtime.backends.tensorflow.functions import to_int, whole
from pcbatch.runtime.backends.tensorflow.numpy_elementwise import hypotenuse
from pcbatch.runtime.backends.tensorflow.recorder import fault
from pcbatch.runtime.backends.tensorflow.weak import DOUBLE, Weak, carrier, is_lane_value, scalar

Equivalent = Callable[..., Any]


def _double(x: Any, name: str) -> tf.Tensor:
    return tf.cast(scalar(x, f"math.{name}"), DOUBLE) if is_lane_value(x) else tf.constant(x, DOUBLE)


def _wide(arguments: tuple[Any, ...]) -> bool:
    """Return whether an argument, and therefore the result, is a float64 tensor."""
    return any(is_lane_value(x) and not isinstance(x, Weak) and x.dtype == tf.float64 for x in arguments)


def _static(name: str, arguments: tuple[Any, ...], site: int, junk: Any) -> Any:
    """Return Python's own function; its errors for numbers fail the lane, not the compilation."""
    try:
        return getattr(math, name)(*arguments)
    except (ValueError, OverflowError, ZeroDivisionError):
        fault(True, site)
        return junk


def _float(name: str, function: Callable[..., tf.Tensor]) -> Equivalent:
    """The equivalent of a function from floats to a float."""

    def of_floats(*arguments: Any, site: int) -> Any:
        if not any(is_lane_value(x) for x in arguments):
            return _static(name, arguments, site, math.nan)
        doubles = [_double(x, name) for x in arguments]
        result = function(*doubles)
        explained = reduce(tf.logical_or, [tf.math.is_nan(x) for x in doubles])
        finite = reduce(tf.logical_and, [tf.math.is_finite(x) for x in doubles])
        if name not in _NEVER_FAIL:
            fault((tf.math.is_nan(result) & ~explained) | (tf.math.is_inf(result) & finite), site)
        return result if _wide(arguments) else Weak(result)

    return of_floats


def _bool(name: str, function: Callable[[tf.Tensor], tf.Tensor]) -> Equivalent:
    """The equivalent of a question about a float, which cannot fail."""

    def of_float(x: Any, *, site: int) -> Any:
        return function(_double(x, name)) if is_lane_value(x) else getattr(math, name)(x)

    return of_float


def _int(name: str, function: Callable[[tf.Tensor], tf.Tensor]) -> Equivalent:
    """The equivalent of a rounding to an int."""

    def as_int(x: Any, *, site: int) -> Any:
        if not is_lane_value(x):
            return _static(name, (x,), site, 0)
        number = scalar(x, f"math.{name}")
        return whole(function(tf.cast(number, DOUBLE)), site) if number.dtype.is_floating else to_int(x, site)

    return as_int


def _logarithm(x: tf.Tensor, base: tf.Tensor | None = None) -> tf.Tensor:
    return tf.math.log(x) if base is None else tf.math.log(x) / tf.math.log(base)


def _remainder(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """C's `fmod`, whose sign is that of `x`."""
    rest = tf.math.floormod(tf.abs(x), tf.abs(y))
    infinite = tf.math.is_inf(y) & tf.math.is_finite(x)
    rest = tf.where(tf.math.is_inf(x) | (y == 0), tf.constant(math.nan, DOUBLE), tf.where(infinite, tf.abs(x), rest))
    return arithmetic.copysign(rest, x)


def _cube_root(x: tf.Tensor) -> tf.Tensor:
    """A power near to the root, then one step of Newton's method: the power alone is wrong in the 14th digit."""
    near = tf.pow(tf.abs(x), tf.constant(1 / 3, DOUBLE))
    better = near - (near - tf.abs(x) / tf.square(near)) / 3
    return arithmetic.copysign(tf.where((near == 0) | tf.math.is_inf(near), near, better), x)


def _erf(x: tf.Tensor) -> tf.Tensor:
    """TensorFlow's kernel gives NaN for large arguments, for which the value is 1 to the last bit from 6 on."""
    return tf.where(tf.abs(x) > 6, tf.sign(x), tf.math.erf(tf.clip_by_value(x, -6, 6)))


_FLOATS: dict[str, Callable[..., tf.Tensor]] = {
    "acos": tf.math.acos,
    "acosh": tf.math.acosh,
    "asin": tf.math.asin,
    "asinh": tf.math.asinh,
    "atan": tf.math.atan,
    "atan2": tf.math.atan2,
    "atanh": tf.math.atanh,
    "cbrt": _cube_root,
    "copysign": arithmetic.copysign,
    "cos": tf.math.cos,
    "cosh": tf.math.cosh,
    "degrees": lambda x: x * (180 / math.pi),
    "erf": _erf,
    "erfc": tf.math.erfc,
    "exp": tf.math.exp,
    "exp2": lambda x: tf.pow(tf.constant(2.0, DOUBLE), x),
    "expm1": tf.math.expm1,
    "fabs": tf.abs,
    "fmod": _remainder,
    "hypot": hypotenuse,
    "lgamma": tf.math.lgamma,
    "log": _logarithm,
    "log10": arithmetic.log10,
    "log1p": tf.math.log1p,
    "log2": arithmetic.log2,
    "pow": tf.pow,
    "radians": lambda x: x * (math.pi / 180),
    "sin": tf.math.sin,
    "sinh": tf.math.sinh,
    "sqrt": tf.math.sqrt,
    "tan": tf.math.tan,
    "tanh": tf.math.tanh,
}
_BOOLS = {"isfinite": tf.math.is_finite, "isinf": tf.math.is_inf, "isnan": tf.math.is_nan}
_INTS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "ceil": tf.math.ceil,
    "floor": tf.math.floor,
    "trunc": lambda x: tf.where(x < 0, tf.math.ceil(x), tf.math.floor(x)),
}

_NEVER_FAIL = frozenset({"copysign", "degrees", "fabs", "hypot", "radians"})
"""Functions that raise nothing: too large degrees and lengths are infinity."""


def isqrt(n: Any, *, site: int) -> Any:
    """`math.isqrt` of an integer; float64's root of a large int64 may be one too large or too small."""
    if not is_lane_value(n):
        return _static("isqrt", (n,), site, 0)
    number = scalar(n, "math.isqrt")
    if not number.dtype.is_integer:
        raise TypeError(f"math.isqrt takes an int, not {number.dtype.name}; write int(..)")
    if number.dtype.size == 8:
        number = tf.cast(number, tf.int64)
        root = tf.cast(tf.sqrt(tf.cast(number, DOUBLE)), tf.int64)
        root = tf.where(root > number // tf.maximum(root, 1), root - 1, root)
        root = tf.where(root + 1 <= number // (root + 1), root + 1, root)
        return whole(tf.where(number < 0, tf.constant(math.nan, DOUBLE), tf.cast(root, DOUBLE)), site)
    return whole(tf.floor(tf.sqrt(tf.cast(number, DOUBLE))), site)


def prod(xs: Any, *, start: Any = 1, site: int) -> Any:
    """`math.prod` of a vector, or of a fixed number of values."""
    if not is_lane_value(xs):
        return reduce(lambda so_far, x: so_far * x, xs, start)
    product = tf.reduce_prod(carrier(xs), axis=0)
    return product if not is_lane_value(start) and start == 1 else start * product


def dist(p: Any, q: Any, *, site: int) -> Any:
    """`math.dist` of two points, each a vector or a fixed number of values."""
    points = [tf.unstack(carrier(each)) if is_lane_value(each) else [*each] for each in (p, q)]
    numbers = tuple(number for point in points for number in point)
    if not any(map(is_lane_value, numbers)):
        return _static("dist", (p, q), site, math.nan)
    if len(points[0]) != len(points[1]):
        raise ValueError("both points must have the same number of dimensions")
    steps = [_double(a, "dist") - _double(b, "dist") for a, b in zip(*points, strict=True)]
    return tf.norm(tf.stack(steps)) if _wide(numbers) else Weak(tf.norm(tf.stack(steps)))


EQUIVALENTS: dict[str, Equivalent] = {
    **{name: _float(name, function) for name, function in _FLOATS.items()},
    **{name: _bool(name, function) for name, function in _BOOLS.items()},
    **{name: _int(name, function) for name, function in _INTS.items()},
    "dist": dist,
    "isqrt": isqrt,
    "prod": prod,
}
NAMES = {name: name for name in EQUIVALENTS}
"""Path in `math` to attribute of this module."""


def __getattr__(name: str) -> Equivalent:
    try:
        return EQUIVALENTS[name]
    except KeyError:
        raise AttributeError(name) from None
