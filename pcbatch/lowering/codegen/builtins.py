"""Built-in functions and operators in generated code: the backend's names for them, and how they fail a lane."""

from __future__ import annotations

from pcbatch.ir.machine import LaneStatus

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
