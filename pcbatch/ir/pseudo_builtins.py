"""Functions that only frontends and passes call in the code of a program; no user can hide or call them."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping
from typing import Any

from pcbatch.ir import records

CHANGED, STORED, TAKEN = "__changed__", "__stored__", "__taken__"
"""Changes of structures: an object after a method's call, a container after a store of an element."""
BLANK = "__blank__"
"""An array of zeros, into which `pcbatch.map` stores its results."""

PSEUDO_BUILTINS = frozenset(
    {
        "__axis__",  # all positions along an axis of an array
        "__blank__",  # an array of zeros
        "__changed__",  # what an object is after one of its methods has been called
        "__cast__",  # a value as one of exactly a type
        "__element__",  # an element that is there
        "__free__",  # the place behind the last of some rows, of which there may be so many
        "__guarded__",  # what counts where a condition holds
        "__index__",  # an int
        "__last__",  # the place of the last of so many rows, which is taken out
        "__length__",  # the length of the shortest of some sequences
        "__next__",  # the place behind the last of the rows of a bounded list
        "__object__",  # an object of a class, made of its fields
        "__place__",  # the place that an index means among so many rows
        "__record__",  # the words of an entry of `pcbatch.debug`
        "__recorded__",  # where the next entry of a record goes, and how many there are then
        "__row__",  # a tuple as an element of an array
        "__unrecorded__",  # a record without entries
        "__run__",  # what a batched function gives for this lane, run as one operation
        "__stored__",  # what has elements, with some of them replaced
        "__taken__",  # what a method gives, and what its object is after it
        "__with_field__",  # a record with an attribute replaced
        "__with_item__",  # a list or a dict with an entry replaced
    }
)


def _shortest(*sequences: Any, strict: bool = False) -> int:
    lengths = [len(sequence) for sequence in sequences]
    if strict and len(set(lengths)) > 1:
        raise ValueError(f"sequences of lengths {lengths}")
    return min(lengths)


def _element(sequence: Any, position: int, count: int | None = None) -> Any:
    return sequence[position] if count is None else list(sequence)[position]


def _with_field(record: Any, value: Any, name: str) -> Any:
    return records.made(type(record), {**(records.fields_of(record) or {}), name: value})


def _with_item(whole: Any, value: Any, key: Any) -> Any:
    changed = copy.copy(whole)
    changed[key] = value
    return changed


STRUCTURAL: Mapping[str, Callable[..., Any]] = {
    "__element__": _element,
    "__index__": operator.index,
    "__length__": _shortest,
    "__with_field__": _with_field,
    "__with_item__": _with_item,
}
"""Those that only take structures apart and put them together, as Python's values have it."""
