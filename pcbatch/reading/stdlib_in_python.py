"""Functions of `itertools`, `functools` and `statistics`, and classes of `collections`: read as `in_python` says."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any


def chain(*iterables: Any) -> Iterator[Any]:
    for each in iterables:
        yield from each


def chain_from_iterable(iterable: Any) -> Iterator[Any]:
    for each in iterable:
        yield from each


def islice(iterable: Any, *bounds: Any) -> Iterator[Any]:
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
    is_first, last = True, None
    for each in iterable:
        if not is_first:
            yield last, each
        is_first, last = False, each


def batched(iterable: Any, n: int) -> Iterator[Any]:
    items = list(iterable)
    for start in range(0, len(items), n):
        yield tuple(items[start : start + n])


def zip_longest(*iterables: Any, fillvalue: Any = None) -> Iterator[Any]:
    rows = [list(each) for each in iterables]
    for place in range(max(len(row) for row in rows)):
        yield tuple([row[place] if place < len(row) else fillvalue for row in rows])


def repeat(object: Any, times: Any = None) -> Iterator[Any]:
    if times is None:
        while True:
            yield object
    for _ in range(times):
        yield object


def count(start: Any = 0, step: Any = 1) -> Iterator[Any]:
    number = start
    while True:
        yield number
        number = number + step


def cycle(iterable: Any) -> Iterator[Any]:
    items = list(iterable)
    while len(items) > 0:
        yield from items


def takewhile(predicate: Any, iterable: Any) -> Iterator[Any]:
    for each in iterable:
        if not predicate(each):
            return
        yield each


def dropwhile(predicate: Any, iterable: Any) -> Iterator[Any]:
    is_dropping = True
    for each in iterable:
        is_dropping = is_dropping and bool(predicate(each))
        if not is_dropping:
            yield each


def compress(data: Any, selectors: Any) -> Iterator[Any]:
    for each, is_kept in zip(data, selectors, strict=False):
        if is_kept:
            yield each


def filterfalse(predicate: Any, iterable: Any) -> Iterator[Any]:
    for each in iterable:
        if not (each if predicate is None else predicate(each)):
            yield each


def starmap(function: Any, iterable: Any) -> Iterator[Any]:
    for each in iterable:
        yield function(*each)


def product(*iterables: Any, repeat: int = 1) -> list[Any]:
    found: list[Any] = [()]
    for each in [list(each) for each in iterables] * repeat:
        found = [(*before, item) for before in found for item in each]
    return found


def permutations(iterable: Any, r: Any = None) -> list[Any]:
    items = list(iterable)
    return [tuple([items[k] for k in places]) for places in itertools.permutations(range(len(items)), r)]


def combinations(iterable: Any, r: int) -> list[Any]:
    items = list(iterable)
    return [tuple([items[k] for k in places]) for places in itertools.combinations(range(len(items)), r)]


def combinations_with_replacement(iterable: Any, r: int) -> list[Any]:
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
    return lambda of: Compared(mycmp, of)


LinearRegression = collections.namedtuple("LinearRegression", ("slope", "intercept"))


def harmonic_mean(data: Any) -> Any:
    return len(data) / sum(1 / each for each in data)


def geometric_mean(data: Any) -> Any:
    return math.exp(sum(math.log(each) for each in data) / len(data))


def median_low(data: Any) -> Any:
    return sorted(data)[(len(data) - 1) // 2]


def median_high(data: Any) -> Any:
    return sorted(data)[len(data) // 2]


def mode(data: Any) -> Any:
    """`statistics.mode`: the first one of those that are there most often."""
    items = list(data)
    counts = [sum(1 if each == other else 0 for other in items) for each in items]
    found, most = items[0], counts[0]
    for each, often in zip(items[1:], counts[1:], strict=True):
        if often > most:
            found, most = each, often
    return found


def quantiles(data: Any, *, n: int = 4, method: str = "exclusive") -> list[Any]:
    ordered, size = sorted(data), len(data)
    found = []
    for k in range(1, n):
        if method == "inclusive":
            place, rest = divmod(k * (size - 1), n)
            found.append((ordered[place] * (n - rest) + ordered[place + 1] * rest) / n)
        else:
            place = min(max(k * (size + 1) // n, 1), size - 1)
            rest = k * (size + 1) - place * n
            found.append((ordered[place - 1] * (n - rest) + ordered[place] * rest) / n)
    return found


def _products(x: Any, y: Any) -> Any:
    """The sum of the products of what two rows have beside their means."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))


def covariance(x: Any, y: Any) -> Any:
    return _products(x, y) / (len(x) - 1)


def correlation(x: Any, y: Any) -> Any:
    return _products(x, y) / math.sqrt(_products(x, x) * _products(y, y))


