"""Records: named tuples, dataclasses, and objects of simple classes, which are nothing but their attributes.

A record is taken apart into its fields and made anew from them. That runs no `__init__`, since it is the same object
to its author: what happens once, when it is made, does not happen again where it crosses a branch.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from functools import lru_cache
from types import FunctionType
from typing import Any

from pcbatch.installed import IN_PYTHON, OWN, is_installed

HEAP_TYPE = 1 << 9
"""The flag of classes that a `class` statement has made (CPython's Py_TPFLAGS_HEAPTYPE)."""
_OWN_ACCESS = ("__slots__", "__new__", "__setattr__", "__getattr__", "__getattribute__", "__delattr__")
_MORE_THAN_FIELDS = ("__array__", "__array_interface__", "__tf_tensor__", "__dlpack__")
"""What makes an object an array."""


def is_record_class(value: Any) -> bool:
    """Whether `value` is a class of records."""
    return isinstance(value, type) and (
        (issubclass(value, tuple) and hasattr(value, "_fields"))
        or dataclasses.is_dataclass(value)
        or is_simple_class(value)
    )


def is_simple_class(cls: type) -> bool:
    """Whether objects of `cls`, which is no dataclass, are what their `__dict__` says and nothing else.

    It and its bases are the user's own, made by `class` statements without `__slots__`, a metaclass or access to
    attributes of their own, and its objects are no arrays.
    """
    known: bool = _is_simple_class(cls)
    return known


@lru_cache(maxsize=1024)
def _is_simple_class(cls: Any) -> bool:
    bases = cls.__mro__[:-1]
    return (
        type(cls) is type
        and bool(bases)
        and not any(dataclasses.is_dataclass(base) for base in bases)
        and all(base.__flags__ & HEAP_TYPE for base in bases)
        and not any(_is_foreign(base) for base in bases)
        and not any(name in vars(base) for base in bases for name in (*_OWN_ACCESS, *_MORE_THAN_FIELDS))
    )


def _is_foreign(cls: type) -> bool:
    """Whether a class belongs to Python, to an installed package or to pcbatch: a tape is no record."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    return file not in IN_PYTHON and (is_installed(file) or file.startswith(OWN))


def fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of a record, by name; None for everything else, an object without attributes too: a mere token."""
    if isinstance(value, tuple):
        return dict(zip(value._fields, value, strict=True)) if hasattr(value, "_fields") else None
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return dict(vars(value)) or None if is_simple_class(type(value)) else None


def is_called(value: Any) -> bool:
    """Whether a value is a record, or a mere token, that can be called."""
    is_record = fields_of(value) is not None or is_simple_class(type(value))
    return is_record and callable(value)


def field_names(cls: type) -> tuple[str, ...] | None:
    """The names of the fields of a record class; None for a simple class, whose objects say it themselves."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return tuple(cls._fields) if hasattr(cls, "_fields") else None


def made(cls: type, fields: Mapping[str, Any]) -> Any:
    """The record of class `cls` with these fields."""
    if issubclass(cls, tuple):
        return cls(**fields)
    record = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(record, name, value)
    return record


def object_of(cls: type, names: tuple[str, ...], *values: Any) -> Any:
    """The record of class `cls` whose fields `names` have these values."""
    return made(cls, dict(zip(names, values, strict=True)))


CONSTRUCTORS = ("__init__", "__post_init__")
"""The methods that classes of records run when an object is made, of simple ones and of dataclasses."""
NO_FILE = "<string>"
"""The file of code that the decorator of a dataclass has made."""


def is_generated(function: Any) -> bool:
    """Whether the decorator of a dataclass has made a method: there is no text of it."""
    return isinstance(function, FunctionType) and function.__code__.co_filename == NO_FILE


def is_frozen(value: Any) -> bool:
    """Whether Python refuses to change the record `value`: a named tuple, a frozen dataclass."""
    if isinstance(value, tuple):
        return True
    parameters = getattr(type(value), "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


def parts_of(value: Any) -> tuple[Any, ...] | None:
    """The parts of a list, a tuple, a dict or a record, keys and names among them; None for everything else."""
    if isinstance(value, dict):
        return tuple(part for item in value.items() for part in item)
    if isinstance(value, list | tuple):
        return tuple(value)
    fields = fields_of(value)
    return None if fields is None else tuple(part for item in fields.items() for part in item)
