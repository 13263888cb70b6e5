"""Weak numbers: Python numbers of a lane that have not met a tensor yet (weak types, as in JAX).

A literal or a `range` counter keeps the freedom of a Python number while it is stored per lane: it takes the dtype of
the tensor that it meets. `Weak` wraps the scalar tensor (int32 or float64) that holds such a number inside a piece.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import arithmetic, recorder
from pcbatch.runtime.backends.tensorflow.arithmetic import is_bool, is_flag, widened, wrapped

INT, FLOAT = tf.int32, tf.float32
"""The dtypes of a Python int and a Python float where nothing else decides."""
DOUBLE = tf.float64
"""The dtype that holds a weak float: a Python float is a double, and stays exact until it meets a tensor."""


_LIBRARIES = frozenset(("keras", "ml_dtypes", "numpy", "optree", "pcbatch", "tensorflow", "tree", "wrapt"))
"""Libraries that know of weak numbers, or must not take them for numbers that they can read."""


class WeakTypeError(TypeError):
    """A number met a tensor whose dtype it cannot take; the message says which cast to write."""


class SizeError(WeakTypeError):
    """A number of a lane stands where Python needs one for all: how often a list is repeated, how long a range is."""

    def __init__(self, message: str, size: Any):
        super().__init__(message)
        self.size = size


def is_committed(value: object) -> bool:
    """Return whether `value` is array-like with a dtype of its own: a tensor, a variable, a NumPy array or scalar."""
    return isinstance(value, (tf.Tensor, tf.Variable, np.ndarray, np.generic))


def is_number(value: object) -> bool:
    """Return whether `value` is a weak number: a `Weak`, or a Python int or float (not a bool, not a NumPy scalar)."""
    return isinstance(value, Weak) or (isinstance(value, (int, float)) and not isinstance(value, (bool, np.generic)))


def is_lane_value(value: object) -> bool:
    """Return whether `value` is traced (a tensor, a variable, a weak number) rather than a plain Python value."""
    return isinstance(value, (Weak, tf.Tensor, tf.Variable))


def carrier(value: Any) -> tf.Tensor:
    """A lane value as a tensor, a weak float in full width."""
    return value.value if isinstance(value, Weak) else tf.convert_to_tensor(value)


def scalar(value: Any, what: str) -> tf.Tensor:
    """Return the `carrier` of a lane value that is one number; TypeError, in the name of `what`, for arrays."""
    tensor = carrier(value)
    if tensor.shape.rank != 0:
        raise TypeError(f"{what} takes a scalar, not an array of shape {tensor.shape.as_list()}")
    return tensor


def commit(number: Any, dtype: tf.DType) -> tf.Tensor:
    """`number` (see `is_number`) as a scalar tensor of `dtype`; WeakTypeError where it cannot take that dtype."""
    is_int = number.dtype == INT if isinstance(number, Weak) else isinstance(number, int)
    if dtype == tf.bool:
        raise WeakTypeError("a bool tensor and a number do not meet; write tf.cast(flag, tf.int32)")
    if not (dtype.is_floating or dtype.is_complex or (is_int and dtype.is_integer)):
        raise WeakTypeError(f"a Python float does not fit {dtype.name}; write tf.cast(.., tf.float32) on the tensor")
    if isinstance(number, Weak):
        return number.value if number.value.dtype == dtype else tf.cast(number.value, dtype)
    return tf.constant(wrapped(number, dtype) if is_int else with_sign(number), dtype)


def beside(number: Any, tensor: tf.Tensor) -> tf.Tensor:
    """A tensor beside a number of Python's (see `is_number`): one of ints is one of floats beside a float."""
    is_float = number.dtype != INT if isinstance(number, Weak) else isinstance(number, float)
    return tf.cast(tensor, FLOAT) if is_float and tensor.dtype.is_integer else tensor


def with_sign(number: Any) -> Any:
    """`number` so that a tensor of it has its sign: TensorFlow keeps eager scalars by value, and -0.0 equals 0.0."""
    return np.asarray(number) if isinstance(number, (float, complex)) and number == 0 else number


def weak(number: Any) -> Weak:
    """`number` (see `is_number`) as a `Weak`; WeakTypeError for an int that int32 cannot hold."""
    if isinstance(number, Weak):
        return number
    if isinstance(number, float):
        return Weak(tf.constant(with_sign(number), DOUBLE))
    if not INT.min <= number <= INT.max:
        raise WeakTypeError(f"the int {number} is beyond int32; write tf.constant({number}, tf.int64)")
    return Weak(tf.constant(number, INT))


