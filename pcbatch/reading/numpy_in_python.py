"""Functions of NumPy's, written in the language: read in the place of theirs, as `in_python` says."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcbatch.reading.arrays_in_python import RefusalError


def shape(a: Any) -> Any:
    return tuple(np.asarray(a).shape)


def ndim(a: Any) -> int:
    return len(np.asarray(a).shape)


def size(a: Any, axis: Any = None) -> int:
    sizes = np.asarray(a).shape
    if axis is not None:
        return sizes[axis]
    found = 1
    for each in sizes:
        found = found * each
    return found


def atleast_2d(ary: Any) -> Any:
    return np.reshape(ary, (1, -1)) if np.ndim(ary) < 2 else np.asarray(ary)


# -- numbers -----------------------------------------------------------------------------------------------------------


def gcd(x1: Any, x2: Any) -> Any:
    """`numpy.gcd`, by Euclid's algorithm, of all elements at once."""
    found, rest = np.abs(x1) + 0 * np.abs(x2), np.abs(x2) + 0 * np.abs(x1)
    while np.any(rest != 0):
        found, rest = np.where(rest == 0, found, rest), np.where(rest == 0, 0, found % np.where(rest == 0, 1, rest))
    return found


def lcm(x1: Any, x2: Any) -> Any:
    common = gcd(x1, x2)
    return np.abs(x1 // np.where(common == 0, 1, common) * x2)


def heaviside(x1: Any, x2: Any) -> Any:
    return np.where(x1 < 0, 0.0, np.where(x1 > 0, 1.0, np.where(x1 == 0, x2, x1)))


def modf(x: Any) -> Any:
    whole = np.trunc(x)
    return x - whole, whole


def ldexp(x1: Any, x2: Any) -> Any:
    return x1 * 2.0**x2


def signbit(x: Any) -> Any:
    return np.copysign(1.0, x) < 0.0


def float_power(x1: Any, x2: Any) -> Any:
    return (x1 * 1.0) ** (x2 * 1.0)


def invert(x: Any) -> Any:
    return ~x


# -- counting ----------------------------------------------------------------------------------------------------------


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """`numpy.bincount`, with `minlength` numbers: a lane that has an element beyond them fails."""
    if minlength == 0:
        raise RefusalError(
            "PCB313",
            "how many numbers np.bincount gives is the largest element and one, which differs from lane to lane",
            "say how many there are, `np.bincount(x, minlength=n)`, with n a literal or a captured int",
        )
    if np.any(x < 0):
        raise ValueError("'list' argument must have no negative elements")
    if np.any(x >= minlength):
        raise ValueError("np.bincount of a lane's numbers has `minlength` bins, and an element lies beyond them")
    is_in = np.arange(minlength)[:, None] == x[None, :]
    return np.sum(is_in, axis=1) if weights is None else np.sum(np.where(is_in, weights, 0.0), axis=1)


def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """`numpy.histogram`, of bins that are known, or lie between bounds of the lane's."""
    values = np.ravel(a)
    if np.ndim(bins) == 0:
        if not isinstance(bins, int):
            raise RefusalError(
                "PCB313", "how many bins there are differs from lane to lane", "say how many: `bins=10`, or give edges"
            )
        low, high = (np.min(values), np.max(values)) if range is None else range
        if low > high:
            raise ValueError("max must be larger than min in range parameter.")
        edges = np.linspace(np.where(low == high, low - 0.5, low), np.where(low == high, high + 0.5, high), bins + 1)
    else:
        edges = np.asarray(bins)
        if np.any(edges[1:] < edges[:-1]):
            raise ValueError("`bins` must increase monotonically, when an array")
    is_below = values[None, :] < edges[1:, None]
    is_below[-1] = values <= edges[-1]
    is_in = is_below & (values[None, :] >= edges[:-1, None])
    found = np.sum(is_in, axis=1) if weights is None else np.sum(np.where(is_in, np.ravel(weights), 0.0), axis=1)
    return (found / np.diff(edges) / np.sum(found) if density else found), edges


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    found = np.any(np.asarray(element)[..., None] == np.ravel(test_elements), axis=-1)
    return ~found if invert else found


def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None) -> Any:
    rows = np.atleast_2d(m)
    if not rowvar and rows.shape[0] != 1:
        rows = rows.T
    if y is not None:
        other = np.atleast_2d(y)
        rows = np.concatenate([rows, other.T if not rowvar and other.shape[0] != 1 else other])
    fewer = (0 if bias else 1) if ddof is None else ddof
    centred = rows - np.mean(rows, axis=1)[:, None]
    found = centred @ centred.T / (rows.shape[1] - fewer)
    return found[0, 0] if rows.shape[0] == 1 else found


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    found = cov(x, y, rowvar)
    if np.ndim(found) == 0:
        return found / found
    spread = np.sqrt(np.diag(found))
    return np.clip(found / spread[:, None] / spread[None, :], -1.0, 1.0)


