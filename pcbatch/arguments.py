"""The arguments of a batched call: bound to parameters, split into lanes and shared values, their types found."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pcbatch.diagnostics import UsageError
from pcbatch.ir.types import Type
from pcbatch.options import Options
from pcbatch.runtime import values
from pcbatch.runtime.backends.protocol import Backend


class WrongCallError(UsageError, TypeError):
    """Too few arguments, too many, or one that no parameter has the name of."""


@dataclass(frozen=True)
class Arguments:
    """One batched call's arguments by parameter: values, types of one example, and which are shared by all lanes."""

    values: Mapping[str, Any]
    types: Mapping[str, Type]
    shared: frozenset[str]
    lanes: Any

    def without_values(self) -> Arguments:
        """What a compiled program may keep: everything but the arrays."""
        return replace(self, values={}, lanes=None)

    @property
    def signature(self) -> tuple[Any, ...]:
        """What a compiled program depends on."""
        return (tuple(self.types.items()), self.shared)


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
    found: dict[str, Any] = {}
    types: dict[str, Type] = {}
    lengths: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        shared = axes[name] is None or name not in passed  # a default is one value for all
        axes[name] = None if shared else 0
        try:
            found[name] = backend.as_arrays(value) if not shared else _shared(backend, value)
            types[name] = backend.type_of(found[name]) if shared else backend.example_type(found[name])
        except TypeError as error:
            raise UsageError("PCB511", f"argument {name!r}: {error}") from None
        if not shared:
            lengths.update(_lengths(name, backend, types[name], found[name]))
    return Arguments(found, types, frozenset(n for n, a in axes.items() if a is None), _lanes(lengths, lanes))


def _shared(backend: Backend, value: Any) -> Any:
    """An argument for all lanes: a Python number stays one (weak), everything else becomes arrays."""
    return value if isinstance(value, (bool, int, float)) else backend.as_arrays(value)


def _lengths(name: str, backend: Backend, type_: Type, value: Any) -> dict[str, Any]:
    """The length of the batch axis of each leaf, by a name for messages."""
    leaves = values.flatten(type_, value)
    return {name if len(leaves) == 1 else f"{name}[{i}]": backend.lanes_of(leaf) for i, leaf in enumerate(leaves)}


def _lanes(lengths: Mapping[str, Any], given: Any) -> Any:
    """The number of lanes: what the batched arguments agree on, or `lanes=` where there are none."""
    fixed = {name: length for name, length in lengths.items() if isinstance(length, int)}
    if given is not None:
        fixed["lanes="] = given
    if len(set(fixed.values())) > 1:
        sizes = ", ".join(f"{name} has {length}" for name, length in fixed.items())
        raise UsageError("PCB513", f"the arguments disagree on the number of lanes: {sizes}")
    if fixed:
        return next(iter(fixed.values()))
    if not lengths:
        raise UsageError("PCB514", "no argument has a batch axis; say how many lanes to run with lanes=..")
    return next(iter(lengths.values()))
