"""Methods of NumPy's ufuncs, written in the language: read in the place of theirs, as `in_python` says."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def _accumulated(ufunc: Any, array: Any, axis: int) -> Any:
    """An associative operation of each element with all before it: of twice as many in each step."""
    found = np.moveaxis(array, axis, 0).copy()
    size, shift = found.shape[0], 1
    while shift < size:
        found[shift:] = ufunc(found[shift:], found[:-shift])
        shift = 2 * shift
    return np.moveaxis(found, 0, axis)


def maximum_accumulate(array: Any, axis: int = 0) -> Any:
    """`numpy.maximum.accumulate`."""
    return _accumulated(np.maximum, array, axis)


def minimum_accumulate(array: Any, axis: int = 0) -> Any:
    """`numpy.minimum.accumulate`."""
    return _accumulated(np.minimum, array, axis)


def logical_or_accumulate(array: Any, axis: int = 0) -> Any:
    """`numpy.logical_or.accumulate`."""
    return _accumulated(np.logical_or, array, axis)


def logical_and_accumulate(array: Any, axis: int = 0) -> Any:
    """`numpy.logical_and.accumulate`."""
    return _accumulated(np.logical_and, array, axis)


def add_accumulate(array: Any, axis: int = 0) -> Any:
    """`numpy.add.accumulate`."""
    return np.cumsum(array, axis=axis)


def multiply_accumulate(array: Any, axis: int = 0) -> Any:
    """`numpy.multiply.accumulate`."""
    return np.cumprod(array, axis=axis)


def add_reduce(array: Any, axis: Any = 0) -> Any:
    """`numpy.add.reduce`."""
    return np.sum(array, axis=axis)


def multiply_reduce(array: Any, axis: Any = 0) -> Any:
    """`numpy.multiply.reduce`."""
    return np.prod(array, axis=axis)


def maximum_reduce(array: Any, axis: Any = 0) -> Any:
    """`numpy.maximum.reduce`."""
    return np.max(array, axis=axis)


def minimum_reduce(array: Any, axis: Any = 0) -> Any:
    """`numpy.minimum.reduce`."""
    return np.min(array, axis=axis)


def logical_or_reduce(array: Any, axis: Any = 0) -> Any:
    """`numpy.logical_or.reduce`."""
    return np.any(array, axis=axis)


def logical_and_reduce(array: Any, axis: Any = 0) -> Any:
    """`numpy.logical_and.reduce`."""
    return np.all(array, axis=axis)


def _each_with_each(a: Any, b: Any) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    return np.reshape(a, (*np.shape(a), *[1] * np.ndim(b))), b


def add_outer(a: Any, b: Any) -> Any:
    """`numpy.add.outer`."""
    a, b = _each_with_each(a, b)
    return a + b


def subtract_outer(a: Any, b: Any) -> Any:
    """`numpy.subtract.outer`."""
    a, b = _each_with_each(a, b)
    return a - b


def multiply_outer(a: Any, b: Any) -> Any:
    """`numpy.multiply.outer`."""
    a, b = _each_with_each(a, b)
    return a * b


def maximum_outer(a: Any, b: Any) -> Any:
    """`numpy.maximum.outer`."""
    a, b = _each_with_each(a, b)
    return np.maximum(a, b)


def minimum_outer(a: Any, b: Any) -> Any:
    """`numpy.minimum.outer`."""
    a, b = _each_with_each(a, b)
    return np.minimum(a, b)


def add_at(a: Any, indices: Any, b: Any) -> None:
    """`numpy.add.at`."""
    for k in range(len(indices)):
        a[indices[k]] += b if np.ndim(b) == 0 else b[k]


def subtract_at(a: Any, indices: Any, b: Any) -> None:
    """`numpy.subtract.at`."""
    for k in range(len(indices)):
        a[indices[k]] -= b if np.ndim(b) == 0 else b[k]


def maximum_at(a: Any, indices: Any, b: Any) -> None:
    """`numpy.maximum.at`."""
    for k in range(len(indices)):
        a[indices[k]] = np.maximum(a[indices[k]], b if np.ndim(b) == 0 else b[k])


def minimum_at(a: Any, indices: Any, b: Any) -> None:
    """`numpy.minimum.at`."""
    for k in range(len(indices)):
        a[indices[k]] = np.minimum(a[indices[k]], b if np.ndim(b) == 0 else b[k])


def gcd_reduce(array: Any) -> Any:
    """`numpy.gcd.reduce`, of one axis."""
    found = 0
    for each in array:
        found = math.gcd(found, each)
    return found


def lcm_reduce(array: Any) -> Any:
    """`numpy.lcm.reduce`, of one axis."""
    found = 1
    for each in array:
        found = math.lcm(found, each)
    return found


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.maximum.accumulate: maximum_accumulate,
    np.minimum.accumulate: minimum_accumulate,
    np.logical_or.accumulate: logical_or_accumulate,
    np.logical_and.accumulate: logical_and_accumulate,
    np.add.accumulate: add_accumulate,
    np.multiply.accumulate: multiply_accumulate,
    np.gcd.reduce: gcd_reduce,
    np.lcm.reduce: lcm_reduce,
    np.add.reduce: add_reduce,
    np.multiply.reduce: multiply_reduce,
    np.maximum.reduce: maximum_reduce,
    np.minimum.reduce: minimum_reduce,
    np.logical_or.reduce: logical_or_reduce,
    np.logical_and.reduce: logical_and_reduce,
    np.add.outer: add_outer,
    np.subtract.outer: subtract_outer,
    np.multiply.outer: multiply_outer,
    np.maximum.outer: maximum_outer,
    np.minimum.outer: minimum_outer,
    np.add.at: add_at,
    np.subtract.at: subtract_at,
    np.maximum.at: maximum_at,
    np.minimum.at: minimum_at,
}
"""Replacements of methods where an argument is a lane's."""
