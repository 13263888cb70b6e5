"""Calls of batched functions by one example: the arrays that they are given, and give, are values."""

from __future__ import annotations

import dis
import functools
import operator
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from pcbatch.single.values import Array

_MUTATORS = frozenset(
    {"append", "extend", "insert", "pop", "clear", "reverse", "sort", "update", "setdefault", "popitem", "remove"}
    | {"add", "discard", "fill", "partition", "put", "resize", "itemset"}
)
_STORES = frozenset({"STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR", "STORE_ATTR", "DELETE_ATTR"})
"""Bytecodes that store, of any Python: `a[i:j] = v` has one of its own from 3.12 on."""


def of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which changes none of the arrays that it is given, and gives none of them back.

    They are copied before a call that may change one, else where a result shares their memory.
    """
    return _of_copies(function) if _may_change(function.__code__) else _of_new_values(function)


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and all inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes(each)


@functools.cache
def _may_change(code: CodeType) -> bool:
    """Whether a function may change something that it is given, by what its code does or calls."""
    for each in codes(code):
        if _MUTATORS.intersection(each.co_names):
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


def _of_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        return function(*map(_own, given), **{name: _own(each) for name, each in options.items()})

    return call


def _of_new_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that changes nothing, whose results share no memory with the arrays that it is given."""

    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        found = function(*given, **options)
        memories = {_memory(each) for each in (*given, *options.values()) if isinstance(each, Array)}
        return _apart(found, memories) if memories else found

    return call


def _apart(found: Any, memories: set[int]) -> Any:
    """A result whose arrays, alone, in tuples, lists and dicts, are copies where they are of these memories."""
    if isinstance(found, Array):
        return found.__copy__() if _memory(found) in memories else found
    if isinstance(found, (tuple, list)):
        parts = [_apart(each, memories) for each in found]
        if all(map(operator.is_, parts, found)):
            return found
        return type(found)(*parts) if hasattr(found, "_fields") else type(found)(parts)
    if isinstance(found, dict):
        return {key: _apart(each, memories) for key, each in found.items()}
    return found


def _own(value: Any) -> Any:
    """An argument as a batched function gets it: an array is a value, whose copy it may change, an object is itself."""
    return value.__copy__() if isinstance(value, Array) else value


def _memory(array: Array) -> int:
    """The identity of the array whose memory an array has: its own, but for views."""
    return id(array if array.owner is None else array.owner)
