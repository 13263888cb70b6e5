"""Calls of what is not interpreted: functions of libraries, and opaque ones of the user's."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType
from typing import Any

import gast
import numpy as np

from pcbatch.errors import Note
from pcbatch.frontend.nodes import span_of
from pcbatch.lowering.captures.guarded_paths import Place
from pcbatch.reading import stdlib_in_python
from pcbatch.reading.constructors import Constructors
from pcbatch.reading.containers import MOST_ITEMS, MUTABLE, MUTATORS
from pcbatch.reading.core import NeedsBlocksError, NeedsConstantError, RefusedError
from pcbatch.reading.emitter import Template
from pcbatch.reading.opaque_calls import FUNCTION, Handed, is_function
from pcbatch.reading.operations import CALL, Applied, Operation, key_of, lanes_in, library, unread
from pcbatch.reading.sources import is_users, unreadable
from pcbatch.reading.values import (
    Bound,
    Function,
    Generator,
    Host,
    Lane,
    Lazy,
    OneOf,
    Part,
    Range,
    Ref,
    Tuple,
    Value,
    is_number,
)

_NAMES = (
    "reshape ravel transpose squeeze flip expand_dims diagonal swapaxes moveaxis atleast_1d atleast_2d broadcast_to "
    "asarray diag real fliplr flipud rot90 ascontiguousarray matrix_transpose permute_dims"
)
VIEWS = frozenset(_NAMES.split())
"""Functions of NumPy's that give views of their first argument."""


CALLABLE = "call a function, or an object whose class has `__call__`"
GIVING_NEW = frozenset({"tensorflow", "keras", "pcbatch", "numpy", "math"})
"""Libraries of which a function changes nothing that it is given, and gives nothing of that back."""
PURE = frozenset({"builtins", "math", "numpy", "operator", "functools", "itertools", "collections", "copy", "bisect"})
"""Modules whose functions depend on nothing but their arguments."""
_WHILE = "tensorflow.python.ops.while_loop.while_loop_v2"
"""The function behind `tf.while_loop`."""
_OVER_ROWS: Mapping[str, tuple[Any, tuple[str, ...]]] = {
    "tensorflow.python.ops.map_fn.map_fn_v2": (stdlib_in_python.map_fn, ("fn", "elems", "dtype")),
    "tensorflow.python.ops.functional_ops.scan_v2": (stdlib_in_python.scan, ("fn", "elems", "initializer")),
}
"""The functions behind `tf.map_fn` and `tf.scan`: the same in Python, and the names of the first arguments."""
_OF_SPEED = frozenset({"parallel_iterations", "swap_memory", "infer_shape", "name"})
"""Arguments of both that make no difference to the values."""
FEW_ROWS = 8
"""A loop over no more rows stays one operation."""


