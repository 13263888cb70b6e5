"""Calls of batched functions by one example: the arrays that they are given, and give, are values.

In a program that changes nothing, or passes on only arrays that nobody else has, nobody can tell, and a call is one
frame of Python's (see `agreement`). In any other a call gets copies and gives copies.
"""

from __future__ import annotations

import dis
import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from pcbatch.ir import values
from pcbatch.runtime.backends.tensorflow import bounded
from pcbatch.single.values import Array

OF = "_pcb_of"
"""The attribute of a class that stands for one of the user's: that one."""
_MUTATORS = frozenset(
    {"append", "extend", "insert", "pop", "clear", "reverse", "sort", "update", "setdefault", "popitem", "remove"}
    | {"add", "discard", "fill", "partition", "put", "resize", "itemset"}
)
_UNKNOWN = frozenset({"getattr", "setattr", "operator"})
"""Names by which code reaches what its other names do not tell."""
_STORES = frozenset({"STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR", "STORE_ATTR", "DELETE_ATTR"})
"""Bytecodes that store, of any Python: `a[i:j] = v` has one of its own from 3.12 on."""


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and all inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes(each)


def may_change(function: FunctionType) -> bool:
    """Tell whether a function may change something, by what its code does or calls, or gets by default."""
    given = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return _may_change(function.__code__) or any(isinstance(each, FunctionType) and may_change(each) for each in given)


@functools.cache
def _may_change(code: CodeType) -> bool:
    for each in codes(code):
        if not (_MUTATORS | _UNKNOWN).isdisjoint(each.co_names):
            return True
        for instruction in dis.get_instructions(each):
            if instruction.opname in _STORES or _is_in_place(instruction):
                return True
    return False


def _is_in_place(instruction: dis.Instruction) -> bool:
    """Tell whether an instruction is of `a += v`: before Python 3.11 such have names of their own."""
    return instruction.opname.startswith("INPLACE_") or (
        instruction.opname == "BINARY_OP" and instruction.argrepr.endswith("=")
    )


def of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with arrays of its own, whose results share none with it, its caller or each other."""

    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        found = function(*map(_own, given), **{name: _own(each) for name, each in options.items()})
        return _apart(found, (*given, *options.values()))

    return call


def _own(value: Any) -> Any:
    """An argument as a batched function gets it: an array is a value, whose copy it may change, an object is itself."""
    return value.__copy__() if isinstance(value, (Array, np.ndarray)) else value


def _apart(found: Any, given: Iterable[Any]) -> Any:
    """A result whose arrays are copies, but for those in lists, dicts and objects that are the arguments' own."""
    waiting: list[Any] = []

    def own(value: Any) -> Any:
        if isinstance(value, (Array, np.ndarray)):
            return value.__copy__()
        if isinstance(value, tuple):
            parts = [own(each) for each in value]
            if all(new is old for new, old in zip(parts, value, strict=True)):
                return value
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        waiting.append(value)
        return value

    result = own(found)
    known: set[int] | None = None
    while waiting:
        each = waiting.pop()
        parts = _parts(each)
        if parts is None:
            continue
        known = _reached(given) if known is None else known
        if id(each) in known:
            continue
        known.add(id(each))
        for place, part in [*(parts.items() if isinstance(parts, dict) else enumerate(parts))]:
            new = own(part)
            if new is not part:
                parts[place] = new
    return result


def _parts(value: Any) -> Any:
    """The holder of the parts of a list, a dict or an object: itself, or its attributes; None for all else."""
    if isinstance(value, (list, deque, dict)):
        return value
    kind = type(value)
    if hasattr(value, "__dict__") and (
        OF in vars(kind) or values.is_record_class(kind) or isinstance(value, bounded.Bounded)
    ):
        return vars(value)
    return None


def _reached(values: Iterable[Any]) -> set[int]:
    """The identities of the lists, dicts and objects in values, and in each other."""
    found, waiting = set(), [*values]
    while waiting:
        each = waiting.pop()
        parts = each if isinstance(each, tuple) else _parts(each)
        if parts is None or id(each) in found:
            continue
        found.add(id(each))
        waiting.extend(parts.values() if isinstance(parts, dict) else parts)
    return found
