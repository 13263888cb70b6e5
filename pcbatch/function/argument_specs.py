"""Specs of arguments: their properties, quickly read, on which a compiled program and the way to it depend."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any

import numpy as np

from pcbatch.lowering.captures.captured import static_key
from pcbatch.runtime.backends.interop import as_numpy, is_foreign

SpecOf = Callable[[Any], Hashable | None]
"""The dtype and shape of an array of the library; None of any other value."""


class _OtherError(Exception):
    """Raised for a value that a quick look does not recognise."""


def specs_of(args: Sequence[Any], statics: Collection[int], spec_of: SpecOf) -> tuple[Hashable, list[Any]] | None:
    """A key of the types of `args`, and their leaves, one after the other; None where it takes more than a glance.

    The arguments numbered `statics` count by their values. Arrays of the library and NumPy's are told, those of other
    libraries as NumPy's, numbers, and tuples, named tuples and dicts of such. What all calls of equal keys have in
    common is all but the leaves.
    """
    into: list[Any] = []
    try:
        if not statics:
            return tuple([_spec(value, spec_of, into) for value in args]), into
        found = [
            static_key(value) if number in statics else _spec(value, spec_of, into) for number, value in enumerate(args)
        ]
        return tuple(found), into
    except (_OtherError, TypeError, ValueError, RuntimeError, BufferError):  # what cannot be hashed, nor NumPy's
        return None


def _spec(value: Any, spec_of: SpecOf, into: list[Any]) -> Hashable:
    spec = spec_of(value)
    if spec is not None:
        into.append(value)
        return spec
    kind = type(value)
    if kind is np.ndarray or isinstance(value, np.generic):
        into.append(value)
        return (kind, value.dtype, value.shape)
    if value is None:
        return None
    if kind is tuple or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return (kind, *[_spec(each, spec_of, into) for each in value])
    if kind is dict and all(type(key) is str for key in value):
        return (kind, tuple(value), *[_spec(each, spec_of, into) for each in value.values()])
    if kind is bool or kind is float or (kind is int and -(2**31) <= value < 2**31):
        into.append(value)
        return (kind,)
    if is_foreign(value):
        array = as_numpy(value)
        into.append(array)
        return (np.ndarray, array.dtype, array.shape)
    raise _OtherError


def plain_spec(value: Any, spec_of: SpecOf) -> Hashable | None:
    """The dtype and shape of an array, which is the library's or NumPy's; None for anything else."""
    return (np.ndarray, value.dtype, value.shape) if type(value) is np.ndarray else spec_of(value)


def plain_leaf(value: Any, as_arrays: Callable[[Any], Any]) -> Any:
    """Convert an argument that has a `plain_spec` to the only leaf of its parameter."""
    return as_arrays(value) if type(value) is np.ndarray else value
