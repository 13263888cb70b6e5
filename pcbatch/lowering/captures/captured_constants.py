"""The captured arrays that a compiled program keeps: those that the user's code identifies by object.

A gradient tape tells variables and tensors apart by identity, not by their numbers. A variable is the same one in the
body and in the helpers that it calls, and so is a tensor that a helper reads, too, or that is captured by two names.
Other arrays are numbers alone: a program keeps nothing of them, and another array in their place needs no other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pcbatch.ir.machine import Kept
from pcbatch.lowering.captures.fingerprints import Same, fingerprint

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
