"""Calls: of functions of the user's, in place or as parts of the program, of classes, of built-ins and of libraries."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import gast
import numpy as np

from pcbatch.installed import OWN, is_installed
from pcbatch.ir import records
from pcbatch.reading.core import NeedsBlocksError, NeedsConstantError, RefusedError
from pcbatch.reading.expressions import DEAD
from pcbatch.reading.functions import Functions
from pcbatch.reading.operations import library
from pcbatch.reading.sources import is_users
from pcbatch.reading.values import (
    NONE,
    Bound,
    Function,
    Generator,
    Host,
    Lane,
    Lazy,
    OneOf,
    Range,
    Ref,
    Super,
    Tuple,
    Value,
    View,
    is_number,
)


@dataclass(frozen=True, eq=False)
class BatchedFunction:
    """What the reader knows of a batched function: the plain one behind it, and how it is called."""

    live: FunctionType
    tree: Any
    file: str
    statics: frozenset[str] = frozenset()
    receiver: Any = None
    cost: float | None = None
    itself: Any = None


class RecursionFound(Exception):  # noqa: N818 - no error, but something that was found
    """A function that is interpreted in place calls itself."""

    def __init__(self, tree: Any):
        self.tree = tree


class Calls(Functions):
    """Calls."""

    def __init__(self, *given: Any, batched_of: Callable[[Any], BatchedFunction | None], **options: Any):
        super().__init__(*given, **options)
        self._batched_of = batched_of
        self._parts: set[Any] = set()
        """Trees of functions that are parts of the program wherever they are called."""
        self._in_place: set[Any] = set()

    def batched(self, value: Any) -> BatchedFunction | None:
        return self._batched_of(value)

    def _Call(self, node: Any) -> Value:
        function = self.expression(node.func)
        if not self.is_live:
            return DEAD
        if isinstance(function, Host) and function.value is super:
            return self._super(node)
        own = self.special(function, node)
        if own is not None:
            return own
        row = [function]
        self.pending.append(row)
        try:
            arguments = self.evaluated(node.args)
            self.pending.append(arguments)
            try:
                keywords = self._keywords(node)
            finally:
                self.pending.pop()
        finally:
            self.pending.pop()
        if not self.is_live:
            return DEAD
        found = self.call_value(row[0], arguments, keywords)
        return found if self.is_live else DEAD

    def special(self, function: Value, node: Any) -> Value | None:
        """A call of what is no function to the program: `pcbatch.sync()`; see `builtins`."""
        raise NotImplementedError

    def _keywords(self, node: Any) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for each in node.keywords:
            value = self.expression(each.value)
            if each.arg is None:
                found |= self.entries(value)
            else:
                found[each.arg] = value
        return found

    def _super(self, node: Any) -> Value:
        if node.args:
            cls, receiver = self.evaluated(node.args)
            behind = self.constant(cls, "a class")
        else:
            frame = self.frame
            while frame.function.frame is not None and frame.function.owner is None:
                frame = frame.function.frame
            if frame.function.owner is None:
                self.refuse("PCB208", "`super()` stands in no method of a class")
            first = [*frame.function.tree.args.posonlyargs, *frame.function.tree.args.args][0].id
            receiver, behind = self.state.names[frame.number, first], frame.function.owner
        cell = self.cell(receiver)
        cls_of = cell.cls if cell is not None else type(receiver.value) if isinstance(receiver, Host) else receiver.cls  # type: ignore[union-attr]
        if isinstance(receiver, Host) and isinstance(receiver.value, type):
            cls_of = receiver.value
        return Super(receiver, cls_of, behind)  # type: ignore[arg-type]

    # -- what is called ------------------------------------------------------------------------------------------------

    def call_value(self, function: Value, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        function = self.known(function)
        match function:
            case Function():
                if function.batched is not None:
                    return self._call_batched(function.batched, arguments, keywords)
                return self.call_user(function, arguments, keywords)
            case Bound(Function() as method, receiver):
                if method.batched is not None:
                    return self._call_batched(method.batched, [receiver, *arguments], keywords)
                return self.call_user(method, [receiver, *arguments], keywords)
            case Bound(str() as name, receiver):
                return self.method(receiver, name, arguments, keywords)
            case Host():
                return self._call_host(function, arguments, keywords)
            case OneOf():
                return self.method(function, "__call__", arguments, keywords)
        found = self.method_of(function, "__call__")
        if found is None:
            self.refuse("PCB423", f"{self.described(function)} is called as if it were a function")
        return self.call_value(found, arguments, keywords)

    def _call_host(self, function: Host, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        value = function.value
        batched = self.batched(value)
        if batched is not None:
            return self._call_batched(batched, arguments, keywords)
        known = self.builtin_of(value)
        if known is not None:
            return known(*arguments, **keywords)
        if isinstance(value, functools.partial):
            inner = self.host(value.func)
            first = [self.host(each) for each in value.args]
            named = {name: self.host(each) for name, each in value.keywords.items()}
            return self.call_value(inner, [*first, *arguments], {**named, **keywords})
        if isinstance(value, MethodType) and is_users(value.__func__):
            method = self.function_of(value.__func__, _owner(value))  # type: ignore[arg-type]
            if method is not None:
                return self.call_user(method, [Host(value.__self__, function.place), *arguments], keywords)
        if is_users(value):
            known_function = self.function_of(value)
            if known_function is not None:
                return self.call_user(known_function, arguments, keywords)
        if isinstance(value, type):
            return self._construct(function, value, arguments, keywords)
        if records.is_simple_class(type(value)) or dataclasses.is_dataclass(type(value)):
            found = self.of_class(function, type(value), "__call__")
            return self.call_value(found, arguments, keywords)
        return self.opaque(function, arguments, keywords)

    def builtin_of(self, function: Any) -> Callable[..., Value] | None:
        """What interprets a built-in function of Python's; see `builtins`."""
        raise NotImplementedError

    # -- functions of the user's ---------------------------------------------------------------------------------------

    def bind(self, function: Function, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> dict[str, Value]:
        """The values of a function's parameters."""
        given = function.tree.args
        positional = [each.id for each in (*given.posonlyargs, *given.args)]
        found = dict(zip(positional, arguments, strict=False))
        rest = list(arguments[len(positional) :])
        if given.vararg is not None:
            found[given.vararg.id] = Tuple(tuple(rest))
        elif rest:
            self.refuse("PCB202", f"{function.name} takes {len(positional)} arguments, not {len(arguments)}")
        others = dict(keywords)
        only = [each.id for each in given.kwonlyargs]
        allowed = [each.id for each in given.args] + only
        for name in allowed:
            if name in others:
                if name in found:
                    self.refuse("PCB202", f"{function.name} is given `{name}` twice")
                found[name] = others.pop(name)
        if given.kwarg is not None:
            found[given.kwarg.id] = self.new("dict", others)
        elif others:
            self.refuse("PCB202", f"{function.name} has no parameter `{next(iter(others))}`")
        for name, value in zip(reversed(positional), reversed(function.defaults), strict=False):
            found.setdefault(name, value)
        for name, value in function.keyword_defaults.items():
            found.setdefault(name, value)
        missing = [name for name in (*positional, *only) if name not in found]
        if missing:
            self.refuse("PCB202", f"{function.name} is called without `{missing[0]}`")
        order = [*positional, *([given.vararg.id] if given.vararg else []), *only, *([given.kwarg.id] if given.kwarg else [])]
        return {name: found[name] for name in order}

    def call_user(self, function: Function, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        given = self.bind(function, arguments, keywords)
        tree = function.tree
        if isinstance(tree, gast.Lambda):
            return self.in_place(function, given)
        if tree in self._parts:
            return self.call_of_program(function, given, frozenset())
        if any(frame.function.tree is tree for frame in self.frames):
            if self._is_bounded(given):
                return self.in_place(function, given)
            raise RecursionFound(tree)
        if any(spec.is_busy and spec.function.tree is tree for spec in self.specialisations.values()):
            self._parts.add(tree)
            return self.call_of_program(function, given, frozenset())
        if tree in self._in_place:
            return self.in_place(function, given)
        return self._tried_in_place(function, given)

    def _is_bounded(self, given: Mapping[str, Value]) -> bool:
        """Whether a recursion ends now: it depends on nothing of a lane's."""
        return False

    def _tried_in_place(self, function: Function, given: dict[str, Value]) -> Value:
        """A call in place, if it is straight or touches what is its caller's; else of a part of the program."""
        mark = self.mark()
        written = self.emitter.written
        before = dict(self.state.heap)
        arrays = {each.name for each in self.state.reachable() if isinstance(each, Lane) and _is_array(each)}
        arrays |= {each.name for each in self.state.reachable(iter(given.values())) if isinstance(each, Lane) and _is_array(each)}
        try:
            found = self.in_place(function, given)
        except RecursionFound as error:
            if error.tree is not function.tree:
                raise
            self.back_to(mark)
            self._parts.add(function.tree)
            return self.call_of_program(function, given, frozenset())
        except NeedsBlocksError:
            raise
        if self.emitter.written == written:
            return found
        touched = any(self.state.heap.get(number) is not cell for number, cell in before.items())
        if touched or not self.is_live or not self._crosses(given) or not self._gives_values(found, before, arrays):
            return found
        after = self.mark()
        self.back_to(mark)
        try:
            result = self.call_of_program(function, given, frozenset())
        except RefusedError:
            self.back_to(after)
            return self._again_in_place(mark, function, given)
        self._parts.add(function.tree)
        return result

    def _again_in_place(self, mark: Any, function: Function, given: dict[str, Value]) -> Value:
        self.back_to(mark)
        self._in_place.add(function.tree)
        return self.in_place(function, given)

    def _crosses(self, given: Mapping[str, Value]) -> bool:
        """Whether arguments can be handed to a function of the program: nothing refers to frames."""
        return not any(
            isinstance(each, Generator | Super) or (isinstance(each, Bound | Function) and not isinstance(each, Host))
            for each in self.state.reachable(iter(given.values()))
        )

    def _gives_values(self, found: Value, before: Mapping[int, Any], arrays: set[str]) -> bool:
        """Whether what a call gives is new: it leads to no object or array that was there before."""

        def is_old(value: Value) -> bool:
            if isinstance(value, Ref):
                return value.cell in before
            if isinstance(value, Lane) and _is_array(value):
                return not arrays.isdisjoint({value.name, *self.state.origins.get(value.name, ())})
            return isinstance(value, Function | Generator | View)

        return not any(map(is_old, self.state.reachable(iter([found]))))

    def in_place(self, function: Function, given: Mapping[str, Value]) -> Value:
        """Interpret a call where it stands."""
        if len(self.frames) > 80:
            self.refuse("PCB312", f"{function.name} calls itself for too long", "let what it recurses over differ by lane")
        loops, self.loops = self.loops, list(self.loops)
        found = self.ran(function, given)
        self.loops = loops
        frame = self._left
        slot = (0, f"value_{self.number()}")
        for each in found:
            each.state.names[slot] = each.value
        self.join([(each.block, each.state) for each in found])
        if not self.is_live:
            return DEAD
        value = self.state.names.pop(slot)
        self.leave(frame)
        return value

    def _call_batched(
        self, batched: BatchedFunction, arguments: Sequence[Value], keywords: dict[str, Value]
    ) -> Value:
        """A call of a batched function: a part of the program."""
        function = self.function_of(batched.live)
        if function is None:
            self.refuse("PCB100", f"the source of {batched.live.__name__} cannot be read")
        given = list(arguments)
        if batched.receiver is not None:
            given = [Host(batched.receiver), *given]
        bound = self.bind(function, given, keywords)
        return self.call_of_program(function, bound, batched.statics, batched.cost, is_by_value=True)

    # -- classes -------------------------------------------------------------------------------------------------------

    def _construct(
        self, function: Host, cls: type, arguments: Sequence[Value], keywords: dict[str, Value]
    ) -> Value:
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return self._named_tuple(cls, arguments, keywords)
        is_own = dataclasses.is_dataclass(cls) or records.is_simple_class(cls)
        if not is_own:
            return self.opaque(function, arguments, keywords)
        ref = self.new("object", {}, cls)
        if dataclasses.is_dataclass(cls) and not _has_own_init(cls):
            self._filled(ref, cls, arguments, keywords)
            after = self.method_of(ref, "__post_init__")
            if after is not None:
                self.call_value(after, [], {})
            return ref
        owner = next((base for base in cls.__mro__ if "__init__" in vars(base)), object)
        if owner is object:
            if arguments or keywords:
                self.refuse("PCB401", f"TypeError: {cls.__name__}() takes no arguments")
            return ref
        init = self.function_of(vars(owner)["__init__"], owner)
        if init is None:
            self.refuse("PCB405", f"the constructor of {cls.__name__} cannot be read")
        self.call_user(init, [ref, *arguments], keywords)
        return ref

    def _filled(self, ref: Ref, cls: Any, arguments: Sequence[Value], keywords: dict[str, Value]) -> None:
        """The fields of a dataclass' object from the arguments of its constructor."""
        fields = [each for each in dataclasses.fields(cls) if each.init]
        names = [each.name for each in fields if not each.kw_only]
        if len(arguments) > len(names):
            self.refuse("PCB401", f"TypeError: {cls.__name__}() takes {len(names)} arguments, not {len(arguments)}")
        given = dict(zip(names, arguments, strict=False)) | keywords
        wrong = [name for name in keywords if name not in {each.name for each in fields}]
        if wrong:
            self.refuse("PCB401", f"TypeError: {cls.__name__}() has no parameter `{wrong[0]}`")
        items: dict[str, Value] = {}
        for each in dataclasses.fields(cls):
            if each.init and each.name in given:
                items[each.name] = given[each.name]
            elif each.default is not dataclasses.MISSING:
                items[each.name] = self.host(each.default)
            elif each.default_factory is not dataclasses.MISSING:
                items[each.name] = self.call_value(self.host(each.default_factory), [], {})
            elif each.init:
                self.refuse("PCB401", f"TypeError: {cls.__name__}() is called without `{each.name}`")
        self.state.set_cell(ref, items=items)

    def _named_tuple(self, cls: Any, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        names = cls._fields
        if len(arguments) > len(names) or any(name not in names for name in keywords):
            self.refuse("PCB401", f"TypeError: {cls.__name__}() is called with other arguments than its fields")
        given = dict(zip(names, arguments, strict=False)) | keywords
        for name, value in cls._field_defaults.items():
            given.setdefault(name, self.host(value))
        missing = [name for name in names if name not in given]
        if missing:
            self.refuse("PCB401", f"TypeError: {cls.__name__}() is called without `{missing[0]}`")
        return Tuple(tuple(given[name] for name in names), cls)

    # -- libraries -----------------------------------------------------------------------------------------------------

    def opaque(self, function: Host, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A call of what is not interpreted: known now, or one operation."""
        value = function.value
        if not callable(value):
            self.refuse("PCB423", f"{self.described(function)} is called as if it were a function")
        path = self.backend.equivalent(value)
        if not self._has_lanes([*arguments, *keywords.values()]) and self._is_pure(value):
            known = [self.plain(each) for each in arguments]
            named = {name: self.plain(each) for name, each in keywords.items()}
            try:
                found = value(*known, **named)
                is_weak = isinstance(found, np.float64) and not isinstance(value, type) and all(map(is_number, known))
                return Host(float(found)) if is_weak else self.host(found)
            except Exception as error:  # noqa: BLE001 - whatever the library says
                self.failed(error)
        is_steady = not is_users(value) and isinstance(value, FunctionType | BuiltinFunctionType | np.ufunc)
        text = self.bound(function).text
        operation = library(value, text, path, is_steady=is_steady)
        given = [self.pattern(each) for each in arguments]
        named = {name: self.pattern(each) for name, each in keywords.items()}
        found = self.emit(operation, given, named)
        return self._viewed(value, found, arguments, keywords)

    def _viewed(self, function: Any, found: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
        """What a function of NumPy's gives: a view where NumPy's is one."""
        name = getattr(function, "__name__", "")
        module = getattr(function, "__module__", "") or ""
        if not module.startswith("numpy") or keywords or not arguments or name not in VIEWS:
            return found
        type_ = self.type_of(arguments[0])
        if type_ is None or not type_.shape or not isinstance(found, Lane):
            return found
        if name == "diag" and len(type_.shape) != 2:
            return found
        if name in ("asarray", "ascontiguousarray"):
            return arguments[0] if found.type == type_ else found
        try:
            rest = [self.constant(each, "a shape") for each in arguments[1:]]
            grid = np.arange(int(np.prod(type_.shape)), dtype=np.int32).reshape(type_.shape)
            moved = np.ascontiguousarray(function(grid, *rest))
        except (NeedsConstantError, ValueError, TypeError):
            return found
        from pcbatch.reading.values import Moved

        if moved.shape != found.type.shape:
            return found
        return View(arguments[0], Moved(name, moved.tobytes(), moved.shape), self.held(arguments[0]), found)

    def _is_pure(self, function: Any) -> bool:
        """Whether a function of a library gives the same for the same arguments, and may run now."""
        module = getattr(function, "__module__", "") or type(function).__module__ or ""
        if isinstance(function, np.ufunc) or isinstance(function, type):
            return True
        return module.partition(".")[0] in PURE

    def _has_lanes(self, values: Sequence[Value]) -> bool:
        """Whether anything of a lane's, or any captured array, is among the arguments."""
        return any(
            isinstance(each, Lane | Function | Bound | Generator | OneOf | Range | Lazy)
            or (isinstance(each, Host) and each.place is not None and self.is_array(each.value))
            or (isinstance(each, Ref) and self.kind(each) == "object")
            for each in self.state.reachable(iter(values))
        )

    def plain(self, value: Value) -> Any:
        """The value of Python's that a value is which has nothing of a lane's."""
        value = self.read(self.known(value))
        match value:
            case Host(host):
                return host
            case Tuple(items, cls):
                found = [self.plain(each) for each in items]
                return tuple(found) if cls is None else cls(*found)
            case Ref():
                cell = self.state.cell(value)
                if isinstance(cell.items, dict):
                    items = {key: self.plain(each) for key, each in cell.items.items()}
                    return set(items) if cell.kind == "set" else items
                return [self.plain(each) for each in cell.items]
        raise AssertionError(value)


VIEWS = frozenset(
    "reshape ravel transpose squeeze flip expand_dims diagonal swapaxes moveaxis atleast_1d atleast_2d broadcast_to "
    "asarray diag real fliplr flipud rot90 ascontiguousarray matrix_transpose permute_dims".split()
)
"""Functions of NumPy's that give views of their first argument."""
PURE = frozenset({"builtins", "math", "numpy", "operator", "functools", "itertools", "collections", "copy", "bisect"})
"""Modules whose functions depend on nothing but their arguments."""


def _is_array(lane: Lane) -> bool:
    return bool(getattr(lane.type, "shape", ()))


def _has_own_init(cls: Any) -> bool:
    """Whether a dataclass' `__init__` is the user's own."""
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    code = getattr(vars(owner)["__init__"], "__code__", None)
    return code is not None and code.co_filename != "<string>"


def _owner(method: MethodType) -> type | None:
    """The class in which a method stands."""
    cls = method.__self__ if isinstance(method.__self__, type) else type(method.__self__)
    name = method.__func__.__name__
    return next((base for base in cls.__mro__ if getattr(vars(base).get(name), "__func__", vars(base).get(name)) is method.__func__), None)


__all__ = ["OWN", "BatchedFunction", "Calls", "inspect", "is_installed", "itertools"]
