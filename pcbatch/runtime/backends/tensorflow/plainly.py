"""Operators and functions for one example's values in plain Python, which TensorFlow's eager tensors do not know.

They are those of lanes (`operators`, `members`), and Python's own for what is no tensor.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import arithmetic, followed, numpy_equivalents, operators
from pcbatch.runtime.backends.tensorflow.array_indexing import elements_at
from pcbatch.runtime.backends.tensorflow.autograph import as_written
from pcbatch.runtime.backends.tensorflow.equivalents import named
from pcbatch.runtime.backends.tensorflow.followed import Followed
from pcbatch.runtime.backends.tensorflow.functions import round_int
from pcbatch.runtime.backends.tensorflow.mapping import checked_count, padded
from pcbatch.runtime.backends.tensorflow.members import member, plain_member
from pcbatch.runtime.backends.tensorflow.membership import same_flag
from pcbatch.runtime.backends.tensorflow.private import may_record
from pcbatch.runtime.backends.tensorflow.scattering import store_indexed
from pcbatch.runtime.backends.tensorflow.tensorflow_equivalents import constant
from pcbatch.runtime.backends.tensorflow.weak import Weak, unify

_ARRAYS = (tf.Tensor, tf.Variable)
_NUMBERS = (tf.Tensor, bool, int, float, complex, np.generic)
"""What an augmented assignment cannot change in place."""


_OF_PYTHON = (int, float)
_OTHERS = frozenset({tf.bool, tf.uint64})
"""What meets numbers of Python's otherwise than by TensorFlow's own operators."""


def _has_arrays(*values: Any) -> bool:
    return any(isinstance(value, _ARRAYS) for value in values)


def _go_together(a: Any, b: Any) -> bool:
    """Whether TensorFlow's own operator does: of arrays of one dtype, and numbers beside one, which most are."""
    if isinstance(a, _ARRAYS):
        is_one = type(b) in _OF_PYTHON or (isinstance(b, _ARRAYS) and a.dtype is b.dtype)
        return is_one and a.dtype not in _OTHERS
    return type(a) in _OF_PYTHON and isinstance(b, _ARRAYS) and b.dtype not in _OTHERS


def _plainly(value: Any) -> Any:
    """A result of `operators` that is weak, as Python's number is: a bool that was counted."""
    return int(value) if isinstance(value, Weak) and not isinstance(value, Followed) else value


def _counted(x: Any) -> Any:
    return _plainly(operators.number(x)) if _has_arrays(x) else x


def _operator(python: Callable[[Any, Any], Any], meeting: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[..., Any]:
    """An operator: of tensors and numbers that go together as `meeting` has them."""

    def apply(a: Any, b: Any) -> Any:
        if _go_together(a, b) or not _has_arrays(a, b):
            return python(a, b)
        return python(*map(_plainly, meeting(a, b)))

    return apply


def _comparison(python: Callable[[Any, Any], Any], meeting: Callable[[Any, Any], tuple[Any, Any]]) -> Any:
    """A comparison; of two tuples or two lists that of the first of their elements that differ."""
    of_numbers = _operator(python, meeting)
    is_same = _operator(operator.eq, operators.matched)

    def compare(a: Any, b: Any) -> Any:
        if not operators.are_sequences(a, b):
            return of_numbers(a, b)
        differ = next(((x, y) for x, y in zip(a, b, strict=False) if not _are_same(x, y)), (len(a), len(b)))
        return compare(*differ)

    def _are_same(x: Any, y: Any) -> bool:
        if operators.are_sequences(x, y):
            return len(x) == len(y) and all(map(_are_same, x, y))
        return bool(is_same(x, y))

    return compare


def _matrix_product(a: Any, b: Any) -> Any:
    return operators.matrix_product(a, b) if _has_arrays(a, b) else a @ b


def _shifted(python: Callable[[Any, Any], Any], function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]) -> Any:
    """A shift of one example's values, which tensors have no operator for."""

    def shift(a: Any, b: Any) -> Any:
        if not _has_arrays(a, b):
            return python(a, b)
        x, y, _ = unify(*operators.numbers(a, b))
        if bool(tf.reduce_any(y < 0)):
            raise ValueError("negative shift count")
        return function(x, y)

    return shift


