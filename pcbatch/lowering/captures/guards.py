"""The guards of a program: the places that it read, each with its value, which every call compares."""

from __future__ import annotations

import hashlib
import types
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from pcbatch.ir.types import Type
from pcbatch.lowering.captures.captured import Same, shallow, without_identity
from pcbatch.lowering.captures.guarded_paths import MISSING, GoneError, Lead, Place, leads, names_read

CONSTANTS = (bool, int, float, complex, str, bytes, types.NoneType)
"""Objects of these classes never change."""


def contents(value: Any) -> Any:
    """A hashable key of a value with the elements of NumPy arrays: of one that is part of a program."""
    return _key_of(value, _elements, ())


def around_arrays(value: Any) -> Any:
    """A hashable key of a value in which arrays in containers are but places: each is read there at every call."""
    return shallow(value) if hasattr(type(value), "__array__") else _key_of(value, _place_of_array, ())


def _elements(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return None
    raw = np.ascontiguousarray(value).tobytes()
    return "array", value.dtype.str, value.shape, hashlib.blake2b(raw).digest()


def _place_of_array(value: Any) -> Any:
    return ("array",) if hasattr(type(value), "__array__") else None


def _key_of(value: Any, array: Callable[[Any], Any], around: tuple[int, ...]) -> Any:
    """The key of a value; `array` gives those of arrays, `around` are the containers in which it is."""
    found = array(value)
    if found is not None or not isinstance(value, list | tuple | dict):
        return shallow(value) if found is None else found
    if id(value) in around:
        return "around", around.index(id(value))
    inner = (*around, id(value))
    if isinstance(value, dict):
        return ("dict", *((shallow(key), _key_of(each, array, inner)) for key, each in value.items()))
    return (type(value).__name__, *(_key_of(each, array, inner) for each in value))


@dataclass(frozen=True, eq=False)
class Guard:
    """A place, and a key of its value; arrays there count by their elements, or by identity."""

    place: Place
    key: Any
    by_elements: bool
    value: Any
    """The value there; a sentinel where that can change in itself."""
    items: tuple[Any, ...] | None = None
    """The items of a list or a dict that cannot change in themselves: to look at these takes less time.

    An array, which is read at every call, is a place of its class alone.
    """
    is_loose: bool = False
    """True if objects count by their classes: those made anew at each look."""

    def holds(self) -> bool:
        """Return whether the present value makes the same program."""
        value = _now(self.place)
        if self.items is not None:
            items = _items(value)
            if items is not None and len(items) == len(self.items) and all(map(_is_as_known, items, self.items)):
                return True
        key = _key(value, self.by_elements)
        return bool((without_identity(key) if self.is_loose else key) == self.key)


def _whole(place: Place) -> Place:
    """Return the place of the object that a place is a part of."""
    while isinstance(place.holder, Place):
        place = place.holder
    return place


def _now(place: Place) -> Any:
    try:
        return place.read()
    except GoneError:
        return MISSING


def _key(value: Any, by_elements: bool) -> Any:
    return contents(value) if by_elements else around_arrays(value)


def _items(value: Any) -> tuple[Any, ...] | None:
    """The items of a list or a dict behind its class, of a dict the keys first."""
    if type(value) is list:
        return (list, *value)
    return (dict, *value, *value.values()) if type(value) is dict else None


_CHANGES: Any = object()


def _is_fixed(value: Any, key: Any) -> bool:
    """Return whether a value of this key makes the same program as long as it is the same object."""
    if isinstance(key, Same) or type(value) in CONSTANTS:
        return True
    return type(value) is tuple and all(map(_is_fixed, value, key[1:]))


@dataclass(frozen=True)
class _ArrayOf:
    """Any array of a class."""

    cls: type


def _without_array(item: Any) -> Any:
    return _ArrayOf(type(item)) if hasattr(type(item), "__array__") else item


def _is_fixed_item(item: Any) -> bool:
    return isinstance(item, _ArrayOf) or (not hasattr(type(item), "__array__") and _is_fixed(item, shallow(item)))


def _is_as_known(item: Any, known: Any) -> bool:
    return item is known or (type(known) is _ArrayOf and type(item) is known.cls)


@dataclass(eq=False)
class Guards:
    """The dependences of one program, in the order in which they were read."""

    _known: dict[Any, Guard] = field(default_factory=dict)
    _readers: dict[Any, set[Any]] = field(default_factory=dict)
    """The readers of each place, or of a part of it: functions that are called, None for interpreted code."""
    _reader: Any = None

    def note(self, place: Place, value: Any, *, by_elements: bool = False) -> None:
        """Note that the program depends on the value at `place`, which is `value` now."""
        identity = (place.identity, by_elements)
        self._readers.setdefault(_whole(place).identity, set()).add(self._reader)
        if identity in self._known:
            return
        key = _key(value, by_elements)
        is_computed = place.kind == "attribute" and not isinstance(place.holder, types.ModuleType)
        if is_computed and not Guard(place, key, by_elements, value).holds():
            key = without_identity(key)  # a property that makes a new object at each look
            self._known[identity] = Guard(place, key, by_elements, _CHANGES, is_loose=True)
            return
        kept = value if _is_fixed(value, key) and _now(place) is value else _CHANGES
        items = _items(value) if kept is _CHANGES else None
        if items is not None:
            items = tuple(each if by_elements else _without_array(each) for each in items)
        if items is not None and not all(map(_is_fixed_item, items[1:])):
            items = None
        self._known[identity] = Guard(place, key, by_elements, kept, items)
        vars(self).pop("_glance", None)
        vars(self).pop("_others", None)

    def follow(
        self, function: Any, given: Mapping[int, Any] | None = None, named: Mapping[str, Any] | None = None
    ) -> None:
        """Note that the program depends on the reads of a user's function that is called and not interpreted.

        That is found in its code: names from around it, attributes of what these denote and of its arguments as far as
        they are known, by number and by name, and the functions that it calls in turn.
        """
        pending: list[Lead] = []
        for found, known in leads(function):
            names = found.__code__.co_varnames[len(known) :]
            numbered = {names[number]: value for number, value in (given or {}).items() if number < len(names)}
            pending.append((found, {**numbered, **(named or {}), **known}))
        seen = set()
        self._reader = function
        while pending:
            reader, variables = pending.pop()
            key = (reader, *((name, id(value)) for name, value in variables.items()))
            if key in seen:
                continue
            seen.add(key)
            for place, value, owner in names_read(reader, variables):
                self.note(place, value, by_elements=True)
                pending += leads(value, owner)
        self._reader = None

    def changed(self) -> list[Place]:
        """The places where something else is by now."""
        return [] if self.hold() else [guard.place for guard in self._known.values() if not guard.holds()]

    def is_read_by_others(self, place: Place, function: Any) -> bool:
        """Return whether anybody but a function that is called has read the value at a place."""
        return bool(self._readers.get(_whole(place).identity, set()) - {function})

    def forget(self, places: Iterable[Place]) -> None:
        """Forget the dependences on these places."""
        identities = {place.identity for place in places}
        self._known = {key: guard for key, guard in self._known.items() if guard.place.identity not in identities}
        vars(self).pop("_glance", None)
        vars(self).pop("_others", None)

    @cached_property
    def key(self) -> Any:
        """A hashable key of all that was read."""
        return tuple((identity, guard.key) for identity, guard in self._known.items())

    @cached_property
    def _glance(self) -> FastGuards:
        return FastGuards((*g.place.at_a_glance(), g.value) for g in self._known.values() if g.value is not _CHANGES)

    @cached_property
    def _others(self) -> tuple[Guard, ...]:
        return tuple(guard for guard in self._known.values() if guard.value is _CHANGES)

    def hold(self) -> bool:
        """Return whether all that was read is as it was."""
        if self._glance.is_same():
            return not self._others or all(guard.holds() for guard in self._others)
        return all(guard.holds() for guard in self._known.values())

    def values(self) -> list[Any]:
        """All values that were read, as they are now; GoneError where something is there no more."""
        return [guard.place.read() for guard in self._known.values() if guard.value is not MISSING]

    def of_helpers(self) -> list[Any]:
        """The values that functions read that are called and not interpreted."""
        guards = self._known.values()
        return [guard.place.read() for guard in guards if guard.by_elements and guard.value is not MISSING]

    def described(self) -> Iterator[tuple[str, Any]]:
        """All that was read, as it is now, by names that are the same in every process."""
        return ((g.place.text, g.place.read()) for g in self._known.values() if g.value is not MISSING)


Glanced = tuple[Callable[[Any, Any], Any], Any, Any]
"""`(get, key, value)`: `get(key, MISSING)` was `value`."""


# A glance at all that a program has read of the world, for a warm call: the very same, or the long way. It compares by
# identity, a tenth of a microsecond for each place, and keeps no array alive that the user's code has let go.


class FastGuards:
    """The very same values in some places."""

    def __init__(self, places: Iterable[Glanced] = ()):
        self._places = tuple(places)

    def is_same(self) -> bool:
        """Return whether all are; False also where one cannot be looked up."""
        try:
            for get, key, value in self._places:
                if get(key, MISSING) is not value:
                    return False
        except Exception:  # a cell that is empty now, or whatever a class of the user's raises
            return False
        return True


class Host(Protocol):
    """The properties of arrays that are asked for; see `backends.host`."""

    def spec_of(self, value: Any) -> Hashable | None:
        """See `backends.host`."""

    def type_of(self, value: Any) -> Type:
        """See `backends.host`."""


class _UnknownError(Exception):
    """Raised if a quick look cannot tell whether an array is the same."""


class CaptureGuards:
    """The values captured by a call, to be compared with those of the next."""

    def __init__(self, guards: Guards, operands: Sequence[tuple[Sequence[Place], Any]], host: Host):
        self._guards = guards
        self._arrays = [_Leaf(places, value, host) for places, value in operands]

    @classmethod
    def at(cls, guards: Guards, operands: Sequence[tuple[Sequence[Place], Any]], host: Host) -> CaptureGuards | None:
        """A look at the operands that have just been captured from these places; None if it takes more than that."""
        try:
            return cls(guards, operands, host)
        except _UnknownError:
            return None

    def leaves(self) -> list[Any] | None:
        """The arrays of all operands, if everything is the same; None if it may differ."""
        if not self._guards.hold():
            return None
        into: list[Any] = []
        try:
            for array in self._arrays:
                value = array.known()
                for get, key in array.places:
                    if get(key, MISSING) is not value:
                        return None
                if value is None or not (array.is_steady or array.type_of(value) == array.type):
                    return None
                into.append(value)
        except Exception:  # a name that is gone, or whatever a class of the user's raises
            return None
        return into


class _Leaf:
    """An array, by identity; a mutable one also by its type."""

    def __init__(self, places: Sequence[Place], value: Any, host: Host):
        self.places = tuple(place.at_a_glance() for place in places)
        try:
            self.known: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            if not isinstance(value, np.generic):
                raise _UnknownError from None
            self.known = lambda: value
        if not places:
            self.known = lambda: value
        self.is_steady = host.spec_of(value) is not None or isinstance(value, np.generic)
        self.type_of: Callable[[Any], Any] = _numbers if type(value) is np.ndarray else host.type_of
        self.type = None if self.is_steady else self.type_of(value)


def _numbers(array: np.ndarray) -> tuple[Any, ...]:
    """Return the properties of an array that can change without its numbers."""
    return array.dtype, array.shape
