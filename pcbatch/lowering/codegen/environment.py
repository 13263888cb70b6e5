"""The environment of generated code: the backend's built-in functions and rules, names, and captured operands."""

from __future__ import annotations

import builtins
import dis
import importlib
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pcbatch.installed import OWN, is_installed
from pcbatch.ir.machine import Kept, LaneStatus
from pcbatch.ir.types import Type
from pcbatch.lowering.captures.captured import Captured
from pcbatch.runtime.backends.protocol import Backend

# -- built-in functions ------------------------------------------------------------------------------------------------


BUILTINS = {
    "abs": "absolute",
    "all": "all_of",
    "any": "any_of",
    "bool": "to_bool",
    "divmod": "divmod_",
    "float": "to_float",
    "int": "to_int",
    "len": "length",
    "max": "maximum",
    "min": "minimum",
    "round": "rounded",
    "sorted": "in_order",
    "sum": "total",
    "__axis__": "axis",
    "__blank__": "blank",
    "__cast__": "committed",
    "__changed__": "changed",
    "__free__": "free",
    "__index__": "index",
    "__length__": "shortest",
    "__guarded__": "guarded",
    "__object__": "object_of",
    "__element__": "element",
    "__last__": "place",
    "__next__": "free",
    "__place__": "place",
    "__record__": "record",
    "__recorded__": "recorded",
    "__row__": "row",
    "__unrecorded__": "unrecorded",
    "__run__": "run",
    "__stored__": "stored",
    "__taken__": "taken",
    "__with_field__": "with_field",
    "__with_item__": "with_item",
}
"""Built-in functions of the language and the function of `ops` that stands for each.

What makes another object of an object, `__changed__` and its like, is in programs that are read without types only, and
no backend has it.
"""

OPS = "_ops"
"""The name by which generated code knows the backend's operations; no user's variable may have it."""


ZERO_DIVISION = (LaneStatus.ARITHMETIC, "ZeroDivisionError: integer division or modulo by zero")
NEGATIVE_POWER = (LaneStatus.ARITHMETIC, "ZeroDivisionError: a negative power of zero, or ValueError: of an integer")
NEGATIVE_SHIFT = (LaneStatus.ARITHMETIC, "ValueError: negative shift count")
DIVISION = (LaneStatus.ARITHMETIC, "ZeroDivisionError: division by zero")
NO_INT = (LaneStatus.ARITHMETIC, "OverflowError: cannot convert to an int of 32 bits: NaN, infinite or too large")
DOMAIN = (LaneStatus.ARITHMETIC, "ValueError: math domain error, or OverflowError: math range error")
OUT_OF_RANGE = (LaneStatus.INDEX, "IndexError: index out of range")
FULL = (LaneStatus.INDEX, "IndexError: append to a bounded list that is full")
NO_ROOM = (LaneStatus.INDEX, "IndexError: a list has more elements than there is room for")
EMPTY = (LaneStatus.INDEX, "IndexError: pop from an empty list")
NOT_IN_LIST = (LaneStatus.ARITHMETIC, "ValueError: the value is not in the list")
CALL_FAILED = (LaneStatus.RAISED, "RuntimeError: what a gradient is taken of has failed")
SHORT_SLICE = (LaneStatus.INDEX, "IndexError: index out of range, or the slice leaves the array")

HELPER_DIVISION = (
    LaneStatus.ARITHMETIC,
    "ZeroDivisionError: division by zero, or a negative power or shift, in a helper",
)
HELPER_INDEX = (LaneStatus.INDEX, "IndexError: index out of range in a helper")
NO_SITE = -1
"""The site of a check that cannot fail."""

CHECKED_BUILTINS = {
    "divmod": ZERO_DIVISION,
    "int": NO_INT,
    "round": NO_INT,
    "__free__": NO_ROOM,
    "__index__": NO_INT,
    "__last__": EMPTY,
    "__next__": FULL,
    "__place__": OUT_OF_RANGE,
    "__run__": CALL_FAILED,
    "__stored__": OUT_OF_RANGE,
}
"""Built-in functions that may fail a lane."""


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


# -- environment -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Environment:
    """Everything that gives the free names in a program's code their meaning.

    `names` has those that are no built-ins, `operand_types` those of captured arrays, of which the program has `kept`
    some. `tapes` says whether the user's code may take gradients.
    """

    backend: Backend
    names: Mapping[str, Any]
    captured: Captured
    operand_types: Mapping[str, Type] = field(default_factory=dict)
    kept: Mapping[str, Kept] = field(default_factory=dict)
    tapes: bool = False

    def lookup(self, name: str) -> Any:
        """The value of a free name; KeyError where it is bound to nothing."""
        if name == OPS:
            return importlib.import_module(self.backend.ops_module)
        return self.names[name] if name in self.names else vars(builtins)[name]

    def is_bound(self, name: str) -> bool:
        """Return whether a free name is bound to something of the user's, or is a built-in of Python's."""
        return name in self.names or name in vars(builtins)

    def path(self, text: str) -> Any:
        """The value of a dotted name such as `np.sqrt`; KeyError or AttributeError where there is none."""
        root, *attributes = text.split(".")
        value = self.lookup(root)
        for attribute in attributes:
            value = getattr(value, attribute)
        return value

    def equivalent(self, path: str) -> str | None:
        """Return the name in `ops` that stands for the function that the free `path` (`np.sqrt`) denotes, if any."""
        try:
            return self.backend.equivalent(self.path(path))
        except (KeyError, AttributeError):
            return None

    def may_fail(self, path: str) -> bool:
        """Return whether the free `path` (`helper`, `model.energy`) denotes a helper that may fail a lane."""
        try:
            return may_fail(self.path(path))
        except (KeyError, AttributeError):
            return False

    @property
    def hidden_builtins(self) -> frozenset[str]:
        """Built-ins of the language that mean something else here."""
        return frozenset(n for n in BUILTINS if n in self.names and self.names[n] is not vars(builtins).get(n))
