"""The names by which generated code calls the backend, and the forms of the language's built-in functions."""

from __future__ import annotations

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
