"""Classes of Python's `collections`, written in the language: read in the place of theirs, as `in_python` says."""

from __future__ import annotations

from typing import Any


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
