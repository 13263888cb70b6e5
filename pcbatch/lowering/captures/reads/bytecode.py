"""Which instructions of a function read a stored value, one after the other: `config.model.rate`, `get().table["k"]`.

Before such an instruction runs, the value that it reads from is what the one before it gave; see `watch`.
"""

from __future__ import annotations

import dis
import types
from functools import lru_cache
from typing import Any, NamedTuple

GLOBALS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
CELLS = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
LOCALS = {"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST"}
ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
CALLS = {"CALL", "CALL_FUNCTION", "CALL_METHOD", "CALL_KW", "CALL_FUNCTION_KW", "CALL_FUNCTION_EX"}
NOTHING = {"CACHE", "PUSH_NULL", "PRECALL", "KW_NAMES", "EXTENDED_ARG", "NOP", "RESUME"}
"""Instructions that may stand between two of a chain."""

ASKED = {"type": "__class__", "vars": "__dict__"}
"""Functions that give an attribute of what they are called with."""


class Step(NamedTuple):
    """What an instruction reads: "global", "cell", "local", "attribute", "item", "imported", or "called": a result.

    `key` is the name or the index; `variable` the local variable that has the index, or the module of an imported name.
    `ends` tells that nothing further is read from the value at once: it goes to where it cannot be followed.
    """

    kind: str
    key: Any = None
    variable: str | None = None
    ends: bool = False


@lru_cache(maxsize=4096)
def steps(code: types.CodeType) -> dict[int, Step]:
    """The reads of `code`, by the offset of the instruction."""
    every = [each for each in dis.get_instructions(code) if each.opname not in NOTHING]
    found: dict[int, Step] = {}
    place = 0
    module = ""
    while place < len(every):
        module = every[place].argval if every[place].opname == "IMPORT_NAME" else module
        start, length, step = every[place], 1, _root(every[place], module)
        asks = every[place - 1].argval if place else None
        while step is not None:
            following = _next(every, place + length, asks)
            found[start.offset] = step._replace(ends=following is None)
            if following is None:
                break
            place += length
            length, step = following
            start = every[place + length - 1]
        place += length
    return found


def _root(instruction: dis.Instruction, module: str) -> Step | None:
    name = instruction.argval
    if instruction.opname == "IMPORT_FROM":
        return Step("imported", name, module)
    if instruction.opname in GLOBALS:
        return Step("global", name)
    if instruction.opname in CELLS:
        return Step("cell", name)
    if instruction.opname in LOCALS:
        return Step("local", name[-1] if isinstance(name, tuple) else name)
    return Step("called") if instruction.opname in CALLS else None


def _next(every: list[dis.Instruction], place: int, asks: Any) -> tuple[int, Step] | None:
    """The step that goes on from a value, and how many instructions it takes.

    `asks` is the name of the function that the value may be given to: `getattr(value, "name")`, `type(value)`.
    """
    names = [each.opname for each in every[place : place + 2]] + ["", ""]
    if names[0] in ATTRIBUTES:
        return 1, Step("attribute", every[place].argval)
    if names[:2] == ["LOAD_CONST", "BINARY_SUBSCR"]:
        return 2, Step("item", every[place].argval)
    if names[0] in LOCALS and names[1] == "BINARY_SUBSCR" and isinstance(every[place].argval, str):
        return 2, Step("item", variable=every[place].argval)
    if asks in ASKED and names[0] in CALLS and every[place].arg == 1:
        return 1, Step("attribute", ASKED[asks])
    if asks == "getattr" and names[0] == "LOAD_CONST" and names[1] in CALLS and every[place + 1].arg == 2:
        return 2, Step("attribute", every[place].argval)
    return (1, Step("called")) if names[0] in CALLS and every[place].arg == 0 else None
