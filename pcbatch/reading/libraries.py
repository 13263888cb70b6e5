"""Calls of what is not interpreted: functions of libraries, and opaque ones of the user's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from pcbatch.reading.constructors import Constructors
from pcbatch.reading.core import NeedsConstantError
from pcbatch.reading.operations import library
from pcbatch.reading.sources import is_users
from pcbatch.reading.values import (
    Bound,
    Function,
    Generator,
    Host,
    Lane,
    Lazy,
    OneOf,
    Range,
    Ref,
    Tuple,
    Value,
    View,
    is_number,
)

VIEWS = frozenset(
    [
        "reshape",
        "ravel",
        "transpose",
        "squeeze",
        "flip",
        "expand_dims",
        "diagonal",
        "swapaxes",
        "moveaxis",
        "atleast_1d",
        "atleast_2d",
        "broadcast_to",
        "asarray",
        "diag",
        "real",
        "fliplr",
        "flipud",
        "rot90",
        "ascontiguousarray",
        "matrix_transpose",
        "permute_dims",
    ]
)
"""Functions of NumPy's that give views of their first argument."""


PURE = frozenset({"builtins", "math", "numpy", "operator", "functools", "itertools", "collections", "copy", "bisect"})
"""Modules whose functions depend on nothing but their arguments."""


class Libraries(Constructors):
    """Opaque calls."""

    def opaque(self, function: Host, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A call of what is not interpreted: known now, or one operation."""
        value = function.value
        if not callable(value):
            raise self.refusal("PCB423", f"{self.described(function)} is called as if it were a function")
        path = self.backend.equivalent(value)
        is_known = not self._has_lanes([*arguments, *keywords.values()]) and self._is_pure(value)
        if is_known and not (getattr(value, "__name__", "") in VIEWS and self._are_arrays(arguments[:1])):
            known = [self.plain(each) for each in arguments]
            named = {name: self.plain(each) for name, each in keywords.items()}
            try:
                found = value(*known, **named)
                is_weak = isinstance(found, np.float64) and not isinstance(value, type) and all(map(is_number, known))
                return Host(float(found)) if is_weak else self.host(found)
            except Exception as error:
                raise self.failed(error) from None
        copy = keywords.get("copy")
        if isinstance(copy, Host) and copy.value is False:
            raise self.refusal(
                "PCB420",
                f"`{getattr(value, '__name__', 'it')}` with copy=False may give back what it was given",
                "leave it out",
            )
        is_steady = not is_users(value) and isinstance(value, FunctionType | BuiltinFunctionType | np.ufunc)
        text = self.bound(function).text
        operation = library(value, text, path, is_steady=is_steady)
        given = [self.pattern(each) for each in arguments]
        named = {name: self.pattern(each) for name, each in keywords.items()}
        found = self.emit(operation, given, named)
        return self._viewed(value, found, arguments, keywords)

    def _are_arrays(self, values: Sequence[Value]) -> bool:
        """Whether all of some values are arrays, of which others may be views."""
        return all((type_ := self.type_of(each)) is not None and bool(type_.shape) for each in values)

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
        if isinstance(function, (np.ufunc, type)):
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
                parts = [self.plain(each) for each in items]
                return tuple(parts) if cls is None else cls(*parts)
            case Ref():
                cell = self.state.cell(value)
                if isinstance(cell.items, dict):
                    found = {key: self.plain(each) for key, each in cell.items.items()}
                    return set(found) if cell.kind == "set" else found
                return [self.plain(each) for each in cell.items]
        raise AssertionError(value)