def polyfit(x: Any, y: Any, deg: int) -> Any:
    """`numpy.polyfit`, of the coefficients alone."""
    powers = np.stack([x**k for k in range(deg, -1, -1)], axis=1) * 1.0
    scale = np.sqrt(np.sum(powers * powers, axis=0))
    found = np.linalg.pinv(powers / scale) @ y
    return found / scale if np.ndim(found) == 1 else found / scale[:, None]


# -- sets --------------------------------------------------------------------------------------------------------------


def _in_order(ar: Any) -> Any:
    """The elements in order, and which of them are not as the ones before them."""
    found = np.sort(np.ravel(ar))
    is_number = found == found
    is_new = (found[1:] != found[:-1]) & (is_number[1:] | is_number[:-1])
    return found, np.concatenate([np.ones(1) > 0, is_new])


def unique(ar: Any, **options: Any) -> Any:
    """`numpy.unique`, whose length differs by lane."""
    if options:
        raise RefusalError(
            "PCB408",
            "np.unique of a lane's values gives the elements alone",
            "sort with np.sort, and compare neighbours",
        )
    found, is_new = _in_order(ar)
    return found[is_new]


def intersect1d(ar1: Any, ar2: Any) -> Any:
    found, is_new = _in_order(ar1)
    return found[is_new & isin(found, ar2)]


def setdiff1d(ar1: Any, ar2: Any) -> Any:
    found, is_new = _in_order(ar1)
    return found[is_new & ~isin(found, ar2)]


def union1d(ar1: Any, ar2: Any) -> Any:
    return unique(np.concatenate([np.ravel(ar1), np.ravel(ar2)]))


# -- order and places --------------------------------------------------------------------------------------------------


def lexsort(keys: Any, axis: int = -1) -> Any:
    """`numpy.lexsort`: by the last key, then by the one before it."""
    if np.ndim(keys[0]) != 1:
        raise RefusalError("PCB401", "np.lexsort of a lane's values takes keys of one axis", "sort the rows in a loop")
    order = np.argsort(keys[0], kind="stable")
    for key in keys[1:]:
        order = order[np.argsort(key[order], kind="stable")]
    return order