def _power(a: Any, b: Any) -> Any:
    """`a ** b`, of unsigned integers, too, of which TensorFlow has no powers."""
    dtype = next((each.dtype for each in (a, b) if isinstance(each, _ARRAYS)), tf.int32)
    if not dtype.is_unsigned:
        return a**b
    x, y, _ = unify(a, b)
    return arithmetic.int_power(x, y)


_equal = _comparison(operator.eq, operators.matched)


def _contained(x: Any, items: Any) -> bool:
    """`x in items`; in a tuple or a list it is looked for as `==` has it here, which takes bools beside numbers."""
    if isinstance(items, (tuple, list)) and _has_arrays(x, *items):
        return any(x is item or bool(_equal(x, item)) for item in items)
    return x in items


_OPERATORS: dict[str, Callable[..., Any]] = {
    "op_add": _operator(operator.add, operators.numbers),
    "op_sub": _operator(operator.sub, operators.numbers),
    "op_mul": _operator(operator.mul, operators.numbers),
    "op_truediv": _operator(operator.truediv, operators.numbers),
    "op_floordiv": _operator(operator.floordiv, operators.numbers),
    "op_mod": _operator(operator.mod, operators.numbers),
    "op_pow": _operator(_power, operators.numbers),
    "op_matmul": _matrix_product,
    "op_lshift": _shifted(operator.lshift, arithmetic.left_shift),
    "op_rshift": _shifted(operator.rshift, arithmetic.right_shift),
    "op_and_": _operator(operator.and_, operators.matched),
    "op_or_": _operator(operator.or_, operators.matched),
    "op_xor": _operator(operator.xor, operators.matched),
    "op_eq": _equal,
    "op_ne": _comparison(operator.ne, operators.matched),
    "op_lt": _comparison(operator.lt, operators.numbers),
    "op_le": _comparison(operator.le, operators.numbers),
    "op_gt": _comparison(operator.gt, operators.numbers),
    "op_ge": _comparison(operator.ge, operators.numbers),
    "op_in": _contained,
    "op_not_in": lambda x, items: not _contained(x, items),
}


def _augmented(name: str, a: Any, b: Any) -> Any:
    """`a += b` and its like: lists, NumPy's arrays and objects change in place, numbers and tensors do not."""
    if isinstance(a, _NUMBERS):
        return _OPERATORS[name](a, b)
    return getattr(operator, f"i{name.removeprefix('op_').rstrip('_')}")(a, b)


def _rounded(value: Any, digits: int | None = None) -> Any:
    """`round` of one example's value: of a float an int without digits, as Python."""
    if value.dtype.is_integer:
        return round_int(tf.convert_to_tensor(value), digits or 0)
    number = float(tf.convert_to_tensor(value).numpy())
    return _int32(round(number)) if digits is None else tf.convert_to_tensor(round(number, digits), value.dtype)


def _int32(number: int) -> int:
    """`number`, if a lane can have it."""
    if not -(2**31) <= number < 2**31:
        raise OverflowError(f"cannot convert to an int of 32 bits: {number} is too large")
    return number


def _sum(xs: Any, start: Any = 0) -> Any:
    items = [*xs]
    if not _has_arrays(start, *items):
        return sum(items, start)
    for item in items:
        start = _OPERATORS["op_add"](start, item)
    return start


def _extreme(python: Callable[..., Any], better: str) -> Callable[..., Any]:
    def of(*given: Any, key: Callable[[Any], Any] | None = None, **options: Any) -> Any:
        values = given if len(given) > 1 else tuple(given[0])
        if not values or (options and len(given) > 1):
            return python(*given, key=key, **options)
        keys = values if key is None else [key(value) for value in values]
        place = 0
        for other in range(1, len(keys)):
            place = other if _OPERATORS[better](keys[other], keys[place]) else place
        return values[place]

    return of


def _sorted(xs: Any, *, key: Any = None, reverse: Any = False) -> list[Any]:
    """Numbers in order, NaN last; Python has it where it happens to come."""
    items = [*xs]
    if key is not None or not any(isinstance(item, _ARRAYS) for item in items):
        return sorted(items, key=key, reverse=reverse)
    lost = [item for item in items if item != item]
    found = sorted((item for item in items if item == item), reverse=reverse)
    return [*lost, *found] if reverse else [*found, *lost]


