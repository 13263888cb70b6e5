"""What tells the programs of one batched function apart: types of arguments, and what the function has captured."""

from __future__ import annotations

from typing import Any

from pcbatch.function.arguments import Arguments
from pcbatch.function.linking import Linked
from pcbatch.lowering.captures.captured import Captured, collect
from pcbatch.lowering.captures.fingerprints import shallow, without_identity
from pcbatch.lowering.captures.kept import variables
from pcbatch.lowering.captures.look import COMPUTED
from pcbatch.runtime.backends.protocol import Backend

Statics = tuple[tuple[str, str, Any], ...]
"""The keys of captured values that are part of a program: function, path, key."""


class Keys:
    """Makes the keys of one function's programs."""

    def __init__(self, backend: Backend):
        self._backend = backend
        self._computed: set[tuple[str, str]] = set()
        """Functions and the paths that they read where a property, or the like, gives a new object at each look."""

    def key(self, arguments: Arguments, captured: Captured, statics: Statics) -> Any:
        """What tells programs apart, but for what the user's code has read while they were traced."""
        operands = tuple((function, *paths.items()) for function, paths in captured.operands.items())
        tapes_know = variables(captured.leaves, self._backend.is_variable)
        types = tuple(captured.types.items())
        return self._backend.place(), arguments.signature, types, operands, statics, tapes_know

    def statics(self, captured: Captured) -> Statics:
        """The keys of the captured values that are part of the program; what is made anew at each look has none."""
        return tuple(
            (function, path, COMPUTED if (function, path) in self._computed else shallow(value))
            for function, path, value in captured.statics
        )

    def find_computed(self, before: Statics, linked: Linked) -> bool:
        """Look once more; whether something is another object of the same class now, which a property has made.

        Nothing but its class can be part of the key, or each call would compile.
        """
        again = collect(linked.free, linked.namespaces, self._backend.is_array)
        pairs = zip(before, self.statics(again), strict=False)
        found = {old[:2] for old, new in pairs if old != new and without_identity(old) == without_identity(new)}
        self._computed |= found
        return bool(found)