def linear_regression(x: Any, y: Any) -> Any:
    slope = _products(x, y) / _products(x, x)
    return LinearRegression(slope, sum(y) / len(y) - slope * (sum(x) / len(x)))


def while_loop(
    convert: Any,
    cond: Any,
    body: Any,
    loop_vars: Any,
    parallel_iterations: Any = 10,
    swap_memory: Any = False,
    maximum_iterations: Any = None,
    name: Any = None,
) -> Any:
    """`tf.while_loop` of numbers and arrays, which `convert` makes tensors of."""
    values = tuple([convert(each) for each in loop_vars])
    turns = 0
    while cond(*values):
        if maximum_iterations is not None and turns >= maximum_iterations:
            break
        values = tuple(body(*values))
        turns += 1
    return list(values) if isinstance(loop_vars, list) else values


def map_fn(convert: Any, blank: Any, fn: Any, elems: Any) -> Any:
    """`tf.map_fn` over the rows of one array, into the rows of one that is `blank`; `fn` gets tensors of its own."""
    for place in range(len(blank)):
        blank[place] = convert(fn(convert(elems[place])))
    return blank


def scan(convert: Any, blank: Any, fn: Any, elems: Any, initializer: Any = None, reverse: Any = False) -> Any:
    """`tf.scan` over the rows of one array, into the rows of one that is `blank`."""
    last = len(blank) - 1
    state = elems[last if reverse else 0] if initializer is None else convert(initializer)
    if initializer is None:
        blank[last if reverse else 0] = state
    for turn in range(1 if initializer is None else 0, len(blank)):
        place = last - turn if reverse else turn
        state = convert(fn(convert(state), convert(elems[place])))
        blank[place] = state
    return blank


# -- collections -------------------------------------------------------------------------------------------------------


class Deque:
    """`collections.deque`."""

    def __init__(self, iterable: Any = (), maxlen: Any = None):
        self.items: list[Any] = []
        self.maxlen = maxlen
        self.extend(iterable)

    def append(self, x: Any) -> None:
        self.items.append(x)
        if self.maxlen is not None and len(self.items) > self.maxlen:
            self.items.pop(0)

    def appendleft(self, x: Any) -> None:
        self.items.insert(0, x)
        if self.maxlen is not None and len(self.items) > self.maxlen:
            self.items.pop()

    def extend(self, iterable: Any) -> None:
        for each in iterable:
            self.append(each)

    def extendleft(self, iterable: Any) -> None:
        for each in iterable:
            self.appendleft(each)

    def pop(self) -> Any:
        return self.items.pop()

    def popleft(self) -> Any:
        return self.items.pop(0)

    def clear(self) -> None:
        self.items.clear()

    def copy(self) -> Deque:
        return Deque(self.items, self.maxlen)

    def reverse(self) -> None:
        self.items.reverse()

    def rotate(self, n: int = 1) -> None:
        size = len(self.items)
        if size > 0:
            cut = -n % size
            self.items = self.items[cut:] + self.items[:cut]

    def count(self, x: Any) -> int:
        return sum(1 if each == x else 0 for each in self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Any:
        return iter(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.items[index] = value

    def __contains__(self, x: Any) -> bool:
        return x in self.items


class DefaultDict:
    """`collections.defaultdict`."""

    def __init__(self, default_factory: Any = None, given: Any = None, **named: Any):
        self.default_factory = default_factory
        self.entries: dict[Any, Any] = {**({} if given is None else dict(given)), **named}

    def __getitem__(self, key: Any) -> Any:
        if key not in self.entries:
            if self.default_factory is None:
                raise KeyError(key)
            self.entries[key] = self.default_factory()
        return self.entries[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.entries[key] = value

    def __contains__(self, key: Any) -> bool:
        return key in self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Any:
        return iter(self.entries)

    def keys(self) -> Any:
        return self.entries.keys()

    def values(self) -> Any:
        return self.entries.values()

    def items(self) -> Any:
        return self.entries.items()

    def get(self, key: Any, default: Any = None) -> Any:
        return self.entries.get(key, default)

    def pop(self, key: Any) -> Any:
        return self.entries.pop(key)


class Counter(DefaultDict):
    """`collections.Counter`."""

    def __init__(self, iterable: Any = None, **named: Any):
        super().__init__(int, None, **named)
        if iterable is not None:
            self.update(iterable)

    def update(self, iterable: Any) -> None:
        if isinstance(iterable, dict):
            for key, count in iterable.items():
                self.entries[key] = self[key] + count
        else:
            for key in iterable:
                self.entries[key] = self[key] + 1

    def __getitem__(self, key: Any) -> Any:
        return self.entries.get(key, 0)

    def most_common(self, n: Any = None) -> Any:
        return sorted(self.entries.items(), key=lambda entry: -entry[1])[:n]

    def total(self) -> Any:
        return sum(self.entries.values())
