"""Linking: which batched function a called name denotes now, from live closures and globals.

Names resolve at first use, never at decoration, so that functions may refer to each other and to themselves before they
exist. A name that denotes a plain function with the code and closure of a batched one is that batched one: after
`fast = autobatch(slow)`, `slow` calls itself batched.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter, is_
from typing import Any

from pcbatch.errors import Method
from pcbatch.frontend import Built, FunctionSource
from pcbatch.frontend.source.calls import METHOD
from pcbatch.frontend.translate.build import build
from pcbatch.function.grants import NOTHING, Grants, taken
from pcbatch.function.linkable import Linkable
from pcbatch.function.taken import Taken
from pcbatch.function.taken_methods import TakenMethod
from pcbatch.lowering.captures.captured import FreeValues, Namespace, free_values
from pcbatch.lowering.captures.glance import MISSING, Glance, Place, places

CODE = (types.BuiltinFunctionType, types.ModuleType, type)
"""The classes of what a called name denotes mostly, if it is no function of Python's."""
_code = attrgetter("__code__")


@dataclass(frozen=True)
class Linked:
    """A built program, the namespaces of its functions, and how every called name was resolved."""

    built: Built
    namespaces: Mapping[str, Namespace]
    links: tuple[tuple[Namespace, str, Linkable | None], ...]
    entry: Linkable
    statics: Mapping[str, frozenset[str]]
    """The static parameters of each function."""
    grants: Grants = NOTHING
    methods: Mapping[str, Method] = field(default_factory=dict)
    """The functions that are methods of what they are given first."""

    @cached_property
    def free(self) -> FreeValues:
        """What the program reads from around its functions."""
        return free_values(self.built.program)

    def of(self, entry: Linkable) -> Linked:
        """The same for `entry`, which is the same function under other options."""
        found = replace(self, entry=entry)
        found.__dict__["free"] = self.free
        return found

    @cached_property
    def _called(self) -> tuple[_Called, ...]:
        return tuple(_Called(namespace, name, batched) for namespace, name, batched in self.links)

    def is_current(self) -> bool:
        """Whether every called name still denotes what it was linked to."""
        for method in self.grants.functions.values():
            if not method.is_same():
                return False
        if self._seen and self._seen[-1].is_same():
            return True
        known = _known(self.entry, self.links)
        self._seen.clear()  # what names have denoted by other codes, is to be found out anew
        codes = [(each.function, each.function.__code__) for each in self._batched]
        if not all(called.is_current(known) for called in self._called):
            return False
        self._seen.append(_Seen(codes, self._called))
        return True

    @cached_property
    def _batched(self) -> list[Linkable]:
        every = (self.entry, *(batched for _, _, batched in self.links if batched is not None))
        return list({id(each): each for each in every}.values())

    @cached_property
    def _seen(self) -> list[_Seen]:
        """What names denoted when they were last looked at in full; empty before that."""
        return []


class _Seen:
    """What called names denoted, and all functions that they stand for, the batched ones of these `codes`."""

    def __init__(self, codes: Sequence[tuple[Any, Any]], called: Sequence[_Called]):
        at_a_glance = {each: each.places() for each in called}
        functions = [
            *codes,
            *(each.plain for each, known in at_a_glance.items() if known and each.plain[0] is not None),
        ]
        self._functions, self._codes = [function for function, _ in functions], [code for _, code in functions]
        self._glance = Glance(place for known in at_a_glance.values() for place in known)
        self._others = [each for each, known in at_a_glance.items() if not known]

    def is_same(self) -> bool:
        """Whether they still do; False where that takes more than a look."""
        if not self._glance.is_same() or not all(map(is_, map(_code, self._functions), self._codes)):
            return False
        return not self._others or all(each.is_same() for each in self._others)


