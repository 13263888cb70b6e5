"""Captured values: what a program reads from closures, globals and modules, and which of it is array-like.

Array-like free values become shared operands, read at every call: never constants of the compiled program, never copied
to the lanes. (A captured 400 MB array took 43 s and 9 GB to compile as a constant, 0.6 s as an operand.) All other free
values are static: they are part of the compiled program and of its cache key.

A compiled program keeps those arrays that the user's code identifies by object. A gradient tape tells variables and
tensors apart by identity, not by their numbers. A variable is the same one in the body and in the helpers that it
calls, and so is a tensor that a helper reads, too, or that is captured by two names. Other arrays are numbers alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pcbatch.ir import program as ir
from pcbatch.ir.machine import Kept
from pcbatch.ir.payload import PSEUDO_BUILTINS
from pcbatch.ir.types import Type
from pcbatch.ir.values import flatten
from pcbatch.lowering.captures.fingerprints import Same, fingerprint


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


Leaves = Mapping[str, Sequence[Any]]
"""The leaves of captured arrays, by operand."""


def kept(captured: Leaves, others: Iterable[Any], is_variable: Callable[[Any], bool]) -> dict[str, Kept]:
    """The leaves that a program keeps, by operand, None in the place of every other leaf.

    `others` is what else the program captures, its helpers among it.
    """
    count = Counter(id(leaf) for leaves in captured.values() for leaf in leaves)
    seen = {each for each in count if count[each] > 1}
    if captured:
        seen.update(map(id, objects(others)))
    return _chosen(captured, lambda leaf: is_variable(leaf) or id(leaf) in seen)


def variables(captured: Leaves, is_variable: Callable[[Any], bool]) -> tuple[Any, ...]:
    """A hashable key of the variables among captured arrays, by identity."""
    return tuple((name, *map(Same, leaves)) for name, leaves in _chosen(captured, is_variable).items())


def holds(found: Mapping[str, Kept], captured: Leaves) -> bool:
    """Return whether the arrays that a program keeps are still captured, each in its place."""
    return all(
        known is None or known is leaf
        for name, leaves in found.items()
        for known, leaf in zip(leaves, captured[name], strict=True)
    )


def objects(captured: Iterable[Any]) -> Iterator[Any]:
    """The objects that captured values are or lead to: functions and arrays that helpers read among them."""
    pending = [fingerprint(value) for value in captured]
    while pending:
        match pending.pop():
            case Same(value=value):
                yield value
            case tuple() | frozenset() as parts:
                pending += parts


def _chosen(captured: Leaves, wanted: Callable[[Any], bool]) -> dict[str, Kept]:
    """The leaves that are wanted, None in the place of the others, by operand; only operands that have some."""
    found = {name: tuple(leaf if wanted(leaf) else None for leaf in leaves) for name, leaves in captured.items()}
    return {name: leaves for name, leaves in found.items() if any(leaf is not None for leaf in leaves)}
