"""Functions and classes of Python's library and of NumPy, written in the language: read in the place of theirs.

What is written in C has no source to be read. Each of these does what the one that it stands for does, with numbers,
arrays, lists and bounded lists.
"""

from __future__ import annotations

import bisect
import collections
import functools
import heapq
import itertools
import math
import operator
import statistics
import sys
from functools import partial
from typing import Any

import numpy as np

from pcbatch.reading import arrays_in_python, numpy_in_python, stdlib_in_python
from pcbatch.reading.arrays_in_python import RefusalError
from pcbatch.reading.lists_in_python import Dict, List, Set
from pcbatch.reading.stdlib_in_python import Counter, DefaultDict, Deque

# -- heapq -------------------------------------------------------------------------------------------------------------


def _towards_root(heap: Any, place: int) -> None:
    item = heap[place]
    while place > 0:
        parent = (place - 1) // 2
        if not item < heap[parent]:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = item


def _towards_leaves(heap: Any, place: int) -> None:
    size, item = len(heap), heap[place]
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child = child + 1
        if not heap[child] < item:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = item


def heappush(heap: Any, item: Any) -> None:
    heap.append(item)
    _towards_root(heap, len(heap) - 1)


def heappop(heap: Any) -> Any:
    last = heap.pop()
    if len(heap) == 0:
        return last
    first = heap[0]
    heap[0] = last
    _towards_leaves(heap, 0)
    return first


