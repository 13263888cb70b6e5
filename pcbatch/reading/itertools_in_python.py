"""Functions of `itertools` and of `functools`, written in the language: read as `in_python` says."""

from __future__ import annotations

import functools
import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Any


def chain(*iterables: Any) -> Iterator[Any]:
    """`itertools.chain`."""
    for each in iterables:
        yield from each


def chain_from_iterable(iterable: Any) -> Iterator[Any]:
    """`itertools.chain.from_iterable`."""
    for each in iterable:
        yield from each


def islice(iterable: Any, *bounds: Any) -> Iterator[Any]:
    """`itertools.islice`."""
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
    first, by = 0 if start is None else start, 1 if step is None else step
    if stop is not None and stop <= 0:
        return
    for place, each in enumerate(iterable):
        if place >= first and (place - first) % by == 0 and (stop is None or place < stop):
            yield each
        if stop is not None and place + 1 >= stop:
            return


def pairwise(iterable: Any) -> Iterator[Any]:
    """`itertools.pairwise`."""
    is_first, last = True, None
    for each in iterable:
        if not is_first:
            yield last, each
        is_first, last = False, each


def batched(iterable: Any, n: int) -> Iterator[Any]:
    """`itertools.batched`."""
    items = list(iterable)
    for start in range(0, len(items), n):
        yield tuple(items[start : start + n])


def zip_longest(*iterables: Any, fillvalue: Any = None) -> Iterator[Any]:
    """`itertools.zip_longest`."""
    rows = [list(each) for each in iterables]
    for place in range(max(len(row) for row in rows)):
        yield tuple([row[place] if place < len(row) else fillvalue for row in rows])


def repeat(object: Any, times: Any = None) -> Iterator[Any]:
    """`itertools.repeat`."""
    if times is None:
        while True:
            yield object
    for _ in range(times):
        yield object


def count(start: Any = 0, step: Any = 1) -> Iterator[Any]:
    """`itertools.count`."""
    number = start
    while True:
        yield number
        number = number + step


def cycle(iterable: Any) -> Iterator[Any]:
    """`itertools.cycle`."""
    items = list(iterable)
    while len(items) > 0:
        yield from items


def takewhile(predicate: Any, iterable: Any) -> Iterator[Any]:
    """`itertools.takewhile`."""
    for each in iterable:
        if not predicate(each):
            return
        yield each


def dropwhile(predicate: Any, iterable: Any) -> Iterator[Any]:
    """`itertools.dropwhile`."""
    is_dropping = True
    for each in iterable:
        is_dropping = is_dropping and bool(predicate(each))
        if not is_dropping:
            yield each


def compress(data: Any, selectors: Any) -> Iterator[Any]:
    """`itertools.compress`."""
    for each, is_kept in zip(data, selectors, strict=False):
        if is_kept:
            yield each


def filterfalse(predicate: Any, iterable: Any) -> Iterator[Any]:
    """`itertools.filterfalse`."""
    for each in iterable:
        if not (each if predicate is None else predicate(each)):
            yield each


def starmap(function: Any, iterable: Any) -> Iterator[Any]:
    """`itertools.starmap`."""
    for each in iterable:
        yield function(*each)


def product(*iterables: Any, repeat: int = 1) -> list[Any]:
    """`itertools.product`."""
    found: list[Any] = [()]
    for each in [list(each) for each in iterables] * repeat:
        found = [(*before, item) for before in found for item in each]
    return found


def permutations(iterable: Any, r: Any = None) -> list[Any]:
    """`itertools.permutations`."""
    items = list(iterable)
    return [tuple([items[k] for k in places]) for places in itertools.permutations(range(len(items)), r)]


def combinations(iterable: Any, r: int) -> list[Any]:
    """`itertools.combinations`."""
    items = list(iterable)
    return [tuple([items[k] for k in places]) for places in itertools.combinations(range(len(items)), r)]


def combinations_with_replacement(iterable: Any, r: int) -> list[Any]:
    """`itertools.combinations_with_replacement`."""
    items = list(iterable)
    return [tuple([items[k] for k in at]) for at in itertools.combinations_with_replacement(range(len(items)), r)]


def merge(*iterables: Any, key: Any = None, reverse: bool = False) -> list[Any]:
    """`heapq.merge`, of sequences that are in order."""
    return sorted([item for each in iterables for item in each], key=key, reverse=reverse)


class Compared:
    """A key that is compared by a function of two: see `cmp_to_key`."""

    def __init__(self, mycmp: Any, of: Any):
        self.mycmp = mycmp
        self.of = of

    def __lt__(self, other: Any) -> bool:
        """Tell whether the function puts this one first."""
        return self.mycmp(self.of, other.of) < 0

    def __gt__(self, other: Any) -> bool:
        """Tell whether the function puts the other one first."""
        return self.mycmp(self.of, other.of) > 0


def cmp_to_key(mycmp: Any) -> Callable[[Any], Any]:
    """`functools.cmp_to_key`."""
    return lambda of: Compared(mycmp, of)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    itertools.chain: chain,
    itertools.chain.from_iterable: chain_from_iterable,
    itertools.islice: islice,
    itertools.pairwise: pairwise,
    itertools.zip_longest: zip_longest,
    itertools.repeat: repeat,
    itertools.count: count,
    itertools.cycle: cycle,
    itertools.takewhile: takewhile,
    itertools.dropwhile: dropwhile,
    itertools.compress: compress,
    itertools.filterfalse: filterfalse,
    itertools.starmap: starmap,
    itertools.product: product,
    itertools.permutations: permutations,
    itertools.combinations: combinations,
    itertools.combinations_with_replacement: combinations_with_replacement,
    heapq.merge: merge,
    functools.cmp_to_key: cmp_to_key,
    getattr(itertools, "batched", "batched"): batched,  # of Python 3.12 and later
}
"""Replacements of functions where an argument is a lane's."""
