"""The arguments of a batched call: bound to parameters, split into lanes and shared values, their types found."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.ir import values
from pcbatch.ir.types import TensorType, Type, leaves, structs, with_leaves
from pcbatch.lowering.captures.captured import static_key
from pcbatch.options import Options, leaf_axes
from pcbatch.runtime.backends.protocol import Backend


class WrongCallError(UsageError, TypeError):
    """Raised for too few arguments, too many, or an unknown name."""


@dataclass(frozen=True)
class Arguments:
    """One batched call's arguments by parameter: leaves, types of one example, and which are shared by all lanes.

    Here structures are taken apart, once for all: what follows sees arrays only. `statics` has the arguments of static
    parameters, which are in none of the others; `variables` names the parameters for which all lanes share a variable.
    `defaults` has the ints that parameters have by default, where nothing else was given: sizes, perhaps.
    """

    leaves: Mapping[str, Sequence[Any]]
    types: Mapping[str, Type]
    shared: frozenset[str]
    lanes: Any
    statics: Mapping[str, Any] = field(default_factory=dict)
    variables: frozenset[str] = frozenset()
    defaults: Mapping[str, int] = field(default_factory=dict)

    def without_values(self) -> Arguments:
        """Return a copy that a compiled program may keep: everything but the arrays."""
        return replace(self, leaves={}, lanes=None)

    def are(self, values: Sequence[Any]) -> bool:
        """Return whether the leaves are these very values, one for each parameter, or made of a NumPy array each."""
        found = [leaves[0] for leaves in self.leaves.values() if len(leaves) == 1]
        if not len(found) == len(self.leaves) == len(values):
            return False
        return all(leaf is each or type(each) is np.ndarray for leaf, each in zip(found, values, strict=True))

    def refused_variable(self, function: str, backend: Backend) -> UsageError:
        """Return the error for a variable as argument of `function`, which takes gradients: no tape would know it."""
        return UsageError(
            "PCB518",
            f"{function} takes gradients, and its argument {min(self.variables)!r} is a variable, which no tape would "
            "know: an argument is the array that is read from it; let the function read the variable from around it, "
            f"or pass {backend.spelling('array')}(..) and watch it: tape.watch(..)",
        )

    @property
    def described(self) -> str:
        """The types by parameter, for the log: `(x: float32[3], n: int32)`."""
        return "(" + ", ".join(f"{name}: {type_}" for name, type_ in self.types.items()) + ")"

    @property
    def longest_row(self) -> int:
        """The room of the rows of unequal length among them: as many elements as a loop over one makes, mostly."""
        found = (each.items[0] for type_ in self.types.values() for each in structs(type_) if each.kind == "Ragged")
        return max((each.shape[0] for each in found if isinstance(each, TensorType) and each.shape), default=0)

    @property
    def signature(self) -> tuple[Any, ...]:
        """The properties of the arguments that a compiled program depends on."""
        statics = ((n, static_key(v)) for n, v in self.statics.items())
        return (tuple(self.types.items()), self.shared, self.variables, tuple(self.defaults.items()), *statics)


def bind_arguments(
    signature: inspect.Signature, options: Options, backend: Backend, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Arguments:
    """Bind a batched call; UsageError PCB51x for arguments that do not fit (a TypeError too, as in Python)."""
    given = dict(kwargs)
    lanes = given.pop("lanes", None) if "lanes" not in signature.parameters else None
    try:
        bound = signature.bind(*args, **given)
    except TypeError as error:
        raise WrongCallError("PCB510", f"{error}; the parameters are {signature}") from None
    passed = set(bound.arguments)
    bound.apply_defaults()
    axes = options.axes(tuple(signature.parameters))
    statics = {name: _static(name, bound.arguments.pop(name)) for name in options.static_argnames if name in axes}
    axes = {name: axis for name, axis in axes.items() if name not in statics}
    given_axes = {name: axis if name in passed else None for name, axis in axes.items()}  # a default is one for all
    given_axes |= dict.fromkeys(_numbers_for_all(bound.arguments, given_axes, lanes))
    parts: dict[str, list[_Leaf]] = {}
    whole: dict[str, Type] = {}
    for name, value in bound.arguments.items():
        try:
            whole[name], parts[name] = _leaves(backend, name, value, given_axes[name])
        except (TypeError, RecursionError) as error:
            raise _no_array(name, value, error) from None
    beside = (leaf.type for name in passed.intersection(parts) for leaf in parts[name] if leaf.floats is None)
    dtype = _one_float_dtype(beside)
    if dtype is not None:
        parts = {name: [leaf.of(dtype, backend) for leaf in leaves] for name, leaves in parts.items()}
    every = [leaf for leaves in parts.values() for leaf in leaves]
    count = _lanes({leaf.path: backend.lanes_of(leaf.value) for leaf in every if leaf.axis == 0}, lanes)
    shared = frozenset(name for name, leaves in parts.items() if _is_shared(leaves, given_axes[name]))
    types = {name: with_leaves(whole[name], (leaf.type for leaf in leaves)) for name, leaves in parts.items()}
    found = {name: [_array(backend, leaf, name in shared, count) for leaf in leaves] for name, leaves in parts.items()}
    variables = frozenset(name for name, leaves in parts.items() if any(leaf.is_variable for leaf in leaves))
    defaults = {n: v for n, v in bound.arguments.items() if n not in passed and type(v) is int}
    return Arguments(found, types, shared, count, statics, variables, defaults)


def _numbers_for_all(values: Mapping[str, Any], axes: Mapping[str, Any], lanes: Any) -> list[str]:
    """The arguments that have a lane axis but are plain numbers, which can be nothing but one for all lanes.

    None where no other argument says how many lanes there are: then it is an example that somebody has given, no batch.
    """
    batched = [name for name, axis in axes.items() if axis is not None]
    numbers = [name for name in batched if axes[name] == 0 and _is_number(values[name])]
    return numbers if lanes is not None or len(numbers) < len(batched) else []


def one_example(backend: Backend, value: Any, axes: Any, path: str, floats: str | None = None) -> Any:
    """One example's argument as plain Python sees it: arrays, but numbers and variables that all lanes share stay.

    Python's own floats are of the dtype `floats`, if that is given. UsageError PCB511 for what is no array.
    """
    try:
        arrays = backend.as_arrays(value, example=True)
        type_ = backend.type_of(arrays)
    except (TypeError, RecursionError) as error:
        raise _no_array(path, value, error) from None
    leaves = zip(values.flatten(type_, value), values.flatten(type_, arrays), leaf_axes(axes, type_, path), strict=True)

    def seen(given: Any, array: Any, axis: int | None) -> Any:
        if axis is None and (_is_number(given) or backend.is_variable(given)):
            return given
        is_cast = floats is not None and _are_own_floats(given, backend.type_of(array))
        return backend.as_arrays(np.asarray(given, floats), example=True) if is_cast else array

    return values.pack(type_, [seen(given, array, axis) for given, array, (_, axis) in leaves])


def floats_beside(backend: Backend, given: Sequence[Any], examples: Sequence[Any]) -> str | None:
    """The dtype of the float arrays among one example's arguments, if Python's own floats are to be of it.

    `given` are the arguments, `examples` the same as arrays. A batch has arrays for Python's own floats, too, of which
    nothing but those beside them says what dtype they have.
    """
    types = map(backend.type_of, examples)
    every = (pair for type_, value in zip(types, given, strict=True) for pair in _typed(type_, value))
    found = [(leaf, _are_own_floats(value, leaf)) for leaf, value in every]
    return _one_float_dtype(leaf for leaf, is_own in found if not is_own) if any(own for _, own in found) else None


def _one_float_dtype(types: Iterable[TensorType]) -> str | None:
    """The dtype of all floats among `types`; None where it is not one, or the one that Python's own have anyway."""
    found = {type_.dtype for type_ in types if "float" in type_.dtype and not type_.weak}
    return found.pop() if len(found) == 1 and found != {"float32"} else None


