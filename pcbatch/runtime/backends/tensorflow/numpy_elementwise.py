"""NumPy's functions that work element by element, for values of lanes; see `numpy_equivalents`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import tensorflow as tf

from pcbatch.ir.types import wider_integer
from pcbatch.runtime.backends.tensorflow import arithmetic, operators
from pcbatch.runtime.backends.tensorflow.arithmetic import is_bool
from pcbatch.runtime.backends.tensorflow.weak import DOUBLE, Weak, carrier, is_committed, is_number, unify

Equivalent = Callable[..., Any]


def array(x: Any) -> tf.Tensor:
    """An argument as a tensor; a list or tuple of numbers is a vector, its ints of the widest dtype among them."""
    if isinstance(x, (list, tuple)):
        leaves = tf.nest.flatten(x)
        ints = [each.dtype.name for each in leaves if is_committed(each) and tf.as_dtype(each.dtype).is_integer]
        wide = reduce(lambda a, b: a and wider_integer(a, b), ints) if ints else None
        if wide is not None and any(name != wide for name in ints):
            is_int = [is_committed(each) and tf.as_dtype(each.dtype).is_integer for each in leaves]
            cast = [tf.cast(each, wide) if is_ else each for each, is_ in zip(leaves, is_int, strict=True)]
            return tf.convert_to_tensor(tf.nest.pack_sequence_as(x, cast))
    return tf.convert_to_tensor(x)


def inexact(x: tf.Tensor) -> tf.Tensor:
    """`x` in floating point: float64 for ints and bools, as NumPy has it."""
    return x if x.dtype.is_floating or x.dtype.is_complex else tf.cast(x, tf.float64)


def summands(x: tf.Tensor) -> tf.Tensor:
    """Return the summands of a sum: bools as numbers, and ints of 8 and 16 bits widened."""
    is_small = x.dtype == tf.bool or (x.dtype.is_integer and x.dtype.size < 4)
    return tf.cast(x, tf.int64) if is_small else x


def _float(function: Callable[[tf.Tensor], tf.Tensor]) -> Equivalent:
    def of_float(x: Any) -> Any:
        if isinstance(x, Weak):
            return Weak(function(tf.cast(x.value, DOUBLE)))
        return function(inexact(array(x)))

    return of_float


def _in_double(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """`function` of float64, rounded to the dtype of the numbers."""
    return lambda *xs: tf.cast(function(*(tf.cast(x, DOUBLE) for x in xs)), xs[0].dtype)


def _any(function: Callable[[tf.Tensor], tf.Tensor]) -> Equivalent:
    def of_any(x: Any) -> Any:
        result = function(carrier(x) if isinstance(x, Weak) else array(x))
        return Weak(result) if isinstance(x, Weak) and result.dtype != tf.bool else result

    return of_any


def _pair(function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], floats: bool = False) -> Equivalent:
    def of_pair(a: Any, b: Any) -> Any:
        x, y, weak = unify(a if is_number(a) else array(a), b if is_number(b) else array(b))
        if floats and not x.dtype.is_floating:
            x, y = tf.cast(x, DOUBLE), tf.cast(y, DOUBLE)
        result = function(x, y)
        return Weak(result) if weak and result.dtype != tf.bool else result

    return of_pair


def _operator(symbol: Callable[[Any, Any], Any]) -> Equivalent:
    """An operator: a bool beside a number is one, of two bools NumPy would make a bool."""

    def of_numbers(a: Any, b: Any) -> Any:
        x, y = (each if is_number(each) else array(each) for each in (a, b))
        if is_bool(x) and is_bool(y):
            raise TypeError("of two bools NumPy makes a bool; write `&`, `|`, `~`, or tf.cast(flag, tf.int32)")
        return symbol(*operators.numbers(x, y))

    return of_numbers


def _power(a: Any, b: Any) -> Any:
    if not any(array(x).dtype.is_floating for x in (a, b)):
        raise TypeError("np.power of ints raises for negative powers; write a ** b, which fails the lane")
    return _operator(operator.pow)(a, b)


def truth(x: Any) -> tf.Tensor:
    """The truth of each element: numbers are true unless they are 0."""
    given = array(x)
    return given if given.dtype == tf.bool else tf.not_equal(given, tf.zeros_like(given))


def _finite(function: Callable[[tf.Tensor], tf.Tensor], of_ints: bool) -> Equivalent:
    def of_inexact(x: tf.Tensor) -> tf.Tensor:
        return function(x) if x.dtype.is_floating else tf.fill(x.shape, of_ints)

    return _any(of_inexact)


def hypotenuse(*xs: tf.Tensor) -> tf.Tensor:
    """Scaled by the largest, so that no square overflows."""
    sizes = [tf.abs(x) for x in xs]
    largest = reduce(tf.maximum, sizes)
    scale = tf.where((largest > 0) & tf.math.is_finite(largest), largest, tf.ones_like(largest))
    length = scale * tf.sqrt(tf.add_n([tf.square(size / scale) for size in sizes]))
    infinite = reduce(tf.logical_or, [tf.math.is_inf(x) for x in xs])
    return tf.where(infinite, tf.constant(math.inf, length.dtype), length)


def _of_bools(function: Callable[..., tf.Tensor], of_bools: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    return lambda *xs: of_bools(*xs) if xs[0].dtype == tf.bool else function(*xs)


_maximum = _pair(_of_bools(tf.maximum, tf.logical_or))
_minimum = _pair(_of_bools(tf.minimum, tf.logical_and))


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Limit numbers to two bounds, one of which may be None."""
    lower, upper = (a_min if min is None else min), (a_max if max is None else max)
    found = a if lower is None else _maximum(a, lower)
    return found if upper is None else _minimum(found, upper)


