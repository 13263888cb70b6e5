"""Statements and stores on plain Python values, for `pcbatch.ir.interpreter`."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

from pcbatch.ir.code import names
from pcbatch.ir.interpreter import Evaluate, LaneFaultError

NO_NAMES: Mapping[str, Any] = {}


@lru_cache(maxsize=4096)
def _compiled(code: str) -> CodeType:
    return compile(code, "<primitive>", "exec")


def python_evaluate(namespaces: Mapping[str, Mapping[str, Any]]) -> Evaluate:
    """An `evaluate` that executes statements as Python; free names are looked up in `namespaces[function_name]`.

    A division by zero and an index out of range are faults of the lane. `__index__(n)`, which only frontends write,
    makes `n` a Python int.
    """

    def evaluate(function: str, code: str, inputs: dict[str, Any]) -> dict[str, Any]:
        scope = {"__index__": operator.index, **namespaces.get(function, NO_NAMES), **inputs}
        try:
            exec(_compiled(code), scope)
        except ZeroDivisionError as error:
            raise LaneFaultError("ARITHMETIC", f"ZeroDivisionError: {error}") from error
        except IndexError as error:
            raise LaneFaultError("INDEX", f"IndexError: {error}") from error
        return {name: scope[name] for name in names(code)[1] if name in scope}

    return evaluate


def copy_store(array: Any, indices: tuple[Any, ...], value: Any) -> Any:
    """A copy of a NumPy array or of a list of lists, one element replaced; out of range is a fault of the lane."""
    try:
        if isinstance(array, list):
            first, *rest = indices
            array = [*array]
            array[first] = copy_store(array[first], tuple(rest), value) if rest else value
        else:
            array = array.copy()
            array[indices] = value
    except IndexError as error:
        raise LaneFaultError("INDEX", f"IndexError: {error}") from error
    return array
