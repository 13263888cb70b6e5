"""NumPy's functions that make arrays, linear algebra and methods of ufuncs, in the language, as `in_python` says."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


class RefusalError(Exception):
    """Raised where a function cannot be read: with a code, a message and a help, all of which are known."""


class Vectorize:
    """`numpy.vectorize`, of functions that give a number."""

    def __init__(self, pyfunc: Any, otypes: Any = None):
        self.pyfunc = pyfunc
        self.otypes = otypes

    def __call__(self, *args: Any) -> Any:
        """Return what the function gives for each element, in an array of the shape that they have together."""
        shape = np.shape(sum(np.zeros(np.shape(each)) for each in args))
        rows = [np.ravel(np.broadcast_to(each, shape)) for each in args]
        found = np.array([self.pyfunc(*each) for each in zip(*rows, strict=True)])
        return np.reshape(found, shape)


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False) -> Any:
    """`numpy.linspace`."""
    span = np.asarray(stop) * 1.0 - start
    step = span / max(num - 1 if endpoint else num, 1)
    numbers = (
        np.arange(num) * np.ones_like(step) if np.ndim(step) == 0 else np.arange(num).reshape(-1, *[1] * np.ndim(step))
    )
    found = numbers * step + start
    if endpoint and num > 1:
        found[-1] = stop
    return (found, step) if retstep else found


def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0) -> Any:
    """`numpy.logspace`."""
    return base ** linspace(start, stop, num, endpoint)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True) -> Any:
    """`numpy.geomspace`, of positive numbers."""
    if np.any(start <= 0) or np.any(stop <= 0):
        raise ValueError("np.geomspace of a lane's values takes positive numbers")
    found = 10.0 ** linspace(np.log10(start), np.log10(stop), num, endpoint)
    found[0] = start
    if endpoint and num > 1:
        found[-1] = stop
    return found


def meshgrid(*xi: Any, indexing: str = "xy") -> Any:
    """`numpy.meshgrid`."""
    shape = [len(np.atleast_1d(each)) for each in xi]
    found = []
    for place, each in enumerate(xi):
        ones = [1] * len(xi)
        ones[place] = shape[place]
        grid = np.broadcast_to(np.reshape(each, ones), shape)
        found.append(np.swapaxes(grid, 0, 1).copy() if indexing == "xy" and len(xi) > 1 else grid.copy())
    return tuple(found)


def rot90(m: Any, k: int = 1) -> Any:
    """`numpy.rot90`."""
    if k % 4 == 0:
        return m
    if k % 4 == 2:
        return np.flip(np.flip(m, 0), 1)
    return np.swapaxes(np.flip(m, 1), 0, 1) if k % 4 == 1 else np.flip(np.swapaxes(m, 0, 1), 1)


def ediff1d(ary: Any) -> Any:
    """`numpy.ediff1d`."""
    return np.diff(np.ravel(ary))


def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:  # noqa: N803 - NumPy's name
    """`numpy.vander`."""
    powers = range(len(x) if N is None else N)
    return np.stack([x**k for k in (powers if increasing else reversed(powers))], axis=1)


def sliding_window_view(x: Any, window_shape: int) -> Any:
    """`numpy.lib.stride_tricks.sliding_window_view`, of one axis; as an array of its own."""
    if np.ndim(x) != 1 or not isinstance(window_shape, int):
        raise RefusalError("PCB401", "sliding windows are of one axis here", "take the parts in a loop")
    return x[np.arange(len(x) - window_shape + 1)[:, None] + np.arange(window_shape)]


def empty_like(prototype: Any) -> Any:
    """`numpy.empty_like`."""
    return np.zeros_like(prototype)


def fromiter(iter: Any, dtype: Any, count: int = -1) -> Any:
    """`numpy.fromiter`."""
    return np.array(list(iter), dtype=dtype)


def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """`numpy.apply_along_axis`."""
    along = np.moveaxis(arr, axis, -1)
    rows = np.reshape(along, (-1, along.shape[-1]))
    found = np.stack([func1d(rows[k], *args, **kwargs) for k in range(rows.shape[0])])
    if np.ndim(found) == 1:
        return np.reshape(found, along.shape[:-1])
    return np.moveaxis(np.reshape(found, (*along.shape[:-1], *found.shape[1:])), -1, axis)


def multi_dot(arrays: Any) -> Any:
    """`numpy.linalg.multi_dot`."""
    found = arrays[0]
    for each in arrays[1:]:
        found = found @ each
    return found


def matrix_rank(A: Any) -> Any:  # noqa: N803 - NumPy's name
    """`numpy.linalg.matrix_rank`."""
    sizes = np.linalg.svd(A, compute_uv=False)
    return np.sum(sizes > np.max(sizes) * (max(np.shape(A)) * 2.220446049250313e-16))


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """`numpy.linalg.lstsq`; residuals are there whatever the rank is."""
    found = np.linalg.pinv(a) @ b
    residuals = np.sum((b - a @ found) ** 2, axis=0)
    return found, np.reshape(residuals, (-1,)), matrix_rank(a), np.linalg.svd(a, compute_uv=False)


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
    np.linspace: linspace,
    np.logspace: logspace,
    np.geomspace: geomspace,
    np.meshgrid: meshgrid,
    np.rot90: rot90,
    np.ediff1d: ediff1d,
    np.vander: vander,
    np.empty_like: empty_like,
    np.fromiter: fromiter,
    np.apply_along_axis: apply_along_axis,
    np.lib.stride_tricks.sliding_window_view: sliding_window_view,
    np.linalg.multi_dot: multi_dot,
    np.linalg.matrix_rank: matrix_rank,
    np.linalg.lstsq: lstsq,
    np.vectorize: Vectorize,
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
