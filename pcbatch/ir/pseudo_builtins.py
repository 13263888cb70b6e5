"""Functions that only frontends and passes call in the code of a program; no user can hide or call them."""

from __future__ import annotations

PSEUDO_BUILTINS = frozenset(
    {
        "__apart__",  # refuses values of which one is, or contains, what another is
        "__axis__",  # all positions along an axis of an array
        "__cast__",  # a value as one of exactly a type
        "__element__",  # an element that is there
        "__elements__",  # the elements at all combinations of indices
        "__flag__",  # whether a value is True, or False, itself
        "__index__",  # an int
        "__length__",  # the length of the shortest of some sequences
        "__parts__",  # a sequence that has so many parts
        "__plain__",  # refuses what is no plain data
        "__unrolled__",  # refuses a length that is not the one known
        "__sequence__",  # something that a loop can go over
    }
)
