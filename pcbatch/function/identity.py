"""The identity of the program of a saved run: a digest that is the same in every process, by content alone.

It covers the table that the machine runs, the byte code of its pieces, and what these read from around them: numbers
and strings by value, arrays by their bytes, the user's functions by byte code and what they capture in turn, objects of
other classes by the class's name. Of these objects it has what was read from them while the program was traced (see
`reads`). Places in source files are left out, so a program may move, and comments may change.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir.machine import Program
from pcbatch.ir.types import StructType, TensorType
from pcbatch.lowering.captures.fingerprints import Same, fingerprint, is_of_user, shallow

LEFT_OUT = ("spans", "kept", "tapes", "steps")
"""Fields of a table that are no part of a program's identity: its place, objects of this process, and what follows."""


def program_digest(program: Program, read: Iterable[tuple[Any, Any]]) -> str:
    """A hexadecimal digest of `program`, its name left out, and of what was `read` as it was traced: names, values."""
    parts = {field.name: getattr(program, field.name) for field in fields(program) if field.name != "name"}
    found = [(_portable(shallow(key)), _portable(fingerprint(value))) for key, value in read]
    return hashlib.sha256(repr((_described(parts), found)).encode()).hexdigest()


def function_digest(function: Any) -> str:
    """A hexadecimal digest of a user's function: its byte code and what it reads from around it."""
    return hashlib.sha256(repr(_portable(fingerprint(function))).encode()).hexdigest()


def _described(value: Any) -> Any:
    """`value`, a part of a table, as nested tuples of text."""
    match value:
        case Span():
            return None
        case TensorType() | StructType():
            return str(value)
        case types.FunctionType():
            return _portable(fingerprint(value))
        case Mapping():
            return tuple((_described(key), _described(each)) for key, each in value.items())
        case tuple() | list():
            return tuple(_described(each) for each in value if not isinstance(each, Span))
    if is_dataclass(value) and not isinstance(value, type):
        named = ((field.name, getattr(value, field.name)) for field in fields(value) if field.name not in LEFT_OUT)
        return (type(value).__name__, *((name, _described(each)) for name, each in named))
    return repr(value)


def _portable(key: Any) -> Any:
    """A key of `fingerprint` with names and contents in place of identities."""
    match key:
        case Same(value=value):
            return _content(value)
        case tuple():
            return tuple(map(_portable, key))
        case frozenset():
            return ("set", *sorted(repr(_portable(each)) for each in key))
    return key


def _content(value: Any) -> Any:
    match value:
        case types.FunctionType() if is_of_user(value):
            return ("function", *_code(value.__code__))
        case types.CodeType():
            return ("code", *_code(value))
        case types.ModuleType():
            return ("module", value.__name__)
        case type() | types.FunctionType() | types.BuiltinFunctionType():
            return ("name", value.__qualname__)
    if hasattr(type(value), "__array__"):
        array = np.ascontiguousarray(value)
        return (
            "array",
            array.dtype.name,
            np.shape(value),
            hashlib.sha256(array.tobytes()).hexdigest(),
        )
    return ("object", type(value).__qualname__)


def _code(code: types.CodeType) -> tuple[Any, ...]:
    constants = (_code(each) if isinstance(each, types.CodeType) else _constant(each) for each in code.co_consts)
    return (code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, *constants)


def _constant(value: Any) -> Any:
    return ("set", *sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