def _are_own_floats(value: Any, type_: Type) -> bool:
    """Return whether a leaf that is of `type_` as an array was given as Python's own float, or as a list of such."""
    return isinstance(type_, TensorType) and type_.dtype == "float32" and _are_own_numbers(value)


def _are_own_numbers(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_are_own_numbers, value))
    return type(value) in (bool, int, float)


def _typed(type_: Type, value: Any) -> Iterator[tuple[TensorType, Any]]:
    """The leaves of a value, each with its type."""
    return zip(leaves(type_), values.flatten(type_, value), strict=True)


def _no_array(name: str, value: Any, error: Exception) -> UsageError:
    """PCB511: an argument that no lane can have."""
    why: object = error
    if isinstance(value, (str, bytes)):
        why = f"text is no array\n  help: make it a static argument, `static_argnames={name!r}`"
    elif isinstance(error, RecursionError):
        why = "it contains itself, or is nested too deep"
    return UsageError("PCB511", f"argument {name!r}: {why}")


@dataclass(frozen=True)
class _Leaf:
    """An array of an argument: where it is, the type of one example, and whether lanes have their own.

    `is_variable`: it is read from a variable that all lanes share. `floats`: what was given, if
    that are Python's own.
    """

    path: str
    value: Any
    type: TensorType
    axis: int | None
    is_variable: bool = False
    floats: Any = None

    def of(self, dtype: str, backend: Backend) -> _Leaf:
        """Return this leaf with Python's own floats as `dtype`."""
        if self.floats is None:
            return self
        value = backend.as_arrays(np.asarray(self.floats, dtype))
        return replace(self, value=value, type=replace(self.type, dtype=dtype))


