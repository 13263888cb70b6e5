"""Python's built-in functions on numbers and arrays of one lane."""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from pcbatch.ir.debugging import DTYPES, FIRST, LAST, TYPE, WORDS
from pcbatch.ir.expression_parser import parse_type
from pcbatch.ir.types import TensorType, with_leaves
from pcbatch.ir.values import pack
from pcbatch.runtime.backends.tensorflow import arithmetic
from pcbatch.runtime.backends.tensorflow.operators import add, greater, less, number
from pcbatch.runtime.backends.tensorflow.recorder import fault
from pcbatch.runtime.backends.tensorflow.selection import choose, to_bool
from pcbatch.runtime.backends.tensorflow.structures import leaf_tensors, type_of, wrap
from pcbatch.runtime.backends.tensorflow.weak import DOUBLE, INT, Weak, carrier, is_lane_value, scalar, unify

# -- autograph ---------------------------------------------------------------------------------------------------------
# Functions that TensorFlow's AutoGraph is to leave as they are.
#
# `tf.map_fn` and its like hand a function to AutoGraph, which reads its source to rewrite its conditions. Of a lambda
# in generated code, or in a function that `single` helps, it finds none, or another one, and says so in the log.

T = TypeVar("T")


def as_written(function: T) -> T:
    """`function`, marked so that nobody tries."""
    marked: Any = function
    marked.autograph_info__ = None
    return function


# -- iteration ---------------------------------------------------------------------------------------------------------
# Sequences taken apart: iterables of loops, patterns of `match`, unpacking, starred arguments.


def _is_array(x: Any) -> bool:
    return isinstance(x, (tf.Tensor, tf.Variable, np.ndarray))


def spread(value: Any) -> Any:
    """Return the items of `*value`: of an array along its first axis, otherwise as Python; TypeError for a number."""
    if isinstance(value, Weak) or (_is_array(value) and len(value.shape) == 0):
        raise TypeError("a number cannot be taken apart; an array can, along its first axis")
    return tf.unstack(value) if isinstance(value, (tf.Tensor, tf.Variable)) else value


def unpacked(value: Any, pattern: Any) -> Any:
    """`value` for an assignment to a tuple of targets: tensors along their first axis, other values as Python.

    `pattern` is None for a name, ... for a starred one, a tuple of patterns for a tuple of targets. ValueError where
    the numbers differ.
    """
    if pattern is None or pattern is ...:
        return value
    items = list(spread(value))
    if ... in pattern:
        before = pattern.index(...)
        after = len(pattern) - before - 1
        if len(items) < before + after:
            raise ValueError(f"{len(items)} values for at least {before + after} targets")
        pattern = (*pattern[:before], *[None] * (len(items) - before - after), *pattern[before + 1 :])
    if len(items) != len(pattern):
        raise ValueError(f"{len(items)} values for {len(pattern)} targets")
    return tuple(unpacked(item, part) for item, part in zip(items, pattern, strict=True))


# -- debugged ----------------------------------------------------------------------------------------------------------
# Entries of the record of `pcbatch.debug` (`pcbatch.ir.debugging`): values as words of 32 bits.

_HEAD = 3


def record(number: int, text: str, *values: Any) -> tf.Tensor:
    """Return int32 `[WORDS]`: the entry of these values; TypeError for values without words."""
    words = [tf.constant([number], tf.int32)]
    room = (WORDS - 1) // max(len(values), 1)
    for value in values:
        words.append(_words(value, room))
    entry = tf.concat(words, axis=0)
    return tf.pad(entry, [[0, WORDS - entry.shape[0]]])