def counted(flag: Any, other: Any = 0) -> Any:
    """A bool as an int, as Python counts it; an array of bools as numbers of the dtype of `other`."""
    if is_flag(flag):
        return int(flag) if isinstance(flag, (bool, np.bool_)) else Weak(tf.cast(flag, INT))
    if is_number(other) or is_bool(other):
        return tf.cast(flag, FLOAT if isinstance(other, float) or getattr(other, "dtype", INT) == FLOAT else INT)
    # By way of an int: of a product with a bool cast at once XLA makes a choice, 0 for 0 times NaN.
    return tf.cast(tf.cast(flag, INT), other.dtype)


def numbered(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands of which one may be a bool, or an array of bools: if the other is a number it counts as one."""
    if is_bool(a) != is_bool(b):
        return (counted(a, b), b) if is_bool(a) else (a, counted(b, a))
    return a, b


def unify(a: Any, b: Any) -> tuple[tf.Tensor, tf.Tensor, bool]:
    """Two operands as tensors of one dtype, and whether the pair is still weak.

    Raises WeakTypeError where a number cannot take the tensor's dtype, TypeError where two tensors differ in dtype and
    are no ints.
    """
    a, b = numbered(a, b)
    if is_number(a) and is_number(b):
        left, right = weak(a), weak(b)
        dtype = INT if left.dtype == right.dtype == INT else DOUBLE
        return commit(left, dtype), commit(right, dtype), True
    if is_number(a):
        right = beside(a, tf.convert_to_tensor(b))
        return commit(a, right.dtype), right, False
    left = tf.convert_to_tensor(a)
    if is_number(b):
        left = beside(b, left)
        return left, commit(b, left.dtype), False
    return *widened(left, tf.convert_to_tensor(b)), False


# -- what an operator does with two weak numbers -----------------------------------------------------------------------

Rule = Callable[["Weak", "Weak"], Any]


def _arithmetic(function: Callable[..., tf.Tensor]) -> Rule:
    """The result is an int (wrapping in int32) for two ints, else a float."""

    def rule(a: Weak, b: Weak) -> Weak:
        left, right, _ = unify(a, b)
        return Weak(function(left, right))

    return rule


def _quotient(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return arithmetic.true_divide(x, recorder.divisor(y))


def _floored(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return arithmetic.floor_divide(x, recorder.divisor(y))


def _rest(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return arithmetic.modulo(x, recorder.divisor(y))


def _raised(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    if y.dtype.is_integer:
        return arithmetic.power(x, recorder.not_negative(y))
    return arithmetic.power(recorder.base(x, y), y)


def _to_the_left(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return arithmetic.left_shift(x, recorder.not_negative(y))


def _to_the_right(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return arithmetic.right_shift(x, recorder.not_negative(y))


def _comparison(function: Callable[..., tf.Tensor]) -> Rule:
    """A bool tensor; an int is compared with a float exactly, as Python does: float64 holds every int32."""

    def rule(a: Weak, b: Weak) -> tf.Tensor:
        left, right, _ = unify(a, b)
        return function(left, right)

    return rule


def _bits(function: Callable[..., tf.Tensor]) -> Rule:
    """Bitwise operators are for ints."""

    def rule(a: Weak, b: Weak) -> Weak:
        if not a.dtype == b.dtype == INT:
            raise WeakTypeError("bitwise operators take ints, not floats; write int(..)")
        return Weak(function(a.value, b.value))

    return rule


Method = Callable[["Weak", Any], Any]


def _operators(symbol: Callable[[Any, Any], Any], rule: Rule) -> tuple[Method, Method]:
    """The method of an operator and its reflected form."""

    def apply(a: Any, b: Any) -> Any:
        a, b = numbered(a, b)
        if is_number(a) and is_number(b):
            return rule(weak(a), weak(b))
        left, right = (commit(a, b.dtype), b) if is_number(a) else (a, commit(b, a.dtype))
        return symbol(left, right)

    def operand(other: Any) -> Any:
        if is_committed(other) or isinstance(other, bool):
            return tf.convert_to_tensor(other)
        if isinstance(other, complex):
            return tf.constant(other, tf.complex64)
        return other if is_number(other) else NotImplemented

    def method(self: Weak, other: Any) -> Any:
        value = operand(other)
        return NotImplemented if value is NotImplemented else apply(self, value)

    def reflected(self: Weak, other: Any) -> Any:
        value = operand(other)
        return NotImplemented if value is NotImplemented else apply(value, self)

    return method, reflected


class Weak:
    """A number that has not met a tensor: `value` is a scalar int32 or float64 tensor.

    Operators follow Python: with numbers the result is weak again (comparisons give bool tensors), with a tensor it has
    the tensor's dtype. An int takes any numeric dtype, a float floating and complex ones. Ints wrap in int32.
    TensorFlow functions take a Weak where they take a Python number (through a registered tensor conversion).
    """

    __slots__ = ("value",)
    __array_ufunc__ = None  # NumPy arrays and scalars leave the operator to us
    __array_priority__ = 1000.0
    shape = tf.TensorShape([])

    def __init__(self, value: tf.Tensor):
        if value.dtype not in (INT, DOUBLE) or value.shape.rank != 0:
            raise TypeError(f"a weak number is an int32 or float64 scalar, not {value.dtype.name}{value.shape}")
        self.value = value

    @property
    def dtype(self) -> tf.DType:
        """The dtype of the number where nothing else decides: tf.int32 or tf.float32."""
        return INT if self.value.dtype == INT else FLOAT

    @property  # type: ignore[misc] # typeshed's can be written
    def __class__(self) -> type:
        """Answer `isinstance(i, int)` in a user's helper as for one example."""
        frame = inspect.currentframe()
        asking = frame.f_back.f_globals.get("__name__") if frame and frame.f_back else None
        is_known = (asking or "").partition(".")[0] in _LIBRARIES
        return type(self) if is_known else int if self.dtype == INT else float

    def __repr__(self) -> str:
        return f"Weak({self.value!r})"

    __add__, __radd__ = _operators(operator.add, _arithmetic(tf.add))
    __sub__, __rsub__ = _operators(operator.sub, _arithmetic(tf.subtract))
    __mul__, __rmul__ = _operators(operator.mul, _arithmetic(tf.multiply))
    __truediv__, __rtruediv__ = _operators(operator.truediv, _arithmetic(_quotient))
    __floordiv__, __rfloordiv__ = _operators(operator.floordiv, _arithmetic(_floored))
    __mod__, __rmod__ = _operators(operator.mod, _arithmetic(_rest))
    _pow, __rpow__ = _operators(operator.pow, _arithmetic(_raised))
    __and__, __rand__ = _operators(operator.and_, _bits(tf.bitwise.bitwise_and))
    __or__, __ror__ = _operators(operator.or_, _bits(tf.bitwise.bitwise_or))
    __xor__, __rxor__ = _operators(operator.xor, _bits(tf.bitwise.bitwise_xor))
    __lshift__, __rlshift__ = _operators(operator.lshift, _bits(_to_the_left))
    __rshift__, __rrshift__ = _operators(operator.rshift, _bits(_to_the_right))
    __lt__, _ = _operators(operator.lt, _comparison(tf.less))
    __le__, _ = _operators(operator.le, _comparison(tf.less_equal))
    __gt__, _ = _operators(operator.gt, _comparison(tf.greater))
    __ge__, _ = _operators(operator.ge, _comparison(tf.greater_equal))
    __eq__, _ = _operators(operator.eq, _comparison(tf.equal))
    __ne__, _ = _operators(operator.ne, _comparison(tf.not_equal))

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, int) and other < 0:  # a float, as in Python
            return self._pow(float(other))
        return self._pow(other)

    def __neg__(self) -> Weak:
        return Weak(-self.value)

    def __pos__(self) -> Weak:
        return self

    def __abs__(self) -> Weak:
        return Weak(tf.abs(self.value))

    def __invert__(self) -> Weak:
        if self.dtype != INT:
            raise WeakTypeError("~ takes an int, not a float")
        return Weak(tf.bitwise.invert(self.value))

    def _known(self, wanted: str, error: Callable[[str], Exception] = WeakTypeError) -> Any:
        """The number, where it is known; the rest of the time a lane's number is not, and Python cannot have it."""
        known = tf.get_static_value(self.value)
        if known is None:
            raise error(f"a lane's number differs from lane to lane, so Python cannot use it as {wanted} here")
        return known.item()

    def __bool__(self) -> bool:
        return bool(self._known("a condition; write the condition in the batched function itself, or use tf.where"))

    def __int__(self) -> int:
        return int(self._known("an int; write int(..) in the batched function itself"))

    def __float__(self) -> float:
        return float(self._known("a float; write float(..) in the batched function itself"))

    def __index__(self) -> int:
        if self.dtype != INT:
            raise WeakTypeError("a float is not an index; write int(..)")
        error = partial(SizeError, size=self.value)
        return int(self._known("an index or a size; sizes and shapes must be constants", error))

    def __tf_tracing_type__(self, context: Any) -> Any:
        """Return the type of the number as an argument of a `tf.function`: a tensor."""
        return tf.TensorSpec([], self.dtype)
