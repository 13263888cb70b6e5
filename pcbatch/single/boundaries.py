"""Calls of batched functions by one example: the arrays that they are given are values."""

from __future__ import annotations

import dis
import functools
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
    """`function`, which changes none of the arrays that it is given: it gets copies, if its code may change one.

    Another one is called as it is, in one frame.
    """
    return _of_copies(function) if _may_change(function.__code__) else function


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


def _own(value: Any) -> Any:
    """An argument as a batched function gets it: an array is a value, whose copy it may change, an object is itself."""
    return value.__copy__() if isinstance(value, Array) else value
