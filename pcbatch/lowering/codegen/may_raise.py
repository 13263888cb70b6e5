"""The detection of plain users' functions with an operator that Python may raise for.

`a[i]`, `n / k`, `n // k`, `k % n`, `2 ** k`, `1 << k`.

Read from their bytecode, and from that of what they call by its name.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pcbatch.installed import OWN, is_installed

_SYMBOLS = tuple(f"{symbol}{end}" for symbol in ("/", "//", "%", "**", "<<", ">>") for end in ("", "="))
_NAMES = tuple(
    f"{way}_{name}"
    for way in ("BINARY", "INPLACE")
    for name in ("TRUE_DIVIDE", "FLOOR_DIVIDE", "MODULO", "POWER", "LSHIFT", "RSHIFT")
)  # of Python 3.10
_NOTHING = {"CACHE", "EXTENDED_ARG", "NOP"}


def may_fail(called: Any) -> bool:
    """Return whether `called` is the user's own, and has such an operator, or calls by name what has one."""
    return any(_has_operator(function.__code__) for function in _reached(called, set()))


def _reached(called: Any, seen: set[int]) -> Iterator[types.FunctionType]:
    """The user's functions that `called` is, and calls by their names."""
    function = called.__func__ if isinstance(called, types.MethodType) else called
    if not isinstance(function, types.FunctionType) or id(function) in seen or not _is_users(function.__code__):
        return
    seen.add(id(function))
    yield function
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield from _reached(function.__globals__[name], seen)
        elif name in cells:
            try:
                yield from _reached(cells[name].cell_contents, seen)
            except ValueError:  # not assigned yet
                continue


def _is_users(code: types.CodeType) -> bool:
    return not is_installed(code.co_filename) and not code.co_filename.startswith((OWN, "<pcbatch"))


def _names(code: types.CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return {*code.co_names, *code.co_freevars}.union(*map(_names, inner))


@lru_cache(maxsize=4096)
def _has_operator(code: types.CodeType) -> bool:
    """Return whether the right operand of such an operator, or an index, is no constant."""
    before = ""
    for each in dis.get_instructions(code):
        if each.opname in _NOTHING:
            continue
        is_one = each.opname in ("BINARY_SUBSCR", *_NAMES) or (each.opname == "BINARY_OP" and each.argrepr in _SYMBOLS)
        if is_one and before != "LOAD_CONST":
            return True
        before = each.opname
    return any(_has_operator(const) for const in code.co_consts if isinstance(const, types.CodeType))