def recorded(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The row of the next entry, that of the count, which is also its column, and the new count: int32 scalars."""
    count = record[0, 0]
    place = 1 + tf.where(count < FIRST, count, FIRST + (count - FIRST) % LAST)
    return place, tf.zeros_like(count), count + 1


def unrecorded() -> tf.Tensor:
    """A record without entries."""
    return tf.zeros(TYPE.shape, tf.int32)


def _words(value: Any, room: int) -> tf.Tensor:
    try:
        tensor = tf.convert_to_tensor(value)
    except (TypeError, ValueError):
        raise TypeError(f"pcbatch.debug shows numbers and arrays, no {type(value).__name__}: give its parts") from None
    name = tensor.dtype.name
    if name not in DTYPES:
        raise TypeError(f"pcbatch.debug shows numbers and arrays, nothing of dtype {name}")
    sizes = tensor.shape.as_list()
    kept_as, each = DTYPES[name]
    kept = min(math.prod(sizes), (room - _HEAD - len(sizes)) // each)
    if kept < min(1, math.prod(sizes)):
        raise TypeError("pcbatch.debug shows fewer values at a time: write several of it")
    head = tf.constant([1 + [*DTYPES].index(name), len(sizes), kept, *sizes], tf.int32)
    flat = tf.cast(tf.reshape(tensor, [-1])[:kept], kept_as)
    return tf.concat([head, tf.reshape(_bits(flat), [-1])], axis=0)


def _bits(flat: tf.Tensor) -> tf.Tensor:
    if flat.dtype == tf.int32:
        return flat
    if flat.dtype.is_complex:
        flat = tf.stack([tf.math.real(flat), tf.math.imag(flat)], axis=-1)
    return tf.bitcast(flat, tf.int32)


# -- functions ---------------------------------------------------------------------------------------------------------


def minimum(*xs: Any) -> Any:
    """`min` of two or more scalars, of a tuple or list of them, or of the elements of a vector."""
    return _extreme(builtins.min, tf.less, tf.reduce_min, tf.argmin, xs)


def maximum(*xs: Any) -> Any:
    """`max` of two or more scalars, of a tuple or list of them, or of the elements of a vector."""
    return _extreme(builtins.max, tf.greater, tf.reduce_max, tf.argmax, xs)


def _extreme(
    python: Callable[..., Any],
    better: Callable[..., tf.Tensor],
    reduce: Callable[..., tf.Tensor],
    place: Callable[..., tf.Tensor],
    xs: tuple[Any, ...],
) -> Any:
    name = python.__name__
    if len(xs) == 1 and is_lane_value(xs[0]):
        vector = tf.convert_to_tensor(xs[0])
        if vector.shape.rank != 1:
            raise TypeError(f"{name} of one array takes a vector; write tf.reduce_{name}(x)")
        if vector.shape[0] == 0:
            raise ValueError(f"{name}() of an empty vector")
        return _of_vector(reduce, place, vector)
    values = xs if len(xs) > 1 else tuple(xs[0])  # once: a generator has nothing left afterwards
    if any(isinstance(x, (tuple, list)) for x in values):
        return functools.reduce(partial(_better, less if python is builtins.min else greater), values)
    if not any(is_lane_value(x) for x in values):
        return python(values)
    found, *others = values
    for x in values:
        if is_lane_value(x) and tf.TensorShape(x.shape).rank != 0:
            raise TypeError(f"{name} compares scalars; write tf.{name}imum(x, y) for arrays")
    for x in others:
        left, right, is_weak = unify(x, found)
        one, other = (x, found) if is_weak or x is found else (left, right)
        found = choose(better(left, right), one, other)  # Python's own rule, which also settles what NaN and -0.0 give
    return found


def _better(order: Callable[[Any, Any], Any], found: Any, x: Any) -> Any:
    """`x` if it is before `found`, two tuples or lists, by an operator; else `found`."""
    holds = to_bool(order(x, found))
    if not is_lane_value(holds):
        return x if holds else found
    return choose(holds, x, found)


def _of_vector(reduce: Callable[..., tf.Tensor], place: Callable[..., tf.Tensor], vector: tf.Tensor) -> tf.Tensor:
    """Python's rule: the first of equal ones (0.0 and -0.0 are), no NaN but one in the first place, which stays."""
    if not vector.dtype.is_floating:
        return reduce(vector)
    worst = tf.constant(-np.inf if reduce is tf.reduce_max else np.inf, vector.dtype)
    numbers = tf.where(tf.math.is_nan(vector), worst, vector)
    first = tf.concat([vector[:1], numbers[1:]], axis=0)
    at = tf.where(tf.math.is_nan(vector[0]), 0, place(numbers, output_type=tf.int32))
    return tf.gather(first, at)


def total(xs: Any, start: Any = 0) -> Any:
    """`sum(xs, start)` along the first axis of an array, or of a fixed number of values."""
    if not is_lane_value(xs):
        items = tuple(xs)
        plain = not any(map(is_lane_value, (start, *items)))
        return builtins.sum(items, start) if plain else functools.reduce(add, items, start)
    tensor = carrier(xs)
    if tensor.shape.rank == 0:
        raise TypeError("a number has no elements to sum")
    if tensor.dtype == tf.bool:
        counts = tf.reduce_sum(tf.cast(tensor, INT), axis=0)
        return start + (Weak(counts) if counts.shape.rank == 0 else counts)
    result = tf.reduce_sum(tensor, axis=0)
    return result if not is_lane_value(start) and start == 0 else start + result


def absolute(x: Any) -> Any:
    """`abs(x)`."""
    x = number(x)
    return tf.abs(x) if isinstance(x, tf.Variable) else abs(x)


def to_int(x: Any, site: int) -> Any:
    """Return `int(x)`: a weak int, floats truncated towards zero; NaN, infinity and overflow of int32 are faults."""
    if not is_lane_value(x):
        return _static_int(int, x, site)
    given = scalar(x, "int()")
    return whole(_truncated(given), site) if given.dtype.is_floating else _narrowed(given, site)


def _narrowed(given: tf.Tensor, site: int) -> Weak:
    """An integer or a bool as a weak int; a fault where int32 cannot hold it."""
    narrow = tf.cast(given, INT)
    if given.dtype in (tf.int64, tf.uint32, tf.uint64):
        back = tf.cast(narrow, given.dtype)
        fault((back != given) | ((narrow < 0) & given.dtype.is_unsigned), site)
    return Weak(narrow)


def whole(x: tf.Tensor, site: int) -> Weak:
    """A float without fraction as a weak int; a fault where it is not finite or int32 cannot hold it."""
    wide = tf.cast(x, DOUBLE)
    fits = (wide >= INT.min) & (wide <= INT.max)  # not where it is NaN
    fault(~fits, site)
    return Weak(tf.cast(tf.where(fits, wide, tf.zeros_like(wide)), INT))


def _truncated(x: tf.Tensor) -> tf.Tensor:
    wide = tf.cast(x, DOUBLE)
    return tf.where(wide < 0, tf.math.ceil(wide), tf.floor(wide))


def _static_int(function: Callable[..., Any], x: Any, site: int) -> Any:
    """Return an int of a static value; an infinite one or NaN fails the lane, not the compilation."""
    if isinstance(x, (float, np.floating)) and not np.isfinite(x):
        fault(True, site)
        return 0
    return function(x)


def to_float(x: Any) -> Any:
    """`float(x)`: a weak float; a float64 tensor stays one, as it is as wide as Python's float."""
    if not is_lane_value(x):
        return float(x)
    given = scalar(x, "float()")
    if not isinstance(x, Weak) and given.dtype == tf.float64:
        return given
    return Weak(tf.cast(given, DOUBLE))


def index(x: Any, *, site: int) -> Any:
    """`operator.index(x)`: an integer scalar as a weak int; TypeError for floats and bools.

    What int32 cannot hold is a fault.
    """
    if not is_lane_value(x):
        return operator.index(x)
    given = scalar(x, "range()")
    if not given.dtype.is_integer:
        raise TypeError(f"range() takes ints, not {given.dtype.name}; write int(..)")
    return _narrowed(given, site)


def place(index: Any, length: Any, *, site: int) -> Any:
    """The place that an index means among `length` rows, from the front; one that is out of range is a fault."""
    position = scalar(index, "an index")
    if not position.dtype.is_integer:
        raise TypeError(f"list indices must be integers, not {position.dtype.name}")
    size = tf.cast(scalar(length, "a length"), position.dtype)
    fault((position < -size) | (position >= size), site)
    return Weak(tf.cast(tf.where(position < 0, position + size, position), INT))


def free(length: Any, room: int, *, site: int) -> Any:
    """The place behind the last of `length` rows; a fault where there is no room for one more."""
    size = tf.cast(scalar(length, "a length"), INT)
    fault(size >= room, site)
    return Weak(tf.minimum(size, room - 1))


def committed(x: Any, *types: str) -> Any:
    """`x` with leaves of exactly these types ("float32[]", "weak float64[]"), to which its own join."""
    wanted = with_leaves(type_of(x), (leaf for leaf in map(parse_type, types) if isinstance(leaf, TensorType)))
    return wrap(pack(wanted, leaf_tensors(x, wanted)), wanted)


def length(x: Any) -> Any:
    """`len(x)`: the static length of the leading axis, or of a structure."""
    if not is_lane_value(x):
        return len(x)
    shape = tf.TensorShape(x.shape)
    if shape.rank == 0:
        raise TypeError("a number has no len()")
    return int(shape[0])


def rounded(x: Any, digits: int | None = None, *, site: int) -> Any:
    """`round(x, digits)` of a scalar: half to even; an int (weak, for floats) where `digits` is None, else like `x`.

    A float is rounded as the decimal fraction that it exactly is, as in Python: 2.675 is a little less than it looks.
    """
    if not is_lane_value(x):
        return round(x, digits) if digits is not None else _static_int(round, x, site)
    if is_lane_value(digits):
        raise TypeError("the number of digits to round to must be a constant")
    x = number(x)
    given = scalar(x, "round()")
    if given.dtype.is_integer:
        result = round_int(given, digits or 0)
    elif digits is None:
        return whole(tf.round(given), site)
    else:
        wide = tf.cast(given, DOUBLE)
        found = arithmetic.rounded(wide, digits)
        fault(tf.math.is_inf(found) & tf.math.is_finite(wide), site)
        result = tf.cast(found, given.dtype)
    return Weak(result) if isinstance(x, Weak) else result


def round_int(x: tf.Tensor, digits: int) -> tf.Tensor:
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
