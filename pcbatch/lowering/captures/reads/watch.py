"""Following the reads of the user's code while it runs: a trace function that looks at each instruction of it.

Recorded is what is read from objects that were there before: those that the program captures, and what is read from
them in turn. Objects that come into being while the program is traced go with the trace.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import gc
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from pcbatch.ir.types import StructType, Type
from pcbatch.lowering.captures.reads import stored
from pcbatch.lowering.captures.reads.bytecode import Step, steps
from pcbatch.lowering.captures.reads.record import CONTAINERS, MISSING, Record
from pcbatch.runtime.backends import following

MANY = 200
"""So often an instruction is looked at in one call, and a function at all: a loop over more is not followed."""
PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)
_METHODS = (types.MethodType, types.BuiltinMethodType)
_OF_CODE = (types.FunctionType, types.ModuleType, type, types.BuiltinFunctionType)
"""What is read from anything else may change."""
_others: set[str] = set()
"""Files in which no code is the user's: of the calls that are made while a program is traced, nearly all are there."""


@contextlib.contextmanager
def watching(record: Record, seeds: Iterable[Any]) -> Iterator[None]:
    """Record what the user's code that runs inside reads; `seeds` are what the program captures.

    Where these reach none of the user's code, nothing is watched. A debugger's trace function goes on being called.
    """
    watch = Watch(record)
    for seed in seeds:
        watch.meet(seed, ends=True)
    record.settle()
    if watch.is_idle:
        yield
        return
    watch.before = before = sys.gettrace()
    watch.set(True)
    try:
        with watch.knowing_collections(), following.by(watch):
            yield
    finally:
        if sys.gettrace() == watch.called:  # unless the user's code has started a debugger
            sys.settrace(before)
        if watch.has_run:
            record.settle()


