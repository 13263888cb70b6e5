"""The names by which generated code calls the backend, and what stands for the language's built-in functions."""

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
    "pow": "to_power",
    "round": "rounded",
    "sorted": "in_order",
    "sum": "total",
    "__axis__": "axis",
    "__blank__": "blank",
    "__cast__": "committed",
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
    "__stored__": "stored",
}
"""Built-in functions of the language and the function of `ops` that stands for each."""

OPS = "_ops"
"""The name by which generated code knows the backend's operations; no user's variable may have it."""
