"""The environment of lowering outside the IR: names, captured operands and the backend's rules."""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pcbatch.ir.machine import Kept
from pcbatch.ir.types import Type
from pcbatch.lowering.captures.captured import Captured
from pcbatch.lowering.codegen.builtins import BUILTINS, OPS, may_fail
from pcbatch.runtime.backends.protocol import Backend


@dataclass(frozen=True)
class Environment:
    """Everything that gives the free names in a program's code their meaning.

    `names` has those that are no built-ins, `operand_types` those of captured arrays, of which the program has `kept`
    some. `tapes` says whether the user's code may take gradients.
    """

    backend: Backend
    names: Mapping[str, Any]
    captured: Captured
    operand_types: Mapping[str, Type] = field(default_factory=dict)
    kept: Mapping[str, Kept] = field(default_factory=dict)
    tapes: bool = False

    def lookup(self, name: str) -> Any:
        """The value of a free name; KeyError where it is bound to nothing."""
        if name == OPS:
            return importlib.import_module(self.backend.ops_module)
        return self.names[name] if name in self.names else vars(builtins)[name]

    def is_bound(self, name: str) -> bool:
        """Return whether a free name is bound to something of the user's, or is a built-in of Python's."""
        return name in self.names or name in vars(builtins)

    def path(self, text: str) -> Any:
        """The value of a dotted name such as `np.sqrt`; KeyError or AttributeError where there is none."""
        root, *attributes = text.split(".")
        value = self.lookup(root)
        for attribute in attributes:
            value = getattr(value, attribute)
        return value

    def equivalent(self, path: str) -> str | None:
        """Return the name in `ops` that stands for the function that the free `path` (`np.sqrt`) denotes, if any."""
        try:
            return self.backend.equivalent(self.path(path))
        except (KeyError, AttributeError):
            return None

    def may_fail(self, path: str) -> bool:
        """Return whether the free `path` (`helper`, `model.energy`) denotes a helper that may fail a lane."""
        try:
            return may_fail(self.path(path))
        except (KeyError, AttributeError):
            return False

    @property
    def hidden_builtins(self) -> frozenset[str]:
        """Built-ins of the language that mean something else here."""
        return frozenset(n for n in BUILTINS if n in self.names and self.names[n] is not vars(builtins).get(n))
