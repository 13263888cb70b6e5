"""The inputs of a machine as arrays: the leaves of arguments and of shared operands, their shapes checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pcbatch.errors import UsageError
from pcbatch.ir.machine import Program
from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.protocol import Array, Backend


def argument_arrays(program: Program, backend: Backend, given: Sequence[Any], lanes: Any) -> list[Array]:
    """The `[lanes, ...]` leaves of all parameters; UsageError PCB531 for shapes that do not fit."""
    return _arrays("argument", program, backend, program.parameters, program.types, given, lanes)


def operand_arrays(program: Program, backend: Backend, given: Sequence[Any]) -> list[Array]:
    """The leaves of all shared operands; UsageError PCB531 for shapes that do not fit."""
    return _arrays("shared operand", program, backend, program.shared, program.shared_types, given, None)


def _arrays(
    what: str,
    program: Program,
    backend: Backend,
    names: Sequence[str],
    types: Mapping[str, Any],
    given: Sequence[Any],
    lanes: Any,
) -> list[Array]:
    wanted = [(name, type_) for name in names for type_ in leaves(types[name])]
    if len(wanted) != len(given):
        raise UsageError("PCB531", f"{program.name} takes {len(wanted)} {what}s, not {len(given)}")
    found = []
    for (name, type_), leaf in zip(wanted, given, strict=True):
        array = backend.array(leaf, type_.dtype)
        expected = type_.shape if lanes is None else (lanes if isinstance(lanes, int) else None, *type_.shape)
        shape = tuple(array.shape)
        if len(shape) != len(expected) or any(
            got is not None and wanted is not None and got != wanted
            for got, wanted in zip(shape, expected, strict=True)
        ):
            raise UsageError("PCB531", f"{what} {name!r} of {program.name} has shape {shape}, not {expected}")
        found.append(array)
    return found
