"""Attributes looked up where they are stored, without running code: in objects, their slots, classes and modules."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Mapping
from typing import Any

from pcbatch.installed import OWN, is_installed
from pcbatch.lowering.captures.reads.record import MISSING, Record

GENERATED = "<pcbatch generated"
"""How the names of the files begin that hold our generated code, of which pieces are a user's statements."""


def is_users_code(code: types.CodeType, names: Mapping[str, Any]) -> bool:
    """Whether code is the user's, neither Python's, nor an installed package's, nor pcbatch's; `names` are its globals.

    Code that was made without a file, as that of data classes and named tuples is, belongs to its module.
    """
    file = code.co_filename
    if file.startswith("<") and not file.startswith(GENERATED):
        name = names.get("__name__")
        return not str(name).startswith("namedtuple_") and _is_users_module(name, or_none=True)
    return is_users(file)


@functools.lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether a file is the user's."""
    return not (is_installed(file) or file.startswith(OWN))


def is_users_class(class_: type) -> bool:
    """Whether a class was defined in the user's code."""
    return _is_users_module(class_.__module__)


def is_own_method(value: Any) -> bool:
    """Whether it is a method of an object of pcbatch's, perhaps with some of its arguments."""
    method = value.func if isinstance(value, functools.partial) else value
    return isinstance(method, types.MethodType) and type(method.__self__).__module__.startswith("pcbatch.lowering.")


def is_users_module(module: types.ModuleType) -> bool:
    """Whether a module is the user's."""
    return _is_users_module(module.__name__)


def _is_users_module(name: Any, or_none: bool = False) -> bool:
    if not isinstance(name, str) or name in sys.builtin_module_names:
        return or_none and name is None
    if name == "__main__":  # also where a notebook's kernel is the program that runs
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    return not isinstance(file, str) or is_users(file)


def attribute(record: Record, owner: Any, name: str, known: bool) -> Any:
    """`owner.name` as it is stored, with a record of where it was found; MISSING where it is computed.

    Of an object that is not `known`, made while the program is traced, only what its class says is recorded.
    """
    if isinstance(owner, types.ModuleType):
        return _entry(record, owner, vars(owner), name) if is_users_module(owner) else MISSING
    if isinstance(owner, type):
        return _unwrapped(_of_class(record, owner, name))
    if isinstance(owner, tuple) and name in getattr(type(owner), "_fields", ()):
        return getattr(owner, name)
    class_ = type(owner)
    held = instance_dict(owner)
    found = next((vars(each)[name] for each in class_.__mro__ if name in vars(each)), MISSING)
    if name == "__dict__":
        return held if held is not None else MISSING
    if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return _slot(record, owner, name) if known else MISSING
    if held is not None and name in held and not isinstance(found, property):
        if known:
            record.add(owner, functools.partial(getattr, owner), name, held[name])
        return held[name]
    if known and held is not None:
        record.add(held, held.get, name, MISSING)
        record.add(owner, functools.partial(getattr, owner), "__class__", class_)
    return _unwrapped(_of_class(record, class_, name))


def class_entries(record: Record, class_: type, code: types.CodeType) -> list[types.FunctionType]:
    """The methods, properties and descriptors of `class_` that run `code`, with a record of where they are."""
    found = []
    for each in class_.__mro__:
        if not is_users_class(each):
            continue
        for name, value in list(vars(each).items()):
            for function in functions(value):
                if function.__code__ is code:
                    _of_class(record, class_, name, end=each)
                    found.append(function)
    return found


def _of_class(record: Record, class_: type, name: str, end: type | None = None) -> Any:
    """What `name` is in the first class that has it, or in `end`; also recorded is that those before it have it not."""
    record.add(class_, functools.partial(getattr, class_), "__mro__", class_.__mro__)
    for each in class_.__mro__:
        value = vars(each).get(name, MISSING)
        if is_users_class(each):
            record.add(each, vars(each).get, name, value)
        if each is end or (end is None and value is not MISSING):
            return value
    return MISSING


def _entry(record: Record, owner: Any, names: Any, name: str) -> Any:
    value = names.get(name, MISSING)
    record.add(owner, names.get, name, value)
    return value


def _slot(record: Record, owner: Any, name: str) -> Any:
    value = getattr(owner, name, MISSING)
    record.add(owner, functools.partial(getattr, owner), name, value)
    return value


def instance_dict(owner: Any) -> dict[str, Any] | None:
    """The attributes that an object has of its own, None where it keeps none in a dict."""
    try:
        held = object.__getattribute__(owner, "__dict__")
    except (AttributeError, TypeError):
        return None
    return held if isinstance(held, dict) else None


def _unwrapped(value: Any) -> Any:
    """What a class gives for `value`, one of its entries; MISSING for what computes something."""
    if isinstance(value, (staticmethod, classmethod)):
        return value.__func__
    if isinstance(value, types.FunctionType) or not hasattr(type(value), "__get__"):
        return value
    return MISSING


def functions(value: Any) -> list[types.FunctionType]:
    """The functions that an entry of a class runs."""
    match value:
        case types.FunctionType():
            return [value]
        case staticmethod() | classmethod():
            return functions(value.__func__)
        case property():
            return [each for each in (value.fget, value.fset) if isinstance(each, types.FunctionType)]
        case functools.cached_property():
            return functions(value.func)
    return []
