"""What is known while the user's code is followed: the objects that were there before, and which code is the user's.

Recorded is what is read from objects that were there before: those that the program captures, and what is read from
them in turn. Objects that come into being while the program is traced go with the trace.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from pcbatch.ir.types import StructType, Type
from pcbatch.lowering.captures.reads import stored
from pcbatch.lowering.captures.reads.record import CONTAINERS, MISSING, Record

MANY = 200
"""So often an instruction is looked at in one call, and a function at all: a loop over more is not followed."""
PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)
_OF_CODE = (types.FunctionType, types.ModuleType, type, types.BuiltinFunctionType)
"""What is read from anything else may change."""
_others: set[str] = set()
"""Files in which no code is the user's: of the calls that are made while a program is traced, nearly all are there."""


class Watch:
    """What is known while a program is traced: the objects that were there before, and the functions of each code.

    `seeds` are what the program captures.
    """

    def __init__(self, record: Record, seeds: Iterable[Any] = ()):
        self.record = record
        self.known: dict[int, Any] = {}
        self.functions: dict[types.CodeType, list[types.FunctionType]] = {}
        self.methods: set[tuple[type, types.CodeType]] = set()
        self.returned: Any = MISSING
        self.has_run = False
        self.runs: dict[types.CodeType, int] = {}
        self.reaching: dict[Any, tuple[tuple[Any, ...], bool]] = {}
        self.thread = threading.get_ident()
        self.is_collecting = False
        for seed in seeds:
            self.meet(seed, ends=True)
        record.settle()

    @contextlib.contextmanager
    def knowing_collections(self) -> Iterator[None]:
        """Inside it is known when this thread collects cycles.

        What then runs, such as the functions in `gc.callbacks` (hypothesis counts seconds there), only happens to run
        while the program is traced: what it reads, and may change each time, is not the program's.
        """
        gc.callbacks.insert(0, self._collection_starts)
        gc.callbacks.append(self._collection_stops)
        try:
            yield
        finally:
            gc.callbacks.remove(self._collection_starts)
            gc.callbacks.remove(self._collection_stops)

    def _collection_starts(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start" and threading.get_ident() == self.thread:
            self.is_collecting = True

    def _collection_stops(self, phase: str, _: dict[str, int]) -> None:
        if phase == "stop" and threading.get_ident() == self.thread:
            self.is_collecting = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing that is known can run code of the user's."""
        return not any(self._may_run(value) for value in self.known.values())

    def may_reach_users(self, function: Callable[..., Any], types: Iterable[Type]) -> bool:
        """See `following.Follower`; also where it reads an object whose attributes may change."""
        if any(map(_is_of_users, types)):
            return True
        code, names = function.__code__, function.__globals__
        every = (names.get(name, MISSING) for name in _names(code))
        values = tuple(each for each in every if not stored.is_own_method(each))  # by these inference notes values
        key = (code, *map(id, values))  # by equal names pieces of equal text may mean others
        if key not in self.reaching:
            reached = Watch(Record())
            for value in values:
                reached.meet(value, ends=True)
            self.reaching[key] = values, any(map(reached._holds_users, reached.known.values()))
        return self.reaching[key][1]

    def _holds_users(self, value: Any) -> bool:
        return not isinstance(value, _OF_CODE) or self._may_run(value)

    def _may_run(self, value: Any) -> bool:
        match value:
            case types.FunctionType():
                return stored.is_users_code(value.__code__, value.__globals__)
            case types.ModuleType():
                return stored.is_users_module(value)
            case type():
                return stored.is_users_class(value)
        return not isinstance(value, (*CONTAINERS, tuple, frozenset, types.BuiltinFunctionType))

    # -- what is met ---------------------------------------------------------------------------------------------------

    def meet(self, value: Any, ends: bool) -> None:
        """A value that was there before; if the chain of reads `ends` with it, anything in it may be read."""
        if isinstance(value, PLAIN) or value is MISSING:
            return
        match value:
            case types.MethodType():
                self.meet(value.__self__, ends=False)
                self.meet(value.__func__, ends=False)
                return
            case types.BuiltinMethodType():
                self.meet(value.__self__, ends=True)  # such as `table.values`
                return
            case np.ndarray():
                self.record.add_array(value)
                return
        is_new = id(value) not in self.known
        self.known[id(value)] = value
        match value:
            case tuple() | frozenset():
                if ends and is_new:
                    self._meet_all(value)
            case dict() | list() | set():
                if ends and not _is_namespace(value):
                    self._meet_all(self.record.add_contents(value))
            case functools.partial():
                if is_new:
                    self._meet_all((value.func, value.args, value.keywords))
            case types.FunctionType():
                if is_new:
                    self._meet_function(value)
            case _:
                wrapped = (stored.instance_dict(value) or {}).get("__wrapped__")
                if is_new and wrapped is not None:
                    self.meet(wrapped, ends=True)

    def _meet_all(self, values: Iterable[Any]) -> None:
        for value in values:
            if id(value) not in self.known:
                self.meet(value, ends=True)

    def _meet_function(self, function: types.FunctionType) -> None:
        if not stored.is_users_code(function.__code__, function.__globals__):
            # What wraps a function of the user's has it in a cell; other values there are the package's own.
            held = [cell.cell_contents for cell in function.__closure__ or () if is_bound(cell)]
            self._meet_all(each for each in [*held, vars(function).get("__wrapped__")] if _may_be_users(each))
            return
        get = functools.partial(getattr, function)
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self.record.add(function, get, name, getattr(function, name))
        self.meet(function.__defaults__, ends=True)
        self.meet(function.__kwdefaults__, ends=True)
        self.meet(vars(function).get("__wrapped__", MISSING), ends=True)
        self._register(function, function.__code__)

    def _register(self, function: types.FunctionType, code: types.CodeType) -> None:
        """`code` is that of `function`, or of a function that is made inside it and reads the same cells."""
        known = self.functions.setdefault(code, [])
        if function not in known:
            known.append(function)
            for constant in code.co_consts:
                if isinstance(constant, types.CodeType):
                    self._register(function, constant)

    def note(self, owner: Any, get: Callable[[], tuple[Any, ...]]) -> None:
        """See `following.Follower`."""
        self.has_run = True
        self.record.add(owner, lambda key, missing: get(), "state", get())

    # -- what runs -----------------------------------------------------------------------------------------------------

    def is_to_follow(self, frame: types.FrameType) -> bool:
        """Whether what begins to run is code of the user's, and has not run too often."""
        code = frame.f_code
        if self.is_collecting or code.co_name == "<module>" or not stored.is_users_code(code, frame.f_globals):
            return False
        count = self.runs[code] = self.runs.get(code, 0) + 1
        self.has_run = self.has_run or count <= MANY
        return count <= MANY


def is_others(code: types.CodeType) -> bool:
    """Whether nothing in the file of `code` is the user's."""
    file = code.co_filename
    if file in _others:
        return True  # a second of the sampler's first call
    if file.startswith("<") or stored.is_users(file):
        return False
    _others.add(file)
    return True


def _names(code: types.CodeType) -> Iterator[str]:
    """All names that code and the functions inside it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_of_users(type_: Type) -> bool:
    """Whether a value is made by a class of the user's, or has parts that are."""
    if not isinstance(type_, StructType):
        return False
    made = type_.constructor
    return (made is not None and stored.is_users_class(made)) or any(map(_is_of_users, type_.items))


def _is_namespace(value: Any) -> bool:
    """Whether a dict holds the names of a module."""
    return isinstance(value, dict) and "__name__" in value and "__builtins__" in value


def is_bound(cell: types.CellType) -> bool:
    """Whether a cell holds something by now."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _may_be_users(value: Any) -> bool:
    """Whether a value in an installed function may be the user's, or lead to something of the user's."""
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        return True
    return stored.is_users_class(value if isinstance(value, type) else type(value)) and not isinstance(value, PLAIN)
