"""The values that a program was traced with, in flat lists that are compared at each call."""

from __future__ import annotations

import hashlib
import operator
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()
"""What a name is that is bound to nothing."""
COPIED = 1 << 20
"""Bytes up to which the contents of an array are copied to be compared; of larger ones a digest is kept."""
CONTENTS = 10_000
"""Of longer containers the length is compared, not the contents."""
CONTAINERS = (dict, list, set, deque)

Read = tuple[Callable[..., Any], Any, Any]
"""`(get, key, value)`: `get(key, MISSING)` was `value`."""


class Record:
    """What has been read, by where it stands. It holds as long as all of it is the same, by identity or as a number."""

    def __init__(self) -> None:
        self._reads: dict[Any, Read] = {}
        self._contents: dict[int, Any] = {}
        self._arrays: dict[int, np.ndarray] = {}
        self._flat: tuple[Read, ...] = ()
        self._flat_contents: tuple[tuple[Any, tuple[Any, ...]], ...] = ()
        self._flat_arrays: tuple[tuple[np.ndarray, Any], ...] = ()

    def copy(self) -> Record:
        """What has been read so far, as a record of its own."""
        found = Record()
        found._reads, found._contents, found._arrays = dict(self._reads), dict(self._contents), dict(self._arrays)
        found._flat, found._flat_contents, found._flat_arrays = self._flat, self._flat_contents, self._flat_arrays
        return found

    def add(self, owner: Any, get: Callable[..., Any], key: Any, value: Any) -> None:
        """`get(key, MISSING)`, something of `owner`, was `value`."""
        self._reads.setdefault((id(owner), key), (get, key, value))

    def add_contents(self, container: Any) -> tuple[Any, ...]:
        """Everything in a list, a dict, a set: the contents, () where they are too many to compare."""
        found = _contents(container)
        self._contents.setdefault(id(container), container)
        return found if len(found) <= CONTENTS else ()

    def add_array(self, array: np.ndarray) -> None:
        """The elements of an array that can change in place."""
        self._arrays.setdefault(id(array), array)

    def settle(self) -> None:
        """Take the present values for those that the program was traced with.

        What changes while it is traced, such as a counter or a cache that fills, would else never be the same again,
        and what cannot even be read again is left out: nothing is compiled anew because it could not be followed.
        """
        reads = {}
        for place, (get, key, _) in list(self._reads.items()):
            try:
                reads[place] = (get, key, get(key, MISSING))
            except Exception:
                continue
        self._reads = reads
        self._flat = tuple(reads.values())
        self._flat_contents = tuple((each, _contents(each)) for each in list(self._contents.values()))
        self._flat_arrays = tuple((array, _elements(array)) for array in list(self._arrays.values()))

    def holds(self) -> bool:
        """Whether everything is still as it was."""
        try:
            for get, key, value in self._flat:
                found = get(key, MISSING)
                if found is not value and not alike(found, value):
                    return False
            for each, contents in self._flat_contents:
                if not _same(_contents(each), contents):
                    return False
            for array, elements in self._flat_arrays:  # noqa: SIM110 -- mostly none, in each warm call
                if _elements(array) != elements:
                    return False
            return True
        except Exception:  # a cell that is empty now, a `__getattr__` that raises
            return False

    def described(self) -> Iterator[tuple[Any, Any]]:
        """Names and values, in the order in which they were read first; arrays are among the values."""
        yield from ((key, value) for _, key, value in self._flat)
        for container, kept in self._flat_contents:
            yield "contents", frozenset(kept) if isinstance(container, set) else kept
        yield from (("array", array) for array, _ in self._flat_arrays)

    def __len__(self) -> int:
        return len(self._reads) + len(self._contents) + len(self._arrays)


def alike(a: Any, b: Any) -> bool:
    """Whether two values that are not one object are the same number, text, array, method, or container of such."""
    if type(a) is not type(b):
        return False
    match a:
        case bool() | int() | str() | bytes() | range() | slice():
            return bool(a == b)
        case float() | complex():
            return repr(a) == repr(b)  # NaN is like NaN, 0.0 is not like -0.0
        case np.generic():
            return bool(a.dtype == b.dtype) and a.tobytes() == b.tobytes()
        case np.ndarray():
            return _elements(a) == _elements(b)
        case tuple():
            return _same(a, b)
        case dict() | list():
            return _same(_contents(a), _contents(b))
        case types.MethodType():
            return a.__self__ is b.__self__ and a.__func__ is b.__func__
        case types.BuiltinMethodType():
            return a.__self__ is b.__self__ and a.__name__ == b.__name__
    return False


def _same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and (
        all(map(operator.is_, a, b)) or all(x is y or alike(x, y) for x, y in zip(a, b, strict=True))
    )


def _contents(container: Any) -> tuple[Any, ...]:
    if len(container) > CONTENTS:
        return (len(container),) * (CONTENTS + 1)
    return (*container, *container.values()) if isinstance(container, dict) else tuple(container)


def _elements(array: np.ndarray) -> tuple[Any, ...]:
    raw = array.tobytes()
    return array.shape, array.dtype, raw if len(raw) <= COPIED else hashlib.blake2b(raw).digest()