class _Called:
    """What a called name denotes, looked at again and again: to find that out in full takes five times as long."""

    def __init__(self, namespace: Namespace, name: str, batched: Linkable | None):
        self._namespace, self._name, self._batched = namespace, name, batched
        self._read = namespace.reader(name)
        self.plain: tuple[Any, Any] = (None, None)
        """The plain function that the name denoted, and its code."""

    def _found(self) -> Any:
        try:
            return self._read()
        except (KeyError, AttributeError):
            return None

    def is_same(self) -> bool:
        """Whether the name denotes what it did; False where that takes more than a look."""
        found = self._found()
        if isinstance(found, types.FunctionType):
            function, code = self.plain
            return found is function and found.__code__ is code
        if isinstance(found, types.MethodType):
            return False
        return (found if isinstance(found, Linkable) else None) is self._batched

    def places(self) -> Sequence[Place]:
        """Where to look at a glance for what the name denoted; none where that takes more, or keeps more than code."""
        found = places(self._namespace, self._name.split("."))
        value = found[-1][2] if found else None
        if isinstance(value, types.FunctionType):
            is_same = value is self.plain[0]
        elif isinstance(value, Linkable):
            is_same = value is self._batched
        else:
            is_same = self._batched is None and (value is MISSING or isinstance(value, CODE))
        return found if is_same else ()

    def is_current(self, known: Mapping[Any, Linkable]) -> bool:
        """Whether the name denotes what it did, found out in full."""
        found = self._found()
        plain = (found, found.__code__) if isinstance(found, types.FunctionType) else (None, None)
        if _meaning(found, known) is not self._batched:
            return False
        self.plain = plain
        return True


def link(entry: Linkable, grants: Grants = NOTHING) -> Linked:
    """Build the program of `entry`, callees found through the present values of names; raises every fault of names.

    Plain functions that `grants` take in are callees, too.
    """
    known = _known(entry, ())
    while True:
        linked = _link(entry, known, grants)
        found = _known(entry, linked.links)
        if found.keys() <= known.keys():
            return linked
        known = {**known, **found}  # a name met before its function was known to be batched now means the batched one


def _link(entry: Linkable, known: Mapping[Any, Linkable], grants: Grants) -> Linked:
    owner: dict[FunctionSource, Linkable] = {entry.function_source: entry}
    links: list[tuple[Namespace, str, Linkable | None]] = []
    helpers: dict[Any, Linkable] = {}

    def resolve(source: FunctionSource, name: str) -> FunctionSource | None:
        namespace = owner[source].namespace
        if name.startswith(METHOD):
            method = grants.functions[name.removeprefix(METHOD)]
            owner.setdefault(method.function_source, method)
            return method.function_source
        batched = _denoted(namespace, name, {**known, **helpers}, grants)
        if isinstance(batched, Taken):
            helpers[_identity(batched.function, batched.receiver)] = batched
        links.append((namespace, name, batched))
        if batched is None:
            return None
        owner.setdefault(batched.function_source, batched)  # under the options of the entry, if it is the same function
        return batched.function_source

    built = build(entry.function_source, resolve, grants.unrolling)
    namespaces = {name: owner[source.root].namespace for name, source in built.sources.items()}
    statics = {name: _statics(owner[source.root], source) for name, source in built.sources.items()}
    owners = {name: owner[source.root] for name, source in built.sources.items() if not source.is_nested}
    methods = {name: each.method for name, each in owners.items() if isinstance(each, TakenMethod)}
    return Linked(built, namespaces, tuple(links), entry, statics, grants, methods)


def _statics(batched: Linkable, source: FunctionSource) -> frozenset[str]:
    """The static parameters of a version of a batched function; functions inside it have none."""
    own = () if source.is_nested else (parameter.name for parameter in source.parameters)
    return frozenset(batched.static_argnames) & frozenset(own)


def _known(entry: Linkable, links: Any) -> dict[Any, Linkable]:
    """The batched functions seen so far, by code and closure."""
    every = [entry, *(batched for _, _, batched in links if batched is not None)]
    return {_identity(batched.function, batched.receiver): batched for batched in every}


def _identity(function: types.FunctionType, receiver: Any = None) -> tuple[Any, ...]:
    return (function.__code__, id(receiver), *map(id, function.__closure__ or ()))


def _denoted(namespace: Namespace, name: str, known: Mapping[Any, Linkable], grants: Grants) -> Linkable | None:
    """The batched function that `name` denotes now, or one that is taken in, if it does."""
    try:
        value = namespace.path(name)
    except (KeyError, AttributeError):
        return None
    return _meaning(value, known) or taken(value, grants)


def _meaning(value: Any, known: Mapping[Any, Linkable]) -> Linkable | None:
    """The batched function that `value` is, or stands for, if it does."""
    if isinstance(value, Linkable):
        return value
    if isinstance(value, types.MethodType) and isinstance(value.__func__, types.FunctionType):
        return known.get(_identity(value.__func__, value.__self__))
    return known.get(_identity(value)) if isinstance(value, types.FunctionType) else None
