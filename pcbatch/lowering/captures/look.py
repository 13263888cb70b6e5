"""Whether a call captures the very same as one before it: every free value is read again, and compared.

`collect` reads the same, tells operands from statics and finds their types, for every call that is the first of its
kind. A look only compares, a microsecond for each value, and says that it does not know wherever it would have to find
out: then `collect` does. It keeps no array alive that the user's code has let go.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any, Protocol

import numpy as np

from pcbatch.ir.types import Type
from pcbatch.lowering.captures.captured import Captured, FreeValues, Namespace, Step, is_all_arrays
from pcbatch.lowering.captures.fingerprints import Same, shallow
from pcbatch.lowering.captures.glance import Glance, Place, places

COMPUTED = "computed"
"""The key of what a property, or the like, makes anew at each look."""
CONSTANTS = (bool, int, float, complex, str, bytes, type(None))
"""Objects of these classes never change."""


class Host(Protocol):
    """What has to be known of arrays; see `backends.host`."""

    def is_array(self, value: Any) -> bool:
        """As there."""

    def is_steady(self, value: Any) -> bool:
        """As there."""

    def type_of(self, value: Any) -> Type:
        """As there."""


class _UnknownError(Exception):
    """Something of which it cannot be told at a glance whether it is the same."""


@dataclass(frozen=True)
class _Path:
    """Where a free value is found: at the end of `steps` from what `root` gives, and what it was.

    An operand has the name `operand` and `parts` to compare its arrays with. A static has its `key`, and its `value` if
    that cannot change.
    """

    root: Callable[[], Any]
    steps: tuple[Step, ...]
    operand: str | None = None
    parts: _Parts | _Leaf | None = None
    key: Any = None
    value: Any = None
    is_constant: bool = False


class Look:
    """What a call has captured, to be compared with what the next one would."""

    def __init__(self, paths: Sequence[tuple[_Path, Sequence[Place]]], is_array: Callable[[Any], bool]):
        self._paths = tuple(path for path, _ in paths)
        self._glance = Glance(place for _, known in paths for place in known)
        self._others = tuple(path for path, known in paths if not known)
        """What takes more than a glance."""
        self._is_array = is_array

    @classmethod
    def at(
        cls,
        captured: Captured,
        free: FreeValues,
        namespaces: Mapping[str, Namespace],
        keys: Sequence[tuple[str, str, Any]],
        host: Host,
    ) -> Look | None:
        """A look at what has just been `captured`, whose statics have these `keys`; None if it takes more than that."""
        known = {(function, text): key for function, text, key in keys}
        values = {(function, text): value for function, text, value in captured.statics}
        found: list[tuple[_Path, Sequence[Place]]] = []
        try:
            for function, read in free.paths.items():
                operands = captured.operands[function]
                for steps in read:
                    ends = [number for number, (text, _, _) in enumerate(steps) if text in operands]
                    root = namespaces[function].reader(steps[0][2])
                    if ends:
                        name = operands[steps[ends[0]][0]]
                        parts = _followed(captured.values[name], host)
                        found.append((_Path(root, steps[1 : ends[0] + 1], operand=name, parts=parts), ()))
                        continue
                    place = (function, steps[-1][0])
                    if place not in known:
                        return None  # a name that is bound to nothing
                    key, value = known[place], values[place]
                    is_constant = isinstance(key, Same) or type(value) in CONSTANTS
                    kept = value if is_constant else None
                    path = _Path(root, steps[1:], key=key, value=kept, is_constant=is_constant)
                    names = [key for _, kind, key in steps if kind == "attribute" or key is steps[0][2]]
                    is_named = is_constant and len(names) == len(steps)
                    seen = places(namespaces[function], names) if is_named else []
                    found.append((path, seen if seen and seen[-1][2] is value else ()))
        except _UnknownError:
            return None
        look = cls(found, host.is_array)
        now, leaves = look.leaves(), [leaf for each in captured.leaves.values() for leaf in each]
        # Another thread may have changed a list meanwhile.
        is_same = now is not None and len(now) == len(leaves) and all(map(is_, now, leaves))
        return look if is_same else None

    def leaves(self) -> list[Any] | None:
        """The leaves of all operands, one operand after the other, if everything is the same; None if it may differ."""
        into: list[Any] = []
        paths = self._others if self._glance.is_same() else self._paths
        if not paths:
            return into
        found: dict[str, Any] = {}
        try:
            for path in paths:
                value = path.root()
                for _, kind, key in path.steps:
                    if type(value) is not types.ModuleType and is_all_arrays(value, self._is_array):
                        return None
                    value = getattr(value, key) if kind == "attribute" else value[key]
                if path.operand is None:
                    if not self._is_same(path, value):
                        return None
                elif path.operand in found:
                    if found[path.operand] is not value:
                        return None
                else:
                    assert path.parts is not None
                    if not path.parts.take(value, into):
                        return None
                    found[path.operand] = value
        except Exception:  # a name or an attribute that is gone, or whatever a class of the user's raises
            return None
        if len(found) > 1 and len(set(map(id, found.values()))) < len(found):
            return None  # two names for one array, which are one operand
        return into

    def _is_same(self, path: _Path, value: Any) -> bool:
        if path.is_constant:
            if value is path.value:
                return True
            if isinstance(path.key, Same):
                return False
        if is_all_arrays(value, self._is_array):
            return False
        return bool(path.key == COMPUTED or path.key == shallow(value))


# -- arrays and structures of them -------------------------------------------------------------------------------------


def _call(known: Callable[[], Any]) -> Any:
    return known()


class _Leaf:
    """An array, by identity; what can change in place is asked for its type, too."""

    def __init__(self, value: Any, host: Host):
        try:
            self.known: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            if not isinstance(value, np.generic):
                raise _UnknownError from None
            self.known = lambda: value
        self.is_steady = host.is_steady(value) or isinstance(value, np.generic)
        self._type_of: Callable[[Any], Any] = _numbers if type(value) is np.ndarray else host.type_of
        self._type = None if self.is_steady else self._type_of(value)

    def take(self, value: Any, into: list[Any]) -> bool:
        """Whether `value` is the same array, of the same type; then it is put `into` a list."""
        into.append(value)
        return value is self.known() and (self.is_steady or bool(self._type_of(value) == self._type))


def _numbers(array: np.ndarray) -> tuple[Any, ...]:
    """What can change of an array without its numbers."""
    return array.dtype, array.shape


class _Parts:
    """A tuple, a list or a dict of arrays, or of such; a named tuple, too."""

    def __init__(self, value: Any, host: Host):
        self.kind = type(value)
        self.keys = tuple(value) if isinstance(value, dict) else None
        self.parts = [_followed(each, host) for each in self._items(value)]
        self.known: list[Callable[[], Any]] | None = None
        if all(isinstance(part, _Leaf) and part.is_steady for part in self.parts):
            self.known = [part.known for part in self.parts if isinstance(part, _Leaf)]

    def _items(self, value: Any) -> list[Any]:
        return list(value.values() if self.keys is not None else value)

    def take(self, value: Any, into: list[Any]) -> bool:
        """Whether `value` has the same arrays in the same places; then they are put `into` a list."""
        if type(value) is not self.kind or len(value) != len(self.parts):
            return False
        if self.keys is not None and tuple(value) != self.keys:
            return False
        items = self._items(value)
        if self.known is not None:
            into += items
            return all(map(is_, items, map(_call, self.known)))
        return all(part.take(item, into) for part, item in zip(self.parts, items, strict=True))


def _followed(value: Any, host: Host) -> _Parts | _Leaf:
    return _Parts(value, host) if isinstance(value, (dict, tuple, list)) else _Leaf(value, host)