def _read(a: Any, index: Any) -> Any:
    """`a[index]`, where an array of positions takes several elements."""
    if isinstance(a, _ARRAYS):
        return elements_at(tf.convert_to_tensor(a), index)
    if isinstance(a, np.ndarray) and isinstance(index, (tuple, *_ARRAYS)):
        parts = index if isinstance(index, tuple) else (index,)
        found = tuple(part.numpy() if isinstance(part, _ARRAYS) else part for part in parts)
        return a[found if isinstance(index, tuple) else found[0]]
    return a[index]


def _member(value: Any, name: str) -> Any:
    """`value.name`; the numbers that arrays give, as a tape follows them."""
    is_number = name in ("item", "tolist") and isinstance(value, _ARRAYS) and value.dtype.is_floating
    if not is_number or not may_record():
        return plain_member(value, name)
    return lambda *at: followed.marked(member(value, name)(*at), value)


PLAIN_BUILTINS: dict[str, Callable[..., Any]] = _OPERATORS | {
    "__flag__": same_flag,
    "as_written": as_written,
    "abs": lambda x: abs(_counted(x)),
    "augmented": _augmented,
    "checked_count": checked_count,
    "divmod": lambda a, b: (_OPERATORS["op_floordiv"](a, b), _OPERATORS["op_mod"](a, b)),
    "float": followed.to_float,
    "int": lambda *given: _int32(int(*given)) if given and isinstance(given[0], _ARRAYS) else int(*given),
    "max": _extreme(max, "op_gt"),
    "member": _member,
    "min": _extreme(min, "op_lt"),
    "neg": lambda x: -_counted(x),
    "padded": padded,
    "pos": lambda value: tf.convert_to_tensor(_counted(value)) if isinstance(value, _ARRAYS) else +value,
    "pow": lambda a, b, *modulo: _OPERATORS["op_pow"](a, b) if not modulo else pow(a, b, *modulo),
    "read": _read,
    "round": lambda value, digits=None: _rounded(value, digits) if isinstance(value, _ARRAYS) else round(value, digits),
    "sorted": _sorted,
    "store": store_indexed,
    "sum": _sum,
}
"""What tensors do not support though numbers and NumPy's arrays do, `value is True` too."""


def _stable_order(a: Any, axis: int | None = -1, kind: Any = None) -> Any:
    return np.argsort(a, axis, kind="stable")


def _take(a: Any, indices: Any, axis: int | None = None, **options: Any) -> Any:
    """`np.take`; its result as a tensor where a tape may look on."""
    found = np.take(a, indices, axis, **options)
    if options or not followed.has_tensors((a,)):
        return found
    array = tf.convert_to_tensor(a)
    array = tf.reshape(array, [-1]) if axis is None else array
    return tf.gather(array, np.asarray(indices) % array.shape[axis or 0], axis=axis or 0)


def _seen_by_tapes(function: Callable[..., Any], equivalent: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function; where a tape may look on, what gives a gradient, as it has in a batch."""

    def call(*given: Any, **options: Any) -> Any:
        values = tf.nest.flatten((given, options))
        if followed.has_tensors(values):
            return followed.marked(equivalent(*given, **options), *values)
        given, options = followed.plainly((given, options))
        return function(*given, **options)

    return call


def _in_range(function: Callable[[Any], int]) -> Callable[[Any], int]:
    """`math.floor` and `math.ceil`; of an array an int that a lane can have."""
    return lambda x: _int32(function(x)) if isinstance(x, _ARRAYS) else function(x)


_OF_MATH: dict[Any, Callable[..., Any]] = {function: _in_range(function) for function in (math.ceil, math.floor)}


PLAIN_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    function: _seen_by_tapes(function, numpy_equivalents.EQUIVALENTS[name])
    for name, function in named(np, numpy_equivalents.NAMES)
    if name != "take" and (not isinstance(function, type) or issubclass(function, np.floating))
} | {np.argsort: _stable_order, np.take: _take, tf.constant: constant, **followed.FUNCTIONS, **_OF_MATH}
"""Functions of others of which lanes have more: a gradient, and the order of equal numbers."""