class Watch:
    """What is known while a program is traced: the objects that were there before, and the functions of each code."""

    def __init__(self, record: Record):
        self.record = record
        self.before: Any = None
        self.known: dict[int, Any] = {}
        self.functions: dict[types.CodeType, list[types.FunctionType]] = {}
        self.methods: set[tuple[type, types.CodeType]] = set()
        self.returned: Any = MISSING
        self.has_run = False
        self.runs: dict[types.CodeType, int] = {}
        self.reaching: dict[Any, tuple[tuple[Any, ...], bool]] = {}
        self.thread = threading.get_ident()
        self.is_collecting = False

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

    def is_set(self) -> bool | None:
        """See `following.Follower`."""
        now = sys.gettrace()
        return None if self.before is not None or now not in (None, self.called) else now is not None

    def set(self, follows: bool) -> None:
        """See `following.Follower`."""
        if follows:
            sys._getframe().f_trace_opcodes = True  # Python 3.12 gives opcodes from a settrace on after such a wish
        sys.settrace(self.called if follows else None)

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
            held = [cell.cell_contents for cell in function.__closure__ or () if _is_bound(cell)]
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

    # -- what runs -----------------------------------------------------------------------------------------------------

    def called(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        """The trace function of calls: the user's code gets a trace function of its own, other code none."""
        if self.before is None and frame.f_code.co_filename in _others:
            return None  # a second of the sampler's first call
        outer = self.before(frame, event, arg) if isinstance(self.before, (types.FunctionType, _METHODS)) else None
        code = frame.f_code
        if self.is_collecting:
            return outer
        if not stored.is_users_code(code, frame.f_globals) or code.co_name == "<module>":
            if not (code.co_filename.startswith("<") or stored.is_users(code.co_filename)):
                _others.add(code.co_filename)
            return outer
        self.runs[code] = self.runs.get(code, 0) + 1
        if self.runs[code] > MANY:
            return outer
        self.has_run = True
        watched = _Frame(self, outer)
        frame.f_trace = watched.traced  # Python 3.13 looks at it when it is asked for opcodes
        frame.f_trace_opcodes = True
        frame.f_trace_lines = outer is not None
        with contextlib.suppress(Exception):
            watched.enter(frame)
        return watched.traced


class _Frame:
    """One run of one function: the value that the latest instruction gave, MISSING where it is not known."""

    def __init__(self, watch: Watch, outer: Any):
        self.watch = watch
        self.outer = outer
        self.top: Any = MISSING
        self.counts: dict[int, int] = {}

    def traced(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        """The trace function of one frame."""
        if event == "opcode":
            step = steps(frame.f_code).get(frame.f_lasti)
            if step is not None:
                count = self.counts[frame.f_lasti] = self.counts.get(frame.f_lasti, 0) + 1
                if count > MANY:
                    frame.f_trace_opcodes = False
                with contextlib.suppress(
                    Exception
                ):  # what the user's classes do to a look-up is no fault of the program
                    self.top = self._read(frame, step)
        elif event == "return":
            self.watch.returned = arg
        if self.outer is not None and event != "opcode":
            self.outer = self.outer(frame, event, arg)
        return self.traced

    def enter(self, frame: types.FrameType) -> None:
        """Find the function that runs, if it is a method of the class of its first argument."""
        code = frame.f_code
        if not code.co_argcount:
            return
        first = frame.f_locals.get(code.co_varnames[0])
        class_ = first if isinstance(first, type) else type(first)
        if (class_, code) not in self.watch.methods and stored.is_users_class(class_):
            self.watch.methods.add((class_, code))
            for function in stored.class_entries(self.watch.record, class_, code):
                self.watch.meet(function, ends=False)
        if class_ is not first and self.watch.known.get(id(first)) is first:
            self.watch.record.add(first, functools.partial(getattr, first), "__class__", class_)

    def _read(self, frame: types.FrameType, step: Step) -> Any:
        watch, name = self.watch, step.key
        match step.kind:
            case "local":
                return frame.f_locals.get(name, MISSING)
            case "called":
                watch.returned = MISSING
                return frame.f_globals if self.top is builtins.globals else PENDING
            case "imported":
                module = sys.modules.get(step.variable or "")
                value = MISSING if module is None else stored.attribute(watch.record, module, name, known=True)
            case "global":
                value = self._global(frame, name)
            case "cell":
                value = self._cell(frame, name)
            case "attribute":
                owner = watch.returned if self.top is PENDING else self.top
                if owner is MISSING or isinstance(owner, PLAIN):
                    return MISSING
                watch.returned = MISSING
                value = stored.attribute(watch.record, owner, name, watch.known.get(id(owner)) is owner)
                if value is MISSING:
                    return PENDING  # a property gives what its function returns
                if watch.known.get(id(owner)) is not owner and not isinstance(value, types.FunctionType):
                    return value
            case _:
                value = self._item(frame, step)
        if value is not MISSING:
            watch.meet(value, step.ends)
        return value

    def _global(self, frame: types.FrameType, name: str) -> Any:
        names = frame.f_globals
        value = names.get(name, MISSING)
        if not frame.f_code.co_filename.startswith(stored.GENERATED):
            self.watch.record.add(names, names.get, name, value)
        return value if value is not MISSING else getattr(builtins, name, MISSING)

    def _cell(self, frame: types.FrameType, name: str) -> Any:
        value = frame.f_locals.get(name, MISSING)
        for function in self.watch.functions.get(frame.f_code, ()):
            cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
            cell = cells.get(name)
            if cell is not None and _is_bound(cell) and cell.cell_contents is value:
                self.watch.record.add(cell, functools.partial(getattr, cell), "cell_contents", value)
                return value
        return value if self.watch.known.get(id(value)) is value else MISSING

    def _item(self, frame: types.FrameType, step: Step) -> Any:
        owner = self.watch.returned if self.top is PENDING else self.top
        key = step.key if step.variable is None else frame.f_locals.get(step.variable)
        if self.watch.known.get(id(owner)) is not owner and owner is not frame.f_globals:
            return MISSING
        if isinstance(owner, dict) and isinstance(key, PLAIN):
            value = owner.get(key, MISSING)
            self.watch.record.add(owner, owner.get, key, value)
            return value
        if isinstance(owner, (list, tuple)) and isinstance(key, int):
            if isinstance(owner, list):
                self.watch.record.add_contents(owner)
            return owner[key]
        return MISSING


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


PENDING: Any = type("Pending", (), {})()
"""What a call will give."""


def _is_namespace(value: Any) -> bool:
    """Whether a dict holds the names of a module."""
    return isinstance(value, dict) and "__name__" in value and "__builtins__" in value


def _is_bound(cell: types.CellType) -> bool:
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