def heapify(heap: Any) -> None:
    for place in reversed(range(len(heap) // 2)):
        _towards_leaves(heap, place)


def heapreplace(heap: Any, item: Any) -> Any:
    first = heap[0]
    heap[0] = item
    _towards_leaves(heap, 0)
    return first


def heappushpop(heap: Any, item: Any) -> Any:
    if len(heap) > 0 and heap[0] < item:
        return heapreplace(heap, item)
    return item


def nsmallest(n: int, iterable: Any, key: Any = None) -> list[Any]:
    return sorted(iterable, key=key)[:n]


def nlargest(n: int, iterable: Any, key: Any = None) -> list[Any]:
    return sorted(iterable, key=key, reverse=True)[:n]


# -- bisect ------------------------------------------------------------------------------------------------------------


def bisect_left(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> int:
    low, high = lo, len(a) if hi is None else hi
    while low < high:
        middle = (low + high) // 2
        if (a[middle] if key is None else key(a[middle])) < x:
            low = middle + 1
        else:
            high = middle
    return low


def bisect_right(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> int:
    low, high = lo, len(a) if hi is None else hi
    while low < high:
        middle = (low + high) // 2
        if x < (a[middle] if key is None else key(a[middle])):
            high = middle
        else:
            low = middle + 1
    return low


def _insert_right(a: Any, x: Any, last: int, key: Any) -> None:
    place = last
    while place > 0 and (x < a[place - 1] if key is None else key(x) < key(a[place - 1])):
        a[place] = a[place - 1]
        place = place - 1
    a[place] = x


def _insert_left(a: Any, x: Any, last: int, key: Any) -> None:
    place = last
    while place > 0 and not (a[place - 1] < x if key is None else key(a[place - 1]) < key(x)):
        a[place] = a[place - 1]
        place = place - 1
    a[place] = x


def insort_right(a: Any, x: Any, *, key: Any = None) -> None:
    a.append(x)
    _insert_right(a, x, len(a) - 1, key)


def insort_left(a: Any, x: Any, *, key: Any = None) -> None:
    a.append(x)
    _insert_left(a, x, len(a) - 1, key)


# -- math, statistics, itertools ---------------------------------------------------------------------------------------


def gcd(*integers: int) -> int:
    found = 0
    for each in integers:
        rest = abs(each)
        while rest != 0:
            found, rest = rest, found % rest
    return found


def lcm(*integers: int) -> int:
    found = 1
    for each in integers:
        common = gcd(found, each)
        found = 0 if common == 0 else abs(found // common * each)
    return found


def modf(x: float) -> tuple[float, float]:
    whole = np.trunc(x)
    return x - whole, whole


def remainder(x: float, y: float) -> float:
    return x - y * np.rint(x / y)


def isclose(a: float, b: float, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> bool:
    return a == b or abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)


def factorial(n: int) -> int:
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    found = 1
    for each in range(2, n + 1):
        found = found * each
    return found


def perm(n: int, k: Any = None) -> int:
    found = 1
    for each in range(n if k is None else k):
        found = found * (n - each)
    return found


def comb(n: int, k: int) -> int:
    found = 1
    for each in range(min(k, n - k) if k <= n else 0):
        found = found * (n - each) // (each + 1)
    return found if k <= n else 0


def power_modulo(base: int, exp: int, mod: int) -> int:
    """`pow` of three ints; products have 64 bits, so a modulus of more than 32 is refused, as an OverflowError."""
    for each in (base, exp, mod):
        if np.ndim(each) != 0 or not isinstance(each, int):
            raise RefusalError("PCB401", "TypeError: pow(..) with a modulus takes ints", "write int(x)")
    rest, turns, divisor = np.int64(base), np.int64(exp), np.int64(mod)
    if divisor == 0:
        raise ValueError("pow() 3rd argument cannot be 0")
    if abs(divisor) > 2147483648:
        raise OverflowError("a modulus of more than 32 bits")
    rest = rest % divisor
    if turns < 0:
        rest = _inverse(rest, divisor)
        turns = -turns
    found = np.int64(1) % divisor
    while turns > 0:
        if turns % 2 == 1:
            found = found * rest % divisor
        rest = rest * rest % divisor
        turns = turns // 2
    return int(found)


def _inverse(number: Any, divisor: Any) -> Any:
    """The number whose product with another one is 1, by Euclid's algorithm."""
    last, rest, before, factor = divisor, number, np.int64(0), np.int64(1)
    while rest != 0:
        quotient = last // rest
        last, rest = rest, last - quotient * rest
        before, factor = factor, before - quotient * factor
    if abs(last) != 1:
        raise ValueError("base is not invertible for the given modulus")
    return before * last % divisor


def mean(data: Any) -> Any:
    """`statistics.mean` and `statistics.fmean`."""
    return sum(data) / len(data)


def median(data: Any) -> Any:
    ordered, half = sorted(data), len(data) // 2
    return ordered[half] if len(data) % 2 else (ordered[half - 1] + ordered[half]) / 2


def pvariance(data: Any, mu: Any = None) -> Any:
    centre = mean(data) if mu is None else mu
    return sum((each - centre) ** 2 for each in data) / len(data)


def variance(data: Any, xbar: Any = None) -> Any:
    centre = mean(data) if xbar is None else xbar
    return sum((each - centre) ** 2 for each in data) / (len(data) - 1)


def pstdev(data: Any, mu: Any = None) -> Any:
    return math.sqrt(pvariance(data, mu))


def stdev(data: Any, xbar: Any = None) -> Any:
    return math.sqrt(variance(data, xbar))


def accumulate(iterable: Any, func: Any = None, *, initial: Any = None) -> list[Any]:
    totals = [] if initial is None else [initial]
    for each in iterable:
        if not totals:
            totals.append(each)
        else:
            totals.append(totals[-1] + each if func is None else func(totals[-1], each))
    return totals


CLASSES: dict[type, type] = {
    List: list,
    Set: set,
    Dict: dict,
    Deque: collections.deque,
    DefaultDict: collections.defaultdict,
    Counter: collections.Counter,
}
"""The classes of Python's that those written in the language stand for."""

ONCE = frozenset({_towards_root, _towards_leaves, _insert_right, _insert_left})
"""Loops over a list that they change: of one whose length differs by lane, each is a function of the program."""


def _standing(own: Any, *modules: Any) -> dict[Any, Any]:
    """The functions of a module of ours, by those of libraries whose names they have."""
    functions = {n: f for n, f in vars(own).items() if getattr(f, "__code__", None) and f.__module__ == own.__name__}
    return {getattr(each, n): f for n, f in functions.items() for each in modules if hasattr(each, n)}


_OPERATORS = {np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul}
_REDUCTIONS = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_or: np.any,
    np.logical_and: np.all,
}

FUNCTIONS: dict[Any, Any] = {
    **_standing(sys.modules[__name__], heapq, bisect, math, statistics, itertools),
    **_standing(arrays_in_python, np, np.linalg, np.lib.stride_tricks),
    **_standing(numpy_in_python, np),
    **_standing(stdlib_in_python, itertools, functools, heapq, statistics),
    itertools.chain.from_iterable: stdlib_in_python.chain_from_iterable,
    statistics.fmean: mean,
    collections.deque: Deque,
    collections.defaultdict: DefaultDict,
    collections.Counter: Counter,
    np.vectorize: arrays_in_python.Vectorize,
    np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor,
    np.left_shift: operator.lshift,
    np.right_shift: operator.rshift,
    **{ufunc.reduce: partial(arrays_in_python.along, function) for ufunc, function in _REDUCTIONS.items()},
    np.gcd.reduce: partial(arrays_in_python.reduced, math.gcd, 0),
    np.lcm.reduce: partial(arrays_in_python.reduced, math.lcm, 1),
    np.add.accumulate: partial(arrays_in_python.along, np.cumsum),
    np.multiply.accumulate: partial(arrays_in_python.along, np.cumprod),
    **{
        ufunc.accumulate: partial(arrays_in_python.accumulated, ufunc)
        for ufunc in (np.maximum, np.minimum, np.logical_or, np.logical_and)
    },
    **{
        getattr(ufunc, name): partial(each, _OPERATORS.get(ufunc, ufunc))
        for ufunc in (np.add, np.subtract, np.multiply, np.maximum, np.minimum)
        for name, each in (("outer", arrays_in_python.each_with_each), ("at", arrays_in_python.at_each))
    },
}
"""Replacements of libraries' functions where an argument is a lane's, perhaps with first arguments, and of classes."""
