"""What a compiled program keeps of captured arrays: those that the user's code knows by what they are.

A gradient tape tells variables and tensors apart by identity, not by their numbers. A variable is the same one in the
body and in the helpers that it calls, and so is a tensor that a helper reads, too, or that is captured by two names.
Other arrays are numbers alone: a program keeps nothing of them, and another array in their place needs no other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pcbatch.ir.types import Type
from pcbatch.lowering.fingerprints import Same
from pcbatch.runtime import values
from pcbatch.runtime.table import Kept


def kept(
    operands: Mapping[str, Any], types: Mapping[str, Type], keys: Iterable[Any], is_variable: Callable[[Any], bool]
) -> dict[str, Kept]:
    """The leaves of captured arrays, by operand, that a program keeps, None in the place of every other leaf.

    `keys` are the fingerprints of what else the program captures, its helpers among them.
    """
    every = {name: values.flatten(types[name], value) for name, value in operands.items()}
    count = Counter(id(leaf) for leaves in every.values() for leaf in leaves)
    seen = {each for each in count if count[each] > 1}
    for key in keys if operands else ():
        _collect(key, seen)
    found: dict[str, Kept] = {}
    for name, leaves in every.items():
        chosen = tuple(leaf if is_variable(leaf) or id(leaf) in seen else None for leaf in leaves)
        if any(leaf is not None for leaf in chosen):
            found[name] = chosen
    return found


def identities(found: Mapping[str, Kept]) -> tuple[Any, ...]:
    """A hashable key of what is kept, by identity."""
    return tuple((name, *map(Same, leaves)) for name, leaves in found.items())


def _collect(key: Any, seen: set[int]) -> None:
    """Add the `id`s of the objects in a fingerprint to `seen`."""
    match key:
        case Same(value=value):
            seen.add(id(value))
        case tuple() | frozenset():
            for part in key:
                _collect(part, seen)