def _leaves(backend: Backend, name: str, value: Any, axes: Any) -> tuple[Type, list[_Leaf]]:
    """Return the structure of an argument and its leaves; TypeError if it is no array."""
    value = backend.padded(value, axes)
    arrays = backend.as_arrays(value)
    type_ = backend.structure_of(arrays)
    found = []
    every = values.flatten(type_, value)
    # Beside arrays with a lane axis a plain number in a structure is one for all lanes, as one beside a batch is.
    is_for_all = axes == 0 and not all(map(_is_number, every))
    pairs = zip(every, values.flatten(type_, arrays), leaf_axes(axes, type_, name), strict=True)
    for given, array, (path, axis) in pairs:
        axis = None if is_for_all and _is_number(given) else axis
        leaf = given if axis is None and _is_number(given) else array  # a number that all lanes share stays weak
        leaf_type = backend.type_of(leaf, batch=axis is not None)
        assert isinstance(leaf_type, TensorType)
        floats = given if _are_own_floats(given, leaf_type) else None
        found.append(_Leaf(path, leaf, leaf_type, axis, axis is None and backend.is_variable(given), floats))
    return type_, found


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _is_shared(leaves: Sequence[_Leaf], axes: Any) -> bool:
    """Return whether all lanes share an argument: no leaf is a lane's own, and it has leaves or `axes` says so."""
    return all(leaf.axis is None for leaf in leaves) and (bool(leaves) or axes is None)


def _array(backend: Backend, leaf: _Leaf, shared: bool, lanes: Any) -> Any:
    """Return the leaf as the program's input: beside leaves of lanes, a shared one is repeated for each of them."""
    return leaf.value if shared or leaf.axis == 0 else backend.spread(leaf.value, leaf.type, lanes)


def _static(name: str, value: Any) -> Any:
    try:
        static_key(value)
    except Exception as error:  # whatever a class raises that can hash some of its objects only
        raise UsageError(
            "PCB507", f"the static argument {name!r} is part of the cache key, so it must be hashable: {error}"
        ) from None
    return value


def _lanes(lengths: Mapping[str, Any], given: Any) -> Any:
    """Return the number of lanes: that of the batched arguments, or `lanes=` where there are none."""
    fixed = {name: length for name, length in lengths.items() if isinstance(length, int)}
    if given is not None:
        fixed["lanes="] = given
    if len(set(fixed.values())) > 1:
        sizes = ", ".join(f"{name} has {length}" for name, length in fixed.items())
        raise UsageError(
            "PCB513",
            f"the arguments disagree on the number of lanes: {sizes}\n  help: give each a first axis of one length; "
            "for one that all lanes share say in_axes={'name': None}",
        )
    if fixed:
        return next(iter(fixed.values()))
    if not lengths:
        raise UsageError("PCB514", "no argument has a batch axis; say how many lanes to run with lanes=..")
    return next(iter(lengths.values()))


def flattened(arguments: Arguments, parameters: Mapping[str, Sequence[str]]) -> Arguments:
    """Arguments with each of their arrays as a parameter of its own; `parameters` names those of each of the user's."""
    values: dict[str, Sequence[Any]] = {}
    types: dict[str, Type] = {}
    shared: set[str] = set()
    for user, names in parameters.items():
        if user not in arguments.types or not names:
            continue
        given = arguments.leaves.get(user) or [None] * len(names)
        for name, leaf, type_ in zip(names, given, leaves(arguments.types[user]), strict=True):
            types[name] = type_
            if arguments.leaves:
                values[name] = [leaf]
            if user in arguments.shared:
                shared.add(name)
    return replace(arguments, leaves=values, types=types, shared=frozenset(shared))
