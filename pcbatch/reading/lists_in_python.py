"""Lists, sets and dicts whose length differs by lane, written in the language: read in the place of Python's.

The elements of a list are rows: of each number in an element there is an array, `rows.room` long, of which the first
`length` count. What `rows` can do stands in `lengths`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class List:
    """`list`."""

    rows: Any
    length: Any

    def append(self, x: Any) -> None:
        self.rows[self.rows.free(self.length)] = x
        self.length = self.length + 1

    def extend(self, xs: Any) -> None:
        for x in self.copy() if xs is self else xs:
            self.append(x)

    def insert(self, index: Any, x: Any) -> None:
        self.rows.free(self.length)
        at = index + self.length if index < 0 else index
        at = min(max(at, 0), self.length)
        places = np.arange(self.rows.room)
        self.rows.reorder(np.where(places > at, places - 1, places))
        self.rows[at] = x
        self.length = self.length + 1

    def pop(self, index: Any = None) -> Any:
        if index is None:
            x = self.rows.released(self.rows[self.rows.last(self.length)])
            self.length = self.length - 1
            return x
        at = self.rows.place(index, self.length)
        x = self.rows.released(self.rows[at])
        places = np.arange(self.rows.room)
        self.rows.reorder(np.where(places < at, places, np.minimum(places + 1, self.rows.room - 1)))
        self.length = self.length - 1
        return x

    def remove(self, x: Any) -> None:
        self.pop(self.index(x))

    def clear(self) -> None:
        self.length = 0

    def reverse(self) -> None:
        places = np.arange(self.rows.room)
        self.rows.reorder(np.where(places < self.length, self.length - 1 - places, places))

    def copy(self) -> Any:
        return self.rows.list(np.arange(self.rows.room), self.length)

    def sort(self, key: Any = None, reverse: bool = False) -> None:
        keys = self if key is None else self._keys(key)
        places = np.arange(self.rows.room)
        before = keys.rows.before(reverse) & (places < self.length)
        self.rows.reorder(np.argsort(np.where(places < self.length, np.sum(before, axis=1), places)))

    def _keys(self, key: Any) -> Any:
        keys = self.rows.empty()
        for k in range(self.length):
            keys.append(key(self.rows[k]))
        return keys

    def index(self, x: Any) -> Any:
        found = self.rows.equal(x, self.length)
        if not np.any(found):
            raise ValueError("the value is not in the list")
        return int(np.argmax(found))

    def count(self, x: Any) -> Any:
        return int(np.sum(self.rows.equal(x, self.length)))

    def part(self, lower: Any, upper: Any, step: Any) -> Any:
        by = 1 if step is None else step
        low, high = (0, self.length) if by > 0 else (-1, self.length - 1)
        first, last = (low, high) if by > 0 else (high, low)
        if lower is not None:
            first = min(max(lower + self.length if lower < 0 else lower, low), high)
        if upper is not None:
            last = min(max(upper + self.length if upper < 0 else upper, low), high)
        count = (last - first + by - 1) // by if by > 0 else (first - last - by - 1) // -by
        places = first + by * np.arange(self.rows.room)
        return self.rows.list(np.minimum(np.maximum(places, 0), self.rows.room - 1), max(count, 0))

    def __len__(self) -> int:
        return self.length

    def __bool__(self) -> bool:
        return self.length > 0

    def __getitem__(self, index: Any) -> Any:
        return self.rows[self.rows.place(index, self.length)]

    def __setitem__(self, index: Any, x: Any) -> None:
        self.rows[self.rows.place(index, self.length)] = x

    def __contains__(self, x: Any) -> bool:
        return bool(np.any(self.rows.equal(x, self.length)))

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, list) or len(other) != self.length:
            return False
        return all(self.rows[k] == x for k, x in enumerate(other))

    def __ne__(self, other: Any) -> Any:
        return not self == other

    def __lt__(self, other: Any) -> Any:
        return _comes_before(self, other)

    def __gt__(self, other: Any) -> Any:
        return _comes_before(other, self)

    def __le__(self, other: Any) -> Any:
        return not _comes_before(other, self)

    def __ge__(self, other: Any) -> Any:
        return not _comes_before(self, other)

    def __add__(self, other: Any) -> Any:
        both = self.copy()
        both.extend(other)
        return both

    def __radd__(self, other: Any) -> Any:
        both = self.copy()
        both.clear()
        both.extend(other)
        both.extend(self)
        return both

    def __mul__(self, times: Any) -> Any:
        many = self.copy()
        many.clear()
        for _ in range(times):
            many.extend(self)
        return many

    def __rmul__(self, times: Any) -> Any:
        return self * times

    def __iadd__(self, other: Any) -> Any:
        self.extend(other)
        return self


def _comes_before(xs: Any, ys: Any) -> Any:
    """Tell whether a list comes before another one: the first items that differ say so, else the lengths."""
    if len(xs) == 0 or len(ys) == 0:
        return len(xs) < len(ys)
    for k in range(min(len(xs), len(ys))):
        if xs[k] != ys[k]:
            return xs[k] < ys[k]
    return len(xs) < len(ys)


class Set:
    """`set`; the order is that in which elements were added."""

    def __init__(self, iterable: Any):
        self.items: Any = []
        self.update(iterable)

    def add(self, x: Any) -> None:
        if x not in self.items:
            self.items.append(x)

    def update(self, iterable: Any) -> None:
        for x in iterable:
            self.add(x)

    def discard(self, x: Any) -> None:
        if x in self.items:
            self.items.remove(x)

    def remove(self, x: Any) -> None:
        if x not in self.items:
            raise KeyError(x)
        self.items.remove(x)

    def pop(self) -> Any:
        if len(self.items) == 0:
            raise KeyError("pop from an empty set")
        return self.items.pop(0)

    def clear(self) -> None:
        self.items.clear()

    def copy(self) -> Any:
        return Set(self.items)

    def union(self, other: Any) -> Any:
        both = Set(self.items)
        both.update(other)
        return both

    def intersection(self, other: Any) -> Any:
        return Set([x for x in self.items if x in other])

    def difference(self, other: Any) -> Any:
        return Set([x for x in self.items if x not in other])

    def issubset(self, other: Any) -> Any:
        return all(x in other for x in self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __bool__(self) -> bool:
        return len(self.items) > 0

    def __iter__(self) -> Any:
        return iter(self.items)

    def __contains__(self, x: Any) -> bool:
        return x in self.items

    def __or__(self, other: Any) -> Any:
        return self.union(other)

    def __and__(self, other: Any) -> Any:
        return self.intersection(other)

    def __sub__(self, other: Any) -> Any:
        return self.difference(other)

    def __le__(self, other: Any) -> Any:
        return self.issubset(other)

    def __eq__(self, other: Any) -> Any:
        return len(self.items) == len(other) and self.issubset(other)

    def __ne__(self, other: Any) -> Any:
        return not self == other


class Dict:
    """`dict`."""

    def __init__(self, entries: Any):
        self.names: Any = []
        self.contents: Any = []
        for key, value in entries:
            self[key] = value

    def __getitem__(self, key: Any) -> Any:
        if key not in self.names:
            raise KeyError(key)
        return self.contents[self.names.index(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        if key in self.names:
            self.contents[self.names.index(key)] = value
        else:
            self.names.append(key)
            self.contents.append(value)

    def copy_of(self, entries: Any) -> Any:
        for key, value in entries:
            self[key] = value
        return self

    def put(self, entry: Any) -> None:
        self[entry[0]] = entry[1]

    def get(self, key: Any, default: Any = None) -> Any:
        if key in self.names:
            return self.contents[self.names.index(key)]
        return default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self.names:
            self[key] = default
        return self[key]

    def pop(self, key: Any, *default: Any) -> Any:
        if key not in self.names:
            if len(default) > 0:
                return default[0]
            raise KeyError(key)
        at = self.names.index(key)
        self.names.pop(at)
        return self.contents.pop(at)

    def update(self, other: Any) -> None:
        for key, value in other.items():
            self[key] = value

    def clear(self) -> None:
        self.names.clear()
        self.contents.clear()

    def copy(self) -> Any:
        return Dict(zip(self.names, self.contents, strict=False))

    def keys(self) -> Any:
        return self.names

    def values(self) -> Any:
        return self.contents

    def items(self) -> Any:
        return zip(self.names, self.contents, strict=False)

    def __len__(self) -> int:
        return len(self.names)

    def __bool__(self) -> bool:
        return len(self.names) > 0

    def __iter__(self) -> Any:
        return iter(self.names)

    def __contains__(self, key: Any) -> bool:
        return key in self.names

    def __delitem__(self, key: Any) -> None:
        self.pop(key)
