"""Functions that only frontends and passes call in the code of a program; no user can hide or call them."""

from __future__ import annotations

CHANGED, STORED, TAKEN, WITHIN = "__changed__", "__stored__", "__taken__", "__within__"
"""What changes of structures are made of; see `pcbatch.frontend.translate.changes`."""

ROW = "__row__"
"""A tuple or a list that is stored as an element: an array where it goes into one."""
BLANK, MAPPED = "__blank__", "__mapped__"
"""What `pcbatch.map` is made of; see `pcbatch.frontend.translate.mapped`."""
COUNT = "__count__"
"""What a range inside `zip`, `enumerate` or `reversed` is made of; see `pcbatch.frontend.translate.sequences`."""
BEGUN, MADE = "__begun__", "__made__"
"""What calls of constructors are made of that are part of the program; see `pcbatch.frontend.translate.takings`."""
UNBOUND = "__unbound__"
"""What a variable is behind a loop that has made no turn; see `pcbatch.frontend.translate.statements`."""

PSEUDO_BUILTINS = frozenset(
    {
        "__apart__",  # refuses values of which one is, or contains, what another is
        "__axis__",  # all positions along an axis of an array
        "__begun__",  # an object of a class before its `__init__` has run
        "__blank__",  # an array of zeros
        "__count__",  # something as long as a range
        "__changed__",  # what an object is after one of its methods has been called
        "__cast__",  # a value as one of exactly a type
        "__element__",  # an element that is there
        "__elements__",  # the elements at all combinations of indices
        "__flag__",  # whether a value is True, or False, itself
        "__guarded__",  # what counts where a condition holds
        "__index__",  # an int
        "__length__",  # the length of the shortest of some sequences
        "__made__",  # that object, now that it has
        "__mapped__",  # refuses results of `pcbatch.map` that are not the ones known
        "__object__",  # an object of a class, made of its fields
        "__parts__",  # a sequence that has so many parts
        "__plain__",  # refuses what is no plain data
        "__record__",  # the words of an entry of `pcbatch.debug`
        "__recorded__",  # where the next entry of a record goes, and how many there are then
        "__unbound__",  # refuses to be a value
        "__unrolled__",  # refuses a length that is not the one known
        "__row__",  # a tuple as an element of an array
        "__sequence__",  # something that a loop can go over
        "__unrecorded__",  # a record without entries
        "__stored__",  # what has elements, with some of them replaced
        "__turns__",  # refuses a number of turns that is not the one known
        "__taken__",  # what a method gives, and what its object is after it
        "__with_field__",  # a record with an attribute replaced
        "__with_item__",  # a list or a dict with an entry replaced
        "__within__",  # a structure with a part put back that has changed
    }
)
