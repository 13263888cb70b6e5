"""Which method of an object a code is that runs: for methods that are taken into the program."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from pcbatch.errors import Method
from pcbatch.ir import records
from pcbatch.runtime.backends.tensorflow import changes, searching, watching


def of_code(receiver: Any, code: CodeType) -> Method | None:
    """The method, or property, of `receiver` that has this code; None where that is no record, or has none such."""
    if records.fields_of(receiver) is None and not records.is_simple_class(type(receiver)):
        return None
    name = code.co_name
    owner = next((base for base in type(receiver).__mro__ if name in vars(base)), None)
    found = None if owner is None else vars(owner)[name]
    function = found.fget if isinstance(found, property) else found
    if owner is None or not isinstance(function, FunctionType) or function.__code__ is not code:
        return None
    return Method(owner, name, function, isinstance(found, property))


def is_caller(code: CodeType) -> bool:
    """Whether a code is of what calls methods of objects, or helpers, for a piece."""
    return code.co_filename in (changes.__file__, searching.__file__, watching.__file__)