def argwhere(a: Any) -> Any:
    """`numpy.argwhere`: how many places there are differs by lane."""
    return np.argwhere(np.ones(np.shape(a)))[np.ravel(a) != 0]


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    if axis is None:
        return np.ravel(arr)[np.ravel(indices)]
    along, places = np.moveaxis(arr, axis, -1), np.moveaxis(indices, axis, -1)
    size = along.shape[-1]
    if np.shape(along)[:-1] != np.shape(places)[:-1]:
        raise RefusalError(
            "PCB401", "np.take_along_axis takes indices of as many rows here", "repeat them with np.broadcast_to"
        )
    if np.any((places < -size) | (places >= size)):
        raise IndexError("index out of bounds")
    wanted = np.reshape(np.where(places < 0, places + size, places), (-1, places.shape[-1]))
    first = size * np.arange(wanted.shape[0])[:, None]
    return np.moveaxis(np.reshape(np.take(np.ravel(along), first + wanted), np.shape(places)), -1, axis)


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """`numpy.insert`, at one place."""
    along = np.ravel(arr) if axis is None else np.moveaxis(arr, axis, 0)
    size = along.shape[0]
    if np.ndim(obj) != 0 or np.ndim(values) > 1:
        raise RefusalError("PCB401", "np.insert of a lane's values takes one place", "insert them one after another")
    if obj < -size or obj > size:
        raise IndexError("index is out of bounds")
    new = np.ravel(values) if np.ndim(along) == 1 else np.broadcast_to(values, (1, *along.shape[1:]))
    place, more = np.where(obj < 0, obj + size, obj), new.shape[0]
    numbers = np.arange(size + more)
    moved = np.where(numbers < place, numbers, np.where(numbers < place + more, size + numbers - place, numbers - more))
    found = np.take(np.concatenate([along, new]), moved, axis=0)
    return found if axis is None else np.moveaxis(found, 0, axis)


def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """`numpy.delete`, of one place, or of places that are known."""
    along = np.ravel(arr) if axis is None else np.moveaxis(arr, axis, 0)
    size = along.shape[0]
    if np.ndim(obj) == 0:
        if obj < -size or obj >= size:
            raise IndexError("index is out of bounds")
        numbers = np.arange(size - 1)
        kept = np.where(numbers < np.where(obj < 0, obj + size, obj), numbers, numbers + 1)
    else:
        kept = np.array([place for place in range(size) if place not in obj and place - size not in obj])
    found = np.take(along, kept, axis=0)
    return found if axis is None else np.moveaxis(found, 0, axis)


def choose(a: Any, choices: Any) -> Any:
    if np.any((a < 0) | (a >= len(choices))):
        raise ValueError("invalid entry in choice array")
    found = choices[0]
    for number in range(1, len(choices)):
        found = np.where(a == number, choices[number], found)
    return found


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    found = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = np.where(condition, choice, found)
    return found


def piecewise(x: Any, condlist: Any, funclist: Any) -> Any:
    made = [each(x) if callable(each) else each for each in funclist]
    found = (
        np.zeros_like(x) if len(made) == len(condlist) else np.where(np.ones_like(x) > 0, made[-1], np.zeros_like(x))
    )
    for condition, each in zip(condlist, made, strict=False):
        found = np.where(condition, each, found)
    return found


def unravel_index(indices: Any, shape: Any) -> Any:
    rest, found = indices, []
    for size in reversed(shape):
        found.append(rest % size)
        rest = rest // size
    if np.any((indices < 0) | (rest > 0)):
        raise ValueError("index is out of bounds for array")
    return tuple(reversed(found))


def ravel_multi_index(multi_index: Any, dims: Any) -> Any:
    found: Any = 0
    for place, size in zip(multi_index, dims, strict=True):
        if np.any((place < 0) | (place >= size)):
            raise ValueError("invalid entry in coordinates array")
        found = found * size + place
    return found


def partition(a: Any, kth: Any, axis: int = -1) -> Any:
    """`numpy.partition`, of which the order on both sides of `kth` is left open: it is sorted."""
    return np.sort(a, axis=axis)


def argpartition(a: Any, kth: Any, axis: int = -1) -> Any:
    return np.argsort(a, axis=axis)


def nanargmax(a: Any, axis: Any = None) -> Any:
    if np.any(np.all(np.isnan(a), axis=axis)):
        raise ValueError("All-NaN slice encountered")
    return np.argmax(np.where(np.isnan(a), -np.inf, a), axis=axis)


def nanargmin(a: Any, axis: Any = None) -> Any:
    if np.any(np.all(np.isnan(a), axis=axis)):
        raise ValueError("All-NaN slice encountered")
    return np.argmin(np.where(np.isnan(a), np.inf, a), axis=axis)
