"""What a compiled program keeps of captured arrays: those that the user's code knows by what they are.

A gradient tape tells variables and tensors apart by identity, not by their numbers. A variable is the same one in the
body and in the helpers that it calls, and so is a tensor that a helper reads, too, or that is captured by two names.
Other arrays are numbers alone: a program keeps nothing of them, and another array in their place needs no other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pcbatch.ir import values
from pcbatch.ir.machine import Kept
from pcbatch.ir.types import Type
from pcbatch.lowering.captures.fingerprints import Same, fingerprint


def kept(
    operands: Mapping[str, Any], types: Mapping[str, Type], others: Iterable[Any], is_variable: Callable[[Any], bool]
) -> dict[str, Kept]:
    """The leaves of captured arrays, by operand, that a program keeps, None in the place of every other leaf.

    `others` is what else the program captures, its helpers among it.
    """
    every = {name: values.flatten(types[name], value) for name, value in operands.items()}
    count = Counter(id(leaf) for leaves in every.values() for leaf in leaves)
    seen = {each for each in count if count[each] > 1}
    if operands:
        seen.update(map(id, objects(others)))
    return _chosen(every, lambda leaf: is_variable(leaf) or id(leaf) in seen)


def variables(
    operands: Mapping[str, Any], types: Mapping[str, Type], is_variable: Callable[[Any], bool]
) -> tuple[Any, ...]:
    """A hashable key of the variables among captured arrays, by identity."""
    every = {name: values.flatten(types[name], value) for name, value in operands.items()}
    return tuple((name, *map(Same, leaves)) for name, leaves in _chosen(every, is_variable).items())


def holds(found: Mapping[str, Kept], operands: Mapping[str, Any], types: Mapping[str, Type]) -> bool:
    """Whether what a program keeps is still among the captured arrays `operands`, each in its place."""
    return all(
        known is None or known is leaf
        for name, leaves in found.items()
        for known, leaf in zip(leaves, values.flatten(types[name], operands[name]), strict=True)
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


def _chosen(every: Mapping[str, list[Any]], wanted: Callable[[Any], bool]) -> dict[str, Kept]:
    """The leaves that are wanted, None in the place of the others, by operand; only operands that have some."""
    found = {name: tuple(leaf if wanted(leaf) else None for leaf in leaves) for name, leaves in every.items()}
    return {name: leaves for name, leaves in found.items() if any(leaf is not None for leaf in leaves)}