def _where(condition: Any, x: Any, y: Any) -> Any:
    return _pair(lambda a, b: tf.where(truth(condition), a, b))(x, y)


_SQUARE: Equivalent = _any(tf.square)


def _rounded(a: Any, decimals: int = 0) -> Any:
    """Half to even; digits as NumPy has them, by a power of ten."""
    if decimals == 0:
        return _any(lambda x: tf.round(x) if x.dtype.is_floating else x)(a)
    scale = 10.0 ** abs(decimals)
    x = array(a)
    if not x.dtype.is_floating:
        raise TypeError("np.round of a lane's ints has no digits")
    return tf.round(x * scale) / scale if decimals > 0 else tf.round(x / scale) * scale


def _reciprocal(x: tf.Tensor) -> tf.Tensor:
    if x.dtype.is_integer:
        raise TypeError("np.reciprocal of ints is an int, 0 but for 1 and -1; write 1 / x")
    return tf.math.reciprocal(x)


def _truncated(x: tf.Tensor) -> tf.Tensor:
    return tf.where(x < 0, tf.math.ceil(x), tf.floor(x)) if x.dtype.is_floating else x


def _cube_root(x: tf.Tensor) -> tf.Tensor:
    return tf.sign(x) * tf.pow(tf.abs(x), 1 / 3)


def _sinc(x: tf.Tensor) -> tf.Tensor:
    angle = math.pi * tf.where(tf.equal(x, 0), tf.ones_like(x), x)
    return tf.where(tf.equal(x, 0), tf.ones_like(x), tf.sin(angle) / angle)


