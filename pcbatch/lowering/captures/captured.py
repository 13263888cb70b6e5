"""Captured values: what a program reads from closures, globals and modules, and which of it is array-like.

Array-like free values become shared operands, read at every call: never constants of the compiled program, never copied
to the lanes. (A captured 400 MB array took 43 s and 9 GB to compile as a constant, 0.6 s as an operand.) All other free
values are static: they are part of the compiled program and of its cache key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pcbatch.ir import program as ir
from pcbatch.ir.payload import PSEUDO_BUILTINS
from pcbatch.ir.types import Type
from pcbatch.ir.values import flatten


@dataclass(frozen=True)
class Captured:
    """The arrays that a program captures now: `values` by the name of the operand, with their types and leaves."""

    values: Mapping[str, Any] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)
    leaves: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def taken_apart(self, type_of: Callable[[Any], Type]) -> Captured:
        """Return a copy with the types and the leaves of the present values."""
        found = {name: type_of(value) for name, value in self.values.items()}
        leaves = {name: flatten(found[name], value) for name, value in self.values.items()}
        return replace(self, types=found, leaves=leaves)

    def without_values(self) -> Captured:
        """Return a copy that a compiled program may keep: everything but the arrays."""
        return replace(self, values={}, leaves={})


def coded_ops(function: ir.Function) -> Iterator[ir.Coded]:
    """A function's ops with payloads."""
    return (op for block in function.blocks for op in block.ops if isinstance(op, ir.Coded))


def names_read(function: ir.Function) -> frozenset[str]:
    """The free names that a function's ops read."""
    return frozenset(name for op in coded_ops(function) for name in ir.free(op))


def function_variables(function: ir.Function) -> frozenset[str]:
    """Return every variable of a cfg function: parameters, results and the writes of its ops."""
    return frozenset(ordered_variables(function))


def ordered_variables(function: ir.Function) -> tuple[str, ...]:
    """The function's variables: parameters first, then in order of first assignment."""
    written = (name for block in function.blocks for op in block.ops for name in ir.writes(op))
    return tuple(dict.fromkeys((*function.parameters, *written, *function.results)))


def free_roots(program: ir.Program) -> frozenset[str]:
    """The names that some function reads as free, pseudo-builtins apart."""
    return frozenset(name for function in program.functions for name in names_read(function)) - PSEUDO_BUILTINS
