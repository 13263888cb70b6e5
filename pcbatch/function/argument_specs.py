"""Specs of arguments: their properties, quickly read, on which a compiled program and the way to it depend.

In the place of arguments that a user gives as specs stand arrays of zeros: their dtypes and shapes count, nothing else.
A spec has a `shape` and a `dtype` and is neither an array nor a record: `tf.TensorSpec`, `jax.ShapeDtypeStruct`. The
first size of a lane's argument may be left open, where what is compiled serves every number of lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.ir import values
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


# -- zeros -------------------------------------------------------------------------------------------------------------


class Blanks:
    """The arguments `args` and `kwargs` of parameters with such `axes`, arrays in the place of specs.

    UsageError PCB539 for a spec that leaves open what it must say. Arguments of the parameters `statics` are values.
    """

    def __init__(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        axes: Mapping[str, Any],
        statics: Collection[str],
        is_array: Callable[[Any], bool],
    ):
        self._is_array = is_array
        self._names = [name if name not in statics else None for name in axes]
        self._names += [""] * (len(args) - len(self._names))  # which are too many, as binding them says
        named = [(name, value) for name, value in zip(self._names, args, strict=False) if name is not None]
        named += [(name, value) for name, value in kwargs.items() if name not in statics]
        sizes = [self._sizes(leaf) for name, value in named if axes.get(name) == 0 for leaf in _leaves(value)]
        lengths = [each[0] for each in sizes if each]
        known = [each for each in lengths if each is not None]
        self._lanes = known[0] if known else 1
        self.any_lanes = bool(lengths) and not known
        """Return whether all specs leave the number of lanes open."""
        self.are_some = any(self._is_spec(leaf) for _, value in named for leaf in _leaves(value))
        """Return whether something stands for a spec."""
        pairs = zip(self._names, args, strict=False)
        self.args = [value if name is None else self._of(value, name, axes.get(name)) for name, value in pairs]
        self.kwargs = {n: value if n in statics else self._of(value, n, axes.get(n)) for n, value in kwargs.items()}

    def with_arrays(self, made: Callable[[np.ndarray], Any]) -> list[Any]:
        """Return the arguments by position, each of NumPy's arrays replaced by `made` of it."""
        pairs = zip(self._names, self.args, strict=False)
        return [
            value if name is None else _mapped(lambda leaf: made(leaf) if type(leaf) is np.ndarray else leaf, value)
            for name, value in pairs
        ]

    def _is_spec(self, value: Any) -> bool:
        if self._is_array(value) or is_foreign(value) or isinstance(value, type):
            return False
        return hasattr(value, "shape") and hasattr(value, "dtype")

    def _sizes(self, value: Any) -> list[int | None]:
        """Return the sizes of an array or a spec, None for unknown ones; [] for other values or an unknown rank."""
        try:
            return [*value.shape]
        except (AttributeError, TypeError, ValueError):
            return []

    def _of(self, value: Any, name: str, axes: Any) -> Any:
        return _mapped(lambda leaf: self._array(leaf, name, axes) if self._is_spec(leaf) else leaf, value)

    def _array(self, spec: Any, name: str, axes: Any) -> np.ndarray:
        """The array that stands for a spec."""
        sizes, rank = self._sizes(spec), getattr(spec.shape, "rank", 0)
        unknown = [place for place, size in enumerate(sizes) if size is None]
        if rank is None or unknown not in ([], [0]) or (unknown and axes != 0):
            raise UsageError(
                "PCB539",
                f"argument {name!r}: {spec!r} leaves sizes open; only the number of lanes may be, the first size",
            )
        shape = [self._lanes if size is None else size for size in sizes]
        return np.zeros(shape, getattr(spec.dtype, "as_numpy_dtype", spec.dtype))


def _parts(value: Any) -> dict[Any, Any] | None:
    """The parts of a structure; None for any other value."""
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return dict(enumerate(value))
    return values.fields_of(value)


def _leaves(value: Any) -> Iterator[Any]:
    parts = _parts(value)
    if parts is None:
        yield value
        return
    for part in parts.values():
        yield from _leaves(part)


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """A structure with `function` of each leaf; the same object where nothing in it is another."""
    parts = _parts(value)
    if parts is None:
        return function(value)
    made = {key: _mapped(function, part) for key, part in parts.items()}
    if all(made[key] is part for key, part in parts.items()):
        return value
    if isinstance(value, dict):
        return made
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(made.values())
    return values.made(type(value), made)