def _remainder_of_c(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Return the remainder with the sign of `x`, as in C; of ints 0 where `y` is 0, as in NumPy."""
    if not x.dtype.is_integer:
        return tf.sign(x) * tf.math.floormod(tf.abs(x), tf.abs(y))
    one = tf.ones_like(y)
    divisor = tf.where(tf.equal(y, 0) | tf.equal(y, 0 - one), one, y)
    rest = tf.math.floormod(x, divisor)
    return tf.where(tf.not_equal(rest, 0) & ((x < 0) != (divisor < 0)), rest - divisor, rest)


def _signed(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """The size of `x` with the sign of `y`, that of -0.0, too."""
    is_negative = (y < 0) | (tf.equal(y, 0) & (1 / y < 0))
    return tf.where(is_negative, -tf.abs(x), tf.abs(x))


def _log_of_sum(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    larger = tf.maximum(x, y)
    apart = tf.where(tf.equal(x, y), tf.zeros_like(x), tf.abs(x - y))  # of two infinities, too
    return larger + tf.math.log1p(tf.exp(-apart))


def _close(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> tf.Tensor:
    x, y, _ = unify(a if is_number(a) else array(a), b if is_number(b) else array(b))
    x, y = inexact(x), inexact(y)
    near = tf.abs(x - y) <= atol + rtol * tf.abs(y)
    close = (near & tf.math.is_finite(y)) | tf.equal(x, y)
    return close | (tf.math.is_nan(x) & tf.math.is_nan(y)) if equal_nan else close


def _all_close(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> tf.Tensor:
    return tf.reduce_all(_close(a, b, rtol, atol, equal_nan))


def _same(a: Any, b: Any) -> tf.Tensor:
    x, y, _ = unify(array(a), array(b))
    return tf.reduce_all(tf.equal(x, y)) if x.shape == y.shape else tf.constant(False)


def _without_nan(x: Any, copy: bool = True, nan: float = 0.0) -> tf.Tensor:
    given = array(x)
    if not given.dtype.is_floating:
        return given
    finite = tf.clip_by_value(given, given.dtype.min, given.dtype.max)
    return tf.where(tf.math.is_nan(given), tf.constant(nan, given.dtype), finite)


ELEMENTWISE: dict[str, Equivalent] = {
    **{
        name: _float(function)
        for name, function in {
            "arccos": tf.acos,
            "arccosh": tf.acosh,
            "arcsin": tf.asin,
            "arcsinh": tf.asinh,
            "arctan": tf.atan,
            "arctanh": tf.atanh,
            "cbrt": _cube_root,
            "cos": tf.cos,
            "cosh": tf.cosh,
            "deg2rad": lambda x: x * (math.pi / 180),
            "degrees": lambda x: x * (180 / math.pi),
            "exp": tf.exp,
            "exp2": lambda x: tf.pow(tf.constant(2.0, x.dtype), x),
            "expm1": tf.math.expm1,
            "fabs": tf.abs,
            "log": tf.math.log,
            "log10": _in_double(arithmetic.log10),
            "log1p": tf.math.log1p,
            "log2": _in_double(arithmetic.log2),
            "rad2deg": lambda x: x * (180 / math.pi),
            "radians": lambda x: x * (math.pi / 180),
            "rint": tf.round,
            "sin": tf.sin,
            "sinc": _sinc,
            "sinh": tf.sinh,
            "sqrt": tf.sqrt,
            "tan": tf.tan,
            "tanh": tf.tanh,
        }.items()
    },
    "abs": _any(lambda x: x if x.dtype == tf.bool or x.dtype.is_unsigned else tf.abs(x)),
    "ceil": _any(lambda x: tf.math.ceil(x) if x.dtype.is_floating else x),
    "floor": _any(lambda x: tf.floor(x) if x.dtype.is_floating else x),
    "isfinite": _finite(tf.math.is_finite, True),
    "isinf": _finite(tf.math.is_inf, False),
    "isnan": _finite(tf.math.is_nan, False),
    "logical_not": lambda x: tf.logical_not(truth(x)),
    "negative": _any(lambda x: tf.zeros_like(x) - x if x.dtype.is_unsigned else -x),
    "sign": _any(tf.sign),
    "square": _SQUARE,
    "add": _operator(operator.add),
    "subtract": _operator(operator.sub),
    "multiply": _operator(operator.mul),
    "divide": _operator(operator.truediv),
    "power": _power,
    "equal": _pair(tf.equal),
    "not_equal": _pair(tf.not_equal),
    "less": _pair(tf.less),
    "less_equal": _pair(tf.less_equal),
    "greater": _pair(tf.greater),
    "greater_equal": _pair(tf.greater_equal),
    "maximum": _maximum,
    "minimum": _minimum,
    "arctan2": _pair(tf.atan2, floats=True),
    "hypot": _pair(hypotenuse, floats=True),
    "logical_and": lambda a, b: tf.logical_and(truth(a), truth(b)),
    "logical_or": lambda a, b: tf.logical_or(truth(a), truth(b)),
    "logical_xor": lambda a, b: tf.math.logical_xor(truth(a), truth(b)),
    "allclose": _all_close,
    "array_equal": _same,
    "clip": _clip,
    "conj": lambda x: tf.math.conj(array(x)),
    "copysign": _pair(_signed, floats=True),
    "fmod": _pair(_remainder_of_c),
    "imag": lambda x: tf.math.imag(array(x)),
    "isclose": _close,
    "logaddexp": _pair(_log_of_sum, floats=True),
    "nan_to_num": _without_nan,
    "real": lambda x: tf.math.real(array(x)),
    "reciprocal": _any(_reciprocal),
    "round": _rounded,
    "trunc": _any(_truncated),
    "where": _where,
}
