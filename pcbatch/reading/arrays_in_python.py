"""NumPy's functions that make arrays, linear algebra and methods of ufuncs, in the language, as `in_python` says."""

from __future__ import annotations

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
    shape = [len(np.atleast_1d(each)) for each in xi]
    found = []
    for place, each in enumerate(xi):
        ones = [1] * len(xi)
        ones[place] = shape[place]
        grid = np.broadcast_to(np.reshape(each, ones), shape)
        found.append(np.swapaxes(grid, 0, 1).copy() if indexing == "xy" and len(xi) > 1 else grid.copy())
    return tuple(found)


def rot90(m: Any, k: int = 1) -> Any:
    if k % 4 == 0:
        return m
    if k % 4 == 2:
        return np.flip(np.flip(m, 0), 1)
    return np.swapaxes(np.flip(m, 1), 0, 1) if k % 4 == 1 else np.flip(np.swapaxes(m, 0, 1), 1)


def ediff1d(ary: Any) -> Any:
    return np.diff(np.ravel(ary))


def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:  # noqa: N803 - NumPy's name
    powers = range(len(x) if N is None else N)
    return np.stack([x**k for k in (powers if increasing else reversed(powers))], axis=1)


def sliding_window_view(x: Any, window_shape: int) -> Any:
    """`numpy.lib.stride_tricks.sliding_window_view`, of one axis; as an array of its own."""
    if np.ndim(x) != 1 or not isinstance(window_shape, int):
        raise RefusalError("PCB401", "sliding windows are of one axis here", "take the parts in a loop")
    return x[np.arange(len(x) - window_shape + 1)[:, None] + np.arange(window_shape)]


def empty_like(prototype: Any) -> Any:
    return np.zeros_like(prototype)


def fromiter(iter: Any, dtype: Any, count: int = -1) -> Any:
    return np.array(list(iter), dtype=dtype)


def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    along = np.moveaxis(arr, axis, -1)
    rows = np.reshape(along, (-1, along.shape[-1]))
    found = np.stack([func1d(rows[k], *args, **kwargs) for k in range(rows.shape[0])])
    if np.ndim(found) == 1:
        return np.reshape(found, along.shape[:-1])
    return np.moveaxis(np.reshape(found, (*along.shape[:-1], *found.shape[1:])), -1, axis)


def multi_dot(arrays: Any) -> Any:
    found = arrays[0]
    for each in arrays[1:]:
        found = found @ each
    return found


def matrix_rank(A: Any) -> Any:  # noqa: N803 - NumPy's name
    sizes = np.linalg.svd(A, compute_uv=False)
    return np.sum(sizes > np.max(sizes) * (max(np.shape(A)) * 2.220446049250313e-16))


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """`numpy.linalg.lstsq`; residuals are there whatever the rank is."""
    found = np.linalg.pinv(a) @ b
    residuals = np.sum((b - a @ found) ** 2, axis=0)
    return found, np.reshape(residuals, (-1,)), matrix_rank(a), np.linalg.svd(a, compute_uv=False)


def _cut(ary: Any, ends: Any, axis: int) -> list[Any]:
    along, parts, first = np.moveaxis(ary, axis, 0), [], 0
    for last in ends:
        parts.append(np.moveaxis(along[first:last], 0, axis))
        first = last
    return parts


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    size = ary.shape[axis]
    if isinstance(indices_or_sections, int):
        each, more = divmod(size, indices_or_sections)
        ends = [each * (k + 1) + min(k + 1, more) for k in range(indices_or_sections)]
    else:
        ends = [*indices_or_sections, size]
    return _cut(ary, ends, axis)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections != 0:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


# -- methods of ufuncs, which `in_python` hands the function over as the first argument --------------------------------


def accumulated(ufunc: Any, array: Any, axis: int = 0) -> Any:
    """An associative operation of each element with all before it: of twice as many in each step."""
    found = np.moveaxis(array, axis, 0).copy()
    size, shift = found.shape[0], 1
    while shift < size:
        found[shift:] = ufunc(found[shift:], found[:-shift])
        shift = 2 * shift
    return np.moveaxis(found, 0, axis)


def along(function: Any, array: Any, axis: Any = 0) -> Any:
    """A function of the elements along an axis."""
    return function(array, axis=axis)


def reduced(function: Any, start: Any, array: Any) -> Any:
    """All numbers along the one axis taken together."""
    found = start
    for each in array:
        found = function(found, each)
    return found


def each_with_each(function: Any, a: Any, b: Any) -> Any:
    """Each element with each."""
    a, b = np.asarray(a), np.asarray(b)
    return function(np.reshape(a, (*np.shape(a), *[1] * np.ndim(b))), b)


def at_each(function: Any, a: Any, indices: Any, b: Any) -> None:
    """Take what is at each index together with what is given for it."""
    for k in range(len(indices)):
        a[indices[k]] = function(a[indices[k]], b if np.ndim(b) == 0 else b[k])
