"""The identity of the program of a saved run: a digest that is the same in every process, by content alone.

It covers the table that the machine runs, the byte code of its pieces, and what these read from around them: numbers
and strings by value, arrays by their bytes, the user's functions by byte code and what they capture in turn, objects of
other classes by the class's name. Of these objects it has what was read from them while the program was traced (see
`reads`). Places in source files are left out, so a program may move, and comments may change.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.installed import is_users_module
from pcbatch.ir.expressions import Attribute, Name, path_of
from pcbatch.ir.machine import Program
from pcbatch.ir.types import StructType, TensorType
from pcbatch.lowering.captures.captured import Same, fingerprint, is_of_user, shallow
from pcbatch.lowering.codegen.environment import Environment

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


LIBRARIES = frozenset({"builtins", "math", "numpy", "operator", "pcbatch", "tensorflow"})
"""The packages whose functions do what their names say: they read nothing of the user's."""
DATA = ("builtins", "pcbatch.errors", "pcbatch.ir", "numpy", "tensorflow.python.framework.dtypes")
"""The modules of classes whose objects say in a pickle all that they are."""


def text_digest(program: Any, environment: Environment, *more: Any) -> str | None:
    """A digest of a typed program by what is written in it, places included, and of `more`, in every process the same.

    None where that does not say all: where it calls what is the user's own, or holds objects of the user's classes.
    """
    found = _Content(environment)
    try:
        found.add((program, more))
        found.add({path: environment.path(path) for path in sorted(found.paths)})
    except Exception:  # what cannot be looked up or written down may be anything
        return None
    return found.digest()


class _Content(pickle.Pickler):
    """A pickle that nobody reads: its bytes tell data apart. It collects the `paths` of free names in expressions."""

    def __init__(self, environment: Environment):
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, pickle.HIGHEST_PROTOCOL)
        self.fast = True  # which objects are the same one says nothing
        self.paths: set[str] = set()
        self._libraries: dict[Any, Any] = {}
        self._environment = environment

    def add(self, value: Any) -> None:
        """Add a value; raises PicklingError, or another error, where its content is not known."""
        self.dump(value)

    def digest(self) -> str:
        """The digest of all that was added."""
        return hashlib.sha256(self._bytes.getvalue()).hexdigest()

    def reducer_override(self, value: Any) -> Any:
        """Return how a value is told from others."""
        if isinstance(value, Name | Attribute):
            path = path_of(value)
            if path is not None and self._environment.is_bound(path.partition(".")[0]):
                self.paths.add(path)
        elif value is str:
            pass  # in what follows
        elif isinstance(value, types.ModuleType):
            return str, (_of_library(value.__name__),)
        elif isinstance(value, type | types.FunctionType | types.BuiltinFunctionType | np.ufunc):
            found = self._libraries.get(value)
            if found is None:
                found = self._libraries[value] = str, (_library_path(value),)
            return found
        elif not type(value).__module__.startswith(DATA):
            raise pickle.PicklingError(f"an object of {type(value).__qualname__}")
        return NotImplemented


def _of_library(module: str) -> str:
    """`module`, the name of a module of a library; PicklingError for another."""
    if module.partition(".")[0] not in LIBRARIES or is_users_module(module):
        raise pickle.PicklingError(f"something of {module}")
    return module


def _library_path(value: Any) -> str:
    """The module and the name of a class or a function of a library; PicklingError for what is not there by its name.

    So is a function that somebody has put in the place of another.
    """
    module = _of_library(getattr(value, "__module__", None) or "numpy")
    if isinstance(value, types.FunctionType) and is_of_user(value):
        raise pickle.PicklingError(f"{value.__qualname__} in the place of a library's function")
    name = getattr(value, "__qualname__", value.__name__)
    found: Any = sys.modules.get(module)
    for each in name.split("."):
        found = getattr(found, each, None)
    if found is not value:
        raise pickle.PicklingError(f"{name}, which is not {module}'s")
    return f"{module}.{name}"