class Libraries(Constructors):
    """Opaque calls."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._changed: list[tuple[Place, Any, RefusedError]] = []
        """Changes by functions that are called around them, with the refusal where anybody else reads those."""

    def opaque(self, function: Host, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A call of what is not interpreted: known now, or one operation."""
        value = function.value
        if not callable(value):
            raise self.refusal("PCB423", f"{self.described(function)} is called as if it were a function", CALLABLE)
        owner = getattr(value, "__self__", None)
        if isinstance(owner, MUTABLE) and getattr(value, "__name__", "") in MUTATORS:
            raise self.captured_change(Host(owner))
        found = self.of_ragged(value, arguments, keywords)
        name = f"{getattr(value, '__module__', '')}.{getattr(value, '__name__', '')}"
        if found is None and name == _WHILE:
            found = self._as_loop(arguments, keywords)
        if found is None and name in _OVER_ROWS:
            found = self._as_loop_over_rows(*_OVER_ROWS[name], arguments, keywords)
        if found is not None:
            return found
        path = self.backend.equivalent(value)
        is_known = not self.has_lanes([*arguments, *keywords.values()]) and self._is_pure(value)
        if is_known and not (getattr(value, "__name__", "") in VIEWS and self._are_arrays(arguments[:1])):
            own = _as_numpys if _is_numpys(value) else _itself
            known = [own(self.plain(each)) for each in arguments]
            named = {name: own(self.plain(each)) for name, each in keywords.items()}
            try:
                found = value(*known, **named)
                is_weak = isinstance(found, np.float64) and not isinstance(value, type) and all(map(is_number, known))
            except Exception as error:
                raise self.failed(error) from None
            return Host(float(found)) if is_weak else self._of_iterator(value, self.host(self.unwritten(found)))
        copy = keywords.get("copy")
        if isinstance(copy, Host) and copy.value is False:
            raise self.refusal(
                "PCB420",
                f"`{getattr(value, '__name__', 'it')}` with copy=False may give back what it was given",
                "leave it out",
            )
        self._follow(value, arguments, keywords)
        may_change = any(map(self._reads_objects, (*arguments, *keywords.values())))
        if may_change or (path is None and not self._gives_new(value)):
            text = self.bound(function).text
            unknown = unread(value, text) if is_users(value) else library(value, text, None, is_steady=False)
            who = f"a function handed to `{text}`" if may_change else f"`{text}`"
            return self._handed(value, arguments, keywords, unknown, who)
        is_steady = isinstance(value, FunctionType | BuiltinFunctionType | np.ufunc)
        operation = library(value, self.bound(function).text, path, is_steady=is_steady)
        given, named = self.patterns(arguments, keywords)
        found = self._called_anew(self.emit(operation, given, named), operation, given, named, arguments, keywords)
        return self._viewed(value, found, arguments, keywords)

    def _as_loop(self, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value | None:
        """A loop of TensorFlow's as one of the program, so that lanes meet in its turns.

        None where the number of turns is the same for all lanes, or where it cannot be: it is one operation then.
        """
        named = dict(zip(("cond", "body", "loop_vars"), arguments, strict=False)) | keywords
        if self.straight or self.contexts or len(arguments) > 3 or not {"cond", "body", "loop_vars"} <= named.keys():
            return None
        if named.keys() & {"shape_invariants", "back_prop"}:
            return None
        mark, cond, body, variables = self.mark(), named["cond"], named["body"], named["loop_vars"]
        convert = self.host(sys.modules["tensorflow"].convert_to_tensor)
        function = self.function_of(stdlib_in_python.while_loop)  # type: ignore[arg-type]
        assert function is not None
        try:
            if self._is_counted(cond, body, variables):
                self.back_to(mark)
                return None
            self.back_to(mark)
            starts = [self.type_of(self.call_value(convert, [each], {})) for each in self._each(variables)]
            self.back_to(mark)
            found = self.call_user(function, [convert], named)
            if starts == [self.type_of(self.read(each)) for each in self._each(found)]:
                return found
        except (RefusedError, NeedsBlocksError):
            pass
        self.back_to(mark)
        return None

    def _as_loop_over_rows(
        self, in_python: Any, names: Sequence[str], arguments: Sequence[Value], keywords: dict[str, Value]
    ) -> Value | None:
        """`tf.map_fn` or `tf.scan` of one array as a loop of the program, so that its turns are made for all lanes.

        None where the rows are few, or where it cannot be: it is one operation then.
        """
        named = {**dict(zip(names, arguments, strict=False)), **keywords}
        named = {name: each for name, each in named.items() if name not in _OF_SPEED and each != Host(None)}
        wanted = [named.pop(name) for name in ("dtype", "fn_output_signature") if name in named]
        rows = self.type_of(self.read(named.get("elems", Host(None))))
        if self.straight or self.contexts or len(arguments) > 3 or rows is None or not rows.shape:
            return None
        if rows.shape[0] <= FEW_ROWS or not named.keys() <= {"fn", "elems", "initializer", "reverse"}:
            return None
        tensorflow, mark = sys.modules["tensorflow"], self.mark()
        convert = self.host(tensorflow.convert_to_tensor)
        function = self.function_of(in_python)
        assert function is not None
        try:
            row = self.item(named["elems"], Host(0))
            first = named.get("initializer", row)
            if self.type_of(self.read(first)) is None:  # a structure, of which each part is an array
                raise NeedsBlocksError
            start = self.call_value(convert, [first], {})
            given = [row] if in_python is stdlib_in_python.map_fn else [start, row]
            after = self.call_value(named["fn"], given, {})
            if self.type_of(self.read(after)) is None:
                raise NeedsBlocksError
            found = self.type_of(self.read(self.call_value(convert, [after], {})))
            told = self.type_of(self.read(start)) if len(given) > 1 else None
            told = told or (found and replace(found, dtype=rows.dtype))
            for each in wanted:
                told = told and replace(told, dtype=tensorflow.as_dtype(self.plain(each)).name)
            self.back_to(mark)
            if found is None or found.weak or found != told:
                return None
            shape = Host((rows.shape[0], *found.shape))
            blank = self.call_value(self.host(tensorflow.zeros), [shape, Host(tensorflow.as_dtype(found.dtype))], {})
            return self.call_user(function, [convert, blank], named)
        except (RefusedError, NeedsBlocksError, TypeError):
            self.back_to(mark)
            return None

    def _is_counted(self, cond: Value, body: Value, variables: Value) -> bool:
        """Tell whether the first turns of a loop are made, or not made, by every lane."""
        values = self._each(variables)
        for _ in range(2):
            goes_on = self.read(self.call_value(cond, values, {}))
            if not isinstance(goes_on, Host):
                return False
            values = self._each(self.call_value(body, values, {}))
        return True

    def _each(self, values: Value) -> list[Value]:
        """The items of a tuple or a list, all of them numbers or arrays; NeedsBlocksError for anything else."""
        whole = self.known(values)
        if not isinstance(whole, Tuple) and self.kind(whole) != "list":
            raise NeedsBlocksError
        size = self.length(whole)
        if not isinstance(size, Host):
            raise NeedsBlocksError
        items = [self.read(self.item(whole, Host(place))) for place in range(size.value)]
        if any(self.type_of(each) is None for each in items):
            raise NeedsBlocksError
        return items

    def _called_anew(
        self,
        found: Value,
        operation: Operation,
        given: Sequence[Any],
        named: Mapping[str, Any],
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        """Return what an operation gives; a function that is made of the user's is made again where it is called."""
        values = (*arguments, *keywords.values())
        read = tuple((each, self._read_by(each)) for each in values if isinstance(each, Function))
        if isinstance(found, Host) and is_function(found.value) and any(names for _, names in read):
            found = Part(Applied(self.ops, operation, tuple(given), dict(named)), FUNCTION, is_function=True)
        return replace(found, made_of=read) if isinstance(found, Part) else found

    def _read_by(self, function: Function) -> dict[str, Any]:
        """Return what a function reads of those around it, as operands."""
        return {name: self.pattern(self.outer_value(function, name)) for name in self.free_names(function)}

    def call_made(self, function: Part, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A call of a function that an operation has made, of functions that read the same as they did then."""
        for each, before in function.made_of:
            now = self._read_by(each)
            changed = [name for name in before if _as_read(before[name]) != _as_read(now.get(name))]
            if changed:
                raise self.refusal(
                    "PCB404",
                    f"what is called here reads `{changed[0]}`, which has changed since it was made",
                    f"hand `{changed[0]}` over as an argument, or make the function again where it is called",
                )
        return self._handed(function, [function, *arguments], keywords, CALL, "a function handed to an operation")

    def _gives_new(self, function: Any) -> bool:
        """Return whether a function neither changes nor returns its arguments: those of the array library do not."""
        module = getattr(function, "__module__", "") or type(function).__module__ or ""
        return module.partition(".")[0] in GIVING_NEW

    def _reads_objects(self, value: Value) -> bool:
        """Tell whether a value is a function that reads what it could change around it."""
        if not isinstance(value, Function) or value.frame is None:
            return False
        reached = self.state.reachable(iter(self._parts_of(value).values()))
        return any(isinstance(each, Ref) and self.kind(each) != "array" for each in reached)

    def _parts_of(self, value: Ref | Function) -> dict[Any, Value]:
        """The parts of an object; of a function the variables around it that it reads, by name."""
        if isinstance(value, Ref):
            return dict(self.state.cell(value).parts())
        return {name: self.outer_value(value, name) for name in self.free_names(value)}

    def _handed(
        self, value: Any, arguments: Sequence[Value], keywords: dict[str, Value], operation: Operation, who: str
    ) -> Value:
        """A call of `value`, a function that may change what it is given, or give it back; `who` does, in messages."""
        given: list[Any] = []
        named: dict[str, Any] = {}

        def tried() -> tuple[Template, bool]:
            handed = Handed(who, self._parts_of)
            try:
                given[:] = [self.pattern(each) for each in arguments]
                named.update({name: self.pattern(each) for name, each in keywords.items()})
                return self.tried(operation, given, named, handed, [*arguments, *keywords.values()])
            except RefusedError as error:
                raise self._of_unreadable(value, error) from None

        template, is_checked = self._the_same_again(value, tried, lambda: self._follow(value, arguments, keywords))
        if is_checked and self._catches(value):
            raise self._of_unreadable(value, self.refusal("PCB401", "what fails in it fails the lane"))
        found = self.written(operation, given, named, template, is_checked)
        return self._of_iterator(value, self._called_anew(found, operation, given, named, arguments, keywords))

    def _of_iterator(self, function: Any, found: Value) -> Value:
        """Return what a function gives; of an iterator of Python's the items, which the program goes over once."""
        if not (isinstance(found, Host) and isinstance(found.value, Iterator)):
            return found
        items = list(itertools.islice(found.value, MOST_ITEMS + 1))
        if len(items) > MOST_ITEMS:
            name = getattr(function, "__name__", "this")
            raise self.refusal(
                "PCB130", f"`{name}` gives more than {MOST_ITEMS} items", "write a `while` loop, or go over a range"
            )
        return Lazy("iter", (Tuple(tuple(map(self.host, items))),))

    def _the_same_again(
        self, function: Any, tried: Callable[[], tuple[Template, bool]], follow: Callable[[], None]
    ) -> tuple[Template, bool]:
        """Return the result of a call that may change its reads: the same on a second try, as with a cache or a log.

        What changes each time does not matter to it then; nobody else may read what it changes.
        """
        found = tried()
        changed = self.world.guards.changed()
        if not changed:
            return found
        for place in changed:
            if self.world.guards.is_read_by_others(place, function):
                raise self._changing(place, "which something else reads")
        made = self.way_to(found[0])
        self.world.guards.forget(changed)
        follow()
        found = tried()
        if self.way_to(found[0]) != made:
            raise self._changing(changed[0], "and gives something else each time")
        self.world.guards.forget(self.world.guards.changed())
        self._changed += [(place, function, self._changing(place, "which something else reads")) for place in changed]
        return found

    def _changing(self, place: Place, how: str) -> RefusedError:
        return self.refusal(
            "PCB424",
            f"what is called here changes `{place.text}`, {how}",
            "a helper changes nothing around it: hand over what changes as an argument and return the new value, "
            "`x, count = helper(x, count)`",
            label="this is run when the program is compiled, not for each example",
        )

    def refuse_changes(self) -> None:
        """Refuse what a function that is called has changed and something else has read, which would be told now."""
        for place, function, refusal in self._changed:
            if self.world.guards.is_read_by_others(place, function):
                raise refusal

    def _catches(self, function: Any) -> bool:
        """Tell whether a function of the user's has a `try` in it."""
        found = unreadable(function)
        return found is not None and isinstance(found[0], gast.Try | gast.TryStar)

    def _of_unreadable(self, function: Any, error: RefusedError) -> RefusedError:
        """The refusal of a function that cannot be read, at what cannot be read in it, since it fails on its own."""
        found, why = unreadable(function), error.diagnostic
        if found is None or why.code not in ("PCB401", "PCB404", "PCB405", "PCB424"):
            return error
        node, refusal, file = found
        call = self.span()
        notes = [] if call is None else [Note(call, f"called with values of lanes, which it cannot see: {why.message}")]
        return type(error)(replace(refusal.at(span_of(node, file)), notes=(*notes, *why.notes)))

    def _follow(self, function: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> None:
        """Note what a function of the user's reads that is not interpreted; of a library's, what it is made of."""
        known = {number: each.value for number, each in enumerate(arguments) if isinstance(each, Host)}
        named = {name: each.value for name, each in keywords.items() if isinstance(each, Host)}
        self.world.guards.follow(function, known, named)

    def _are_arrays(self, values: Sequence[Value]) -> bool:
        """Return whether all of some values are arrays, of which others may be views."""
        return all((type_ := self.type_of(each)) is not None and bool(type_.shape) for each in values)

    def _viewed(self, function: Any, found: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
        """Return the result of a function of NumPy's: a view where NumPy's is one."""
        name = getattr(function, "__name__", "")
        module = getattr(function, "__module__", "") or ""
        if not module.startswith("numpy") or not arguments or name not in VIEWS:
            return found
        if self.type_of(arguments[0]) is None:
            return found
        try:
            rest = [self.constant(each, "a shape") for each in arguments[1:]]
            named = {key: self.constant(each, "an option") for key, each in keywords.items()}
        except NeedsConstantError:
            return found
        return self.shaped(arguments[0], name, lambda array: function(array, *rest, **named), found)

    def _is_pure(self, function: Any) -> bool:
        """Return whether a library's function gives the same for the same arguments, and may run now."""
        module = getattr(function, "__module__", "") or type(function).__module__ or ""
        if isinstance(function, (np.ufunc, type)):
            return True
        return module.partition(".")[0] in PURE

    def has_lanes(self, values: Sequence[Value]) -> bool:
        """Return whether anything of a lane's, or any captured array, is among the arguments."""
        return any(
            isinstance(each, Lane | Function | Bound | Generator | OneOf | Range | Lazy)
            or (isinstance(each, Host) and each.place is not None and self._holds_arrays(each.value))
            or (isinstance(each, Ref) and self.kind(each) == "object")
            for each in self.state.reachable(iter(values))
        )

    def _holds_arrays(self, value: Any) -> bool:
        """Tell whether a captured value is an array, or a container in which one is."""
        if isinstance(value, list | tuple | dict):
            return any(map(self._holds_arrays, value.values() if isinstance(value, dict) else value))
        return self.is_array(value)

    def plain(self, value: Value) -> Any:
        """The value of Python's that a value is which has nothing of a lane's."""
        value = self.read(self.known(value))
        match value:
            case Host(host):
                return host
            case Tuple(items, cls):
                parts = [self.plain(each) for each in items]
                return tuple(parts) if cls is None else cls(*parts)
            case Ref():
                cell = self.state.cell(value)
                if isinstance(cell.items, dict):
                    found = {key: self.plain(each) for key, each in cell.items.items()}
                    return set(found) if cell.kind == "set" else found
                return [self.plain(each) for each in cell.items]
        raise AssertionError(value)


def _as_read(pattern: Any) -> Any:
    """Return what tells operands apart, their variables included."""
    return key_of(pattern), lanes_in(pattern)


def _is_numpys(function: Any) -> bool:
    """Tell whether a function is one of NumPy's."""
    module = getattr(function, "__module__", "") or ""
    return isinstance(function, np.ufunc) or module.partition(".")[0] == "numpy"


def _as_numpys(value: Any) -> Any:
    """Return a dtype of a lane's array, `x.dtype`, as NumPy has it; everything else as it is."""
    return getattr(value, "as_numpy_dtype", value)


def _itself(value: Any) -> Any:
    return value
